package metrics

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-broker/parley/internal/broker/activation"
)

// readers counts the work of activation for one queue since the daemon started.
type readers struct {
	queue   string
	touched time.Time
	running int
	failing bool // the last reader that ended failed

	started, ended, aborted, limitReached int64
	seconds                               float64 // that readers ran
}

var _ activation.Observer = (*Database)(nil)

// of gives the readers of a queue; d.mu is held.
func (d *Database) of(q activation.Queue) *readers {
	r := d.readers[q.ID]
	if r == nil {
		r = &readers{}
		d.readers[q.ID] = r
	}
	r.queue, r.touched = q.Name, time.Now()
	return r
}

// ReaderStarted counts a reader that begins to run.
func (d *Database) ReaderStarted(q activation.Queue) {
	d.mu.Lock()
	r := d.of(q)
	r.running++
	r.started++
	running := r.running
	d.mu.Unlock()
	d.activation(q, running).Debug("reader started")
}

// ReaderEnded counts a reader that has left or failed, and draws the span of its run.
func (d *Database) ReaderEnded(q activation.Queue, err error, ran time.Duration) {
	d.mu.Lock()
	r := d.of(q)
	r.running--
	r.ended++
	r.seconds += ran.Seconds()
	r.failing = err != nil
	if err != nil {
		r.aborted++
	}
	running := r.running
	d.mu.Unlock()
	d.drawExecution(q, err, ran)
	if err != nil {
		d.activation(q, running).Warn("reader aborted", "error", err)
	} else {
		d.activation(q, running).Debug("reader ended")
	}
}

// drawExecution draws the span of a reader's run now that it is over.
func (d *Database) drawExecution(q activation.Queue, err error, ran time.Duration) {
	end := time.Now()
	_, span := d.config.Tracer.Start(context.Background(), "activate "+q.Name,
		trace.WithTimestamp(end.Add(-ran)), trace.WithSpanKind(trace.SpanKindInternal), trace.WithNewRoot(),
		trace.WithAttributes(
			attribute.String("messaging.system", "parley"),
			attribute.String("messaging.destination.name", q.Name),
			attribute.String("db.namespace", d.name),
			attribute.String("parley.reader.kind", q.Kind),
		))
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, "reader failed")
	}
	span.End(trace.WithTimestamp(end))
}

// TaskLimitReached counts that a reader more would have had work.
func (d *Database) TaskLimitReached(q activation.Queue) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.of(q).limitReached++
}

// LeadershipChanged records whether this daemon leads.
func (d *Database) LeadershipChanged(leads bool, term int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.leads, d.term = leads, term
	d.changes++
}

// activation describes a reader as the profiler does in its event 163 (spec 8.5).
func (d *Database) activation(q activation.Queue, running int) *slog.Logger {
	return d.logger.With("event", "Broker:Activation", "event_id", 163, "queue", q.Name, "kind", q.Kind, "tasks_running", running)
}
