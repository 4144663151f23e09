package demo

import (
	"fmt"
	"io"

	"github.com/parley-broker/parley/internal/measure/report"
)

// WritePage writes the result page: one HTML file that needs nothing else.
func (r *MailResult) WritePage(out io.Writer) error {
	return writePage(out, r, report.Page{
		Title: "Parley demo of mail",
		Lead: "A database that takes orders and sends each confirmation in the order's own transaction, played on PostgreSQL " +
			r.Machine.PostgresVersion + ".",
		Tiles: []report.Tile{
			{Value: thousands(r.Orders), Label: "orders confirmed by mail"},
			{Value: thousands(r.RolledBack), Label: "orders rolled back, and their mail"},
			{Value: thousands(r.Received), Label: "answers received as messages"},
			{Value: thousands(int64(r.Lost)), Label: "lost", Bad: r.Lost > 0},
			{Value: thousands(int64(r.repeats())), Label: "came twice, their reply not recorded"},
			{Value: thousands(int64(r.Duplicated)), Label: "doubled otherwise", Bad: r.Duplicated > 0},
			{Value: thousands(int64(r.Changed)), Label: "changed", Bad: r.Changed > 0},
			{Value: thousands(int64(r.NeverSent)), Label: "arrived, never sent", Bad: r.NeverSent > 0},
			{Value: thousands(int64(r.DaemonsKilled)), Label: "daemons killed", Bad: r.DaemonsKilled != 1},
		},
		Sections: []report.Section{mailTimeSection(r), mailCheckSection(r)},
	})
}

func mailTimeSection(r *MailResult) report.Section {
	orders, confirmed := mailRates(r.samples)
	chart := &report.LineChart{
		ID: "letters", Title: "Orders and confirmations per second, over time",
		Description: fmt.Sprintf("Two lines over %.0f seconds, one for orders that were committed and one for confirmations that arrived "+
			"at the relay, which stops while the relay is away.", r.Seconds),
		Unit:   "letters/s",
		Series: []report.Series{{Name: "orders", Points: orders}, {Name: "confirmed", Points: confirmed}},
	}
	for _, mark := range r.marks {
		chart.Marks = append(chart.Marks, report.Mark{X: mark.seconds, Label: mark.label})
	}
	return report.Section{
		Title: "Letters over time", Lines: chart,
		Text: []string{fmt.Sprintf("%s orders, one a transaction, and sends the confirmation in it. While the relay is away orders go on: "+
			"their confirmations wait in the database. %d daemons share the work; when one is killed, the other sends what it had in its hands.",
			counted(int64(r.Settings.Sessions), "session places", "sessions place"), mailDaemons)},
	}
}

// mailRates turns counts into letters per second.
func mailRates(samples []MailSample) (orders, confirmed []report.Point) {
	last := MailSample{}
	for _, s := range samples {
		seconds := s.Seconds - last.Seconds
		if seconds < rateSeconds {
			continue
		}
		middle := (s.Seconds + last.Seconds) / 2
		orders = append(orders, report.Point{X: middle, Y: float64(s.Orders-last.Orders) / seconds})
		confirmed = append(confirmed, report.Point{X: middle, Y: float64(s.Confirmed-last.Confirmed) / seconds})
		last = s
	}
	return orders, confirmed
}

func mailCheckSection(r *MailResult) report.Section {
	table := &report.Table{Head: []string{"Finding", "Count"}}
	for _, row := range mailCounts(r) {
		table.Rows = append(table.Rows, []string{row.name, thousands(row.count)})
	}
	return report.Section{
		Title: "What was checked",
		Text: []string{
			"Each letter has a key. What was submitted, and whether it was accepted, is held against the log of the relay and the table of the " +
				"answers: each accepted letter is there once, with the hash of its body, and no other letter is.",
		},
		Table: table,
		After: []string{
			"When a connection dies between the last byte of a letter and the reply, or a daemon is killed before it has recorded the reply, " +
				"nobody can know whether the letter was taken, and it is sent again. The relay's log distinguishes these.",
		},
	}
}
