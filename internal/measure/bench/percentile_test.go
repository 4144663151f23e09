package bench

import (
	"testing"
	"time"
)

func TestPercentileIsAValueThatOccurred(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sorted []float64
		part   float64
		want   float64
	}{
		{[]float64{7}, 0.5, 7},
		{[]float64{1, 2}, 0.5, 1},
		{[]float64{1, 2, 3}, 0.5, 2},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0.9, 9},
		{[]float64{1, 2, 3}, 0.99, 3},
	} {
		if got := percentile(c.sorted, c.part); got != c.want {
			t.Errorf("percentile %v of %v is %v, want %v", c.part, c.sorted, got, c.want)
		}
	}
}

func TestTimesCountFromTheEndOfTheWarmUp(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	after := func(ms int) time.Time { return at.Add(time.Duration(ms) * time.Millisecond) }
	// Work may begin before the sender has read the clock: that is no time at all, not a negative one.
	run, err := takeTimes([]time.Time{at, after(10), after(20)}, []time.Time{after(500), after(9), after(24)}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if run.Messages != 2 || run.P50MS != 0 || run.MaxMS != 4 {
		t.Errorf("took %+v", run)
	}
}
