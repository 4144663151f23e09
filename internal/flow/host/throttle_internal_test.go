package host

import (
	"testing"
	"time"
)

// Messages that begin something are held back before those that something waits for, each with a delay of its own.
func TestActivationsAndCorrelationsAreThrottledApart(t *testing.T) {
	t.Parallel()
	h := &Host{}
	h.throttle = newThrottle(h)
	use := func(publishing, correlation, delivery string) {
		h.settings.Store(&configuration{Host: hostSettings{Publishing: publishing, Correlation: correlation, Delivery: delivery}})
	}
	check := func(what string, asked states, publishing, correlation, delivery int) {
		t.Helper()
		h.throttle.poll(asked)
		p, c, d := h.throttle.read()
		if p.state != publishing || c.state != correlation || d.state != delivery {
			t.Errorf("%s: the states are %d, %d, %d", what, p.state, c.state, d.state)
		}
		if delayed := h.throttle.publishingDelay(false) > 0; delayed != (publishing != 0) {
			t.Errorf("%s: activations are delayed: %v", what, delayed)
		}
		if delayed := h.throttle.publishingDelay(true) > 0; delayed != (correlation != 0) {
			t.Errorf("%s: correlations are delayed: %v", what, delayed)
		}
	}
	use("auto", "auto", "auto")
	check("nothing", states{}, 0, 0, 0)
	check("size", states{publishing: []int{stateDatabaseSize, stateSessions}}, 6, 0, 0)
	check("memory", states{publishing: []int{4, 6}, correlation: []int{4}, delivery: []int{4}}, 4, 4, 4)
	for range 3 {
		h.throttle.poll(states{})
	}
	check("over", states{}, 0, 0, 0)
	use("force", "auto", "force")
	check("forced", states{}, 11, 0, 10)
	use("auto", "force", "auto")
	for range 3 {
		h.throttle.poll(states{})
	}
	check("correlations forced", states{}, 0, 11, 0)
	use("never", "never", "never")
	for range 3 {
		h.throttle.poll(states{})
	}
	check("never", states{publishing: []int{4}, correlation: []int{5}, delivery: []int{4}}, 0, 0, 0)
	use("auto", "auto", "auto")
	if h.throttle.deliveryDelay(0) != inProcessPause {
		t.Error("a claim without room does not wait")
	}
	check("no room", states{}, 0, 0, stateInProcess)
}

// A location is delayed while all ports that it feeds are paused, and no other one is.
func TestALocationIsDelayedForThePortsThatItFeeds(t *testing.T) {
	t.Parallel()
	paused := map[int64]bool{1: true, 2: true}
	for _, c := range []struct {
		fed  []int64
		want bool
	}{
		{nil, false}, {[]int64{1}, true}, {[]int64{1, 2}, true}, {[]int64{1, 3}, false}, {[]int64{3}, false}, {[]int64{1, 0}, false},
	} {
		f := newFeeding()
		for _, port := range c.fed {
			if port == 0 {
				f.feed(nil)
			} else {
				f.feed([]int64{port})
			}
		}
		if got := f.ease(paused); got != c.want || (f.delay() > 0) != c.want {
			t.Errorf("fed %v: it is delayed: %v, by %s", c.fed, got, f.delay())
		}
		for range 50 {
			f.ease(paused)
		}
		if f.delay() > pauseMost {
			t.Errorf("fed %v: the delay is %s", c.fed, f.delay())
		}
		// A port that was fed a minute ago counts no more: a batch shows whether it is still so.
		for port := range f.fed {
			f.fed[port] = time.Now().Add(-2 * fedFor)
		}
		if f.ease(paused) || f.delay() != 0 {
			t.Errorf("fed %v long ago: it is delayed", c.fed)
		}
	}
}
