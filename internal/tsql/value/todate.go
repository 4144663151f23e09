package value

import (
	"math"

	"github.com/parley-broker/parley/internal/tsql/fault"
)

// styleOrders has the styles of CONVERT that say in which order a date of numbers stands.
var styleOrders = map[int]DateOrder{
	1: "mdy", 101: "mdy", 2: "ymd", 102: "ymd", 3: "dmy", 103: "dmy", 4: "dmy", 104: "dmy", 5: "dmy", 105: "dmy",
	10: "mdy", 110: "mdy", 11: "ymd", 111: "ymd", 12: "ymd", 112: "ymd", 20: "ymd", 120: "ymd", 21: "ymd", 25: "ymd",
	23: "ymd", 121: "ymd", 126: "ymd", 127: "ymd", 22: "mdy",
}

// toTemporal converts a value to a date or a time of day.
func (s *Settings) toTemporal(v Value, to Type, style int) (Value, *fault.Error) {
	switch k := v.Kind(); {
	case k.IsCharacter():
		return s.readTemporal(v, to, style)
	case k.IsBinary():
		return temporalOfBytes(v, to)
	case k.IsTemporal():
		if to.Kind == DateTimeOffset && style > 1 {
			return Value{}, fault.New(9809, style, k, to.Kind)
		}
		return movedTo(v, to)
	default:
		return ofDays(v, to)
	}
}

// movedTo converts between temporal kinds. From datetimeoffset the local time is kept; to it, the offset is zero.
func movedTo(v Value, to Type) (Value, *fault.Error) {
	m := v.Moment()
	m.Offset = 0
	if v.Kind() == DateTimeOffset && to.Kind == DateTimeOffset {
		m = v.Moment()
	}
	result, ok := NewTemporal(to, m)
	if !ok && v.Kind() == DateTime && to.Kind == SmallDateTime {
		return Value{}, fault.New(298)
	}
	if !ok {
		return Value{}, fault.New(242, v.Kind(), to.Kind)
	}
	return result, nil
}

// ofDays reads a number as the days since 1900-01-01.
func ofDays(v Value, to Type) (Value, *fault.Error) {
	var days float64
	switch k := v.Kind(); {
	case k == Bit || k.IsInteger():
		days = float64(v.i)
	case k.IsMoney():
		days = float64(v.i) / 10_000
	case k == Decimal:
		days, _ = v.Decimal().Float64()
	default:
		days = v.Float64()
	}
	if math.Abs(days) > lastDay {
		return Value{}, fault.New(8115, "expression", to.Kind)
	}
	whole := math.Floor(days)
	units := math.Round((days - whole) * unitsPerDay)
	m := momentOfTotal(int64(whole)*ticksPerDay + (int64(units)*200_000+3)/6)
	m.Days += daysBefore1900
	result, ok := NewTemporal(to, m)
	if !ok {
		return Value{}, fault.New(8115, "expression", to.Kind)
	}
	return result, nil
}

// readTemporal reads text as a date or a time of day.
func (s *Settings) readTemporal(v Value, to Type, style int) (Value, *fault.Error) {
	order := s.DateOrder
	if styled, known := styleOrders[style]; known {
		order = styled
	} else if to.Kind != DateTime && to.Kind != SmallDateTime && order == "dmy" && hasYearFirst(v.s) {
		order = "ymd"
	}
	d := parseDate(v.s, order)
	if d.problem == dateFits && !d.suits(to.Kind, style) {
		d.problem = dateSyntax
	}
	if d.problem == dateFits {
		m := d.moment
		if to.Kind != DateTimeOffset && d.hasZone {
			if to.Kind.IsOldTemporal() {
				m = m.At(0)
			}
			m.Offset = 0
		}
		if result, ok := NewTemporal(to, m); ok {
			return result, nil
		}
		d.problem = dateRange
	}
	switch {
	case d.problem == dateRange && to.Kind.IsOldTemporal():
		return Value{}, fault.New(242, v.Kind(), to.Kind)
	case to.Kind == SmallDateTime:
		return Value{}, fault.New(295)
	default:
		return Value{}, fault.New(241)
	}
}

func hasYearFirst(text string) bool {
	d := &dateText{rest: text}
	d.skip(" ")
	return len(d.number()) == 4
}

// suits reports whether a kind takes the form in which the text was: datetime has at most three digits of a second and no zone
// but in ISO 8601.
func (d *dateText) suits(kind Kind, style int) bool {
	if !kind.IsOldTemporal() {
		return d.digits <= 7
	}
	return d.digits <= 3 && (!d.hasZone || d.isISO && (d.moment.Offset == 0 || style == styleZ))
}
