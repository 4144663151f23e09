package value

import (
	"time"
)

// Temporal values are whole numbers: date counts days since 0001-01-01; time counts ticks of 100 ns since midnight; datetime2
// counts ticks since 0001-01-01, datetimeoffset too, in UTC; smalldatetime counts minutes and datetime counts 1/300 s, both
// since 1900-01-01.
const (
	ticksPerSecond = int64(time.Second / 100)
	ticksPerMinute = 60 * ticksPerSecond
	ticksPerDay    = 24 * 60 * ticksPerMinute
	daysBefore1900 = 693595  // from 0001-01-01 to 1900-01-01
	daysBefore1753 = 639905  // from 0001-01-01 to 1753-01-01, the first day of datetime
	lastDay        = 3652058 // 9999-12-31
	unitsPerDay    = 24 * 60 * 60 * 300
	minutesPerDay  = 24 * 60
	smallDays      = 65535 // the last day of smalldatetime, 2079-06-06
	secondsTo1970  = 719162 * 24 * 60 * 60
)

// A Moment is a date with a time of day. A date alone has no ticks, a time alone stands on 1900-01-01.
type Moment struct {
	Days   int64 // since 0001-01-01
	Ticks  int64 // of 100 ns since midnight
	Offset int   // minutes east of UTC of the days and ticks; 0 but for datetimeoffset
}

// DaysOf gives the days from 0001-01-01 to a date of the proleptic Gregorian calendar; months and days may overflow.
func DaysOf(year, month, day int) int64 {
	return (time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC).Unix() + secondsTo1970) / (24 * 60 * 60)
}

// Date gives year, month and day.
func (m Moment) Date() (year, month, day int) {
	y, mon, d := m.clock().Date()
	return y, int(mon), d
}

// Clock gives hour, minute, second and the ticks of 100 ns within the second.
func (m Moment) Clock() (hour, minute, second int, ticks int64) {
	seconds := m.Ticks / ticksPerSecond
	return int(seconds / 3600), int(seconds / 60 % 60), int(seconds % 60), m.Ticks % ticksPerSecond
}

// clock gives the moment as a time.Time whose fields are those of the moment's own zone.
func (m Moment) clock() time.Time {
	return time.Unix(m.Days*24*60*60-secondsTo1970, 0).UTC().Add(time.Duration(m.Ticks) * 100)
}

// Time gives the moment as a time.Time with its offset.
func (m Moment) Time() time.Time {
	c := m.clock()
	return time.Date(c.Year(), c.Month(), c.Day(), c.Hour(), c.Minute(), c.Second(), c.Nanosecond(),
		time.FixedZone("", m.Offset*60))
}

// MomentOf gives the date, the time of day and the offset of t in its location.
func MomentOf(t time.Time) Moment {
	_, offset := t.Zone()
	year, month, day := t.Date()
	ticks := int64(t.Hour()*3600+t.Minute()*60+t.Second())*ticksPerSecond + int64(t.Nanosecond()/100)
	return Moment{Days: DaysOf(year, int(month), day), Ticks: ticks, Offset: offset / 60}
}

// total gives the ticks since 0001-01-01.
func (m Moment) total() int64 { return m.Days*ticksPerDay + m.Ticks }

func momentOfTotal(ticks int64) Moment {
	return Moment{Days: floorDiv(ticks, ticksPerDay), Ticks: floorMod(ticks, ticksPerDay)}
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func floorMod(a, b int64) int64 { return a - floorDiv(a, b)*b }

// At gives the moment in its own zone at another offset, in minutes.
func (m Moment) At(offset int) Moment {
	moved := momentOfTotal(m.total() + int64(offset-m.Offset)*ticksPerMinute)
	moved.Offset = offset
	return moved
}

// rounded gives the moment with so many digits of its seconds, half a unit up; it may reach the next day.
func (m Moment) rounded(scale uint8) Moment {
	unit := int64(1)
	for range 7 - int(scale) {
		unit *= 10
	}
	r := momentOfTotal((m.total() + unit/2) / unit * unit)
	r.Offset = m.Offset
	return r
}

// Moment gives the date and time of a temporal value.
func (v Value) Moment() Moment {
	switch v.typ.Kind {
	case Date:
		return Moment{Days: v.i}
	case Time:
		return Moment{Days: daysBefore1900, Ticks: v.i}
	case SmallDateTime:
		return Moment{Days: daysBefore1900 + floorDiv(v.i, minutesPerDay), Ticks: floorMod(v.i, minutesPerDay) * ticksPerMinute}
	case DateTime:
		units := floorMod(v.i, unitsPerDay)
		return Moment{Days: daysBefore1900 + floorDiv(v.i, unitsPerDay), Ticks: (units*200_000 + 3) / 6}
	case DateTimeOffset:
		offset, _ := v.ref.(int)
		return momentOfTotal(v.i).At(offset)
	default:
		return momentOfTotal(v.i)
	}
}

// NewTemporal gives a value of a temporal type, rounded to its accuracy; ok is false outside the type's range.
func NewTemporal(t Type, m Moment) (v Value, ok bool) {
	v = Value{typ: t, set: true}
	switch t.Kind {
	case Date:
		v.i = m.Days
		return v, m.Days >= 0 && m.Days <= lastDay
	case Time:
		v.i = m.rounded(t.Scale).Ticks
		return v, true
	case SmallDateTime:
		v.i = (m.Days-daysBefore1900)*minutesPerDay + (m.Ticks+ticksPerMinute/2)/ticksPerMinute
		return v, v.i >= 0 && v.i < (smallDays+1)*minutesPerDay
	case DateTime:
		v.i = (m.Days-daysBefore1900)*unitsPerDay + (m.Ticks*6+100_000)/200_000
		return v, m.Days >= daysBefore1753 && v.i < (lastDay-daysBefore1900+1)*unitsPerDay
	case DateTimeOffset:
		m = m.rounded(t.Scale)
		utc := m.At(0)
		v.i, v.ref = utc.total(), m.Offset
		return v, utc.Days >= 0 && utc.Days <= lastDay && m.Days >= 0 && m.Days <= lastDay && m.Offset >= -840 && m.Offset <= 840
	default:
		m = m.rounded(t.Scale)
		v.i = m.total()
		return v, m.Days >= 0 && m.Days <= lastDay
	}
}

// ShownMoment gives the date and time as they are printed: the thirds of a millisecond of datetime are rounded.
func (v Value) ShownMoment() Moment {
	m := v.Moment()
	if v.typ.Kind == DateTime {
		m.Ticks = (m.Ticks + 5_000) / 10_000 * 10_000
	}
	return m
}
