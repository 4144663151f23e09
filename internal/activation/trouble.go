package activation

import (
	"log/slog"
	"math/rand/v2"
	"time"
)

// trouble logs that something fails when that begins, and when it is over, not each time.
type trouble struct {
	logger *slog.Logger
	text   string // says what fails
	since  time.Time
	times  int
}

// met notes a failure and says how long to pause.
func (t *trouble) met(err error) time.Duration {
	if t.times == 0 {
		t.since = time.Now()
		t.logger.Warn("something fails again and again", "what", t.text, "error", err)
	}
	t.times++
	pause := min(longestPause, firstPause<<min(t.times-1, 10))
	return pause/2 + rand.N(pause/2)
}

// over notes a success.
func (t *trouble) over() {
	if t.times > 0 {
		t.logger.Info("works again", "what", t.text, "after", time.Since(t.since).Round(time.Millisecond), "failures", t.times)
		t.times = 0
	}
}
