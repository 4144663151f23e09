package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/pipeline"
	"github.com/parley-broker/parley/internal/pgdb"
)

const (
	// spillMessages and spillBytes bound what of one call of Take is in memory. More than that is stored meanwhile, in a transaction that
	// is open until its end.
	spillMessages = 2000
	spillBytes    = 8 << 20
)

// draft is a message that came in, before it is stored.
type draft struct {
	body                      []byte // nil where content has it
	content                   int64
	size                      int64
	messageType               string
	contentType, charset      string
	promoted, written         map[string]any
	failureCode, failureError string // of one that failed in the pipeline
}

// processed is an input behind the pipeline.
type processed struct {
	input       *adapter.Input
	drafts      []draft // that are not stored yet
	interchange int64   // the first message that was stored of it, while others are yet to come
	result      adapter.Result
	failure     *adapter.Failure // why all of it has failed; nil: it has not
	// lease and item are those of a message that was resubmitted into the pipeline, which the first statement completes; 0 for none.
	lease, item int64
}

// take is one call of Take or TakeIn.
type take struct {
	in        *intake
	tx        pgx.Tx // nil: all of it is stored by one statement, with other calls
	isOwn     bool   // whether the transaction is not the receiver's
	savepoint pgx.Tx // at which the input began that is being processed
	inputs    []*processed
	messages  int
	bytes     int64
	trace     string // the span of the call, for its messages; empty where nothing is traced
	done      chan error
}

func newTake(in *intake, tx pgx.Tx, inputs []adapter.Input) *take {
	t := &take{in: in, tx: tx, done: make(chan error, 1), inputs: make([]*processed, len(inputs))}
	for i := range inputs {
		t.inputs[i] = &processed{input: &inputs[i]}
	}
	return t
}

// errRepeated ends an input whose key is in the ledger.
var errRepeated = errors.New("the input was taken before")

// process puts all inputs through the pipeline.
func (t *take) process(ctx context.Context) error {
	for number, p := range t.inputs {
		if err := t.processOne(ctx, p); err != nil {
			return inInput(number, err)
		}
	}
	return nil
}

func (t *take) processOne(ctx context.Context, p *processed) error {
	if p.input.Failure != nil {
		return t.failWhole(ctx, p, p.input.Failure, true)
	}
	inner := &sink{ctx: ctx, host: t.in.host, add: func(d draft) error {
		t.add(p, d)
		if t.messages < spillMessages && t.bytes < spillBytes {
			return nil
		}
		return t.spill(ctx, p)
	}}
	var s pipeline.Sink = inner
	if t.in.maps != nil {
		mapped := &mapSink{inner: inner, transaction: t.transaction, maps: t.in.maps, stage: t.in.pipeline.StageBehind()}
		defer mapped.close()
		s = mapped
	}
	err := guarded(func() error { return t.in.pipeline.Run(ctx, sourceOf(p.input), s) })
	if unforeseen, is := errors.AsType[*panicked](err); is {
		t.in.host.logger.Error("a pipeline has failed in an unforeseen way", "location", t.in.name, "reason", unforeseen.reason,
			"stack", string(debug.Stack()))
		err = &adapter.Failure{Code: "receive.pipeline", Err: err}
	}
	failure, hasFailed := errors.AsType[*adapter.Failure](err)
	switch {
	case err == nil:
		return t.release(ctx)
	case errors.Is(err, errRepeated):
		p.drafts, p.result = nil, adapter.Result{Outcome: p.result.Outcome, Message: p.result.Message}
		return t.rollBack(ctx)
	case !hasFailed || ctx.Err() != nil:
		return err
	}
	if err := t.rollBack(ctx); err != nil {
		return err
	}
	return t.failWhole(ctx, p, failure, true)
}

// failWhole makes one failed message of an input, with the bytes as they came.
func (t *take) failWhole(ctx context.Context, p *processed, failure *adapter.Failure, withProperties bool) error {
	for _, d := range p.drafts {
		t.messages, t.bytes = t.messages-1, t.bytes-int64(len(d.body))
	}
	p.drafts, p.interchange, p.result, p.failure = nil, 0, adapter.Result{}, failure
	if p.item != 0 {
		return nil // it is suspended as it is
	}
	d := draft{messageType: p.input.MessageType, contentType: p.input.ContentType, charset: p.input.Charset}
	if withProperties {
		d.promoted, d.written = p.input.Promoted, p.input.Written
	} else {
		d.messageType = ""
	}
	d.fail(failure)
	body, err := sourceOf(p.input).Open(ctx)
	if err != nil {
		return fmt.Errorf("read the input again, which has failed: %w", err)
	}
	w := &bodyWriter{ctx: ctx, host: t.in.host}
	_, err = io.Copy(w, body)
	if err = errors.Join(err, body.Close()); err != nil {
		return fmt.Errorf("read the input again, which has failed: %w", err)
	}
	if err := w.finish(&d); err != nil {
		return err
	}
	t.add(p, d)
	return nil
}

// fail marks a draft as failed.
func (d *draft) fail(failure error) {
	d.failureCode, d.failureError = "receive.pipeline", failure.Error()
	if f, is := errors.AsType[*adapter.Failure](failure); is && f.Err != nil {
		d.failureError = f.Err.Error()
		if f.Code != "" {
			d.failureCode = f.Code
		}
	}
	d.failureError = pgdb.Storable(d.failureError)
}

// add adds a draft to an input.
func (t *take) add(p *processed, d draft) {
	t.traced(&d)
	p.drafts = append(p.drafts, d)
	t.messages, t.bytes = t.messages+1, t.bytes+int64(len(d.body))
}

// spill stores what is there already, in the transaction of the call.
func (t *take) spill(ctx context.Context, p *processed) error {
	if t.tx == nil {
		tx, err := t.in.host.pool.Begin(ctx)
		if err != nil {
			return fmt.Errorf("begin a transaction: %w", err)
		}
		t.tx, t.isOwn = tx, true
	}
	if t.savepoint == nil {
		earlier := []*processed{}
		for _, other := range t.inputs {
			if other != p && len(other.drafts) > 0 {
				earlier = append(earlier, other)
			}
		}
		if err := t.store(ctx, earlier); err != nil {
			return err
		}
		savepoint, err := t.tx.Begin(ctx)
		if err != nil {
			return fmt.Errorf("set a savepoint: %w", err)
		}
		t.savepoint = savepoint
	}
	t.messages, t.bytes = 0, 0
	err := t.in.store(ctx, t.savepoint, []*processed{p})
	switch {
	case isOfData(err):
		return &adapter.Failure{Code: "receive.pipeline", Err: err, Permanent: true}
	case err == nil && isRepeated(p.result):
		return errRepeated
	}
	return err
}

// release and rollBack end the savepoint of an input.
func (t *take) release(ctx context.Context) error {
	if t.savepoint == nil {
		return nil
	}
	savepoint := t.savepoint
	t.savepoint = nil
	return savepoint.Commit(ctx)
}

func (t *take) rollBack(ctx context.Context) error {
	if t.savepoint == nil {
		return nil
	}
	savepoint := t.savepoint
	t.savepoint = nil
	return savepoint.Rollback(ctx)
}

// storeRest stores what is not stored yet, in the transaction of the call.
func (t *take) storeRest(ctx context.Context) error {
	rest := []*processed{}
	for _, p := range t.inputs {
		switch {
		case p.interchange != 0 && len(p.drafts) > 0: // those before it are stored, and it is one interchange with them
			if err := t.store(ctx, []*processed{p}); err != nil {
				return err
			}
		case p.result.Outcome == "":
			rest = append(rest, p)
		}
	}
	return t.store(ctx, rest)
}

// store stores inputs in the transaction of the call. Inputs that the database refuses are stored as failed.
func (t *take) store(ctx context.Context, inputs []*processed) error {
	if len(inputs) == 0 {
		return nil
	}
	err := t.try(ctx, inputs, true)
	if !isOfData(err) {
		return err
	}
	for _, p := range inputs {
		if err := t.try(ctx, []*processed{p}, false); isOfData(err) {
			refused := &adapter.Failure{Code: "receive.pipeline", Err: err, Permanent: true}
			if err := t.failWhole(ctx, p, refused, false); err != nil || p.item != 0 {
				return err
			}
		} else if err != nil {
			return err
		}
	}
	return t.try(ctx, inputs, true)
}

// try stores inputs behind a savepoint, and keeps that or not.
func (t *take) try(ctx context.Context, inputs []*processed, keeps bool) error {
	savepoint, err := t.tx.Begin(ctx)
	if err != nil {
		return fmt.Errorf("set a savepoint: %w", err)
	}
	before := make([]processed, len(inputs))
	for i, p := range inputs {
		before[i] = *p
	}
	err = t.in.store(ctx, savepoint, inputs)
	if err == nil && keeps {
		return savepoint.Commit(ctx)
	}
	for i, p := range inputs {
		*p = before[i]
	}
	return errors.Join(err, savepoint.Rollback(ctx))
}

// commit stores the rest and commits the transaction that the call has begun.
func (t *take) commit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	if err := t.storeRest(ctx); err != nil {
		return err
	}
	if err := t.tx.Commit(ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	t.tx = nil
	return nil
}

// abandon rolls back what is not committed.
func (t *take) abandon() {
	if t.tx != nil && t.isOwn {
		ctx, cancel := context.WithTimeout(context.Background(), statementTimeout)
		defer cancel()
		_ = t.tx.Rollback(ctx)
	}
}

// results gives what became of each input.
func (t *take) results() []adapter.Result {
	results := make([]adapter.Result, len(t.inputs))
	for i, p := range t.inputs {
		results[i] = p.result
	}
	return results
}

// isOfData reports whether an error is one of what was to be stored: the database would refuse it again.
func isOfData(err error) bool {
	state := pgdb.SQLState(err)
	return strings.HasPrefix(state, "22") || strings.HasPrefix(state, "23") || strings.HasPrefix(state, "54") || state == "PF010"
}

// sourceOf gives an input as pipelines see it.
func sourceOf(in *adapter.Input) pipeline.Source {
	s := pipeline.Source{
		Open: in.Open, Size: in.Size, ContentType: in.ContentType, Charset: in.Charset, Type: in.MessageType, Promoted: in.Promoted,
		Written: in.Written,
	}
	if in.Open == nil {
		s.Size = int64(len(in.Body))
		s.Open = func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(in.Body)), nil }
	}
	return s
}

// isRepeated reports whether the key of an input was in the ledger.
func isRepeated(r adapter.Result) bool {
	return r.Outcome == adapter.Repeated || r.Outcome == adapter.Joined
}
