package pgdb

import (
	"math"
	"time"
)

// Seconds rounds up to whole seconds, as the broker counts lifetimes and timers.
func Seconds(d time.Duration) int32 { return inUnits(d, time.Second) }

// Milliseconds rounds up to whole milliseconds, as the broker counts time-outs; negative means for ever.
func Milliseconds(d time.Duration) int32 {
	if d < 0 {
		return -1
	}
	return inUnits(d, time.Millisecond)
}

func inUnits(d, unit time.Duration) int32 {
	units := d / unit
	if d%unit > 0 {
		units++
	}
	return int32(max(math.MinInt32, min(units, math.MaxInt32)))
}
