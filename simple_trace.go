package parley

import (
	"context"
	"sync/atomic"

	"github.com/parley-broker/parley/internal/pgdb"
)

// PutTracer is called for each [Put] and [PutBatch] before it happens, as a [SendTracer] is for sends: it may return a trace context for
// the message, or each of the batch, to carry. The context it returns is the one the statement runs under; end, unless nil, is called
// after it.
type PutTracer func(ctx context.Context, queue string) (traced context.Context, traceContext string, end func(error))

var putTracer atomic.Pointer[PutTracer]

// TracePuts sets the tracer of all puts of this process; nil sets none. Call it once, when the program starts.
// Package parleyotel has one for OpenTelemetry.
func TracePuts(tracer PutTracer) {
	if tracer == nil {
		putTracer.Store(nil)
		return
	}
	putTracer.Store(&tracer)
}

// PutTraced is [Put] with a trace context that TAKE gives back in [TakenMessage].TraceContext. One that is malformed or longer than
// 600 bytes is left out, without an error; so is an empty one.
func PutTraced(
	ctx context.Context, db DB, queue string, body []byte, traceContext string, options ...PutOption,
) (SentMessage, error) {
	p := putting(options)
	sent, err := readSent(db.QueryRow(ctx, `
		select s.is_duplicate, s.conversation_handle, s.message_id, s.delayed_id, s.sent_at
		from parley.put(
			queue => $1::text, body => $2::bytea, key => $3, priority => $4, deliver_at => $5, trace_context => nullif($6::text, '')
		) as s`, queue, body, p.key, p.priority, p.deliverAt, traceContext))
	if err != nil {
		return SentMessage{}, pgdb.StatementError(err, "put into queue "+queue)
	}
	return sent, nil
}

// PutBatchTraced is [PutBatch] with a trace context that each of the messages carries; see [PutTraced].
func PutBatchTraced(ctx context.Context, db DB, queue string, bodies [][]byte, traceContext string, options ...PutOption) error {
	p := putting(options)
	_, err := db.Exec(ctx, `
		select parley.put_batch_binary(
			queue => $1, bodies => $2::bytea[], key => $3, priority => $4, deliver_at => $5, trace_context => $6::text
		)`, queue, bodies, p.key, p.priority, p.deliverAt, traceContext)
	if err != nil {
		return pgdb.StatementError(err, "put into queue "+queue)
	}
	return nil
}

// putUnder puts as the tracer of this process wants it; put gets an empty trace context where it wants none.
func putUnder(ctx context.Context, queue string, put func(ctx context.Context, traceContext string) error) (err error) {
	tracer := putTracer.Load()
	if tracer == nil {
		return put(ctx, "")
	}
	ctx, traceContext, end := (*tracer)(ctx, queue)
	if end != nil {
		defer func() { end(err) }()
	}
	return put(ctx, traceContext)
}
