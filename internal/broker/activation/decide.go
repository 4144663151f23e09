package activation

import (
	"context"
	"errors"
	"time"

	"github.com/parley-broker/parley/internal/notifier"
	activationstore "github.com/parley-broker/parley/internal/store/activation"
)

const (
	// settleTime is how long a reader that was just started may take to its first RECEIVE, on a busy machine.
	settleTime = 20 * time.Millisecond
	// burstPause is when to scan again after the first message to an idle queue: others may have come with it.
	burstPause = 2 * time.Millisecond
	// scanPause is how long to leave a queue alone of which is notified while its readers run.
	scanPause = 5 * time.Millisecond
)

// queueMonitor watches one queue.
type queueMonitor struct {
	Queue
	version string
	runs    map[int]*run

	due       time.Time // of the next scan; zero when none is wanted
	isDeep    bool
	deepAt    time.Time // of the last deep scan
	scannedAt time.Time

	// head is the position of the first message that could be received, and since when that is so; 0 when there is none.
	head      int64
	headSince time.Time
	lastStart time.Time
	// left reports that a reader has left content since the last scan, and which head it had been started for.
	left     bool
	leftAt   time.Time
	leftHead int64

	demand     notifier.Demand
	notifiedAt time.Time
	failure    failure
	lastError  error

	tally tally
}

// sight is the result of a scan of a queue.
type sight struct {
	activationstore.ReceivableQueue
	asked time.Time
}

// messageCame starts a reader for an idle queue without a scan: a message has just been committed. For the rest it takes a scan.
func (m *monitor) messageCame(ctx context.Context, id int32, now time.Time) {
	q := m.queues[id]
	if q == nil {
		return // it is for another part of the daemon
	}
	m.countNotification(q, now)
	switch {
	case q.failure.times > 0 || q.demand.IsPolling():
		// It is scanned when the pause is over.
	case len(q.runs) == 0 && q.Kind == KindProcedure && q.MaxReaders > 0:
		m.start(ctx, q, now)
		m.want(q, now.Add(burstPause))
	case len(q.runs) == 0:
		m.want(q, now)
	case len(q.runs) < q.MaxReaders:
		m.want(q, now.Add(max(burstPause, scanPause-now.Sub(q.scannedAt))))
	}
}

// decide starts as many readers as there are free groups that no reader is on its way to.
func (m *monitor) decide(ctx context.Context, q *queueMonitor, seen sight, now time.Time) {
	q.scannedAt = seen.asked
	m.poll(q, seen.Groups == 0 && !seen.IsPartial, now.Sub(seen.asked), now)
	m.judge(q, seen, now)
	m.follow(q, seen, now)
	groups := int(seen.Groups)
	onTheirWay := q.unsettled(now)
	wanted := max(groups-onTheirWay, 0)
	if groups == 0 && seen.IsPartial {
		m.scanDeeper(q, now)
	}
	// Readers that should have taken the head by now do something else, or hang: try another one, ever more slowly. A reader that posts
	// messages stays while conversations wait to be tried again, and its requests have a time-out: that is no failure.
	isStalled := wanted == 0 && groups > 0 && q.Kind != KindWebhook && now.Sub(q.headSince) > stallTime && !now.Before(q.failure.nextAttempt)
	if isStalled {
		m.failed(q, errNothingReceived, now)
		wanted = 1
	}
	if len(q.runs)+wanted < q.MinReaders && now.Sub(q.lastStart) > time.Second {
		wanted = q.MinReaders - len(q.runs)
	}
	room := max(q.MaxReaders-len(q.runs), 0)
	switch {
	case wanted == 0 && groups > 0:
		m.want(q, now.Add(max(settleTime, now.Sub(q.headSince)/2)))
		return
	case wanted == 0:
		return
	case !isStalled && now.Before(q.failure.nextAttempt):
		m.want(q, q.failure.nextAttempt)
		return
	case wanted > room:
		q.tally.limitReached++
		m.config.Observer.TaskLimitReached(q.Queue)
		m.want(q, now.Add(stallTime))
	}
	wanted = min(wanted, room)
	if m.config.Ramp > 0 && wanted > 0 && len(q.runs) > 0 {
		if next := q.lastStart.Add(m.config.Ramp); now.Before(next) {
			m.want(q, next)
			return
		}
		wanted = 1
	}
	if m.config.Ramp > 0 && wanted > 1 {
		wanted = 1
		m.want(q, now.Add(m.config.Ramp))
	}
	for range wanted {
		m.start(ctx, q, now)
	}
	if wanted > 0 {
		m.want(q, now.Add(settleTime))
	}
}

// judge says of the readers that have left since the last scan whether they did anything: what waited when they began must not
// be what waits now.
func (m *monitor) judge(q *queueMonitor, seen sight, now time.Time) {
	if !q.left || seen.asked.Before(q.leftAt) {
		return
	}
	q.left = false
	switch {
	case seen.Groups > 0 && q.leftHead != 0 && seen.Head == q.leftHead:
		m.failed(q, errNothingReceived, now)
	default:
		q.succeeded()
		if seen.Groups == 0 && !seen.IsPartial {
			q.tally.emptyAt = now
		}
	}
	q.leftHead = 0
}

// follow records which message is at the head.
func (m *monitor) follow(q *queueMonitor, seen sight, now time.Time) {
	if seen.Head == q.head {
		return
	}
	if errors.Is(q.failure.err, errNothingReceived) {
		q.succeeded()
	}
	if seen.Groups == 0 {
		// Nothing to fail on; but why it failed before stays to be seen.
		q.failure.over()
	}
	wasIdle := q.head == 0
	q.head, q.headSince = seen.Head, now
	if wasIdle {
		// A reader may have been started for it before it was seen.
		for _, r := range q.runs {
			q.headSince = earliest(q.headSince, r.began)
		}
	}
}

// unsettled counts the readers that were started for messages that still wait: each is about to take one of the groups.
func (q *queueMonitor) unsettled(now time.Time) int {
	count := 0
	for _, r := range q.runs {
		if now.Sub(r.began) < settleTime || q.head != 0 && !r.began.Before(q.headSince) {
			count++
		}
	}
	return count
}

// scanDeeper is for a queue whose first rows are all of groups that are held: others may stand behind them.
func (m *monitor) scanDeeper(q *queueMonitor, now time.Time) {
	if len(q.runs) >= q.MaxReaders {
		return
	}
	if at := q.deepAt.Add(deepInterval); now.Before(at) {
		m.want(q, at)
		return
	}
	q.isDeep, q.deepAt = true, now
	m.want(q, now)
}

func (m *monitor) failed(q *queueMonitor, err error, now time.Time) {
	q.lastError = err
	if q.failure.met(err, now) {
		m.config.Logger.Warn("activation aborted",
			withState(err, "number", numberOf(err, q.Name), "queue", q.Name, "reader", q.what(),
				"error", err, "tasks", len(q.runs), "failures", q.failure.times, "retry_in", q.failure.nextAttempt.Sub(now),
				"times_not_logged", q.failure.suppressed)...)
		q.failure.suppressed = 0
	}
}

func (q *queueMonitor) succeeded() {
	q.failure.over()
	q.lastError = nil
}
