package host

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/flow/schedule"
)

// opening is the schedule of a location or port, and until when it is known to be open or closed.
type opening struct {
	schedule *schedule.Schedule
	err      error // why the schedule cannot be used
	known    *known
}

// known is an answer of a schedule, which lasts from one time until another.
type known struct {
	mu          sync.Mutex
	from, until time.Time
	isOpen      bool
}

func newOpening(written json.RawMessage) opening {
	made := opening{known: &known{}}
	made.schedule, made.err = schedule.Read(written)
	return made
}

// at reports whether it is open, and until when that stays; the zero time for always.
func (o opening) at(now time.Time) (isOpen bool, until time.Time) {
	if o.schedule == nil {
		return true, time.Time{}
	}
	o.known.mu.Lock()
	defer o.known.mu.Unlock()
	k := o.known
	if k.from.IsZero() || now.Before(k.from) || !k.until.IsZero() && !now.Before(k.until) {
		k.from = now
		k.isOpen, k.until = o.schedule.At(now)
	}
	return k.isOpen, k.until
}

// now gives the time by which schedules open and close.
func (h *Host) now() time.Time { return h.server.config.Now() }

// windowCheck is how often it is asked whether a schedule has opened or closed: the clock of a machine may be set, or stand still.
const windowCheck = time.Second

// awaitOpening waits until the schedule of a location is open, and reports whether that came before the end of ctx.
func (h *Host) awaitOpening(ctx context.Context, running *runningLocation) bool {
	isLogged := false
	for ctx.Err() == nil {
		isOpen, until := running.opening.at(h.now())
		if isOpen {
			return true
		}
		if !isLogged {
			h.logger.Info("the location takes nothing in: it is outside its window", "location", running.name, "until", until)
			isLogged = true
		}
		_ = backoff.Wait(ctx, windowCheck)
	}
	return false
}

// awaitClosing returns when the schedule of a location closes, or ctx ends.
func (h *Host) awaitClosing(ctx context.Context, running *runningLocation) {
	if running.opening.schedule == nil {
		<-ctx.Done()
		return
	}
	for ctx.Err() == nil {
		if isOpen, _ := running.opening.at(h.now()); !isOpen {
			return
		}
		_ = backoff.Wait(ctx, windowCheck)
	}
}

// closed is a location or port that its schedule keeps from its work now.
type closed struct {
	Kind   string     `json:"kind"`
	Object string     `json:"object"`
	Until  *time.Time `json:"until"` // nil for good
}

// closed gives those of a configuration.
func (c *configuration) closed(now time.Time) []closed {
	var found []closed
	add := func(kind, name string, o opening) {
		if isOpen, until := o.at(now); !isOpen {
			one := closed{Kind: kind, Object: name}
			if !until.IsZero() {
				one.Until = &until
			}
			found = append(found, one)
		}
	}
	for _, name := range names(c.Locations) {
		if l := c.Locations[name]; l.IsEnabled {
			add("receive location", name, l.opening)
		}
	}
	for _, name := range names(c.SendPorts) {
		if p := c.SendPorts[name]; p.State == "Started" {
			add("send port", name, p.opening)
		}
	}
	return found
}
