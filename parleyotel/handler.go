package parleyotel

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-broker/parley"
)

// mostTraces is how many traces one call of a handler is tied to; more messages than that share those they have.
const mostTraces = 128

// Handler wraps the handler of a [parley.Consumer] of a queue. For each trace that messages bring it draws a span of the time the message
// waited, from its arrival in the queue to now; and one of the handler's work, which is a child of the first message's wait and linked to
// the others'. Messages that the handler sends under its context continue the trace. A nil provider stands for the global one.
func Handler(provider trace.TracerProvider, queue string, handler parley.Handler) parley.Handler {
	spans := tracer(provider)
	return func(ctx context.Context, tx pgx.Tx, messages []parley.Message) (err error) {
		ctx, span := startProcessing(ctx, spans, queue, messages)
		// End records a panic that passes through.
		defer span.End()
		err = handler(ctx, tx, messages)
		recordError(span, err)
		return err
	}
}

func startProcessing(ctx context.Context, spans trace.Tracer, queue string, messages []parley.Message) (context.Context, trace.Span) {
	received := time.Now()
	var links []trace.Link
	seen := map[string]bool{}
	var parent trace.SpanContext
	for _, m := range messages {
		if m.TraceContext == "" || seen[m.TraceContext] || len(seen) == mostTraces {
			continue
		}
		seen[m.TraceContext] = true
		sender := extract(ctx, m.TraceContext)
		if !trace.SpanContextFromContext(sender).IsValid() {
			continue
		}
		wait := drawWait(sender, spans, queue, m, received)
		if !parent.IsValid() {
			parent = wait
			continue
		}
		links = append(links, trace.Link{SpanContext: wait})
	}
	attributes := []attribute.KeyValue{
		attribute.String("messaging.system", "parley"),
		attribute.String("messaging.operation.type", "process"),
		attribute.String("messaging.destination.name", queue),
		attribute.Int("messaging.batch.message_count", len(messages)),
	}
	if len(messages) > 0 && !messages[0].ConversationHandle.IsZero() {
		attributes = append(attributes,
			attribute.String("messaging.message.conversation_id", messages[0].ConversationHandle.String()),
			attribute.String("parley.conversation_group_id", messages[0].ConversationGroupID.String()))
	}
	if parent.IsValid() {
		ctx = trace.ContextWithSpanContext(ctx, parent)
	}
	return spans.Start(ctx, "process "+queue,
		trace.WithSpanKind(trace.SpanKindConsumer), trace.WithLinks(links...), trace.WithAttributes(attributes...))
}

// drawWait draws the time that a message waited. Its beginning is taken from the clock of the database, its end by ours.
func drawWait(sender context.Context, spans trace.Tracer, queue string, m parley.Message, received time.Time) trace.SpanContext {
	arrived := m.MessageEnqueueTime
	if arrived.After(received) {
		arrived = received
	}
	attributes := []attribute.KeyValue{
		attribute.String("messaging.system", "parley"),
		attribute.String("messaging.destination.name", queue),
	}
	if !m.ConversationHandle.IsZero() {
		attributes = append(attributes,
			attribute.String("messaging.message.conversation_id", m.ConversationHandle.String()),
			attribute.String("parley.message_type", m.MessageTypeName))
	}
	_, span := spans.Start(sender, "wait "+queue, trace.WithTimestamp(arrived), trace.WithAttributes(attributes...))
	span.End(trace.WithTimestamp(received))
	return span.SpanContext()
}

// extract gives a context under the span that a message carries.
func extract(ctx context.Context, traceContext string) context.Context {
	parent, state, _ := strings.Cut(traceContext, " ")
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": parent, "tracestate": state})
}
