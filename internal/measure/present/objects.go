package present

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/measure/bottleneck"
	"github.com/parley-broker/parley/internal/measure/record"
	"github.com/parley-broker/parley/internal/measure/report"
)

// mostObjects are listed on a terminal; the page has all.
const mostObjects = 4

// writeObjects lists tables, buffers, statements and old snapshots, as far as the server shows them.
func writeObjects(out io.Writer, a *bottleneck.Analysis) {
	if a == nil {
		return
	}
	for _, t := range objectTables(a, worthALine(a.Horizon)) {
		fmt.Fprintln(out)
		Prose(out, "", t.Caption)
		head := slices.Clone(t.Head)
		for i, name := range head {
			if name != "HOT" && name != "MB" {
				head[i] = strings.ToLower(name)
			}
		}
		head[0] = "  " + head[0]
		table := Columns(head...)
		for _, row := range t.Rows[:min(mostObjects, len(t.Rows))] {
			cells := make([]any, len(row))
			for column, cell := range row {
				if cells[column] = shortened(cell); column == 0 {
					cells[column] = "  " + shortened(cell)
				}
			}
			table.Row(cells...)
		}
		table.Write(out)
	}
}

// longestCell is how many characters of a cell fit a terminal of 80 columns beside the others.
const longestCell = 32

func shortened(cell string) string {
	if characters := []rune(cell); len(characters) > longestCell {
		return string(characters[:longestCell-1]) + "…"
	}
	return cell
}

// objectSections are the same for the page.
func objectSections(a *bottleneck.Analysis) (sections []report.Section) {
	for _, t := range objectTables(a, a.Horizon) {
		sections = append(sections, report.Section{Title: t.Caption, Table: &report.Table{Words: t.Words, Head: t.Head, Rows: t.Rows}})
	}
	return sections
}

// objectTables are the tables that have rows, the heading of each as its caption.
func objectTables(a *bottleneck.Analysis, horizon []bottleneck.Holder) (tables []report.Table) {
	for _, t := range []report.Table{changedTables(a), statementTable(a), bufferTable(a.Buffers), horizonTable(horizon)} {
		if len(t.Rows) > 0 {
			tables = append(tables, t)
		}
	}
	return tables
}

func changedTables(a *bottleneck.Analysis) report.Table {
	t := report.Table{
		Caption: "Rows that tables changed" + perMessage(a),
		Head:    []string{"Table", "Added", "Changed", "HOT", "Removed", "Dead now", "MB", "Bloat"},
	}
	for _, one := range a.Tables {
		hot, bloat := "", ""
		if one.Updated > 0 {
			hot = percent(one.HotUpdated / one.Updated)
		}
		if one.Bloat != nil {
			bloat = percent(*one.Bloat)
		}
		t.Rows = append(t.Rows, []string{
			one.Name, each(one.Inserted, a), each(one.Updated, a), hot, each(one.Deleted, a), record.Number(one.Dead),
			record.Number(one.Bytes / 1e6), bloat,
		})
	}
	return t
}

func statementTable(a *bottleneck.Analysis) report.Table {
	t := report.Table{
		Caption: "Statements" + perMessage(a), Head: []string{"Statement", "Calls", "ms a call", "Log bytes", "Read", "Dirtied"},
	}
	for _, one := range a.Statements {
		t.Rows = append(t.Rows, []string{
			one.Text, each(one.Calls, a), record.Number(one.MS / max(1, one.Calls)), each(one.WALBytes, a), each(one.Read, a),
			each(one.Dirtied, a),
		})
	}
	return t
}

func bufferTable(b *bottleneck.Cache) (t report.Table) {
	if b == nil {
		return t
	}
	t.Head = []string{"Relation", "Fork", "Buffers", "Share", "Dirty", "Pinned", "Used often"}
	t.Caption = fmt.Sprintf("Buffers: %s of %s unused, %s dirty, %s pinned", record.Number(float64(b.Unused)),
		record.Number(float64(b.All)), record.Number(float64(b.Dirty)), record.Number(float64(b.Pinned)))
	for _, r := range b.Relations {
		often := int64(0)
		for count, n := range r.Usage {
			if count >= usedOften {
				often += n
			}
		}
		t.Rows = append(t.Rows, []string{
			r.Name, r.Fork, record.Number(float64(r.Buffers)), percent(r.Share), record.Number(float64(r.Dirty)),
			record.Number(float64(r.Pinned)), percent(float64(often) / float64(max(1, r.Buffers))),
		})
	}
	return t
}

// usedOften is the usage count of a buffer that stays.
const usedOften = 3

// Holders that are as young are those of the load itself.
const (
	youngSeconds      = 5
	youngTransactions = 10_000
)

// worthALine are the holders that may keep dead rows for long.
func worthALine(holders []bottleneck.Holder) (old []bottleneck.Holder) {
	for _, h := range holders {
		if h.Kind != "session" || h.Seconds > youngSeconds || h.Transactions > youngTransactions {
			old = append(old, h)
		}
	}
	return old
}

func horizonTable(holders []bottleneck.Holder) report.Table {
	t := report.Table{Caption: "Oldest snapshots when it ended", Words: true, Head: []string{"Kind", "Name", "Transactions since", "Seconds"}}
	for _, h := range holders {
		t.Rows = append(t.Rows, []string{h.Kind, h.Name, record.Number(h.Transactions), record.Number(h.Seconds)})
	}
	return t
}

// perMessage says what numbers are of: of a message where the clients counted some.
func perMessage(a *bottleneck.Analysis) string {
	if a.Messages > 0 {
		return ", a message"
	}
	return ""
}

func each(value float64, a *bottleneck.Analysis) string {
	if a.Messages > 0 {
		value /= a.Messages
	}
	return record.Number(value)
}

func percent(part float64) string {
	if part > 0 && part < 0.005 {
		return "<1%"
	}
	return fmt.Sprintf("%.0f%%", 100*part)
}
