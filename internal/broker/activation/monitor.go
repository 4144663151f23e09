package activation

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/daemon"
	"github.com/parley-broker/parley/internal/notifier"
	activationstore "github.com/parley-broker/parley/internal/store/activation"
)

const (
	// blindInterval is how often an engine scans all queues that cannot be notified, or less often when that takes long.
	blindInterval     = 100 * time.Millisecond
	longBlindInterval = time.Second

	// listPause is how long to wait for other definitions that change together with one.
	listPause = 20 * time.Millisecond
	// listInterval is how often definitions are read without a notification that they have changed.
	listInterval = 30 * time.Second

	// rowsShallow is how many rows of a lane an ordinary scan reads. When these all belong to groups that have readers, it takes
	// a deeper scan to find out whether there are others.
	rowsShallow  = 256
	rowsDeep     = 50_000
	deepInterval = 2 * time.Second
)

// monitor is the queue monitors of one term: one goroutine that decides, with statements running beside it. All fields belong
// to that goroutine.
type monitor struct {
	*Engine

	term     *daemon.Term
	notified *notifier.Subscription
	// definitions is notified when queues are created, altered or dropped.
	definitions notifier.WakeUp
	starters    map[string]Starter

	queues map[int32]*queueMonitor
	// wanted are the queues that are to be scanned, at the time they say.
	wanted map[int32]*queueMonitor
	ended  chan *run
	// answers brings what to do when a statement has come back; busy are those under way.
	answers  chan func(now time.Time)
	busy     map[string]bool
	asking   sync.WaitGroup
	failures backoff.Failures
	portion  portion

	// unasked are the queues whose senders have yet to be asked to notify, polled those whose senders are to be silenced.
	unasked, polled                              []int32
	nextList, nextSweep, nextSenders, nextReport time.Time
	reported                                     reportState
}

func newMonitor(engine *Engine, term *daemon.Term, notified *notifier.Subscription, starters map[string]Starter) *monitor {
	return &monitor{
		Engine: engine, term: term, notified: notified, definitions: notified.On("queues", notifier.NewWakeUp()), starters: starters,
		queues: map[int32]*queueMonitor{}, wanted: map[int32]*queueMonitor{},
		ended: make(chan *run), answers: make(chan func(time.Time)), busy: map[string]bool{},
		failures: backoff.NewFailures(engine.config.Logger, "queues cannot be scanned"),
	}
}

// watch decides until ctx ends or the term is over. Readers are asked to leave when ctx ends; it does not wait for them.
func (m *monitor) watch(ctx context.Context) {
	defer m.asking.Wait()
	defer m.needsSessions.Store(false)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		next, leads := m.act(ctx, time.Now())
		if !leads {
			return
		}
		timer.Reset(time.Until(next))
		select {
		case <-ctx.Done():
			return
		case id := <-m.notified.IDs:
			m.messageCame(ctx, id, time.Now())
		case <-m.notified.Missed:
			// We listen since now, or have lost something.
			m.nextSenders, m.nextSweep = time.Time{}, time.Time{}
		case <-m.definitions:
			// Where one definition changes others often do.
			m.nextList = earliest(m.nextList, time.Now().Add(listPause))
		case r := <-m.ended:
			m.left(r, time.Now())
		case answer := <-m.answers:
			answer(time.Now())
		case <-timer.C:
		}
	}
}

// act reads what is due, and returns when to act again; false means that the term is over.
func (m *monitor) act(ctx context.Context, now time.Time) (next time.Time, leads bool) {
	if m.reported.refused {
		return now, false
	}
	if m.isDue("list", m.nextList, now) {
		m.nextList = now.Add(m.listInterval())
		m.list(ctx)
	}
	isListening := m.term.Notifier.IsListening()
	switch {
	case isListening && m.isDue("senders", m.nextSenders, now):
		m.nextSenders = now.Add(notifier.RenewInterval)
		m.askSenders(ctx, m.notPolled())
	case isListening && len(m.unasked) > 0 && !m.busy["senders"]:
		m.askSenders(ctx, m.unasked)
	}
	if len(m.polled) > 0 && !m.busy["silence"] {
		m.silenceSenders(ctx)
	}
	if m.isDue("scan", m.nextSweep, now) {
		m.nextSweep = now.Add(notifier.SafetyInterval)
		m.scan(ctx, now, m.queues, rowsShallow)
	}
	if m.isDue("report", m.nextReport, now) {
		m.nextReport = now.Add(reportInterval)
		m.report(ctx, now)
	}
	// Statements under way need no thought: their answer wakes us.
	next = now.Add(notifier.SafetyInterval)
	times := map[string]time.Time{"list": m.nextList, "scan": m.nextSweep, "report": m.nextReport}
	if isListening {
		times["senders"] = m.nextSenders
	}
	for name, at := range times {
		if !m.busy[name] {
			next = earliest(next, at)
		}
	}
	if m.busy["scan"] {
		return next, true
	}
	due, deep := map[int32]*queueMonitor{}, map[int32]*queueMonitor{}
	for id, q := range m.wanted {
		switch {
		case q.due.After(now):
			next = earliest(next, q.due)
		case q.isDeep:
			deep[id] = q
		default:
			due[id] = q
		}
	}
	switch {
	case len(due) > 0:
		m.scan(ctx, now, due, rowsShallow)
	case len(deep) > 0:
		m.scan(ctx, now, deep, rowsDeep)
	}
	return next, true
}

// isDue reports whether it is time to ask, and no such question is under way.
func (m *monitor) isDue(name string, at, now time.Time) bool { return !now.Before(at) && !m.busy[name] }

// ask runs a statement beside the monitor, one of each name at a time. The monitor itself does the work that it returns.
func (m *monitor) ask(ctx context.Context, name string, statement func(within context.Context) func(now time.Time)) {
	m.busy[name] = true
	m.asking.Go(func() {
		within, cancel := context.WithTimeout(ctx, statementTimeout)
		defer cancel()
		answer := statement(within)
		select {
		case <-ctx.Done():
		case m.answers <- func(now time.Time) { m.busy[name] = false; answer(now) }:
		}
	})
}

// scan asks in which of some queues messages can be received.
func (m *monitor) scan(ctx context.Context, now time.Time, queues map[int32]*queueMonitor, rowsMax int) {
	ids := make([]int32, 0, len(queues))
	most := make([]int32, 0, len(queues))
	for id, q := range queues {
		if m.portion.isFull(len(ids)) {
			m.want(q, now)
			continue
		}
		ids = append(ids, id)
		// One more than can be started shows that the limit is reached.
		most = append(most, int32(min(q.MaxReaders, math.MaxInt32-1)+1))
		m.rest(q)
	}
	if len(ids) == 0 {
		return
	}
	m.ask(ctx, "scan", func(within context.Context) func(time.Time) {
		found, err := activationstore.ReadReceivableQueues(within, m.config.Pool, ids, most, rowsMax)
		return func(answered time.Time) {
			if err != nil {
				m.portion.failed(len(ids), err)
				retry := answered.Add(m.failures.Failed(err))
				for _, id := range ids {
					m.wantIf(id, retry)
				}
				return
			}
			m.failures.Succeeded()
			m.portion.succeeded(len(ids), len(m.queues))
			m.see(ctx, ids, found, now, answered)
		}
	})
}

// see decides on what a scan has found; queues that are not in it have nothing to receive.
func (m *monitor) see(ctx context.Context, ids []int32, found []activationstore.ReceivableQueue, asked, now time.Time) {
	seen := make(map[int32]activationstore.ReceivableQueue, len(found))
	for _, one := range found {
		seen[one.QueueID] = one
	}
	for _, id := range ids {
		if q := m.queues[id]; q != nil {
			m.decide(ctx, q, sight{ReceivableQueue: seen[id], asked: asked}, now)
		}
	}
	if !m.term.Notifier.IsListening() {
		// Without notifications all depends on scanning often; the more it costs the less often.
		pause := min(max(20*now.Sub(asked), blindInterval), longBlindInterval)
		m.nextSweep = earliest(m.nextSweep, now.Add(pause))
	}
}

// want has a queue scanned then, or earlier when that was wanted before.
func (m *monitor) want(q *queueMonitor, at time.Time) {
	if q.due.IsZero() || at.Before(q.due) {
		q.due = at
	}
	m.wanted[int32(q.ID)] = q
}

func (m *monitor) wantIf(id int32, at time.Time) {
	if q := m.queues[id]; q != nil {
		m.want(q, at)
	}
}

// rest reports that a queue need not be scanned again.
func (m *monitor) rest(q *queueMonitor) {
	q.due, q.isDeep = time.Time{}, false
	delete(m.wanted, int32(q.ID))
}

func earliest(times ...time.Time) time.Time {
	first := times[0]
	for _, t := range times[1:] {
		if t.Before(first) {
			first = t
		}
	}
	return first
}
