package function

import (
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// clocks are the functions that give the time at which the statement began.
var clocks = []Function{
	{Name: "GETDATE", Result: always(value.Of(value.DateTime)), Call: now(false)},
	{Name: "CURRENT_TIMESTAMP", Result: always(value.Of(value.DateTime)), Call: now(false)},
	{Name: "GETUTCDATE", Result: always(value.Of(value.DateTime)), Call: now(true)},
	{Name: "SYSDATETIME", Result: always(value.Of(value.DateTime2)), Call: now(false)},
	{Name: "SYSUTCDATETIME", Result: always(value.Of(value.DateTime2)), Call: now(true)},
	{Name: "SYSDATETIMEOFFSET", Result: always(value.Of(value.DateTimeOffset)), Call: now(false)},
	{Name: "CURRENT_DATE", Result: always(value.Of(value.Date)), Call: now(false)},
}

// now gives the time in the server's zone or in UTC.
func now(isUTC bool) func(*Context, value.Type, []value.Value) (value.Value, *fault.Error) {
	return func(c *Context, result value.Type, _ []value.Value) (value.Value, *fault.Error) {
		at := c.Now
		if isUTC {
			at = at.UTC()
		}
		m := value.MomentOf(at)
		if result.Kind != value.DateTimeOffset {
			m.Offset = 0
		}
		v, _ := value.NewTemporal(result, m)
		return v, nil
	}
}
