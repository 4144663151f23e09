package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

// The page and the JSON report the same.
func TestServersPageInABrowserShowsTheFiguresOfTheJSON(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	run := failedServersResult()
	var page bytes.Buffer
	if err := run.WritePage(&page); err != nil {
		t.Fatal(err)
	}
	show(t, b, page.Bytes())
	checkClaims(t, b, []claim{
		{"all charts are drawn, large enough to be seen", `[...document.querySelectorAll("svg")].filter(s => s.getBoundingClientRect().width > 300 && s.getBoundingClientRect().height > 60).length == 5`},
		{"lines have points", `document.querySelectorAll("svg.broad polyline").length == 4 && [...document.querySelectorAll("polyline")].every(p => p.points.numberOfItems > 20)`},
		{"bars have lengths", `document.querySelectorAll("svg rect").length > 10 && [...document.querySelectorAll(".broad[aria-labelledby^=initiators] rect, .broad[aria-labelledby^=payloads] rect, .broad[aria-labelledby^=spread] rect")].every(r => r.getBoundingClientRect().width > 1)`},
		{"no text became an element", `document.querySelectorAll("img,script").length == 0`},
		{"the verdict can be read", `document.querySelector(".verdict.bad").innerText.startsWith("Failed: 1 lost")`},
	})
	checkColours(t, b)
	checkLayout(t, b, "servers")

	text, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	var reported struct {
		MessagesSent     int64 `json:"messages_sent"`
		MessagesReceived int64 `json:"messages_received"`
		Lost             int64 `json:"lost"`
		Phases           []struct {
			MessagesReceived  int64   `json:"messages_received"`
			MessagesPerSecond float64 `json:"messages_per_second"`
			SendP99MS         float64 `json:"send_p99_ms"`
			WaitingMax        int64   `json:"waiting_max"`
		} `json:"phases"`
		Links []struct {
			MessagesSent int64 `json:"messages_sent"`
			CarriedBytes int64 `json:"carried_bytes"`
		} `json:"links"`
	}
	if err := json.Unmarshal(text, &reported); err != nil {
		t.Fatal(err)
	}
	var tables [][][]string
	b.evaluate(`[...document.querySelectorAll("table")].map(t => [...t.rows].map(r => [...r.cells].map(c => c.innerText.replace(/\s/g, " ").trim())))`, &tables)
	// rows gives the cells of some columns of the table that begins with a heading.
	rows := func(heading string, columns ...int) (cells [][]string) {
		t.Helper()
		for _, table := range tables {
			if len(table) > 0 && table[0][0] == heading {
				for _, row := range table[1:] {
					var some []string
					for _, column := range columns {
						some = append(some, row[column])
					}
					cells = append(cells, some)
				}
			}
		}
		return cells
	}
	var phases, links [][]string
	for _, p := range reported.Phases {
		phases = append(phases, []string{
			thousands(p.MessagesReceived), rate(p.MessagesPerSecond), fmt.Sprintf("%.1f ms", p.SendP99MS), thousands(p.WaitingMax),
		})
	}
	for _, l := range reported.Links {
		links = append(links, []string{thousands(l.MessagesSent), thousands(l.CarriedBytes)})
	}
	for _, want := range []struct {
		heading  string
		shown    [][]string
		reported [][]string
	}{
		{"Phase", rows("Phase", 1, 2, 7, 8), phases},
		{"Link", rows("Link", 1, 2), links},
	} {
		if len(want.reported) == 0 || !slices.EqualFunc(want.shown, want.reported, slices.Equal) {
			t.Errorf("the table %s shows %v, and the JSON has %v", want.heading, want.shown, want.reported)
		}
	}
	for label, n := range map[string]int64{"messages sent": reported.MessagesSent, "messages received": reported.MessagesReceived, "lost": reported.Lost} {
		var shown bool
		expression := fmt.Sprintf(`[...document.querySelectorAll("*")].some(e => e.innerText && e.innerText.replace(/\s+/g, " ").trim() == %q)`, thousands(n)+" "+label)
		if b.evaluate(expression, &shown); !shown {
			t.Errorf("no tile shows %s %s", thousands(n), label)
		}
	}
}
