package report

// FlowPicture shows where messages come from and where they go: stations on the left, one in the middle, and stations on the right.
type FlowPicture struct {
	// ID distinguishes the drawings of a page. Title and Description are read to those who do not see it.
	ID, Title, Description string
	Left, Right            []Station
	Middle                 Station
}

// Station is a box with a name, and a number below it.
type Station struct{ Name, Value string }

// The measures of the picture. Columns are as broad as the longest name needs.
const (
	stationHeight = 46.0
	stationGap    = 14.0
	stationPad    = 8.0
)

type flowLayout struct {
	Width, Height float64
	Stations      []flowStation
	Lines         []flowLine
}

type flowStation struct {
	X, Y, Width, Height  float64
	TextX, NameY, ValueY float64
	Name, Value          string
	IsMiddle             bool
}

type flowLine struct{ X1, Y1, X2, Y2 float64 }

// layoutFlow reports where everything stands.
func layoutFlow(f format, p *FlowPicture) flowLayout {
	rows := max(len(p.Left), len(p.Right), 1)
	l := flowLayout{Width: f.width, Height: float64(rows)*(stationHeight+stationGap) - stationGap + 2}
	middle := l.place(f.width/2, []Station{p.Middle}, 0, true)[0]
	left := l.place(0, p.Left, -1, false)
	right := l.place(f.width, p.Right, 1, false)
	for _, s := range left {
		l.Lines = append(l.Lines, flowLine{s.X + s.Width, s.Y + s.Height/2, middle.X, middle.Y + middle.Height/2})
	}
	for _, s := range right {
		l.Lines = append(l.Lines, flowLine{middle.X + middle.Width, middle.Y + middle.Height/2, s.X, s.Y + s.Height/2})
	}
	return l
}

// place puts a column of stations at the left edge (side -1), around the middle (0), or at the right edge (1).
func (l *flowLayout) place(at float64, stations []Station, side int, isMiddle bool) (placed []flowStation) {
	width := 0.0
	for _, s := range stations {
		width = max(width, textWidth(s.Name, labelSize), textWidth(s.Value, labelSize))
	}
	width += 2 * stationPad
	x := map[int]float64{-1: 1, 0: at - width/2, 1: at - width - 1}[side]
	used := float64(len(stations))*(stationHeight+stationGap) - stationGap
	top := (l.Height - used) / 2
	for i, s := range stations {
		y := top + float64(i)*(stationHeight+stationGap)
		placed = append(placed, flowStation{
			X: round(x), Y: round(y), Width: round(width), Height: stationHeight, TextX: round(x + width/2), NameY: round(y + 19),
			ValueY: round(y + 36), Name: s.Name, Value: s.Value, IsMiddle: isMiddle,
		})
	}
	l.Stations = append(l.Stations, placed...)
	return placed
}
