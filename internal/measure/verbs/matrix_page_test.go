package verbs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/present"
	"github.com/parley-broker/parley/internal/measure/record"
)

// wholeMatrix has all cells of the paper of two versions: each of 150 dialogs is 2.9 times as fast as one of one dialog.
func wholeMatrix() (cells []bench.Cell) {
	for _, version := range []string{"15.20", "18.1"} {
		for n := 1; n <= 3; n++ {
			for _, threads := range []int{1, 2, 3, 4, 5, 10, 15, 20, 30, 40, 50} {
				for _, size := range []int{100, 1024, 4096, 8192} {
					rate := float64(100*n*threads) / (1 + float64(size)/8192)
					for dialogs, times := range map[int]float64{1: 1, 150: 2.9} {
						cells = append(cells, bench.Cell{
							Version: version, Initiators: n, Threads: threads, Size: size, Dialogs: dialogs, Rate: rate * times,
						})
					}
				}
			}
		}
	}
	return cells
}

// beyond lists the elements that stand beyond the window, or that have to be scrolled to be read.
const beyond = `(() => {
	const faults = [], edge = document.documentElement.clientWidth
	if (document.documentElement.scrollWidth > edge) faults.push("the page is " + document.documentElement.scrollWidth + " wide")
	for (const e of document.body.querySelectorAll("*")) {
		const box = e.getBoundingClientRect()
		if (e.getClientRects().length > 0 && (box.right > edge + 0.5 || box.left < -0.5))
			faults.push(e.tagName + " " + (e.textContent || "").trim().slice(0, 40) + " goes from " + box.left + " to " + box.right)
	}
	return faults
})()`

// The page of the paper's matrix in a browser: a chart for each number of initiators and each version, with a line for each size and a point
// for each number of threads; nothing beyond a window of a phone or of a desk; no request to anywhere.
func TestPageOfTheMatrixInABrowser(t *testing.T) {
	t.Parallel()
	if _, err := osexec.LookPath("chromium"); err != nil {
		if os.Getenv("PARLEY_TEST_REQUIRE_CHROMIUM") != "" {
			t.Fatal("chromium is not installed and PARLEY_TEST_REQUIRE_CHROMIUM is set")
		}
		t.Skip("chromium is not installed")
	}
	var page bytes.Buffer
	head := &record.Head{Scenario: "matrix", Verdict: &record.Verdict{Grade: record.Pass}, Figures: []record.Figure{
		{Name: "3x50, 100 B, 150 dialogs", Unit: "messages/s", Value: 14_800},
	}}
	if err := present.Page(&page, head, "parley bench matrix --all", matrixSections(wholeMatrix())); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "matrix.html")
	if err := os.WriteFile(file, page.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.WSURLReadTimeout(2*time.Minute), chromedp.UserDataDir(t.TempDir()))
	allocated, cancelAllocated := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	defer cancelAllocated()
	ctx, cancel := chromedp.NewContext(allocated, chromedp.WithErrorf(func(string, ...any) {}))
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate("file://"+file)); err != nil {
		t.Fatal(err)
	}
	for claim, want := range map[string]string{
		`"" + document.querySelectorAll("svg.broad[aria-labelledby^=matrix]").length`:                                                         "6",
		`[...new Set([...document.querySelectorAll("svg.broad[aria-labelledby^=matrix] polyline")].map(p => p.points.numberOfItems))].join()`: "11",
		`"" + document.querySelectorAll("svg.broad[aria-labelledby^=matrix] polyline").length`:                                                "24",
		`"" + document.body.innerText.includes("3 initiators and one target, PostgreSQL 18.1")`:                                               "true",
		`"" + [...document.querySelectorAll("svg.broad[aria-labelledby^=trick] text")].filter(e => e.textContent == "290").length`:            "80",
		`performance.getEntriesByType("resource").map(r => r.name).join()`:                                                                    "",
	} {
		if got, err := chromedp.Run(ctx, chromedp.Evaluate[string](claim)); err != nil || got != want {
			t.Errorf("%s gives %q, want %q, with %v", claim, got, want, err)
		}
	}
	for _, width := range []int64{375, 1280} {
		for _, colours := range []string{"light", "dark"} {
			dressed := chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
				_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
					Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: colours}},
				})
				return err
			})
			if err := chromedp.Do(ctx, chromedp.EmulateViewport(width, 900), dressed); err != nil {
				t.Fatal(err)
			}
			faults, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](beyond))
			if err != nil || len(faults) > 0 {
				t.Errorf("%d columns, %s: %v with %v", width, colours, faults, err)
			}
			ground, err := chromedp.Run(ctx, chromedp.Evaluate[string](`getComputedStyle(document.body).backgroundColor`))
			var red, green, blue int
			if _, scanned := fmt.Sscanf(ground, "rgb(%d, %d, %d)", &red, &green, &blue); err != nil || scanned != nil ||
				(red+green+blue > 3*128) != (colours == "light") {
				t.Errorf("%d columns, %s: the ground is %q, with %v and %v", width, colours, ground, err, scanned)
			}
		}
	}
}
