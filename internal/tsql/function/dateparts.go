package function

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// partNames has the full name of each name and abbreviation of a date part.
var partNames = map[string]string{
	"year": "year", "yy": "year", "yyyy": "year", "quarter": "quarter", "qq": "quarter", "q": "quarter",
	"month": "month", "mm": "month", "m": "month", "dayofyear": "dayofyear", "dy": "dayofyear", "y": "dayofyear",
	"day": "day", "dd": "day", "d": "day", "week": "week", "wk": "week", "ww": "week", "weekday": "weekday", "dw": "weekday",
	"w": "weekday", "hour": "hour", "hh": "hour", "minute": "minute", "mi": "minute", "n": "minute", "second": "second",
	"ss": "second", "s": "second", "millisecond": "millisecond", "ms": "millisecond", "microsecond": "microsecond",
	"mcs": "microsecond", "nanosecond": "nanosecond", "ns": "nanosecond", "tzoffset": "tzoffset", "tz": "tzoffset",
	"iso_week": "iso_week", "isowk": "iso_week", "isoww": "iso_week",
}

// PartName gives the full name of a date part; error 155 where there is none of this name.
func PartName(name, function string) (string, *fault.Error) {
	full, known := partNames[strings.ToLower(name)]
	if !known {
		return "", fault.New(155, name, strings.ToLower(function))
	}
	return full, nil
}

var dateParts = []Function{
	{Name: "DATEPART", Parameters: "pd", Result: always(intType), Call: datePart},
	{Name: "DATENAME", Parameters: "pd", Result: always(value.Sized(value.NVarChar, 30)), Call: dateName},
	{Name: "DAY", Parameters: "d", Result: always(intType), Call: partAlone("day")},
	{Name: "MONTH", Parameters: "d", Result: always(intType), Call: partAlone("month")},
	{Name: "YEAR", Parameters: "d", Result: always(intType), Call: partAlone("year")},
}

func partAlone(part string) func(*Context, value.Type, []value.Value) (value.Value, *fault.Error) {
	return func(c *Context, _ value.Type, a []value.Value) (value.Value, *fault.Error) {
		n, err := partOf(c, "datepart", part, a[0])
		return value.NewInt(n), err
	}
}

func datePart(c *Context, _ value.Type, a []value.Value) (value.Value, *fault.Error) {
	part, err := PartName(a[0].Raw(), "datepart")
	if err != nil {
		return value.Value{}, err
	}
	n, err := partOf(c, "datepart", part, a[1])
	return value.NewInt(n), err
}

func dateName(c *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	part, err := PartName(a[0].Raw(), "datename")
	if err != nil {
		return value.Value{}, err
	}
	n, err := partOf(c, "datename", part, a[1])
	if err != nil {
		return value.Value{}, err
	}
	text := strconv.Itoa(n)
	switch part {
	case "month":
		text = value.MonthName(n)
	case "weekday":
		text = a[1].Moment().Time().Weekday().String()
	case "tzoffset":
		text = fmt.Sprintf("%+03d:%02d", n/60, max(n, -n)%60)
	}
	return value.TextOf(result, text), nil
}

// checkPart gives error 9810 where a kind has no such part.
func checkPart(function, part string, k value.Kind) *fault.Error {
	isTimePart := false
	switch part {
	case "hour", "minute", "second", "millisecond", "microsecond", "nanosecond":
		isTimePart = true
	}
	isZone := part == "tzoffset"
	switch {
	case k == value.Date && (isTimePart || isZone), k == value.Time && !isTimePart, isZone && k.IsOldTemporal():
		return fault.New(9810, part, function, k)
	}
	return nil
}

// partOf gives a part of a date as a number.
func partOf(c *Context, function, part string, v value.Value) (int, *fault.Error) {
	if err := checkPart(function, part, v.Kind()); err != nil {
		return 0, err
	}
	m := v.ShownMoment()
	year, month, day := m.Date()
	hour, minute, second, ticks := m.Clock()
	date := m.Time()
	switch part {
	case "year":
		return year, nil
	case "quarter":
		return (month + 2) / 3, nil
	case "month":
		return month, nil
	case "dayofyear":
		return date.YearDay(), nil
	case "day":
		return day, nil
	case "week":
		first := value.DaysOf(year, 1, 1)
		return int((m.Days-first+weekdayFrom(first, c.Settings.DateFirst))/7) + 1, nil
	case "weekday":
		return int(weekdayFrom(m.Days, c.Settings.DateFirst)) + 1, nil
	case "iso_week":
		_, week := date.ISOWeek()
		return week, nil
	case "hour":
		return hour, nil
	case "minute":
		return minute, nil
	case "second":
		return second, nil
	case "millisecond":
		return int(ticks / 10_000), nil
	case "microsecond":
		return int(ticks / 10), nil
	case "nanosecond":
		return int(ticks * 100), nil
	default:
		return m.Offset, nil
	}
}

// weekdayFrom gives the day of a week that begins on a day, 1 for Monday to 7 for Sunday; 0 is the first.
func weekdayFrom(days int64, first int) int64 {
	// 0001-01-01 is a Monday.
	return ((days-int64(first-1))%7 + 7) % 7
}
