package present

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Table is a table for a terminal of 80 columns. Where it is wider, columns that are empty in all rows are left out, then columns that are
// the same in all rows become a line above it, then the words of the widest column go on below, and at last the columns go on in another
// table with the same first column.
type Table struct {
	head  []string
	rows  [][]string
	right bool
	// shared are the columns that became the line above.
	shared []string
}

// Columns begins a table. Its columns are aligned to the left. Without a word in its head it has none.
func Columns(head ...string) *Table { return &Table{head: head} }

// Numbers begins a table whose columns are aligned to the right.
func Numbers(head ...string) *Table { return &Table{head: head, right: true} }

// Row adds a row. Cells that are missing at its end are empty.
func (t *Table) Row(cells ...any) {
	row := make([]string, len(t.head))
	for i, cell := range cells {
		row[i] = fmt.Sprint(cell)
	}
	t.rows = append(t.rows, row)
}

// between separates two columns.
const between = "  "

// leastWords is how narrow the widest column may become.
const leastWords = 16

// Write writes the table.
func (t *Table) Write(out io.Writer) {
	if t.width(len(t.head)) > proseWidth {
		t.drop(func(values []string) bool { return values[0] == "" && isOne(values) }, nil)
	}
	for t.width(len(t.head)) > proseWidth && len(t.rows) > 1 {
		if !t.drop(isOne, func(head, value string) { t.shared = append(t.shared, head+" "+value) }) {
			break
		}
	}
	if len(t.shared) > 0 {
		Prose(out, "", "In all rows: "+strings.Join(t.shared, ", ")+".")
	}
	if over := t.width(len(t.head)) - proseWidth; over > 0 {
		widths := t.widths()
		widest := slices.Index(widths, slices.Max(widths))
		t.wrap(widest, max(leastWords, widths[widest]-over))
	}
	for len(t.head) > 1 && t.width(len(t.head)) > proseWidth {
		n := len(t.head) - 1
		for n > 2 && t.width(n) > proseWidth {
			n--
		}
		t.part(func(row []string) []string { return row[:n] }).write(out)
		fmt.Fprintln(out)
		t = t.part(func(row []string) []string { return append([]string{row[0]}, row[n:]...) })
	}
	t.write(out)
}

// drop removes the first column after the first whose values are as asked, or all of them where nothing is done with one.
func (t *Table) drop(is func(values []string) bool, with func(head, value string)) (dropped bool) {
	for i := 1; i < len(t.head) && len(t.rows) > 0; i++ {
		values := make([]string, 0, len(t.rows))
		for _, row := range t.rows {
			values = append(values, row[i])
		}
		if !is(values) {
			continue
		}
		if with != nil {
			with(t.head[i], values[0])
		}
		*t = *t.part(func(row []string) []string { return slices.Delete(slices.Clone(row), i, i+1) })
		dropped = true
		if with != nil {
			return true
		}
		i--
	}
	return dropped
}

func isOne(values []string) bool {
	return !slices.ContainsFunc(values, func(v string) bool { return v != values[0] })
}

// part is the table with a part of each row.
func (t *Table) part(of func(row []string) []string) *Table {
	p := &Table{head: of(t.head), right: t.right, shared: t.shared}
	for _, row := range t.rows {
		p.rows = append(p.rows, of(row))
	}
	return p
}

// wrap breaks a column between words: what is left stands in rows below.
func (t *Table) wrap(column, width int) {
	var rows [][]string
	for _, row := range t.rows {
		for i, line := range brokenAt(row[column], width) {
			cells := make([]string, len(row))
			if i == 0 {
				copy(cells, row)
			}
			cells[column] = line
			rows = append(rows, cells)
		}
	}
	t.rows = rows
}

// brokenAt breaks a text between words. Lines after the first are indented.
func brokenAt(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case strings.TrimSpace(line) == "":
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			lines, line = append(lines, line), between+word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

func (t *Table) widths() []int {
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

// width is that of the first columns.
func (t *Table) width(columns int) int {
	all := -len(between)
	for _, width := range t.widths()[:columns] {
		all += width + len(between)
	}
	return all
}

func (t *Table) write(out io.Writer) {
	for _, line := range t.Lines() {
		fmt.Fprintln(out, line)
	}
}

// Lines gives a line for the head, where it has a word, and one for each row, as wide as they are.
func (t *Table) Lines() (lines []string) {
	widths, rows := t.widths(), t.rows
	if slices.ContainsFunc(t.head, func(cell string) bool { return cell != "" }) {
		rows = append([][]string{t.head}, rows...)
	}
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			blanks := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if cells[i] = cell + blanks; t.right {
				cells[i] = blanks + cell
			}
		}
		lines = append(lines, strings.TrimRight(strings.Join(cells, between), " "))
	}
	return lines
}
