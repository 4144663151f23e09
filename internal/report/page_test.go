package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/report"
)

// hostile is text that would do something if it were taken for HTML.
const hostile = `<img src=https://example.invalid/x onerror=alert(1)>&"'`

func sample() report.Page {
	return report.Page{
		Title: "A run " + hostile, Lead: "On a machine.",
		Verdict: report.Verdict{Text: "Failed: 1 lost.", Details: []string{"Message 7 did not arrive." + hostile}},
		Tiles:   []report.Tile{{Value: "12,345", Label: "messages"}, {Value: "1", Label: "lost", Bad: true}},
		Sections: []report.Section{
			{Title: "Over time", Text: []string{"Two lines."}, Lines: &report.LineChart{
				ID: "time", Title: "Rates", Description: "Two lines. " + hostile, Unit: "messages/s",
				Series: []report.Series{
					{Name: "sent", Points: []report.Point{{X: 0, Y: 0}, {X: 5, Y: 4200}, {X: 10, Y: 3900}}},
					{Name: "received " + hostile, Points: []report.Point{{X: 0, Y: 0}, {X: 5, Y: 4000}, {X: 10, Y: 4100}}},
				},
				Bands: []report.Band{{From: 0, To: 5, Label: "100 B"}, {From: 5, To: 10, Label: "1 KB"}},
				Marks: []report.Mark{{X: 2, Label: "killed"}, {X: 9, Label: "killed again"}},
			}},
			{Title: "Compared", Bars: &report.BarChart{
				ID: "bars", Title: "Speeds", Description: "Bars.", Unit: "messages/s",
				Bars: []report.Bar{{Label: "ours", Value: 12000, Text: "12,000"}, {Label: "theirs", Value: 18000, Text: "18,000", Other: true}, {Label: "none", Text: "0"}},
			}},
			{Title: "Batches", Columns: &report.ColumnChart{
				ID: "columns", Title: "Batches", Description: "Columns.", Unit: "calls", ClassUnit: "messages",
				Columns: []report.Column{{Label: "1", Value: 40, Text: "40"}, {Label: "2–3", Value: 7, Text: "7"}, {Label: "4–7", Text: "0"}},
			}},
			{Title: "Numbers", Table: &report.Table{Caption: "All", Head: []string{"What", "Count"}, Rows: [][]string{{"sent " + hostile, "1"}}}, Code: "go run . " + hostile},
		},
		Foot: "The end.",
	}
}

func write(t *testing.T, page report.Page) string {
	t.Helper()
	var text bytes.Buffer
	if err := page.Write(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestPageNamesNoPlaceToFetchFrom(t *testing.T) {
	t.Parallel()
	page := sample()
	text := strings.ReplaceAll(write(t, page), "example.invalid", "")
	for _, forbidden := range []string{"<script", "<img", "http:", "<iframe", "@import", "url(", "<object"} {
		if strings.Contains(text, forbidden) {
			t.Errorf("the page has %q in it", forbidden)
		}
	}
	if !strings.Contains(text, `content="default-src 'none';`) {
		t.Error("nothing forbids the page to fetch anything")
	}
}

func TestPageShowsTextAsItIs(t *testing.T) {
	t.Parallel()
	text := write(t, sample())
	if strings.Contains(text, hostile) || strings.Contains(text, "<img") {
		t.Error("a text was taken for HTML")
	}
}

// Each chart is an image with a title and a description, for those who listen to the page.
func TestChartsHaveTitleAndDescription(t *testing.T) {
	t.Parallel()
	text := write(t, sample())
	for _, id := range []string{"time", "bars", "columns"} {
		if !strings.Contains(text, `role="img" aria-labelledby="`+id+"-title "+id+`-description"`) ||
			!strings.Contains(text, `<title id="`+id+`-title">`) || !strings.Contains(text, `<desc id="`+id+`-description">`) {
			t.Errorf("chart %s lacks a title or a description", id)
		}
	}
}

func TestChartsAreWellFormed(t *testing.T) {
	t.Parallel()
	empty := report.Page{Sections: []report.Section{
		{Lines: &report.LineChart{ID: "a"}},
		{Bars: &report.BarChart{ID: "b"}},
		{Columns: &report.ColumnChart{ID: "c"}},
		{Lines: &report.LineChart{ID: "d", Series: []report.Series{{Points: []report.Point{{X: 0, Y: 0}}}}}},
	}}
	for name, page := range map[string]report.Page{"full": sample(), "empty": empty} {
		rest := write(t, page)
		charts := 0
		for {
			_, after, found := strings.Cut(rest, "<svg")
			if !found {
				break
			}
			chart, after, _ := strings.Cut(after, "</svg>")
			rest = after
			charts++
			decoder := xml.NewDecoder(strings.NewReader("<svg" + chart + "</svg>"))
			for {
				if _, err := decoder.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("%s: chart %d: %v", name, charts, err)
				}
			}
			if strings.Contains(chart, "NaN") || strings.Contains(chart, "Inf") {
				t.Errorf("%s: chart %d has a coordinate that is no number", name, charts)
			}
		}
		if charts < 3 {
			t.Errorf("%s: %d charts", name, charts)
		}
	}
}

// picturesVariable names a folder for pictures of the page, for a person to look at.
const picturesVariable = "PARLEY_TEST_PICTURES"

func TestPageInABrowser(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, []byte(write(t, sample())), 0o600); err != nil {
		t.Fatal(err)
	}
	address := (&url.URL{Scheme: "file", Path: path}).String()
	b.open(address)
	for _, requested := range b.requested {
		if requested != address && !strings.HasPrefix(requested, "data:") {
			t.Errorf("the page asked for %s", requested)
		}
	}
	if len(b.complained) > 0 {
		t.Errorf("the browser complains: %s", b.complained)
	}
	for _, want := range []struct {
		what, expression string
	}{
		{"all charts are drawn, large enough to be seen", `[...document.querySelectorAll("svg")].filter(s => s.getBoundingClientRect().width > 300 && s.getBoundingClientRect().height > 60).length == 3`},
		{"both lines have all their points", `[...document.querySelectorAll("#time-title")].length == 1 && [...document.querySelectorAll("polyline")].every(p => p.points.numberOfItems == 3)`},
		{"nothing of a chart lies outside of it", `[...document.querySelectorAll("svg")].every(s => [...s.querySelectorAll("rect,polyline,text:not(.mark text):not(.legend text)")].every(e => { const a = s.getBoundingClientRect(), b = e.getBoundingClientRect(); return b.left >= a.left - 1 && b.right <= a.right + 1 && b.top >= a.top - 1 && b.bottom <= a.bottom + 1 }))`},
		{"bars are as long as their values", `(([a, b]) => Math.abs(a.width / b.width - 12000 / 18000) < 0.01)([...document.querySelectorAll("[aria-labelledby^=bars] rect")].map(r => r.getBoundingClientRect()))`},
		{"no text became an element", `document.querySelectorAll("img,script").length == 0`},
		{"the verdict can be read", `document.querySelector(".verdict.bad").innerText.startsWith("Failed: 1 lost.")`},
	} {
		var holds bool
		if b.evaluate(want.expression, &holds); !holds {
			t.Errorf("not so: %s", want.what)
		}
	}
	checkColours(t, b)
	if folder := os.Getenv(picturesVariable); folder != "" {
		b.dress(900, "light")
		b.picture(filepath.Join(folder, "light.png"))
		b.dress(900, "dark")
		b.picture(filepath.Join(folder, "dark.png"))
		b.dress(400, "light")
		b.picture(filepath.Join(folder, "narrow.png"))
	}
}

// checkColours looks at the page in the dark and on a narrow screen.
func checkColours(t *testing.T, b *browser) {
	t.Helper()
	const paper = `getComputedStyle(document.body).backgroundColor`
	const ink = `getComputedStyle(document.body).color`
	seen := map[string]string{}
	for _, colours := range []string{"light", "dark"} {
		b.dress(900, colours)
		var background, text string
		b.evaluate(paper, &background)
		b.evaluate(ink, &text)
		if background == text || background == seen["paper"] {
			t.Errorf("%s: %s on %s", colours, text, background)
		}
		seen["paper"] = background
	}
	b.dress(400, "light")
	var fits bool
	if b.evaluate(`document.documentElement.scrollWidth <= 400`, &fits); !fits {
		t.Error("the page is wider than a narrow screen")
	}
}
