package present

import (
	"fmt"
	"io"
	"slices"

	"github.com/parley-broker/parley/internal/measure/bottleneck"
	"github.com/parley-broker/parley/internal/measure/observe"
	"github.com/parley-broker/parley/internal/measure/record"
	"github.com/parley-broker/parley/internal/measure/report"
)

// Page writes a run as one HTML page, with the charts of the scenario between the numbers and the analysis. command repeats the run.
func Page(out io.Writer, head *record.Head, command string, own []report.Section) error {
	page := report.Page{
		Title: "parley bench " + head.Scenario,
		Lead: fmt.Sprintf("%s. %s, %d cores, %s; %sparley %s.", head.StartedAt.Format("2 January 2006, 15:04 MST"),
			head.Machine.CPU, head.Machine.Cores, head.Machine.OS, serverOf(head), head.Parley),
		Verdict: verdictOf(head), Tiles: tilesOf(head),
		Foot: footOf(head),
	}
	if unit, bars := barsOf(head.Figures); len(bars) > 0 {
		for i := range bars {
			bars[i].Label = fitting(bars[i].Label)
		}
		page.Sections = append(page.Sections, report.Section{Title: "Figures", Bars: &report.BarChart{
			ID: "figures", Title: "Figures of the run", Description: "A bar for each figure, and for each published one.", Unit: unit, Bars: bars,
		}})
	}
	page.Sections = append(page.Sections, own...)
	if lines := linesOf(head.Samples); lines != nil {
		page.Sections = append(page.Sections, report.Section{Title: "Rates", Text: []string{
			"What the clients counted, all measured runs one after another. The figures are counted by the database.",
		}, Lines: lines})
	}
	page.Sections = append(page.Sections, tableOf(head.Figures))
	page.Sections = append(page.Sections, analysisOf(head.Analysis)...)
	if head.Tried != nil {
		page.Sections = append(page.Sections, report.Section{Title: "Tried", Text: []string{head.Tried.Text}})
	}
	if c := head.Compared; c != nil {
		page.Sections = append(page.Sections, comparisonOf(c))
	}
	page.Sections = append(page.Sections, setupOf(head.Setup), report.Section{Title: "Repeat it", Code: command})
	return page.Write(out)
}

// serverOf names the server, where one takes part.
func serverOf(head *record.Head) string {
	if head.Machine.PostgresVersion == "" {
		return ""
	}
	return "PostgreSQL " + head.Machine.PostgresVersion + ", "
}

func footOf(head *record.Head) string {
	where := ", in databases made for the run and dropped after it"
	if head.Machine.PostgresVersion == "" {
		where = ", without a database"
	}
	return fmt.Sprintf("Measured in %.0f s%s. Figures are medians; a spread is the distance from the slowest run to the fastest, divided by "+
		"the median.", head.Seconds, where)
}

func verdictOf(head *record.Head) report.Verdict {
	if head.Verdict == nil {
		return report.Verdict{}
	}
	return report.Verdict{Good: head.Verdict.Passed(), Text: string(head.Verdict.Grade), Details: head.Verdict.Reasons}
}

// tilesOf are the first figures.
func tilesOf(head *record.Head) (tiles []report.Tile) {
	for _, f := range head.Figures[:min(4, len(head.Figures))] {
		tiles = append(tiles, report.Tile{Value: record.Number(f.Value), Unit: unitOf(f.Unit), Label: f.Name, Bad: !f.Keeps()})
	}
	return tiles
}

func unitOf(unit string) string {
	switch unit {
	case "messages/s", "transactions/s":
		return "/s"
	}
	return unit
}

// barsOf are the figures that have the unit of the first one, each with its published figure.
func barsOf(figures []record.Figure) (unit string, bars []report.Bar) {
	if len(figures) == 0 {
		return "", nil
	}
	unit = figures[0].Unit
	for _, f := range figures {
		if f.Unit != unit || len(bars) >= mostBars {
			continue
		}
		bars = append(bars, report.Bar{Label: f.Name, Value: f.Value, Text: record.Number(f.Value)})
		if f.Published > 0 {
			bars = append(bars, report.Bar{Label: f.Name + ", published", Value: f.Published, Text: record.Number(f.Published), Other: true})
		}
	}
	return unit, bars
}

func linesOf(samples []observe.Sample) *report.LineChart {
	if len(samples) < 2 {
		return nil
	}
	in, out := report.Series{Name: "in"}, report.Series{Name: "out"}
	isIn, isOut := false, false
	for _, s := range samples {
		in.Points = append(in.Points, report.Point{X: s.Seconds, Y: s.In})
		out.Points = append(out.Points, report.Point{X: s.Seconds, Y: s.Out})
		isIn, isOut = isIn || s.In > 0, isOut || s.Out > 0
	}
	chart := &report.LineChart{
		ID: "rates", Title: "Rates over time", Description: "Messages that went in and came out, a second.", Unit: "messages/s",
		XUnit: "seconds that were measured",
	}
	for _, s := range []struct {
		isThere bool
		series  report.Series
	}{{isIn, in}, {isOut, out}} {
		if s.isThere {
			chart.Series = append(chart.Series, s.series)
		}
	}
	if len(chart.Series) == 0 {
		return nil
	}
	return chart
}

func tableOf(figures []record.Figure) report.Section {
	table := &report.Table{Caption: "Medians", Head: []string{"Figure", "Value", "Spread", "Published", "Limit"}}
	for _, f := range figures {
		published, limit := "", ""
		if f.Published > 0 {
			published = record.Text(f.Published, f.Unit)
		}
		switch {
		case f.AtLeast > 0:
			limit = "above " + record.Text(f.AtLeast, f.Unit)
		case f.AtMost > 0:
			limit = "below " + record.Text(f.AtMost, f.Unit)
		}
		table.Rows = append(table.Rows, []string{f.Name, record.Text(f.Value, f.Unit), fmt.Sprintf("%.0f%%", 100*f.Spread), published, limit})
	}
	for column := len(table.Head) - 1; column > 1; column-- {
		if !slices.ContainsFunc(table.Rows, func(row []string) bool { return row[column] != "" }) {
			table.Head = slices.Delete(table.Head, column, column+1)
			for i := range table.Rows {
				table.Rows[i] = slices.Delete(table.Rows[i], column, column+1)
			}
		}
	}
	return report.Section{Title: "Numbers", Table: table}
}

func analysisOf(a *bottleneck.Analysis) []report.Section {
	if a == nil {
		return nil
	}
	section := report.Section{
		Title: "What limits", Text: []string{a.Limit.Sentence},
		After: []string{"Try next: " + Next(a.Limit.Change) + "."},
	}
	for _, other := range a.Others {
		section.After = append(section.After, "Then: "+other.Sentence)
	}
	section.After = append(section.After, a.Notes...)
	if len(a.Waits) > 0 {
		chart := &report.BarChart{
			ID: "waits", Title: "What sessions were at", Description: "Shares of the sessions' time by what they waited for.",
			Unit: fmt.Sprintf("percent of the sessions' time; %d samples, one every %.0f ms", a.Samples, a.IntervalMS),
		}
		for _, w := range a.Waits[:min(mostWaits+3, len(a.Waits))] {
			label := w.Event
			if w.Object != "" {
				label += " on " + w.Object
			}
			chart.Bars = append(chart.Bars, report.Bar{Label: fitting(label), Value: 100 * w.Share, Text: fmt.Sprintf("%.0f", 100*w.Share)})
		}
		section.Bars = chart
	}
	return append([]report.Section{section, countersOf(a)}, objectSections(a)...)
}

// longestLabel is how many characters of a label fit a chart on a phone.
const longestLabel = 34

func fitting(label string) string {
	if characters := []rune(label); len(characters) > longestLabel {
		return string(characters[:longestLabel-1]) + "…"
	}
	return label
}

// countersOf are the counters that explain a limit, where this server has them.
func countersOf(a *bottleneck.Analysis) report.Section {
	table := &report.Table{Words: true, Head: []string{"Counter", "While it was measured"}}
	add := func(name, text string) { table.Rows = append(table.Rows, []string{name, text}) }
	if bytes := a.Counters["wal.wal_bytes"]; a.Messages > 0 && bytes > 0 {
		add("bytes of the log, a message", record.Number(bytes/a.Messages))
	}
	for _, counter := range []struct{ name, label string }{
		{"database.xact_commit", "transactions"},
		{"wal.wal_bytes", "bytes of the log"},
		{"wal.wal_fpi", "full pages in the log"},
		{"wal.wal_buffers_full", "times that the buffers of the log were full"},
		{"database.blks_hit", "blocks found in the buffers"},
		{"database.blks_read", "blocks read into the buffers"},
		{"checkpoints.checkpoints_req", "checkpoints that were asked for"},
		{"checkpoints.num_requested", "checkpoints that were asked for"},
		{"checkpoints.buffers_backend", "buffers that sessions wrote themselves"},
		{"io.client backend.relation.normal.evictions", "buffers that sessions evicted"},
	} {
		if value, is := a.Counters[counter.name]; is {
			add(counter.label, record.Number(value))
		}
	}
	if s := a.System; s.IsSeen {
		add("processors busy", fmt.Sprintf("%.0f%%, of that this client %.0f%%, servers %.0f%%", 100*s.Busy, 100*s.Client, 100*s.Servers))
		add("in the kernel, waiting for disks, stolen", fmt.Sprintf("%.0f%%, %.0f%%, %.0f%%", 100*s.Kernel, 100*s.IOWait, 100*s.Stolen))
		for _, d := range s.Disks {
			if d.Busy >= 0.01 {
				add("disk "+d.Name, fmt.Sprintf("%.0f%% busy, a read %.2f ms, a write %.2f ms", 100*d.Busy, d.ReadMS, d.WriteMS))
			}
		}
	}
	return report.Section{Title: "Server and system", Table: table}
}

func comparisonOf(c *record.Comparison) report.Section {
	table := &report.Table{Caption: c.With, Head: []string{"Figure", "Before", "Now", "Change", "Noise"}}
	for _, d := range c.Differences {
		change := fmt.Sprintf("%+.0f%%", 100*d.Change)
		if d.Worse {
			change += ", regression"
		}
		table.Rows = append(table.Rows, []string{
			d.Name, record.Number(d.Before), record.Number(d.After), change,
			fmt.Sprintf("%.0f%%", 100*d.Noise),
		})
	}
	return report.Section{Title: "Compared", Table: table, After: c.Changed}
}

func setupOf(checks []record.Check) report.Section {
	table := &report.Table{Words: true, Head: []string{"Check", "State", "Found"}}
	for _, check := range checks {
		text := check.Text
		if check.Hint != "" {
			text += ". " + check.Hint
		}
		table.Rows = append(table.Rows, []string{check.Name, string(check.State), text})
	}
	return report.Section{Title: "Set-up", Table: table}
}
