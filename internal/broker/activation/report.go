package activation

import (
	"context"
	"time"

	activationstore "github.com/parley-broker/parley/internal/store/activation"
)

const (
	reportInterval = time.Second
	// countInterval is how often a monitor is reported of which only counts have changed.
	countInterval = 5 * time.Second
)

// tally counts events since the last report.
type tally struct {
	started, aborted, limitReached int64
	activatedAt, emptyAt           time.Time

	reportedAt    time.Time
	emptyReported time.Time // the emptyAt that was reported
	last          face
}

// face is the state of a monitor besides its counts.
type face struct {
	state    string
	running  int
	failures int
	err      string
}

// reportState is the knowledge that the database has from us.
type reportState struct {
	gone    []int32
	tasks   map[taskKey]bool
	refused bool // the term is over
}

type taskKey struct {
	queue  int32
	number int
	began  time.Time
	pid    uint32
}

func (q *queueMonitor) face() face {
	f := face{state: activationstore.MonitorInactive, running: len(q.runs), failures: q.failure.times}
	switch {
	case q.failure.times > 0:
		f.state = activationstore.MonitorNotified
	case len(q.runs) > 0:
		f.state = activationstore.MonitorReceivesOccurring
	}
	if q.lastError != nil {
		f.err = q.lastError.Error()
	}
	return f
}

// report reports to the database what has changed, if anything has.
func (m *monitor) report(ctx context.Context, now time.Time) {
	var monitors []activationstore.MonitorReport
	var reported []*queueMonitor
	for _, q := range m.queues {
		f := q.face()
		counts := q.tally.started + q.tally.aborted + q.tally.limitReached
		// That a queue was found empty is seen after its reader has left, which may have been reported by then.
		isSame := counts == 0 && q.tally.emptyAt.Equal(q.tally.emptyReported)
		if !q.tally.reportedAt.IsZero() && f == q.tally.last && (isSame || now.Sub(q.tally.reportedAt) < countInterval) {
			continue
		}
		monitors = append(monitors, q.monitorReport(f, now))
		reported = append(reported, q)
		// Counted on while the report is under way.
		q.tally.started, q.tally.aborted, q.tally.limitReached = 0, 0, 0
		q.tally.reportedAt, q.tally.emptyReported, q.tally.last = now, q.tally.emptyAt, f
	}
	for _, id := range m.reported.gone {
		monitors = append(monitors, activationstore.MonitorReport{QueueID: id, IsGone: true, State: activationstore.MonitorInactive})
	}
	gone := m.reported.gone
	m.reported.gone = nil
	tasks, keys, changed := m.taskReports(now)
	if len(monitors) == 0 && !changed {
		return
	}
	if !changed {
		tasks = nil
	}
	m.ask(ctx, "report", func(within context.Context) func(time.Time) {
		leads, err := activationstore.ReportActivation(within, m.config.Pool, m.term.Number, monitors, tasks)
		return func(now time.Time) {
			if err != nil {
				m.nextReport = now.Add(m.failures.Failed(err))
				m.reported.gone = append(m.reported.gone, gone...)
				for i, q := range reported {
					q.tally.takeBack(monitors[i])
				}
				return
			}
			m.reported.refused = !leads
			m.reported.tasks = keys
		}
	})
}

// takeBack undoes a report that did not arrive.
func (t *tally) takeBack(r activationstore.MonitorReport) {
	t.started += r.Started
	t.aborted += r.Aborted
	t.limitReached += r.LimitReached
	t.reportedAt = time.Time{}
}

func (q *queueMonitor) monitorReport(f face, now time.Time) activationstore.MonitorReport {
	r := activationstore.MonitorReport{
		QueueID: int32(q.ID), State: f.state, RunningReaders: f.running, Failures: f.failures,
		ActivatedAgo: since(q.tally.activatedAt, now), EmptyAgo: since(q.tally.emptyAt, now),
		FailingFor: since(q.failure.since, now),
		Started:    q.tally.started, Aborted: q.tally.aborted, LimitReached: q.tally.limitReached,
	}
	if q.lastError != nil {
		r.LastError = new(f.err)
		if state := sqlState(q.lastError); state != "" {
			r.LastSQLState = &state
		}
	}
	if q.failure.nextAttempt.After(now) {
		r.NextAttemptIn = new(q.failure.nextAttempt.Sub(now).Seconds())
	}
	return r
}

// since gives the seconds from a time until now, or nil when it never was.
func since(t, now time.Time) *float64 {
	if t.IsZero() {
		return nil
	}
	return new(now.Sub(t).Seconds())
}

// taskReports lists the readers that have been running for a while, and reports whether others were reported last. Each second
// some come and go where much is going on, so those that live shorter are left out.
func (m *monitor) taskReports(now time.Time) (tasks []activationstore.TaskReport, keys map[taskKey]bool, changed bool) {
	tasks, keys = []activationstore.TaskReport{}, map[taskKey]bool{}
	for id, q := range m.queues {
		for _, r := range q.runs {
			if now.Sub(r.began) < reportInterval {
				continue
			}
			task := activationstore.TaskReport{QueueID: id, Reader: r.number, Procedure: q.what(), StartedAgo: now.Sub(r.began).Seconds()}
			key := taskKey{queue: id, number: r.number, began: r.began}
			if s, ok := r.reader.(interface{ PID() uint32 }); ok && s.PID() != 0 {
				key.pid = s.PID()
				task.PID = &key.pid
			}
			if q.ExecuteAs != "" {
				task.ExecuteAs = &q.ExecuteAs
			}
			tasks = append(tasks, task)
			keys[key] = true
			changed = changed || !m.reported.tasks[key]
		}
	}
	return tasks, keys, changed || m.reported.tasks == nil || len(keys) != len(m.reported.tasks)
}

// what names the kind of a reader of the queue.
func (q *queueMonitor) what() string {
	if q.Kind == KindProcedure {
		return q.Procedure
	}
	return q.Kind
}
