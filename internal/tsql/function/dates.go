package function

import (
	"math"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// dates are the functions that compute with dates.
var dates = []Function{
	{Name: "DATEADD", Parameters: "pbd", Result: dateAddType, Call: dateAdd},
	{Name: "DATEDIFF", Parameters: "pdd", Result: always(intType), Call: dateDiff("datediff")},
	{Name: "DATEDIFF_BIG", Parameters: "pdd", Result: always(bigintType), Call: dateDiff("datediff_big")},
	{Name: "DATETRUNC", Parameters: "pd", Result: dateTruncType, Call: dateTrunc},
	{Name: "EOMONTH", Parameters: "d?i", Result: always(value.Of(value.Date)), Call: endOfMonth},
	{Name: "DATEFROMPARTS", Parameters: "iii", Result: always(value.Of(value.Date)), Call: fromParts("date")},
	{Name: "DATETIMEFROMPARTS", Parameters: "iiiiiii", Result: always(value.Of(value.DateTime)), Call: fromParts("datetime")},
	{Name: "SMALLDATETIMEFROMPARTS", Parameters: "iiiii", Result: always(value.Of(value.SmallDateTime)), Call: fromParts("smalldatetime")},
	{Name: "DATETIME2FROMPARTS", Parameters: "iiiiiiii", Result: scaledParts(value.DateTime2, 7), Call: fromParts("datetime2")},
	{
		Name: "DATETIMEOFFSETFROMPARTS", Parameters: "iiiiiiiiii", Result: scaledParts(value.DateTimeOffset, 9),
		Call: fromParts("datetimeoffset"),
	},
	{Name: "TIMEFROMPARTS", Parameters: "iiiii", Result: scaledParts(value.Time, 4), Call: timeFromParts},
	{Name: "SWITCHOFFSET", Parameters: "da", Result: offsetType, Call: switchOffset},
	{Name: "TODATETIMEOFFSET", Parameters: "da", Result: offsetType, Call: toOffset},
	{Name: "ISDATE", Parameters: "a", TakesNull: true, Result: always(intType), Call: isDate},
}

// dateAddType is the type of the date; text becomes datetime, as numbers do.
func dateAddType(arguments []Argument) (value.Type, *fault.Error) {
	if t := arguments[2].Type; t.Kind.IsTemporal() {
		return t, nil
	}
	return value.Of(value.DateTime), nil
}

func dateTruncType(arguments []Argument) (value.Type, *fault.Error) {
	if t := arguments[1].Type; t.Kind.IsTemporal() {
		return t, nil
	}
	return value.Of(value.DateTime2), nil
}

// ticksOfPart has the ticks of 100 ns of each part that is always as long.
var ticksOfPart = map[string]int64{
	"week": 7 * 864e9, "day": 864e9, "dayofyear": 864e9, "weekday": 864e9, "hour": 36e9, "minute": 6e8, "second": 1e7,
	"millisecond": 1e4, "microsecond": 10,
}

// monthsOfPart has the months of each part that is not.
var monthsOfPart = map[string]int64{"year": 12, "quarter": 3, "month": 1}

func dateAdd(c *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	part, err := PartName(a[0].Raw(), "dateadd")
	if err != nil {
		return value.Value{}, err
	}
	date, err := c.Settings.Assign(a[2], result)
	if err != nil {
		return value.Value{}, err
	}
	if err := checkPart("dateadd", part, result.Kind); err != nil {
		return value.Value{}, err
	}
	n := a[1].Int64()
	if n < math.MinInt32 || n > math.MaxInt32 {
		return value.Value{}, fault.New(8115, "expression", value.Int)
	}
	m := date.Moment()
	overflow := fault.New(517, result.Kind)
	if months, known := monthsOfPart[part]; known {
		moved, ok := addMonths(m, n*months)
		if !ok {
			return value.Value{}, overflow
		}
		m = moved
	} else {
		var total int64
		switch length, known := ticksOfPart[part]; {
		case part == "nanosecond":
			total = (n + 50) / 100
		case !known:
			return value.Value{}, fault.New(9810, part, "dateadd", result.Kind)
		case n > math.MaxInt64/2/length || n < math.MinInt64/2/length:
			return value.Value{}, overflow
		default:
			total = n * length
		}
		ticks := m.Ticks + total%864e9
		m.Days += total / 864e9
		if ticks < 0 {
			m.Days, ticks = m.Days-1, ticks+864e9
		}
		m.Days, m.Ticks = m.Days+ticks/864e9, ticks%864e9
	}
	v, ok := value.NewTemporal(result, m)
	if !ok {
		return value.Value{}, overflow
	}
	return v, nil
}

// addMonths moves a date by months; the day stays in its month.
func addMonths(m value.Moment, months int64) (value.Moment, bool) {
	year, month, day := m.Date()
	total := int64(year)*12 + int64(month-1) + months
	if total < 12 || total >= 10_000*12 {
		return m, false
	}
	year, month = int(total/12), int(total%12)+1
	last := int(value.DaysOf(year, month+1, 1) - value.DaysOf(year, month, 1))
	m.Days = value.DaysOf(year, month, min(day, last))
	return m, true
}

// dateDiff counts the boundaries of a part between two dates.
func dateDiff(name string) func(*Context, value.Type, []value.Value) (value.Value, *fault.Error) {
	return func(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
		part, err := PartName(a[0].Raw(), name)
		if err != nil {
			return value.Value{}, err
		}
		for _, v := range a[1:] {
			k := v.Kind()
			if k == value.Time || k == value.Date {
				k = value.DateTime2 // what the other side has counts
			}
			if err := checkPart(name, part, k); err != nil {
				return value.Value{}, err
			}
		}
		n, ok := boundaries(part, a[1].ShownMoment().At(0), a[2].ShownMoment().At(0))
		switch {
		case part == "tzoffset" || part == "iso_week":
			return value.Value{}, fault.New(9806, part, name)
		case !ok || !value.Fits(n, result.Kind):
			return value.Value{}, fault.New(535, name, name)
		}
		return value.Integer(result.Kind, n), nil
	}
}

func boundaries(part string, from, to value.Moment) (n int64, ok bool) {
	if months, known := monthsOfPart[part]; known {
		return monthIndex(to)/months - monthIndex(from)/months, true
	}
	days := to.Days - from.Days
	switch part {
	case "day", "dayofyear", "weekday":
		return days, true
	case "week": // weeks begin on Sunday here, whatever DATEFIRST is
		return (to.Days+1)/7 - (from.Days+1)/7, true
	case "nanosecond":
		if days > 106_000 || days < -106_000 {
			return 0, false
		}
		return (days*864e9 + to.Ticks - from.Ticks) * 100, true
	}
	length := ticksOfPart[part]
	if length == 0 {
		return 0, false
	}
	return days*(864e9/length) + to.Ticks/length - from.Ticks/length, true
}

func monthIndex(m value.Moment) int64 {
	year, month, _ := m.Date()
	return int64(year)*12 + int64(month-1)
}

func dateTrunc(c *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	part, err := PartName(a[0].Raw(), "datetrunc")
	if err != nil {
		return value.Value{}, err
	}
	date, err := c.Settings.Assign(a[1], result)
	if err != nil {
		return value.Value{}, err
	}
	if err := checkPart("datetrunc", part, result.Kind); err != nil {
		return value.Value{}, err.InState(10)
	}
	if least := map[string]uint8{"millisecond": 3, "microsecond": 6}[part]; result.Kind != value.DateTime && result.Scale < least {
		return value.Value{}, fault.New(9810, part, "datetrunc", result.Kind).InState(11)
	}
	m := date.Moment()
	year, month, _ := m.Date()
	switch part {
	case "year":
		m.Days, m.Ticks = value.DaysOf(year, 1, 1), 0
	case "quarter":
		m.Days, m.Ticks = value.DaysOf(year, (month-1)/3*3+1, 1), 0
	case "month":
		m.Days, m.Ticks = value.DaysOf(year, month, 1), 0
	case "week":
		m.Days, m.Ticks = m.Days-weekdayFrom(m.Days, c.Settings.DateFirst), 0
	case "iso_week":
		m.Days, m.Ticks = m.Days-weekdayFrom(m.Days, 1), 0
	case "day", "dayofyear":
		m.Ticks = 0
	default:
		length, known := ticksOfPart[part]
		if !known || part == "weekday" {
			return value.Value{}, fault.New(9810, part, "datetrunc", result.Kind).InState(10)
		}
		m.Ticks -= m.Ticks % length
	}
	if m.Days < 0 {
		return value.Value{}, fault.New(9837)
	}
	v, _ := value.NewTemporal(result, m)
	return v, nil
}

func endOfMonth(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	m := a[0].Moment()
	if len(a) > 1 {
		moved, ok := addMonths(m, a[1].Int64())
		if !ok {
			return value.Value{}, fault.New(517, value.Date)
		}
		m = moved
	}
	year, month, _ := m.Date()
	v, _ := value.NewTemporal(result, value.Moment{Days: value.DaysOf(year, month+1, 1) - 1})
	return v, nil
}

// scaledParts gives a type whose scale is the constant argument at a place.
func scaledParts(kind value.Kind, at int) func([]Argument) (value.Type, *fault.Error) {
	return func(arguments []Argument) (value.Type, *fault.Error) {
		n, known := constantInt(arguments[at])
		if !known || n < 0 || n > 7 {
			return value.Type{}, fault.New(10760)
		}
		return value.Type{Kind: kind, Scale: uint8(n)}, nil
	}
}

// fromParts makes a date and time of numbers; error 289 where they are none.
func fromParts(name string) func(*Context, value.Type, []value.Value) (value.Value, *fault.Error) {
	return func(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
		var n [10]int64
		for i, v := range a {
			n[i] = v.Int64()
		}
		bad := fault.New(289, name, 1)
		if n[0] < 1 || n[0] > 9999 || n[1] < 1 || n[1] > 12 || n[2] < 1 || n[2] > 31 {
			return value.Value{}, bad
		}
		m := value.Moment{Days: value.DaysOf(int(n[0]), int(n[1]), int(n[2]))}
		if _, _, day := m.Date(); int64(day) != n[2] {
			return value.Value{}, bad
		}
		ticks, ok := clockTicks(n[3], n[4], n[5])
		switch result.Kind {
		case value.DateTime:
			ok = ok && n[6] >= 0 && n[6] < 1000
			ticks += n[6] * 1e4
		case value.DateTime2:
			ticks += fractionTicks(n[6], n[7], &ok)
		case value.DateTimeOffset:
			ticks += fractionTicks(n[6], n[9], &ok)
			m.Offset = int(n[7]*60 + n[8])
			ok = ok && n[7] >= -14 && n[7] <= 14 && n[8] > -60 && n[8] < 60
		default: // smalldatetime has minutes only
		}
		m.Ticks = ticks
		v, inRange := value.NewTemporal(result, m)
		if !ok || !inRange {
			return value.Value{}, bad
		}
		return v, nil
	}
}

func clockTicks(hour, minute, second int64) (int64, bool) {
	ok := hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && second >= 0 && second < 60
	return (hour*3600 + minute*60 + second) * 1e7, ok
}

// fractionTicks gives a fraction of a second with so many digits.
func fractionTicks(fraction, digits int64, ok *bool) int64 {
	unit := int64(1e7)
	for range digits {
		unit /= 10
	}
	if fraction < 0 || fraction*unit >= 1e7 && fraction != 0 {
		*ok = false
		return 0
	}
	return fraction * unit
}

func timeFromParts(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	ticks, ok := clockTicks(a[0].Int64(), a[1].Int64(), a[2].Int64())
	ticks += fractionTicks(a[3].Int64(), a[4].Int64(), &ok)
	if !ok {
		return value.Value{}, fault.New(289, "time", 1)
	}
	v, _ := value.NewTemporal(result, value.Moment{Ticks: ticks})
	return v, nil
}

func offsetType(arguments []Argument) (value.Type, *fault.Error) {
	t := value.Of(value.DateTimeOffset)
	if first := arguments[0].Type; first.Kind == value.DateTime2 || first.Kind == value.DateTimeOffset {
		t.Scale = first.Scale
	}
	return t, nil
}

// offsetOf reads an offset: minutes, or text such as -08:00.
func offsetOf(c *Context, v value.Value) (int, *fault.Error) {
	bad := fault.New(9812)
	if v = v.Inside(); !v.Kind().IsCharacter() {
		n, err := c.Settings.Assign(v, intType)
		if err != nil || n.Int64() > 840 || n.Int64() < -840 {
			return 0, bad
		}
		return int(n.Int64()), nil
	}
	zone := strings.TrimSpace(v.Raw())
	at, err := c.Settings.Cast(value.NewVarChar("2000-01-01 12:00:00 "+zone), value.Of(value.DateTimeOffset))
	if err != nil || len(zone) != 6 {
		return 0, bad
	}
	return at.Moment().Offset, nil
}

func switchOffset(c *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	return withOffset(c, result, a, func(m value.Moment, offset int) value.Moment { return m.At(offset) })
}

func toOffset(c *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	return withOffset(c, result, a, func(m value.Moment, offset int) value.Moment {
		m.Offset = offset
		return m
	})
}

func withOffset(c *Context, result value.Type, a []value.Value, move func(value.Moment, int) value.Moment) (value.Value, *fault.Error) {
	offset, err := offsetOf(c, a[1])
	if err != nil {
		return value.Value{}, err
	}
	date, err := c.Settings.Assign(a[0], result)
	if err != nil {
		return value.Value{}, err
	}
	v, ok := value.NewTemporal(result, move(date.Moment(), offset))
	if !ok {
		return value.Value{}, fault.New(517, result.Kind)
	}
	return v, nil
}

// isDate reports whether a value can become datetime.
func isDate(c *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	v := a[0].Inside()
	if v.IsNull() || !v.Kind().IsCharacter() && !v.Kind().IsOldTemporal() || strings.TrimSpace(v.Raw()) == "" && v.Kind().IsCharacter() {
		return number(result, 0)
	}
	if _, err := c.Settings.Assign(v, value.Of(value.DateTime)); err != nil {
		return number(result, 0)
	}
	return number(result, 1)
}
