package bench

import (
	"testing"
	"time"
)

func TestCostOfAJobIsUnknownOrNotNegative(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after time.Duration
		jobs          int64
		want          *float64
	}{
		"measured":                       {time.Second, 3 * time.Second, 1000, new(2.0)},
		"less than what can be measured": {time.Second, time.Second - 10*time.Millisecond, 1000, new(0.0)},
		"no server here before":          {0, time.Second, 1000, nil},
		"no server here after":           {time.Second, 0, 1000, nil},
		"no job":                         {time.Second, time.Second, 0, nil},
	} {
		got := costOf(c.before, c.after, c.jobs)
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
