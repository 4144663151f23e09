package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/pgdb"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// errStopping ends what is being sent when the time of a node that stops is over.
var errStopping = errors.New("the node stops")

// run sends the messages of a unit.
type run struct {
	host   *Host
	port   *port
	outlet *outlet
	lease  *lease
	rest   []*flowstore.Claimed
	// pending are the messages that were sent and are not recorded yet.
	pending sync.WaitGroup
}

func newRun(h *Host, p *port, o *outlet, u unit) *run {
	return &run{host: h, port: p, outlet: o, lease: u.lease, rest: u.items}
}

// work sends all messages. It returns when all were tried, were given back, or are in the hands of others.
func (r *run) work() {
	r.host.counts.sending.Add(1)
	defer r.host.counts.sending.Add(-1)
	ctx, cancel := context.WithCancelCause(r.lease.ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-r.host.ports.ended:
			cancel(errStopping)
		case <-ctx.Done():
		}
	}()
	for len(r.rest) > 0 {
		if isOpen, _ := r.outlet.definition.opening.at(r.host.now()); ctx.Err() != nil || !isOpen {
			r.giveUp(ctx, r.rest)
			return
		}
		batch := r.next()
		if err := guarded(func() error { r.send(ctx, batch); return nil }); err != nil {
			r.host.logger.Error("sending has failed in an unforeseen way", "send_port", r.port.name, "error", err)
			r.failed(ctx, batch, &adapter.Failure{Code: "send.transport", Err: err})
		}
	}
}

// next takes the next batch out of the rest: of an ordered port the first message of each key, which have no order among them.
func (r *run) next() []*flowstore.Claimed {
	if !r.outlet.definition.IsOrdered {
		batch := r.rest
		r.rest = nil
		return batch
	}
	keys, batch, rest := map[string]bool{}, []*flowstore.Claimed{}, []*flowstore.Claimed{}
	for _, item := range r.rest {
		key := ""
		if item.OrderKey != nil {
			key = "=" + *item.OrderKey
		}
		if keys[key] || len(batch) >= max(r.outlet.definition.Batch, 1) {
			rest = append(rest, item)
		} else {
			batch = append(batch, item)
		}
		keys[key] = true
	}
	r.rest = rest
	return batch
}

// send sends a batch and sees to the outcomes.
func (r *run) send(ctx context.Context, batch []*flowstore.Claimed) {
	sendable, messages := r.prepare(ctx, batch)
	if len(sendable) == 0 {
		return
	}
	spans := make([]trace.Span, len(messages))
	for i, m := range messages {
		spans[i] = r.startSend(ctx, sendable[i], m)
	}
	began := time.Now()
	if in, is := r.outlet.sender.(adapter.TransactionSender); is && in.InTransaction() {
		r.sendIn(ctx, in, sendable, messages)
		r.host.counts.outbound.Observe(time.Since(began))
		for _, span := range spans {
			span.End()
		}
		return
	}
	deliveries := withMaps(r.outlet.sender.Send(ctx, messages), messages)
	r.host.counts.outbound.Observe(time.Since(began))
	for i, span := range spans {
		if i < len(deliveries) {
			endSpan(span, deliveries[i].Err)
		} else {
			span.End()
		}
	}
	r.observe(ctx, sendable, deliveries, false)
}

// prepare puts messages through the pipeline. Those that it refuses have failed; the others are given.
func (r *run) prepare(ctx context.Context, batch []*flowstore.Claimed) (sendable []*flowstore.Claimed, messages []*adapter.Message) {
	for _, item := range batch {
		var m *adapter.Message
		err := guarded(func() (err error) {
			m, err = r.host.outgoing(ctx, item, r.outlet.pipeline, r.outlet.maps)
			return err
		})
		_, isFailure := errors.AsType[*adapter.Failure](err)
		_, isUnforeseen := errors.AsType[*panicked](err)
		switch {
		case err == nil:
			sendable, messages = append(sendable, item), append(messages, m)
		case isFailure:
			r.failed(ctx, []*flowstore.Claimed{item}, err)
		case isUnforeseen:
			r.failed(ctx, []*flowstore.Claimed{item}, &adapter.Failure{Code: "send.pipeline", Err: err, Permanent: true})
		case isAway(err):
			r.host.gate.observe(err)
			r.giveUp(ctx, []*flowstore.Claimed{item})
		default: // the body cannot be read
			r.failed(ctx, []*flowstore.Claimed{item}, err)
		}
	}
	return sendable, messages
}

// observe sees to the outcomes of a batch. isRecorded says that those that were sent are recorded already.
func (r *run) observe(ctx context.Context, batch []*flowstore.Claimed, deliveries []adapter.Delivery, isRecorded bool) {
	if len(deliveries) != len(batch) {
		r.failed(ctx, batch, &adapter.Failure{
			Code: "send.transport", Err: fmt.Errorf("the adapter gave %d outcomes of %d messages", len(deliveries), len(batch)),
		})
		return
	}
	sent, failures, unsent := []completion{}, map[string][]*flowstore.Claimed{}, map[string]error{}
	order, succeeded := []string{}, 0
	for i, delivery := range deliveries {
		if delivery.Err != nil {
			key := fmt.Sprintf("%+v", asFailure(delivery.Err))
			if failures[key] == nil {
				order, unsent[key] = append(order, key), delivery.Err
			}
			failures[key] = append(failures[key], batch[i])
			continue
		}
		succeeded++
		r.host.counts.sentBytes.Add(batch[i].Size)
		r.host.counts.latency.Observe(time.Since(batch[i].ReceivedAt))
		if !isRecorded {
			r.pending.Add(1)
			sent = append(sent, completion{
				lease: r.lease.number, item: batch[i].Item, detail: detailText(delivery.Detail), answers: r.answers(ctx, delivery),
				recorded: r.recorded,
			})
		}
	}
	if isRecorded && succeeded > 0 {
		r.host.leases.ended(r.lease.number, succeeded)
		r.host.ports.left(r.port.key(), succeeded, true)
	}
	r.host.completer.add(sent)
	r.host.counts.transmitted.Add(int64(succeeded))
	if succeeded > 0 {
		r.host.ports.reached(r.port)
	}
	for _, key := range order {
		r.failed(ctx, failures[key], unsent[key])
	}
}

func (r *run) recorded(int) {
	r.host.ports.left(r.port.key(), 1, true)
	r.pending.Done()
}

// sendIn sends a batch in the transaction in which it is recorded.
func (r *run) sendIn(ctx context.Context, sender adapter.TransactionSender, batch []*flowstore.Claimed, messages []*adapter.Message) {
	var deliveries []adapter.Delivery
	isLost := func() bool { return true } // no connection was had
	err := pgx.BeginFunc(ctx, r.host.pool, func(tx pgx.Tx) (err error) {
		isLost = tx.Conn().IsClosed
		if deliveries, err = sender.SendIn(ctx, tx, messages); err != nil {
			return err
		}
		if len(deliveries) != len(batch) {
			return fmt.Errorf("the adapter gave %d outcomes of %d messages", len(deliveries), len(batch))
		}
		deliveries = withMaps(deliveries, messages)
		leases, items, details, answers := []int64{}, []int64{}, []*string{}, [][]draft{}
		for i, delivery := range deliveries {
			if delivery.Err == nil {
				leases, items = append(leases, r.lease.number), append(items, batch[i].Item)
				details, answers = append(details, detailText(delivery.Detail)), append(answers, r.answers(ctx, delivery))
			}
		}
		if len(items) == 0 {
			return nil
		}
		return r.host.completeWith(ctx, tx, leases, items, details, func(i int) []draft { return answers[i] })
	})
	_, isFailure := errors.AsType[*adapter.Failure](err)
	switch {
	case err == nil:
		r.observe(ctx, batch, deliveries, true)
	case pgdb.SQLState(err) == "PF007":
		r.host.leases.lose(r.lease.number)
		r.host.ports.left(r.port.key(), len(batch), true)
	case !isFailure && (isAway(err) || isLost()):
		// Nothing is known of a transaction whose connection is lost while it commits: what was committed is in nobody's hands any more.
		r.host.gate.observe(err)
		r.giveUp(ctx, batch)
	case len(batch) > 1 && pgdb.SQLState(err) != "" && ctx.Err() == nil:
		// One of them may have failed all.
		for i := range batch {
			r.sendIn(ctx, sender, batch[i:i+1], messages[i:i+1])
		}
	default:
		r.failed(ctx, batch, err)
	}
}

// isAway reports whether an error says that the database cannot be worked with now, whatever it was asked.
func isAway(err error) bool {
	if err == nil {
		return false
	}
	if state := pgdb.SQLState(err); state != "" {
		return slices.Contains([]string{"08", "53", "57", "58"}, state[:2])
	}
	_, isRefused := errors.AsType[*pgconn.ConnectError](err)
	return isRefused || errors.Is(err, pgconn.ErrConnClosed)
}

// asFailure gives what should follow an error.
func asFailure(err error) adapter.Failure {
	f, is := errors.AsType[*adapter.Failure](err)
	if !is {
		return adapter.Failure{Code: "send.transport", Err: err}
	}
	failure := *f
	if failure.Code == "" {
		failure.Code = "send.transport"
	}
	if failure.Err == nil {
		failure.Err = textError(failure.Code)
	}
	return failure
}

// failed records that messages were not sent. Those that the end of the lease or of the node has broken off have
// not failed.
func (r *run) failed(ctx context.Context, batch []*flowstore.Claimed, err error) {
	if ctx.Err() != nil {
		r.giveUp(ctx, batch)
		return
	}
	r.host.counts.failures.Add(int64(len(batch)))
	if r.outlet.definition.IsOrdered {
		r.pending.Wait() // those before them are recorded first
	}
	failure := asFailure(err)
	r.host.ports.failed(r.port)
	items := unit{r.lease, batch}.numbers()
	r.host.leases.hand(r.lease.number, len(items))
	f := flowstore.Failure{
		Code: failure.Code, Error: failure.Err.Error(), RetryAfter: failure.RetryAfter, IsUnreachable: failure.Unreachable,
	}
	ended := r.record(ctx, items, f, failure.Permanent)
	gone := map[int64]bool{}
	for _, item := range items {
		gone[item] = true
	}
	for _, e := range ended {
		gone[e.Item] = true
	}
	rest := r.rest[:0:0]
	for _, item := range r.rest {
		if !gone[item.Item] {
			rest = append(rest, item)
		}
	}
	behind := len(r.rest) - len(rest)
	r.rest = rest
	r.host.leases.ended(r.lease.number, len(items)+behind)
	r.host.ports.left(r.port.key(), len(items)+behind, true)
	if failure.Unreachable {
		r.host.ports.giveBackAll(r.port)
		r.giveUp(ctx, r.rest)
		r.rest = nil
	}
}

// record records a failure, and tries again while the database is away and the lease goes on.
func (r *run) record(ctx context.Context, items []int64, f flowstore.Failure, isPermanent bool) []flowstore.Ended {
	failures := backoff.NewFailures(r.host.logger, "what could not be sent cannot be recorded")
	for {
		ended, err := r.host.fail(ctx, r.lease.number, items, f, isPermanent)
		switch {
		case err == nil:
			failures.Succeeded()
			return ended
		case pgdb.SQLState(err) == "PF007":
			r.host.leases.lose(r.lease.number)
			return nil
		case pgdb.SQLState(err) == "PF010" && f.Code != "send.transport": // a code that the database does not know
			f.Error, f.Code = f.Code+": "+f.Error, "send.transport"
			continue
		}
		if backoff.Wait(ctx, failures.Failed(err)) != nil {
			return nil
		}
	}
}

// giveUp gives messages back, unless their lease is gone.
func (r *run) giveUp(ctx context.Context, batch []*flowstore.Claimed) {
	if len(batch) == 0 {
		return
	}
	if !errors.Is(context.Cause(ctx), errLeaseGone) {
		r.host.release(r.lease.number, unit{r.lease, batch}.numbers())
	}
	r.host.ports.left(r.port.key(), len(batch), false)
}

// detailText gives a detail as tracking keeps it.
func detailText(detail json.RawMessage) *string {
	if len(detail) == 0 || !json.Valid(detail) {
		return nil
	}
	text := string(detail)
	return &text
}
