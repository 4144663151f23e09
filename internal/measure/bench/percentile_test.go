package bench

import (
	"testing"
	"time"
)

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

func TestRunWithoutMessagesHasNoTimes(t *testing.T) {
	t.Parallel()
	if round, err := takeTimes(nil, nil, -1); err == nil {
		t.Errorf("it has %+v", round)
	}
}
