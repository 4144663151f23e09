package activation

import (
	"context"
	"time"

	"github.com/parley-broker/parley/internal/notifier"
	activationstore "github.com/parley-broker/parley/internal/store/activation"
)

// list reads which queues have activation on, and how.
func (m *monitor) list(ctx context.Context) {
	m.ask(ctx, "list", func(within context.Context) func(time.Time) {
		m.keep(within)
		listed, err := activationstore.ReadActivatedQueues(within, m.config.Pool)
		return func(now time.Time) {
			if err != nil {
				m.nextList = now.Add(m.failures.Failed(err))
				return
			}
			m.failures.Succeeded()
			m.define(listed, now)
		}
	})
}

// keep lets starters maintain what they store in the database, before it is read.
func (m *monitor) keep(ctx context.Context) {
	for kind, starter := range m.starters {
		if keeper, ok := starter.(Keeper); ok {
			if err := keeper.Keep(ctx); err != nil && ctx.Err() == nil {
				m.config.Logger.Warn("definitions of readers could not be maintained; trying again", "kind", kind, "error", err)
			}
		}
	}
}

// listInterval is shorter while readers fail: a change of a procedure or a role is not notified.
func (m *monitor) listInterval() time.Duration {
	if !m.term.Notifier.IsListening() {
		return notifier.SafetyInterval
	}
	for _, q := range m.queues {
		if q.failure.times > 0 {
			return notifier.SafetyInterval / 2
		}
	}
	return listInterval
}

// define takes over the definitions. A queue whose definition has changed is tried at once, however it failed before; readers
// that run go on.
func (m *monitor) define(listed []activationstore.ActivatedQueue, now time.Time) {
	present := make(map[int32]bool, len(listed))
	hasProcedures := false
	for _, one := range listed {
		present[one.QueueID] = true
		hasProcedures = hasProcedures || one.Kind == KindProcedure && one.MaxReaders > 0
		q := m.queues[one.QueueID]
		switch {
		case q == nil:
			q = &queueMonitor{runs: map[int]*run{}}
			m.queues[one.QueueID] = q
			m.notified.Own(one.QueueID)
			m.unasked = append(m.unasked, one.QueueID)
		case q.version == one.Version:
			continue
		}
		q.Queue, q.version = describe(one), one.Version
		q.failure.over()
		m.want(q, now)
	}
	for id, q := range m.queues {
		if !present[id] {
			m.forget(id, q)
		}
	}
	m.needsSessions.Store(hasProcedures)
}

// forget ends the monitor of a queue; its readers leave by themselves.
func (m *monitor) forget(id int32, q *queueMonitor) {
	if len(q.runs) > 0 {
		m.config.Logger.Info("activation is off or the queue is gone; its readers leave when they are done",
			"queue", q.Name, "readers", len(q.runs))
	}
	m.rest(q)
	delete(m.queues, id)
	m.notified.Disown(id)
	m.reported.gone = append(m.reported.gone, id)
}

func describe(one activationstore.ActivatedQueue) Queue {
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	return Queue{
		ID: int(one.QueueID), Name: one.Name, Kind: one.Kind,
		MaxReaders: int(one.MaxReaders), MinReaders: int(one.MinReaders),
		Procedure: text(one.ProcedureCall), ExecuteAs: text(one.ExecuteAs), External: one.External,
		Refusal: text(one.Refusal),
	}
}
