package report

// BarChart compares figures: one lying bar for each, from 0.
type BarChart struct {
	ID, Title, Description string
	Unit                   string
	Bars                   []Bar
}

// Bar is one figure. Text is how it is written; Other sets it back, as measured elsewhere.
type Bar struct {
	Label string
	Value float64
	Text  string
	Other bool
}

const (
	barLeft  = 190.0
	barWidth = chartWidth - barLeft - 110
	barStep  = 32.0
	barTop   = 8.0
)

type barLayout struct {
	Width, Height, Left, Bottom float64
	XTicks                      []tick
	Bars                        []barAt
}

type barAt struct {
	Bar
	Y, TextY, Width, TextX float64
}

// layoutBars says where everything stands.
func layoutBars(c *BarChart) barLayout {
	var most float64
	for _, b := range c.Bars {
		most = max(most, b.Value)
	}
	x, values := newScale(most, barWidth, 5)
	bottom := barTop + barStep*float64(len(c.Bars))
	l := barLayout{Width: chartWidth, Height: bottom + 40, Left: barLeft, Bottom: bottom}
	for _, v := range values {
		l.XTicks = append(l.XTicks, tick{At: round(barLeft + x.at(v)), Text: short(v)})
	}
	for i, b := range c.Bars {
		y := barTop + barStep*float64(i)
		width := x.at(b.Value)
		l.Bars = append(l.Bars, barAt{Bar: b, Y: y + 5, TextY: y + 20, Width: width, TextX: round(barLeft + width + 6)})
	}
	return l
}

// ColumnChart shows how often each of several classes came up.
type ColumnChart struct {
	ID, Title, Description string
	Unit, ClassUnit        string
	Columns                []Column
}

// Column is one class. Text is how its count is written.
type Column struct {
	Label string
	Value float64
	Text  string
}

const (
	columnTop    = 22.0
	columnHeight = 160.0
)

type columnLayout struct {
	Width, Height, Left, Right, Bottom float64
	YTicks                             []tick
	Columns                            []columnAt
}

type columnAt struct {
	Column
	X, Y, Width, Height, Middle, TextY float64
}

// layoutColumns says where everything stands.
func layoutColumns(c *ColumnChart) columnLayout {
	var most float64
	for _, column := range c.Columns {
		most = max(most, column.Value)
	}
	y, values := newScale(most, columnHeight, 4)
	bottom := columnTop + columnHeight
	l := columnLayout{Width: chartWidth, Height: bottom + 44, Left: lineLeft, Right: lineLeft + lineWidth, Bottom: bottom}
	for _, v := range values {
		l.YTicks = append(l.YTicks, tick{At: round(bottom - y.at(v)), Text: short(v)})
	}
	step := min(90, lineWidth/float64(max(1, len(c.Columns))))
	for i, column := range c.Columns {
		x, height := lineLeft+step*float64(i), y.at(column.Value)
		l.Columns = append(l.Columns, columnAt{
			Column: column, X: round(x + step*0.12), Y: round(bottom - height), Width: round(step * 0.76), Height: height,
			Middle: round(x + step/2), TextY: round(bottom - height - 5),
		})
	}
	return l
}
