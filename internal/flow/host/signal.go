package host

import (
	"context"
	"time"
)

// signal wakes one goroutine; what is sent while nobody waits is merged into one.
type signal struct{ waiting chan struct{} }

func newSignal() *signal { return &signal{make(chan struct{}, 1)} }

func (s *signal) send() {
	select {
	case s.waiting <- struct{}{}:
	default:
	}
}

// wait returns when it is sent, the time is over, or ctx ends.
func (s *signal) wait(ctx context.Context, most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-s.waiting:
	case <-timer.C:
	}
}
