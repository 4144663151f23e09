package backoff

import (
	"log/slog"
	"time"
)

// Failures counts failures in a row of something that is tried again with policy [Statement]. It logs when they begin and when they are
// over, not each time. It belongs to one goroutine.
type Failures struct {
	logger *slog.Logger
	what   string
	since  time.Time
	times  int
}

// NewFailures has counted none so far; what says what fails.
func NewFailures(logger *slog.Logger, what string) Failures {
	return Failures{logger: logger, what: what}
}

// Failed counts a failure and says how long to pause.
func (f *Failures) Failed(err error) time.Duration {
	if f.times == 0 {
		f.since = time.Now()
		f.logger.Warn("something fails again and again", "what", f.what, "error", err)
	}
	f.times++
	return Statement.Pause(f.times)
}

// Succeeded ends a row of failures.
func (f *Failures) Succeeded() {
	if f.times > 0 {
		f.logger.Info("works again", "what", f.what, "after", time.Since(f.since).Round(time.Millisecond), "failures", f.times)
		f.times = 0
	}
}
