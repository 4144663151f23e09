package activation

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/parley-broker/parley"
	activationstore "github.com/parley-broker/parley/internal/store/activation"
)

// run is one reader while it runs.
type run struct {
	queue  *queueMonitor
	number int
	reader Reader
	// head is the head of the queue when the reader was started, as far as known.
	head  int64
	began time.Time
	err   error
}

// errNotStarted: the reader was asked to leave before it had done anything.
var errNotStarted = errors.New("the reader was not started")

// start starts one reader. It is asked to leave when ctx ends.
func (m *monitor) start(ctx context.Context, q *queueMonitor, now time.Time) {
	if !m.term.IsFresh() {
		// This process was paused, or the database does not answer; the next renewal of the lease reports whether we still lead.
		m.want(q, now.Add(notStartedPause))
		return
	}
	number := 1
	for q.runs[number] != nil {
		number++
	}
	q.lastStart = now
	starter := m.starters[q.Kind]
	if starter == nil {
		m.failed(q, fmt.Errorf("this daemon starts no readers of kind %q", q.Kind), now)
		return
	}
	reader, err := starter.NewReader(q.Queue, number)
	if q.Refusal != "" {
		err = &stateError{state: "42501", text: q.Refusal}
	}
	if err != nil {
		q.tally.aborted++
		m.failed(q, err, now)
		return
	}
	r := &run{queue: q, number: number, reader: reader, head: q.head, began: now}
	q.runs[number] = r
	q.tally.started++
	q.tally.activatedAt = now
	m.config.Logger.Debug("activation started", "queue", q.Name, "reader", number, "tasks", len(q.runs))
	// The definition may change while the reader runs.
	observed, term := q.Queue, m.term.Number
	m.config.Observer.ReaderStarted(observed)
	m.reading.Go(func() {
		r.err = r.run(ctx, m.config.Pool, term, observed)
		failure := r.err
		if errors.Is(failure, errNotStarted) {
			failure = nil
		}
		m.config.Observer.ReaderEnded(observed, failure, time.Since(now))
		select {
		case m.ended <- r:
		case <-ctx.Done():
			// No decision depends on it any more.
			if failure != nil {
				m.config.Logger.Warn("activation aborted", "number", numberOf(failure, observed.Name), "queue", observed.Name, "error", failure)
			}
		}
	})
}

// run keeps a panic of a reader from ending the daemon.
func (r *run) run(ctx context.Context, pool parley.DB, term int64, queue Queue) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("reader panicked: %v\n%s", value, debug.Stack())
		}
	}()
	// The database is asked each time whether who said what reads may still say so. Procedures ask in the session that runs them.
	if queue.Kind != KindProcedure {
		if err := mayBegin(ctx, pool, term, queue.ID); err != nil {
			return err
		}
	}
	return r.reader.Run(ctx)
}

func mayBegin(ctx context.Context, pool parley.DB, term int64, queue int) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	may, err := activationstore.MayBeginReader(ctx, pool, term, int32(queue), "", "", 0)
	switch {
	case err != nil:
		return fmt.Errorf("ask whether the reader may be started: %w", err)
	case !may:
		return errNotStarted
	}
	return nil
}

// left takes a reader out that has ended, and has its queue scanned: there may be messages that came too late for it.
func (m *monitor) left(r *run, now time.Time) {
	q := r.queue
	delete(q.runs, r.number)
	if m.queues[int32(q.ID)] != q {
		// Activation was switched off, or the queue was dropped, while it ran.
		if r.err != nil && !errors.Is(r.err, errNotStarted) {
			m.config.Logger.Warn("activation aborted",
				withState(r.err, "number", numberOf(r.err, q.Name), "queue", q.Name, "error", r.err)...)
		}
		return
	}
	switch {
	case errors.Is(r.err, errNotStarted):
		m.want(q, now.Add(notStartedPause))
		return
	case r.err != nil:
		q.tally.aborted++
		m.failed(q, r.err, now)
	default:
		m.config.Logger.Debug("activation ended", "queue", q.Name, "reader", r.number, "tasks", len(q.runs), "ran", now.Sub(r.began))
		q.left, q.leftAt = true, now
		if r.head != 0 {
			q.leftHead = r.head
		}
		if q.isQuiet(r) {
			// A scan has found since it began that nothing waits, and nothing was notified since then.
			m.want(q, now.Add(quietPause))
			return
		}
	}
	m.want(q, now)
}

// quietPause is when to scan a queue whose reader has left with nothing to be expected. That is for what nobody notifies of: the
// reader may have rolled back by itself.
const quietPause = 500 * time.Millisecond

func (q *queueMonitor) isQuiet(r *run) bool {
	return q.head == 0 && q.scannedAt.After(r.began) && q.scannedAt.After(q.notifiedAt) && !q.demand.IsWatched(q.scannedAt)
}
