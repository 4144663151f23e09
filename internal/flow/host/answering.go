package host

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/pipeline"
	"github.com/parley-broker/parley/internal/pgdb"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// pipelines gives the pipelines of a send port.
func (p sendPort) pipelines() []string {
	if !p.Responds {
		return []string{p.Pipeline}
	}
	return []string{p.Pipeline, p.ResponsePipeline}
}

// compileAnswers makes the pipeline of what the destination of a port answers; nil where that is not wanted.
func (h *Host) compileAnswers(kind adapter.Kind, p sendPort, c *configuration) (*pipeline.Receive, error) {
	if !p.Responds {
		return nil, nil
	}
	if !kind.Answers[adapter.Send] {
		return nil, fmt.Errorf("the adapter %s gives no answers: set responds to false", kind.Name)
	}
	definition, err := c.definition(p.ResponsePipeline)
	if err != nil {
		return nil, err
	}
	return pipeline.CompileReceive(definition, c.types, nil)
}

// answers puts what a destination has answered through the pipeline of the port. It has been sent: what the pipeline refuses is published
// as failed.
func (r *run) answers(ctx context.Context, d adapter.Delivery) []draft {
	if d.Answer == nil || r.outlet.response == nil {
		return nil
	}
	drafts := []draft{}
	s := &sink{ctx: ctx, host: r.host, add: func(d draft) error { drafts = append(drafts, d); return nil }}
	var through pipeline.Sink = s
	if r.outlet.responseMaps != nil {
		reading := &reading{pool: r.host.pool}
		defer reading.end(ctx)
		mapped := &mapSink{inner: s, transaction: reading.transaction, maps: r.outlet.responseMaps}
		defer mapped.close()
		through = mapped
	}
	err := guarded(func() error { return r.outlet.response.Run(ctx, sourceOf(d.Answer), through) })
	if err == nil {
		return drafts
	}
	if unforeseen, is := errors.AsType[*panicked](err); is {
		r.host.logger.Error("a pipeline has failed in an unforeseen way", "send_port", r.port.name, "reason", unforeseen.reason,
			"stack", string(debug.Stack()))
	}
	failed := draft{
		body: d.Answer.Body, size: int64(len(d.Answer.Body)), contentType: d.Answer.ContentType, charset: d.Answer.Charset,
		promoted: d.Answer.Promoted, written: d.Answer.Written,
	}
	if failed.body == nil {
		failed.body = []byte{}
	}
	failed.fail(err)
	return []draft{failed}
}

// reading is a transaction in which maps read the database, begun for the first that does.
type reading struct {
	pool *pgxpool.Pool
	tx   pgx.Tx
}

func (r *reading) transaction(ctx context.Context) (adapter.Transaction, error) {
	if r.tx == nil {
		tx, err := r.pool.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
		if err != nil {
			return nil, fmt.Errorf("begin a transaction: %w", err)
		}
		r.tx = tx
	}
	return r.tx, nil
}

func (r *reading) end(ctx context.Context) {
	if r.tx != nil {
		_ = r.tx.Rollback(context.WithoutCancel(ctx)) // it has read alone
	}
}

// failAnswers makes answers failed ones that the database refuses; false where none is left that could be refused.
func (c *completion) failAnswers(cause error) bool {
	changed := false
	for i := range c.answers {
		d := &c.answers[i]
		if len(d.promoted) > 0 || len(d.written) > 0 || d.messageType != "" || d.failureCode == "" {
			d.promoted, d.written, d.messageType, changed = nil, nil, "", true
			d.fail(cause)
		}
	}
	return changed
}

// completeWith records that messages were sent, with what their destinations have answered.
func (h *Host) completeWith(
	ctx context.Context, db pgdb.DB, leases, items []int64, details []*string, answersOf func(i int) []draft,
) error {
	answers := flowstore.Received{}
	hasContents := false
	for i := range items {
		drafts := answersOf(i)
		for j := range drafts {
			if err := drafts[j].addTo(&answers); err != nil {
				return err
			}
			answers.Inputs = append(answers.Inputs, int32(i+1))
			hasContents = hasContents || drafts[j].content != 0
		}
	}
	if len(answers.Inputs) == 0 {
		return flowstore.Complete(ctx, db, h.name, leases, items, details)
	}
	if !hasContents {
		answers.Contents = nil
	}
	return flowstore.CompleteAnswered(ctx, db, h.name, leases, items, details, answers)
}
