// Package present shows a run of the benchmark: the verdict first, then numbers, then charts, then the one thing to try next; as text for a
// terminal and as one HTML page.
package present

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/measure/bottleneck"
	"github.com/parley-broker/parley/internal/measure/record"
)

// Text writes a run for a terminal. numbers writes the table of the scenario.
func Text(out io.Writer, head *record.Head, numbers func(io.Writer) error) error {
	writeVerdict(out, head.Verdict)
	fmt.Fprintln(out)
	if err := numbers(out); err != nil {
		return err
	}
	if err := writeBars(out, head.Figures); err != nil {
		return err
	}
	writeOthers(out, head.Figures)
	writeWaits(out, head.Analysis)
	writeObjects(out, head.Analysis)
	writeComparison(out, head.Compared)
	writeNext(out, head)
	return nil
}

// Setup writes the checks, each with its text beside its name.
func Setup(out io.Writer, checks []record.Check) {
	longest := 0
	for _, check := range checks {
		longest = max(longest, len(check.Name))
	}
	for _, check := range checks {
		begin := fmt.Sprintf("  %-7s  %-*s  ", check.State, longest, check.Name)
		Prose(out, begin, check.Text)
		if check.Hint != "" {
			Prose(out, strings.Repeat(" ", len(begin)), check.Hint)
		}
	}
}

func writeVerdict(out io.Writer, v *record.Verdict) {
	if v == nil {
		return
	}
	fmt.Fprintf(out, "Verdict: %s\n", v.Grade)
	for _, reason := range v.Reasons {
		Prose(out, "  - ", reason)
	}
}

// barLength is the length of the longest bar, in characters, where the terminal has room beside its label and its value; mostBars is how
// many there may be.
const (
	barLength = 36
	leastBar  = 10
	besideBar = 14
	mostBars  = 24
)

// writeBars draws the figures of one unit beside one another, with the published ones under them.
func writeBars(out io.Writer, figures []record.Figure) error {
	unit, bars := barsOf(figures)
	if len(bars) < 2 {
		return nil
	}
	most, width := 0.0, 0
	for _, b := range bars {
		most, width = max(most, b.Value), max(width, utf8.RuneCountInString(b.Label))
	}
	fmt.Fprintf(out, "\n%s\n", unit)
	longest := float64(max(leastBar, min(barLength, proseWidth-width-besideBar)))
	for _, b := range bars {
		length := int(b.Value/most*longest + 0.5)
		mark := "█"
		if b.Other {
			mark = "░"
		}
		fmt.Fprintf(out, "  %-*s %s %s\n", width, b.Label, strings.Repeat(mark, max(1, length)), b.Text)
	}
	return nil
}

// writeOthers lists the figures of other units than the first one's.
func writeOthers(out io.Writer, figures []record.Figure) {
	table := Columns("", "", "")
	for _, f := range figures {
		if f.Unit == figures[0].Unit {
			continue
		}
		limit := ""
		if f.AtMost > 0 {
			limit = "has to be below " + record.Text(f.AtMost, f.Unit)
		}
		if f.AtLeast > 0 {
			limit = "has to be above " + record.Text(f.AtLeast, f.Unit)
		}
		table.Row("  "+f.Name, record.Text(f.Value, f.Unit), limit)
	}
	if len(table.rows) > 0 {
		table.Write(out)
	}
}

// mostWaits is how many are listed.
const mostWaits = 5

func writeWaits(out io.Writer, a *bottleneck.Analysis) {
	if a == nil || a.Samples == 0 {
		return
	}
	fmt.Fprintln(out)
	Prose(out, "", fmt.Sprintf("Of the sessions' time (%d samples, one every %.0f ms; %.1f sessions, %.1f at work)", a.Samples,
		a.IntervalMS, a.Sessions, a.Working))
	table := Columns("", "", "")
	for _, w := range a.Waits[:min(mostWaits, len(a.Waits))] {
		table.Row(fmt.Sprintf("  %.0f%%", 100*w.Share), w.Event, plain(w))
	}
	table.Write(out)
	for _, note := range a.Notes {
		Prose(out, "  ", note)
	}
}

func writeComparison(out io.Writer, c *record.Comparison) {
	if c == nil {
		return
	}
	fmt.Fprintf(out, "\nCompared with %s\n", c.With)
	table := Numbers("figure", "before", "now", "change", "noise", "")
	for _, d := range c.Differences {
		mark := ""
		if d.Worse {
			mark = "regression"
		}
		table.Row(d.Name, record.Number(d.Before), record.Number(d.After), fmt.Sprintf("%+.0f%%", 100*d.Change),
			fmt.Sprintf("%.0f%%", 100*d.Noise), mark)
	}
	table.Write(out)
	for _, changed := range c.Changed {
		Prose(out, "  not the same: ", changed)
	}
}

func writeNext(out io.Writer, head *record.Head) {
	if head.Analysis == nil {
		return
	}
	fmt.Fprintln(out)
	Prose(out, "", head.Analysis.Limit.Sentence)
	if head.Tried != nil {
		Prose(out, "Tried: ", head.Tried.Text)
		return
	}
	Prose(out, "Try next: ", Next(head.Analysis.Limit.Change))
}

// proseWidth is how many columns a line of prose has: those of the narrowest usual terminal.
const proseWidth = 80

// Prose breaks a text between words, to 80 columns. A beginning that ends in a blank stands beside the text, any other is a part of it.
func Prose(out io.Writer, begin, text string) {
	indent := utf8.RuneCountInString(begin)
	if strings.HasSuffix(begin, ": ") {
		indent = 2
	}
	line := begin
	isEmpty := true
	for word := range strings.FieldsSeq(text) {
		if !isEmpty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > proseWidth {
			fmt.Fprintln(out, line)
			line, isEmpty = strings.Repeat(" ", indent), true
		}
		if !isEmpty {
			line += " "
		}
		line, isEmpty = line+word, false
	}
	fmt.Fprintln(out, line)
}

// Next says what to try.
func Next(change bottleneck.Change) string {
	if change.Setting == "" {
		return change.Text
	}
	return change.Text + "; --try does it and measures again"
}

// plain says what an event means, for those that come up.
func plain(w bottleneck.Wait) string {
	text := meanings[w.Event]
	if kind, _, _ := strings.Cut(w.Event, ":"); text == "" {
		text = meanings[kind]
	}
	if w.Object != "" {
		text += " (" + w.Object + ")"
	}
	return text
}

var meanings = map[string]string{
	"CPU":                  "work in the server, or a wait for a processor",
	"Client:ClientRead":    "the client has not sent its next statement yet",
	"LWLock:WALWrite":      "another session writes the log; this one commits with it",
	"IO:WALSync":           "the storage makes the log durable",
	"IO:WalSync":           "the storage makes the log durable",
	"IO:WALWrite":          "the log is given to the system",
	"IO:WalWrite":          "the log is given to the system",
	"LWLock:WALInsert":     "room in the buffers of the log",
	"LWLock:BufferContent": "a page that another session changes",
	"LWLock:BufferMapping": "a page is brought into the buffers",
	"LWLock:LockManager":   "the table of locks",
	"Lock:transactionid":   "a row that another transaction has changed",
	"Lock:tuple":           "a row that others wait for, too",
	"Lock:extend":          "a table that grows",
	"IPC:SyncRep":          "a synchronous standby",
	"IO":                   "a file",
	"Lock":                 "a lock of another session",
	"LWLock":               "a structure in shared memory",
}
