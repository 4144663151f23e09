package transmitter

import (
	"context"
	"time"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/notifier"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// scanCost is how many times as long as a scan took the pause after it is.
const scanCost = 2

// senders is the coordinator's record of the sessions that put messages on lanes: whether they are asked to notify, and how often to scan
// when they are not ([notifier.Demand]).
type senders struct {
	demand       notifier.Demand
	busyAt       time.Time // when something came last
	nextAsk      time.Time
	scannedAt    time.Time
	notBefore    time.Time // the end of the pause after a scan that failed
	pollInterval time.Duration
}

// notified counts a notification.
func (s *senders) notified(now time.Time, workers int) {
	s.demand.Notified(now, workers == 0 && now.Sub(s.busyAt) > quietTime)
	s.busyAt = now
}

// scanned records a scan, what it cost, whether there was something, and how many workers scan for themselves.
func (s *senders) scanned(now time.Time, cost time.Duration, isBusy bool, workers int) {
	s.scannedAt = now
	s.pollInterval = notifier.PollAfter(cost, scanCost, notifier.PollInterval, longestPollInterval)
	if workers > 0 {
		s.pollInterval = longestPollInterval
	}
	if isBusy {
		s.busyAt = now
	}
}

// failed records a scan that failed, and the pause that follows: whatever senders do, none comes before its end.
func (s *senders) failed(now time.Time, pause time.Duration) time.Time {
	s.notBefore = now.Add(pause)
	return s.notBefore
}

// next reports when to scan again, as far as senders are concerned.
func (s *senders) next(now time.Time, isListening bool) time.Time {
	return latest(s.interval(now, isListening), s.notBefore)
}

// interval gives the end of the interval between two scans.
func (s *senders) interval(now time.Time, isListening bool) time.Time {
	switch {
	case !isListening && now.Sub(s.busyAt) > 5*quietTime:
		return s.scannedAt.Add(max(blindInterval, s.pollInterval))
	case s.demand.IsPolling(), !isListening:
		return s.scannedAt.Add(s.pollInterval)
	case s.demand.IsWatched(now):
		return s.scannedAt.Add(notifier.WatchInterval)
	}
	return s.scannedAt.Add(notifier.SafetyInterval)
}

// tendSenders asks senders to notify, or not to, when it is time to, and has the database scanned when they do not.
func (c *coordinator) tendSenders(ctx context.Context, now time.Time) {
	s := &c.senders
	isListening := c.term.Notifier.IsListening()
	switch {
	case !isListening:
		s.demand.Poll()
	case s.demand.IsTooHigh(now):
		s.demand.Poll()
		c.silenceSenders(ctx)
	case s.demand.IsPolling() && c.running == 0 && now.Sub(s.busyAt) > quietTime:
		s.demand.EndPolling()
		s.nextAsk = time.Time{}
	case s.demand.IsPolling() && s.demand.IsAsked(now):
		// They were asked when we could not listen any more.
		c.silenceSenders(ctx)
	}
	if isListening && !s.demand.IsPolling() && !s.demand.IsAsked(now.Add(notifier.RenewInterval)) && !now.Before(s.nextAsk) {
		c.askSenders(ctx, now)
	}
	c.nextScan = earliest(c.nextScan, s.next(now, isListening))
}

// askSenders asks senders to notify. When they did not before, one that checked just before does not.
func (c *coordinator) askSenders(ctx context.Context, now time.Time) {
	err := c.do(ctx, func(ctx context.Context, db parley.DB) error {
		return transportstore.AskForTransmissionWakeUps(ctx, db, notifier.AskTime)
	})
	if err != nil {
		c.senders.nextAsk = now.Add(c.failures.Failed(err))
		return
	}
	if c.senders.demand.Asked(now, notifier.AskTime) {
		c.nextScan, c.nextUnresolved = time.Time{}, time.Time{}
	}
	c.senders.nextAsk = now.Add(notifier.RenewInterval)
}

// silenceSenders asks senders not to notify any more.
func (c *coordinator) silenceSenders(ctx context.Context) {
	c.senders.demand.Unasked()
	if err := c.do(ctx, transportstore.CancelTransmissionWakeUps); err != nil && ctx.Err() == nil {
		c.failures.Failed(err)
	}
}

// do runs a statement.
func (c *coordinator) do(ctx context.Context, statement func(ctx context.Context, db parley.DB) error) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	return statement(ctx, c.pool.DB())
}
