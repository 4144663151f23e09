package value

import (
	"fmt"
	"strings"
)

// A dateStyle is the layout of a style of CONVERT: of the date, of the time of day, and the text between both. A style may
// have one of them alone. Letters: Y y m d as numbers of four and two digits, D a day without zero, b a month's short name; H and
// I hours of 24 and 12, M minutes, S seconds, f the fraction, p AM or PM.
type dateStyle struct {
	date, between, time string
}

var dateStyles = map[int]dateStyle{
	0: {"b D Y", " ", "I:Mp"}, 1: {date: "m/d/y"}, 2: {date: "y.m.d"}, 3: {date: "d/m/y"}, 4: {date: "d.m.y"}, 5: {date: "d-m-y"},
	6: {date: "d b y"}, 7: {date: "b d, y"}, 8: {time: "H:M:S"}, 9: {"b D Y", " ", "I:M:S:fp"}, 10: {date: "m-d-y"},
	11: {date: "y/m/d"}, 12: {date: "ymd"}, 13: {"d b Y", " ", "H:M:S:f"}, 14: {time: "H:M:S:f"},
	20: {"Y-m-d", " ", "H:M:S"}, 21: {"Y-m-d", " ", "H:M:S.f"}, 22: {"m/d/y", " ", "I:M:S p"}, 23: {date: "Y-m-d"},
	24: {time: "H:M:S"}, 25: {"Y-m-d", " ", "H:M:S.f"},
	100: {"b D Y", " ", "I:Mp"}, 101: {date: "m/d/Y"}, 102: {date: "Y.m.d"}, 103: {date: "d/m/Y"}, 104: {date: "d.m.Y"},
	105: {date: "d-m-Y"}, 106: {date: "d b Y"}, 107: {date: "b d, Y"}, 108: {time: "H:M:S"}, 109: {"b D Y", " ", "I:M:S:fp"},
	110: {date: "m-d-Y"}, 111: {date: "Y/m/d"}, 112: {date: "Ymd"}, 113: {"d b Y", " ", "H:M:S:f"}, 114: {time: "H:M:S:f"},
	120: {"Y-m-d", " ", "H:M:S"}, 121: {"Y-m-d", " ", "H:M:S.f"}, 126: {"Y-m-d", "T", "H:M:S.f"}, 127: {"Y-m-d", "T", "H:M:S.f"},
}

// styleISO is the style with T between date and time; styleZ is the same in UTC, with Z.
const (
	styleCanonical = 121
	styleISO       = 126
	styleZ         = 127
)

var monthNames = [...]string{
	"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
}

// MonthName gives the English name of a month, 1 to 12.
func MonthName(month int) string { return monthNames[month-1] }

// formatTemporal writes a temporal value in a style; known is false where there is no such style for it.
func formatTemporal(v Value, style int) (text string, known bool) {
	layout, known := dateStyles[style]
	if !known {
		return "", false
	}
	kind, m := v.Kind(), v.Moment()
	if style == styleZ && kind == DateTimeOffset {
		m = m.At(0)
	}
	switch {
	case kind == Date && layout.date == "", kind == Time && layout.time == "":
		return "", false
	case kind == Date:
		return formatLayout(layout.date, v, m, style), true
	case kind == Time:
		return formatLayout(layout.time, v, m, style), true
	}
	text = formatLayout(layout.date, v, m, style) + layout.between + formatLayout(layout.time, v, m, style)
	if kind == DateTimeOffset && layout.time != "" {
		switch style {
		case styleZ:
			text += "Z"
		case styleISO:
			text += formatOffset(m.Offset)
		default:
			text += " " + formatOffset(m.Offset)
		}
	}
	return text, true
}

func formatOffset(minutes int) string {
	sign := '+'
	if minutes < 0 {
		sign, minutes = '-', -minutes
	}
	return fmt.Sprintf("%c%02d:%02d", sign, minutes/60, minutes%60)
}

func formatLayout(layout string, v Value, m Moment, style int) string {
	var b strings.Builder
	year, month, day := m.Date()
	hour, minute, second, _ := m.Clock()
	fraction := fractionOf(v, m)
	for i := range len(layout) {
		c := layout[i]
		switch c {
		case 'Y':
			fmt.Fprintf(&b, "%04d", year)
		case 'y':
			fmt.Fprintf(&b, "%02d", year%100)
		case 'm':
			fmt.Fprintf(&b, "%02d", month)
		case 'd':
			fmt.Fprintf(&b, "%02d", day)
		case 'D':
			fmt.Fprintf(&b, "%2d", day)
		case 'b':
			b.WriteString(monthNames[month-1][:3])
		case 'H':
			fmt.Fprintf(&b, "%02d", hour)
		case 'I':
			fmt.Fprintf(&b, "%2d", (hour+11)%12+1)
		case 'M':
			fmt.Fprintf(&b, "%02d", minute)
		case 'S':
			fmt.Fprintf(&b, "%02d", second)
		case 'p':
			b.WriteString([]string{"AM", "PM"}[hour/12])
		case 'f':
			b.WriteString(fraction)
		case ':', '.':
			if i+1 == len(layout) || layout[i+1] != 'f' {
				b.WriteByte(c)
				break
			}
			switch { // the mark before a fraction
			case fraction == "", (style == styleISO || style == styleZ) && strings.Trim(fraction, "0") == "":
				fraction = ""
			case v.Kind().IsOldTemporal():
				b.WriteByte(c)
			default:
				b.WriteByte('.')
			}
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// fractionOf gives the digits of the second's fraction that the type has; datetime prints .000, .003 and .007.
func fractionOf(v Value, m Moment) string {
	_, _, _, ticks := m.Clock()
	switch v.Kind() {
	case DateTime:
		units := floorMod(v.i, 300)
		return fmt.Sprintf("%03d", (units*20+3)/6)
	case SmallDateTime:
		return "000"
	default:
		return fmt.Sprintf("%07d", ticks)[:v.typ.Scale]
	}
}
