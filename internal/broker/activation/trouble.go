package activation

import (
	"log/slog"
	"math/rand/v2"
	"time"
)

// Trouble logs that something fails when that begins, and when it is over, not each time. It belongs to one goroutine.
type Trouble struct {
	logger *slog.Logger
	text   string // says what fails
	since  time.Time
	times  int
}

// NewTrouble is without trouble so far; text says what fails.
func NewTrouble(logger *slog.Logger, text string) Trouble {
	return Trouble{logger: logger, text: text}
}

// Met notes a failure and says how long to pause: 100 ms, doubling to 5 s, up to half of it less.
func (t *Trouble) Met(err error) time.Duration {
	if t.times == 0 {
		t.since = time.Now()
		t.logger.Warn("something fails again and again", "what", t.text, "error", err)
	}
	t.times++
	pause := min(longestPause, firstPause<<min(t.times-1, 10))
	return pause/2 + rand.N(pause/2)
}

// Over notes a success.
func (t *Trouble) Over() {
	if t.times > 0 {
		t.logger.Info("works again", "what", t.text, "after", time.Since(t.since).Round(time.Millisecond), "failures", t.times)
		t.times = 0
	}
}
