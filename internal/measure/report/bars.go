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
	barHeight = 22.0
	barGap    = 10.0
	barTop    = 8.0
	barSize   = 13.0
)

type barLayout struct {
	format
	Width, Height, Left, Bottom float64
	XTicks                      []tick
	Bars                        []barAt
}

type barAt struct {
	Bar
	Y, Width             float64
	LabelX, LabelY       float64
	Anchor               string
	TextX, TextY, Height float64
}

// layoutBars reports where everything stands: the label left of its bar, or above it where there is no room beside it.
func layoutBars(f format, c *BarChart) barLayout {
	var most, label, text float64
	for _, b := range c.Bars {
		most, label, text = max(most, b.Value), max(label, textWidth(b.Label, barSize)), max(text, textWidth(b.Text, barSize))
	}
	above := f.isNarrow() && label > f.width*0.3
	left, step := label+10, barHeight+barGap
	if above {
		left, step = 10, barHeight+barGap+labelRow
	}
	length := f.width - left - max(24, text+12)
	x, values := newScale(most, length, max(2, int(length/75)))
	bottom := barTop + step*float64(len(c.Bars))
	l := barLayout{format: f, Width: f.width, Height: bottom + 24, Left: left, Bottom: bottom}
	for _, v := range values {
		l.XTicks = append(l.XTicks, tick{At: round(left + x.at(v)), Text: short(v)})
	}
	for i, b := range c.Bars {
		at := barAt{Bar: b, Y: barTop + step*float64(i) + barGap/2, Width: x.at(b.Value), Height: barHeight, LabelX: left - 10, Anchor: "end"}
		if above {
			at.Y += labelRow
			at.LabelX, at.LabelY, at.Anchor = left, at.Y-5, "start"
		} else {
			at.LabelY = at.Y + 15
		}
		at.TextX, at.TextY = round(left+at.Width+6), at.Y+15
		l.Bars = append(l.Bars, at)
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
	columnWidth  = 90.0
)

type columnLayout struct {
	format
	Width, Height, Left, Right, Bottom float64
	YTicks                             []tick
	Columns                            []columnAt
	// Lying stands in for the columns where their labels would touch each other.
	Lying *BarChart
}

type columnAt struct {
	Column
	X, Y, Width, Height, Middle, TextY float64
}

// layoutColumns reports where everything stands.
func layoutColumns(f format, c *ColumnChart) columnLayout {
	var most, label float64
	for _, column := range c.Columns {
		most = max(most, column.Value)
		label = max(label, textWidth(column.Label, barSize), textWidth(column.Text, barSize))
	}
	length := f.width - lineLeft - lineRight
	step := min(columnWidth, length/float64(max(1, len(c.Columns))))
	if label+labelGap > step {
		lying := &BarChart{ID: c.ID, Title: c.Title, Description: c.Description}
		for _, column := range c.Columns {
			lying.Bars = append(lying.Bars, Bar{Label: column.Label, Value: column.Value, Text: column.Text})
		}
		return columnLayout{format: f, Lying: lying}
	}
	y, values := newScale(most, columnHeight, 4)
	bottom := columnTop + columnHeight
	l := columnLayout{format: f, Width: f.width, Height: bottom + 26, Left: lineLeft, Right: lineLeft + length, Bottom: bottom}
	for _, v := range values {
		l.YTicks = append(l.YTicks, tick{At: round(bottom - y.at(v)), Text: short(v)})
	}
	for i, column := range c.Columns {
		x, height := lineLeft+step*float64(i), y.at(column.Value)
		l.Columns = append(l.Columns, columnAt{
			Column: column, X: round(x + step*0.12), Y: round(bottom - height), Width: round(step * 0.76), Height: height,
			Middle: round(x + step/2), TextY: round(bottom - height - 5),
		})
	}
	return l
}
