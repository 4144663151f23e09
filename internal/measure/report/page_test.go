package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/measure/report"
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

// Each chart is an image with a title and a description, for screen readers.
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
