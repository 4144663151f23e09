package notifier

import (
	"sync/atomic"
	"time"
)

const (
	// SafetyInterval is how often whoever listens scans all the same: locks are released without a notification, and one may be lost.
	SafetyInterval = 5 * time.Second

	// AskTime is how long senders are asked to notify at a time.
	AskTime = 60 * time.Second
	// RenewInterval is when they are asked again.
	RenewInterval = 30 * time.Second

	// Senders are asked no more after more than so many notifications, while work was done without a pause for so long.
	notificationsMax = 100
	busyTime         = 500 * time.Millisecond
	// PollInterval is how often to scan then, unless scans cost much ([PollAfter]).
	PollInterval = 2 * time.Millisecond

	// WatchInterval is how often to scan for watchTime after senders were asked: one that checked before may commit later
	// and does not notify.
	WatchInterval = 200 * time.Millisecond
	watchTime     = 2 * time.Second
)

// Demand reports whether senders are asked to notify: of messages to one queue, or of those to all destinations.
//
// They are asked while there is little to do, so that a message wakes us at once. But each notification makes senders wait for one another.
// So when work is done without a pause and notifications keep coming, senders are asked no more, and we poll until there is nothing to do.
//
// It belongs to one goroutine, but for IsPolling. Its zero value has asked nobody.
type Demand struct {
	isPolling     atomic.Bool
	busySince     time.Time
	notifications int // since then
	askedUntil    time.Time
	watchUntil    time.Time
}

// Notified counts a notification. When nobody was at work it begins the count anew.
func (d *Demand) Notified(now time.Time, wasIdle bool) {
	if wasIdle {
		d.busySince, d.notifications = now, 0
		return
	}
	d.notifications++
}

// IsTooHigh reports whether it is time to poll instead.
func (d *Demand) IsTooHigh(now time.Time) bool {
	return !d.IsPolling() && d.notifications > notificationsMax && now.Sub(d.busySince) > busyTime
}

// IsPolling reports whether messages have to be scanned for, because senders do not notify.
func (d *Demand) IsPolling() bool { return d.isPolling.Load() }

// Poll begins to poll.
func (d *Demand) Poll() { d.isPolling.Store(true) }

// EndPolling ends what Poll began; senders have to be asked.
func (d *Demand) EndPolling() {
	d.isPolling.Store(false)
	d.notifications = 0
	d.Unasked()
}

// Asked records that senders are asked to notify for a time, in whole seconds by the clock of the database. It reports whether they
// were not before: then a scan has to follow, and others for a while.
func (d *Demand) Asked(now time.Time, lasts time.Duration) (isNew bool) {
	isNew = !d.IsAsked(now)
	if isNew {
		d.watchUntil = now.Add(watchTime)
	}
	d.askedUntil = now.Add(lasts - time.Second)
	return isNew
}

// IsAsked reports whether senders will still notify at a time.
func (d *Demand) IsAsked(at time.Time) bool { return at.Before(d.askedUntil) }

// Unasked records that senders do not notify, or that nobody listens to them.
func (d *Demand) Unasked() { d.askedUntil = time.Time{} }

// IsWatched reports whether to scan every WatchInterval.
func (d *Demand) IsWatched(at time.Time) bool { return at.Before(d.watchUntil) }

// PollAfter gives when to scan again after a scan that took so long: after times as much as it took, within the bounds.
func PollAfter(took time.Duration, times int, shortest, longest time.Duration) time.Duration {
	return min(max(shortest, time.Duration(times)*took), longest)
}
