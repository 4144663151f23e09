package demo

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// ShowMail returns an Observer for people.
func ShowMail(out io.Writer, isTerminal bool) Observer[MailProgress] {
	line := func(p MailProgress) string {
		return fmt.Sprintf("%5.1f s  %-19s  %s orders, %s rolled back, %s confirmed; %s answers, %s received", p.Elapsed.Seconds(), p.Part,
			thousands(p.Orders), thousands(p.RolledBack), thousands(p.Confirmed), thousands(p.Answers), thousands(p.Received))
	}
	picture := func(p MailProgress) string {
		most := float64(max(p.Orders, p.Confirmed, p.Answers, p.Received, 1))
		var text strings.Builder
		for _, line := range []struct {
			name  string
			count int64
			more  string
		}{
			{"orders", p.Orders, fmt.Sprintf("%s more were rolled back", thousands(p.RolledBack))},
			{"confirmed", p.Confirmed, fmt.Sprintf("%s under way", thousands(max(0, p.Orders-p.Confirmed)))},
			{"answers", p.Answers, ""},
			{"received", p.Received, fmt.Sprintf("%s under way", thousands(max(0, p.Answers-p.Received)))},
		} {
			fmt.Fprintf(&text, "  %-9s  %s %9s  %s\n", line.name, bar(float64(line.count), most), thousands(line.count), line.more)
		}
		fmt.Fprintf(&text, "  %s; %.0f of about %.0f s\n", p.Part, p.Elapsed.Seconds(), p.Duration.Seconds())
		return text.String()
	}
	return display(out, isTerminal, line, picture)
}

// mailCounts are the judge's findings, for the table and the page.
func mailCounts(r *MailResult) []count {
	return []count{
		{"orders, each with a confirmation", r.Orders},
		{"orders rolled back", r.RolledBack},
		{"confirmations at the relay", r.Confirmed},
		{"answers accepted", r.Answers},
		{"answers received as messages", r.Received},
		{"recipients where a letter arrived", int64(r.Arrived)},
		{"recipients reported as failed", int64(r.Reported)},
		{"answers of which nobody knows whether they were accepted", int64(r.Unknown)},
		{"again, as a connection died between a letter and its reply", int64(r.Uncertain)},
		{"again, as a daemon was killed before it recorded a reply", int64(r.Unrecorded)},
		{"lost", int64(r.Lost)},
		{"arrived, never sent", int64(r.NeverSent)},
		{"doubled otherwise", int64(r.Duplicated)},
		{"changed", int64(r.Changed)},
		{"arrived and reported as failed", int64(r.Contradicts)},
		{"left behind in queues", r.LeftBehind.total()},
	}
}

// WriteTable writes the result for a person at a terminal.
func (r *MailResult) WriteTable(out io.Writer) error {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range mailCounts(r) {
		fmt.Fprintf(table, "%s\t%s\n", row.name, thousands(row.count))
	}
	_ = table.Flush()
	for _, example := range r.Examples {
		fmt.Fprintf(&text, "  %s\n", example)
	}
	fmt.Fprintf(&text, "\n%s\n", wrap(r.Verdict()))
	_, err := io.WriteString(out, text.String())
	return err
}
