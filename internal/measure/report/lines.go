package report

import (
	"strconv"
	"strings"
)

// LineChart shows how rates went: over time, x in seconds from 0, or over something that was counted. y is from 0.
type LineChart struct {
	// ID distinguishes the charts of a page. Title and Description are read to those who do not see it.
	ID, Title, Description string
	Unit                   string
	// XUnit labels the x axis; without one it has seconds since the first message.
	XUnit  string
	Series []Series
	Bands  []Band
	Marks  []Mark
}

// Series is one line. Of several lines the first is drawn broad, the others thin on top of it; there are colours for four.
type Series struct {
	Name   string
	Points []Point
}

// Point is one point of a line.
type Point struct{ X, Y float64 }

// Band is a named stretch of the x axis.
type Band struct {
	From, To float64
	Label    string
}

// Mark is a moment when something happened.
type Mark struct {
	X     float64
	Label string
}

// The frame of a line chart: rows of labels for bands and marks above the plot, the axis below it.
const (
	lineLeft   = 48.0
	lineRight  = 14.0
	lineHeight = 210.0
	labelSize  = 12.0
	labelRow   = 17.0
)

type lineLayout struct {
	format
	Width, Height, Left, Top, Right, Bottom, FullHeight float64
	XTicks, YTicks                                      []tick
	Paths                                               []string
	Bands                                               []lineBand
	Marks                                               []lineMark
}

type lineBand struct {
	X, Width     float64
	TextX, TextY float64
	Label        string
	Odd          bool
}

type lineMark struct {
	X, TextX, TextY float64
	Label           string
}

// layoutLines reports where everything stands.
func layoutLines(f format, c *LineChart) lineLayout {
	var mostX, mostY float64
	for _, s := range c.Series {
		for _, p := range s.Points {
			mostX, mostY = max(mostX, p.X), max(mostY, p.Y)
		}
	}
	for _, b := range c.Bands {
		mostX = max(mostX, b.To)
	}
	length := f.width - lineLeft - lineRight
	y, yValues := newScale(mostY, lineHeight, 5)
	_, xValues := newScale(mostX, length, int(length/55))
	x := scale{most: max(mostX, 1e-9), length: length}

	l := lineLayout{format: f, Width: f.width, Left: lineLeft, Right: lineLeft + length}
	bandRows := l.placeBands(x, c.Bands)
	markRows := l.placeMarks(x, c.Marks, bandRows)
	l.Top = 10 + labelRow*float64(bandRows+markRows)
	l.Bottom, l.FullHeight, l.Height = l.Top+lineHeight, l.Top+lineHeight, l.Top+lineHeight+42
	for _, v := range yValues {
		l.YTicks = append(l.YTicks, tick{At: round(l.Bottom - y.at(v)), Text: short(v)})
	}
	for _, v := range xValues {
		if v <= mostX {
			l.XTicks = append(l.XTicks, tick{At: round(lineLeft + x.at(v)), Text: short(v)})
		}
	}
	for _, s := range c.Series {
		var points []string
		for _, p := range s.Points {
			points = append(points, coordinate(lineLeft+x.at(p.X))+","+coordinate(l.Bottom-y.at(p.Y)))
		}
		l.Paths = append(l.Paths, strings.Join(points, " "))
	}
	return l
}

// placeBands puts the label of each band over its middle, in as many rows as are needed for none to touch another.
func (l *lineLayout) placeBands(x scale, bands []Band) int {
	var taken rows
	for i, b := range bands {
		from, to := l.Left+x.at(b.From), l.Left+x.at(b.To)
		middle, half := (from+to)/2, textWidth(b.Label, labelSize)/2
		row, at := taken.place(span{middle - half, middle + half}.within(l.Left, l.Width))
		l.Bands = append(l.Bands, lineBand{
			X: round(from), Width: round(to - from), TextX: round((at.from + at.to) / 2), TextY: labelRow * float64(row+1),
			Label: b.Label, Odd: i%2 == 1,
		})
	}
	return len(taken)
}

// placeMarks puts the label of each mark beside its line, above the plot and below the labels of bands. All but the last
// stand rather to the left, so that two moments close to each other have their labels apart.
func (l *lineLayout) placeMarks(x scale, marks []Mark, bandRows int) int {
	var taken rows
	for i, m := range marks {
		at, long := l.Left+x.at(m.X), textWidth(m.Label, labelSize)
		left, right := span{at - long, at}, span{at, at + long}
		if i == len(marks)-1 {
			left, right = right, left
		}
		row, found := taken.place(left.within(l.Left, l.Width), right.within(l.Left, l.Width))
		l.Marks = append(l.Marks, lineMark{
			X: round(at), TextX: round((found.from + found.to) / 2), TextY: labelRow * float64(bandRows+row+1), Label: m.Label,
		})
	}
	return len(taken)
}

func coordinate(value float64) string { return strconv.FormatFloat(round(value), 'f', -1, 64) }
