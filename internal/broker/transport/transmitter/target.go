package transmitter

import (
	"time"

	"github.com/parley-broker/parley"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// target is one of the brokers behind an address. A daemon there serves several databases, and answers a batch when all that it is for have
// answered; so each batch is for one, and one that is slow, locked or away keeps the others from nothing.
type target struct {
	broker  parley.UUID
	service string // while the conversation is not bound to a broker
}

// traffic describes the batches under way to a target.
type traffic struct {
	target target
	// batches and large messages that travel, and since when neither was answered.
	batches, large int
	since          time.Time
	// rows and bytes of it are in the window.
	rows  int
	bytes int64
}

// widest is how many times its size a window may grow to by what is for targets that are late.
const widest = 4

// trafficTo gives the traffic to the target of a run.
func (w *window) trafficTo(run transportstore.Run) *traffic {
	t := target{broker: run.ToBroker}
	if t.broker.IsZero() {
		t.service = run.ToService
	}
	known := w.targets[t]
	if known == nil {
		known = &traffic{target: t}
		w.targets[t] = known
	}
	return known
}

// isLate reports whether the target takes long to answer.
func (t *traffic) isLate(now time.Time) bool {
	return t.batches+t.large > 0 && now.Sub(t.since) >= lateTime
}

// nextLate gives when the next target becomes late, and a window that is full of what is for it has room; zero when none can.
func (w *window) nextLate(now time.Time) (next time.Time) {
	for _, t := range w.targets {
		if t.batches+t.large == 0 || t.isLate(now) {
			continue
		}
		if late := t.since.Add(lateTime); next.IsZero() || late.Before(next) {
			next = late
		}
	}
	return next
}

// depart counts a batch, or a large message, that leaves.
func (t *traffic) depart(isLarge bool, now time.Time) {
	if t.batches+t.large == 0 {
		t.since = now
	}
	if isLarge {
		t.large++
	} else {
		t.batches++
	}
}

// arrive counts a batch, or a large message, that was answered or failed.
func (w *window) arrive(pieces []piece, isLarge bool, now time.Time) {
	t := pieces[0].conversation.traffic
	if isLarge {
		t.large--
	} else {
		t.batches--
	}
	t.since = now
	w.forgetIdle(t)
}

// largeMost is how many large messages may travel to a target at once: the far side takes in two at a time, from us.
func (w *window) largeMost() int {
	if len(w.targets) > 1 {
		return 1
	}
	return largeMax
}

// forgetIdle forgets a target to which nothing is under way.
func (w *window) forgetIdle(t *traffic) {
	if t.rows == 0 && t.batches+t.large == 0 && w.targets[t.target] == t {
		delete(w.targets, t.target)
	}
}

// hasRoom reports whether more may be taken from the lane. Messages that wait for targets that are late do not count, within limits.
func (w *window) hasRoom(now time.Time) bool {
	if w.rows < windowRows && w.bytes < windowBytes {
		return true
	}
	rows, size := w.rows, w.bytes
	for _, t := range w.targets {
		if t.isLate(now) {
			rows -= t.rows
			size -= t.bytes
		}
	}
	return rows < windowRows && size < windowBytes && w.rows < widest*windowRows && w.bytes < widest*windowBytes
}
