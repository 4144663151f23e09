package top

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"charm.land/lipgloss/v2"
)

// column is a column of a table.
type column struct {
	title    string
	isNumber bool // stands to the right, and is sorted by number, the largest first
	// rank reports what goes when the terminal is narrow: the columns of the highest rank first, those of rank 0 never.
	rank int
	// most bounds the width; 0 means that it is as wide as its longest cell.
	most int
}

// cell is the content of a column: its text, and its number where the column has numbers.
type cell struct {
	text   string
	number float64
}

// line is a row of a table.
type line struct {
	key   string // what it stands for, to find it again in the next reading
	cells []cell
	alarm bool // something is wrong with it
}

// table is one screen.
type table struct {
	columns []column
	lines   []line
}

// sorting is the column by which a table is sorted; reversed turns it round.
type sorting struct {
	column   int
	reversed bool
}

// sort orders the lines; equals keep their order.
func (t *table) sort(by sorting) {
	if by.column < 0 {
		return // as they came
	}
	slices.SortStableFunc(t.lines, func(a, b line) int {
		x, y := a.cells[by.column], b.cells[by.column]
		order := strings.Compare(x.text, y.text)
		if t.columns[by.column].isNumber {
			order = cmp.Compare(y.number, x.number)
		}
		if by.reversed {
			order = -order
		}
		return order
	})
}

// filter keeps the lines in which a text occurs, in any column and however it is written.
func (t *table) filter(text string) {
	text = strings.ToLower(text)
	t.lines = slices.DeleteFunc(t.lines, func(l line) bool {
		return !slices.ContainsFunc(l.cells, func(c cell) bool { return strings.Contains(strings.ToLower(c.text), text) })
	})
}

// gap stands between two columns.
const gap = "  "

// layout gives for each column how wide it is, -1 when there is no room for it.
func (t *table) layout(width int, by sorting) []int {
	widths := make([]int, len(t.columns))
	for i, column := range t.columns {
		widths[i] = lipgloss.Width(t.heading(i, by))
		for _, line := range t.lines {
			widths[i] = max(widths[i], lipgloss.Width(line.cells[i].text))
		}
		if column.most > 0 {
			widths[i] = min(widths[i], column.most)
		}
	}
	for total(widths) > width {
		i := -1
		for n, column := range t.columns {
			if widths[n] >= 0 && column.rank > 0 && (i < 0 || column.rank >= t.columns[i].rank) {
				i = n
			}
		}
		if i < 0 {
			t.squeeze(widths, total(widths)-width)
			break
		}
		widths[i] = -1
	}
	return widths
}

// least is the width that a column of text keeps when it is squeezed.
const least = 8

// squeeze makes columns of text narrower, the first ones first, by so much in all if it can be done.
func (t *table) squeeze(widths []int, excess int) {
	for i, width := range widths {
		if !t.columns[i].isNumber && width > least {
			by := min(excess, width-least)
			widths[i] -= by
			excess -= by
		}
	}
}

func total(widths []int) int {
	sum := -len(gap)
	for _, width := range widths {
		if width >= 0 {
			sum += width + len(gap)
		}
	}
	return sum
}

// heading is the title of a column, with an arrow when the table is sorted by it.
func (t *table) heading(i int, by sorting) string {
	if i != by.column {
		return t.columns[i].title
	}
	if by.reversed == t.columns[i].isNumber {
		return t.columns[i].title + "↑"
	}
	return t.columns[i].title + "↓"
}

// format sets texts under each other, no wider than the screen.
func (t *table) format(widths []int, texts func(column int) string, width int) string {
	var parts []string
	for i, room := range widths {
		if room < 0 {
			continue
		}
		text := cut(clean(texts(i)), room)
		padding := strings.Repeat(" ", room-lipgloss.Width(text))
		if t.columns[i].isNumber {
			text = padding + text
		} else {
			text += padding
		}
		parts = append(parts, text)
	}
	return cut(strings.TrimRight(strings.Join(parts, gap), " "), width)
}

// cut shortens a text to so many columns of a terminal.
func cut(text string, width int) string {
	if lipgloss.Width(text) <= width {
		return text
	}
	runes := []rune(text)
	for len(runes) > 0 && lipgloss.Width(string(runes))+1 > width {
		runes = runes[:len(runes)-1]
	}
	if width < 1 {
		return ""
	}
	return string(runes) + "…"
}

// clean takes out what a terminal would obey.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}
