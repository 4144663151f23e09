package report

import (
	"strconv"
	"strings"
)

// LineChart shows how rates went over time: x in seconds from 0, y from 0.
type LineChart struct {
	// ID tells the charts of a page apart. Title and Description are read to those who do not see it.
	ID, Title, Description string
	Unit                   string
	Series                 []Series
	Bands                  []Band
	Marks                  []Mark
}

// Series is one line. Of two lines the first is drawn broad, the second thin on top of it.
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

// The frame of a line chart on the page.
const (
	chartWidth = 760.0
	lineLeft   = 52.0
	lineTop    = 34.0
	lineWidth  = chartWidth - lineLeft - 14
	lineHeight = 210.0
)

type lineLayout struct {
	Width, Height, Left, Top, Right, Bottom, PlotHeight float64
	XTicks, YTicks                                      []tick
	Paths                                               []linePath
	Bands                                               []lineBand
	Marks                                               []lineMark
}

type linePath struct {
	Name, Points string
	LegendX      float64
}

type lineBand struct {
	X, Width float64
	Label    string
	Odd      bool
}

type lineMark struct {
	X, TextX float64
	Anchor   string
	Label    string
}

// layoutLines says where everything stands.
func layoutLines(c *LineChart) lineLayout {
	var mostX, mostY float64
	for _, s := range c.Series {
		for _, p := range s.Points {
			mostX, mostY = max(mostX, p.X), max(mostY, p.Y)
		}
	}
	for _, b := range c.Bands {
		mostX = max(mostX, b.To)
	}
	y, yValues := newScale(mostY, lineHeight, 5)
	_, xValues := newScale(mostX, lineWidth, 8)
	x := scale{most: max(mostX, 1e-9), length: lineWidth}

	l := lineLayout{
		Width: chartWidth, Height: lineTop + lineHeight + 44, PlotHeight: lineHeight,
		Left: lineLeft, Top: lineTop, Right: lineLeft + lineWidth, Bottom: lineTop + lineHeight,
	}
	for _, v := range yValues {
		l.YTicks = append(l.YTicks, tick{At: round(l.Bottom - y.at(v)), Text: short(v)})
	}
	for _, v := range xValues {
		if v <= mostX {
			l.XTicks = append(l.XTicks, tick{At: round(lineLeft + x.at(v)), Text: short(v)})
		}
	}
	for i, b := range c.Bands {
		from, to := lineLeft+x.at(b.From), lineLeft+x.at(b.To)
		l.Bands = append(l.Bands, lineBand{
			X: round(from), Width: round(to - from), Label: b.Label, Odd: i%2 == 1,
		})
	}
	for _, m := range c.Marks {
		at := round(lineLeft + x.at(m.X))
		mark := lineMark{X: at, TextX: at + 5, Anchor: "start", Label: m.Label}
		if at > lineLeft+lineWidth/2 {
			mark.TextX, mark.Anchor = at-5, "end"
		}
		l.Marks = append(l.Marks, mark)
	}
	for i, s := range c.Series {
		var points []string
		for _, p := range s.Points {
			points = append(points, coordinate(lineLeft+x.at(p.X))+","+coordinate(l.Bottom-y.at(p.Y)))
		}
		l.Paths = append(l.Paths, linePath{Name: s.Name, Points: strings.Join(points, " "), LegendX: lineLeft + float64(i)*130})
	}
	return l
}

func coordinate(value float64) string { return strconv.FormatFloat(round(value), 'f', -1, 64) }
