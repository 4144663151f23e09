package parley

import (
	"context"
	"sync/atomic"

	"github.com/parley-broker/parley/internal/pgdb"
)

// SendTracer is called for each [Send] and [SendBatch] before it happens. It may return a trace context for the message, or each
// of the batch, to carry, as W3C Trace Context writes it: a traceparent, or one with a blank and a tracestate behind it. Empty
// means that it carries none. The context it returns is the one the statement runs under; end, unless nil, is called after it.
type SendTracer func(ctx context.Context, handle UUID, messageType string) (traced context.Context, traceContext string, end func(error))

var sendTracer atomic.Pointer[SendTracer]

// TraceSends sets the tracer of all sends of this process; nil sets none. Call it once, when the program starts.
// Package parleyotel has one for OpenTelemetry.
func TraceSends(tracer SendTracer) {
	if tracer == nil {
		sendTracer.Store(nil)
		return
	}
	sendTracer.Store(&tracer)
}

// SendTraced is [Send] with a trace context that RECEIVE gives back in [Message].TraceContext. One that is malformed or
// longer than 600 bytes is left out, without an error.
func SendTraced(ctx context.Context, db DB, handle UUID, messageType string, body []byte, traceContext string) error {
	_, err := db.Exec(ctx, `
		select parley.send(conversation_handle => $1::uuid, message_type => $2::text, body => $3::bytea, trace_context => $4::text)`,
		handle, messageType, body, traceContext)
	if err != nil {
		return pgdb.StatementError(err, "send on conversation "+handle.String())
	}
	return nil
}

// SendBatchTraced is [SendBatch] with a trace context that each of the messages carries; see [SendTraced].
func SendBatchTraced(ctx context.Context, db DB, handle UUID, messageType string, bodies [][]byte, traceContext string) error {
	_, err := db.Exec(ctx, `
		select parley.send_batch_binary(
			conversation_handle => $1::uuid, message_type => $2::text, bodies => $3::bytea[], trace_context => $4::text
		)`, handle, messageType, bodies, traceContext)
	if err != nil {
		return pgdb.StatementError(err, "send a batch on conversation "+handle.String())
	}
	return nil
}

// sendUnder sends as a tracer wants it.
func sendUnder(
	ctx context.Context, tracer SendTracer, handle UUID, messageType string,
	plain func(context.Context) error, traced func(ctx context.Context, traceContext string) error,
) (err error) {
	ctx, traceContext, end := tracer(ctx, handle, messageType)
	if end != nil {
		defer func() { end(err) }()
	}
	if traceContext == "" {
		return plain(ctx)
	}
	return traced(ctx, traceContext)
}
