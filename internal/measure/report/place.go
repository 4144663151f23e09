package report

import (
	"slices"
	"unicode/utf8"
)

// format is a width for which charts are drawn. Each chart is drawn for every format, and the page shows one of them, so
// that text has its own size on a phone too.
type format struct {
	// Name is the class of the drawing; Suffix keeps its ids apart from those of the other drawings.
	Name, Suffix string
	width        float64
}

var (
	wide   = format{Name: "broad", width: 820}
	narrow = format{Name: "slim", Suffix: "-slim", width: 335}
)

func formats() []format { return []format{wide, narrow} }

func (f format) isNarrow() bool { return f.width < 600 }

// textWidth is at least what a text takes on the page. Digits and letters of the broadest of the fonts that the page asks
// for are about 0.64 of their height wide.
func textWidth(text string, size float64) float64 {
	return 0.66 * size * float64(utf8.RuneCountInString(text))
}

// span is a stretch of a row, from one edge to the other.
type span struct{ from, to float64 }

// rows are lines of labels, one below the other, in which no label touches another.
type rows [][]span

// labelGap stands between two labels of a row.
const labelGap = 6

// place puts a label into the first row where it is free at one of its spans, the first of them first. It gives the row
// and the span.
func (r *rows) place(candidates ...span) (row int, at span) {
	for row, taken := range *r {
		for _, s := range candidates {
			if !slices.ContainsFunc(taken, func(t span) bool { return s.from < t.to+labelGap && t.from < s.to+labelGap }) {
				(*r)[row] = append(taken, s)
				return row, s
			}
		}
	}
	*r = append(*r, []span{candidates[0]})
	return len(*r) - 1, candidates[0]
}

// within moves a span between two edges.
func (s span) within(left, right float64) span {
	if s.to > right {
		s = span{s.from - (s.to - right), right}
	}
	if s.from < left {
		s = span{left, s.to + left - s.from}
	}
	return s
}
