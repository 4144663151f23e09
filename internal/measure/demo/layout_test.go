package demo

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// layoutFaults is a script that lists what is wrong with how a page is laid out. Nothing may stand beyond the window or
// scroll sideways, labels of a chart may not touch each other nor stand outside of it, a number and its unit stand on one
// line, and the tiles have one size.
const layoutFaults = `(() => {
	const faults = [], edge = document.documentElement.clientWidth
	const shown = e => e.getClientRects().length > 0
	const name = e => e.tagName.toLowerCase() + " " + JSON.stringify((e.textContent || "").trim().slice(0, 40))
	if (document.documentElement.scrollWidth > edge) faults.push("the page is " + document.documentElement.scrollWidth + " wide")
	for (const e of document.body.querySelectorAll("*")) {
		if (!shown(e)) continue
		const box = e.getBoundingClientRect()
		if (box.right > edge + 0.5 || box.left < -0.5) faults.push(name(e) + " goes from " + box.left + " to " + box.right)
		if (!(e instanceof SVGElement) && e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0) faults.push(name(e) + " is cut off or scrolls")
	}
	let charts = 0
	for (const chart of document.querySelectorAll("figure > svg")) {
		if (!shown(chart)) continue
		charts++
		const outer = chart.getBoundingClientRect()
		for (const e of chart.querySelectorAll("rect,polyline,text")) {
			const b = e.getBoundingClientRect()
			if (b.left < outer.left - 1 || b.right > outer.right + 1 || b.top < outer.top - 1 || b.bottom > outer.bottom + 1)
				faults.push(name(e) + " stands outside of its chart")
		}
		const labels = [...chart.querySelectorAll("text")].map(e => [e, e.getBoundingClientRect()])
		labels.forEach(([e, a], i) => {
			if (a.height < 10) faults.push(name(e) + " is " + a.height + " high")
			for (const [f, b] of labels.slice(i + 1)) {
				if (a.left < b.right && b.left < a.right && a.top + 2 < b.bottom - 2 && b.top + 2 < a.bottom - 2)
					faults.push(name(e) + " touches " + name(f))
			}
		})
	}
	if (charts == 0 || charts != document.querySelectorAll("figure").length) faults.push(charts + " charts are shown")
	// A number and its unit are a range of text, which has one line when all of its boxes stand at one height.
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
	let measures = 0
	while (texts.nextNode()) {
		if (!shown(texts.currentNode.parentElement) || texts.currentNode.parentElement.closest("svg,pre")) continue
		for (const found of texts.currentNode.data.matchAll(/[0-9][0-9.,]*\s(s|ms|B|KB|GiB|messages\/s)\b/g)) {
			const range = document.createRange()
			range.setStart(texts.currentNode, found.index)
			range.setEnd(texts.currentNode, found.index + found[0].length)
			measures++
			const tops = [...range.getClientRects()].map(r => r.top)
			if (Math.max(...tops) - Math.min(...tops) > 4) faults.push(found[0] + " stands on two lines")
		}
	}
	if (measures == 0) faults.push("no number with a unit was found")
	for (const e of document.querySelectorAll(".tiles p"))
		if (e.getBoundingClientRect().height > 40) faults.push(name(e) + " stands on two lines")
	const boxes = [...document.querySelectorAll(".tiles li")].map(e => e.getBoundingClientRect())
	const sizes = new Set(boxes.map(b => Math.round(b.width) + " by " + Math.round(b.height)))
	if (sizes.size != 1) faults.push("the tiles measure " + [...sizes].join(", "))
	return faults
})()`

// checkLayout finds faults of layout on a phone and on a desk, in the light and in the dark.
func checkLayout(t *testing.T, b *browser, picture string) {
	t.Helper()
	for _, width := range []int{375, 761, 1280} {
		for _, colours := range []string{"light", "dark"} {
			b.dress(width, colours)
			var faults []string
			b.evaluate(layoutFaults, &faults)
			for _, fault := range faults {
				t.Errorf("%d pixels, %s: %s", width, colours, fault)
			}
			if folder := os.Getenv(picturesVariable); folder != "" {
				b.picture(filepath.Join(folder, fmt.Sprintf("%s-%d-%s.png", picture, width, colours)))
			}
		}
	}
}

// A short run has phases, and a cut, that are narrower than their labels.
func TestPageOfAShortRunIsLaidOutWell(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	run := failedServersResult()
	run.Cut.Seconds, run.Cut.ConnectionsBroken, run.Cut.WaitingMax = 0.2, 1, 1
	for i := range run.Phases {
		run.Phases[i].begun = run.Seconds * float64(i*i) / 60
	}
	var page bytes.Buffer
	if err := run.WritePage(&page); err != nil {
		t.Fatal(err)
	}
	show(t, b, page.Bytes())
	checkLayout(t, b, "short")
	checkClaims(t, b, []claim{{"one connection is in the singular", `document.body.innerText.includes("1 connection in use") && !/\b1 (connections|messages|readers|senders|initiators) /.test(document.body.innerText)`}})
}

// A run with large batches has more classes of them than there is room for beside each other.
func TestPageOfLargeBatchesIsLaidOutWell(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	run := failedResult()
	run.batches = nil
	for n := range 14 {
		run.batches = append(run.batches, batch{atLeast: 1 << n, calls: int64(12345 - 800*n)})
	}
	var page bytes.Buffer
	if err := run.WritePage(&page); err != nil {
		t.Fatal(err)
	}
	show(t, b, page.Bytes())
	checkLayout(t, b, "batches")
}
