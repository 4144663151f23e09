package activation

import (
	"context"
	"slices"
	"time"

	"github.com/parley-broker/parley/internal/notifier"
	activationstore "github.com/parley-broker/parley/internal/store/activation"
)

// The senders to a queue are asked to notify while it has nothing to do, and for as long as readers come and go. When notifications keep
// coming it is polled until its readers have left ([notifier.Demand]).
const (
	// askedAtOnce queues cost as many locks to the end of a statement.
	askedAtOnce = 200

	// While a queue is polled and readers run, scans take one part in scanShare of the time at most; where no more readers may be started one
	// each fullInterval will do.
	scanShare           = 5
	fullInterval        = 20 * time.Millisecond
	longestPollInterval = 100 * time.Millisecond
)

// countNotification counts a notification of a queue, which may be one too many.
func (m *monitor) countNotification(q *queueMonitor, now time.Time) {
	q.notifiedAt = now
	q.demand.Notified(now, len(q.runs) == 0)
	if q.demand.IsTooHigh(now) {
		q.demand.Poll()
		m.polled = append(m.polled, int32(q.ID))
		m.want(q, now.Add(notifier.PollInterval))
	}
}

// poll has a polled queue scanned again and again, until it has nothing to do any more. The last scan took so long.
func (m *monitor) poll(q *queueMonitor, isEmpty bool, took time.Duration, now time.Time) {
	after := func(times int, shortest time.Duration) {
		m.want(q, now.Add(notifier.PollAfter(took, times, shortest, longestPollInterval)))
	}
	switch isPolling := q.demand.IsPolling(); {
	case isPolling && isEmpty && len(q.runs) == 0:
		q.demand.EndPolling()
		m.unasked = append(m.unasked, int32(q.ID))
	case isPolling && (len(q.runs) >= q.MaxReaders || q.failure.times > 0):
		after(scanShare, fullInterval)
	case isPolling && len(q.runs) == 0:
		after(1, notifier.PollInterval)
	case isPolling:
		after(scanShare, notifier.PollInterval)
	case q.demand.IsWatched(now):
		m.want(q, now.Add(notifier.WatchInterval))
	}
}

// notPolled lists the queues whose senders are asked to notify.
func (m *monitor) notPolled() []int32 {
	ids := make([]int32, 0, len(m.queues))
	for id, q := range m.queues {
		if !q.demand.IsPolling() {
			ids = append(ids, id)
		}
	}
	return ids
}

// askSenders asks the senders to some queues to notify, and has these scanned once more: one that checked just before
// does not notify.
func (m *monitor) askSenders(ctx context.Context, ids []int32) {
	m.unasked = nil
	if len(ids) == 0 {
		return
	}
	m.ask(ctx, "senders", func(within context.Context) func(time.Time) {
		var err error
		for some := range slices.Chunk(ids, askedAtOnce) {
			if err = activationstore.AskForWakeUps(within, m.config.Pool, some, notifier.AskTime); err != nil {
				break
			}
		}
		return func(now time.Time) {
			if err != nil {
				m.nextSenders = now.Add(m.failures.Failed(err))
				return
			}
			for _, id := range ids {
				if q := m.queues[id]; q != nil {
					q.demand.Asked(now, notifier.AskTime)
					m.want(q, now)
				}
			}
		}
	})
}

// silenceSenders asks the senders to polled queues not to notify any more.
func (m *monitor) silenceSenders(ctx context.Context) {
	ids := m.polled
	m.polled = nil
	m.ask(ctx, "silence", func(within context.Context) func(time.Time) {
		err := activationstore.CancelWakeUps(within, m.config.Pool, ids)
		return func(time.Time) {
			if err != nil {
				m.config.Logger.Warn("the senders to busy queues notify though nobody waits for them", "error", err)
			}
		}
	})
}
