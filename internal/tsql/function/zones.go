package function

import (
	"strings"
	"time"
	_ "time/tzdata" // the zones are the same on every machine, also where none are installed

	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// AtTimeZone is AT TIME ZONE, which a batch cannot call by a name. Page: queries/at-time-zone-transact-sql.
var AtTimeZone = &Function{Name: "AT TIME ZONE", Parameters: "dt", Result: zonedType, Call: atTimeZone}

// zonedType has the digits of the time; 8116 for what is no date with a time.
func zonedType(arguments []Argument) (value.Type, *fault.Error) {
	t := value.Of(value.DateTimeOffset)
	switch from := arguments[0].Type; from.Kind {
	case value.SmallDateTime:
		t.Scale = 0
	case value.DateTime:
		t.Scale = 3
	case value.DateTime2, value.DateTimeOffset:
		t.Scale = from.Scale
	case value.Unknown, value.Variant:
	default:
		return t, fault.New(8116, from.Kind, 1, "AT TIME ZONE")
	}
	return t, nil
}

// atTimeZone moves a datetimeoffset into a zone, and gives any other time the offset that the zone has then: in an hour that comes
// twice that of before the change, and in one that is left out that of after it, an hour later.
func atTimeZone(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	name, known := zoneNames[strings.ToLower(strings.TrimRight(a[1].Raw(), " "))]
	zone, err := time.LoadLocation(name)
	if !known || err != nil {
		return value.Value{}, fault.New(9820, a[1].Raw())
	}
	m := a[0].Inside().Moment()
	if a[0].Inside().Kind() == value.DateTimeOffset {
		m = m.At(offsetIn(zone, m.Time()))
	} else {
		m = local(m, zone)
	}
	v, ok := value.NewTemporal(result, m)
	if !ok {
		return value.Value{}, fault.New(517, result.Kind)
	}
	return v, nil
}

// local gives a time of a zone's clock its offset.
func local(m value.Moment, zone *time.Location) value.Moment {
	const longestShift = 24 * time.Hour
	asUTC := m.Time()
	// The offsets of a day before and after hold on the two sides of a change that is near.
	before, after := offsetIn(zone, asUTC.Add(-longestShift)), offsetIn(zone, asUTC.Add(longestShift))
	for _, offset := range []int{before, after} {
		if offsetIn(zone, asUTC.Add(-time.Duration(offset)*time.Minute)) == offset {
			m.Offset = offset
			return m
		}
	}
	m.Offset = before
	return m.At(after)
}

// offsetIn gives the minutes east of UTC of a zone at a time.
func offsetIn(zone *time.Location, at time.Time) int {
	_, seconds := at.In(zone).Zone()
	return seconds / 60
}
