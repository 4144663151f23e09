package parleyotel

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-broker/parley"
)

const (
	scope = "github.com/parley-broker/parley/parleyotel"
	// longest is the longest context that the database takes; a tracestate that makes it longer stays behind.
	longest = 600
)

// tracer draws the spans of a provider; nil stands for the global one.
func tracer(provider trace.TracerProvider) trace.Tracer {
	if provider == nil {
		provider = otel.GetTracerProvider()
	}
	return provider.Tracer(scope)
}

// TraceSends makes each [parley.Send], [parley.SendBatch], [parley.Put] and [parley.PutBatch] of this process that runs under a span
// a span of its own, and lets its messages carry the trace. Those under no span are as they were. A nil provider stands for the
// global one.
func TraceSends(provider trace.TracerProvider) {
	spans := tracer(provider)
	tracePuts(spans)
	parley.TraceSends(func(ctx context.Context, handle parley.UUID, messageType string) (context.Context, string, func(error)) {
		if !trace.SpanContextFromContext(ctx).IsValid() {
			return ctx, "", nil
		}
		ctx, span := spans.Start(ctx, "send "+messageType, trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
			attribute.String("messaging.system", "parley"),
			attribute.String("messaging.operation.type", "send"),
			attribute.String("messaging.message.conversation_id", handle.String()),
			attribute.String("parley.message_type", messageType),
		))
		return ctx, inject(ctx), func(err error) {
			recordError(span, err)
			span.End()
		}
	})
}

// inject writes the span of a context as a message carries it.
func inject(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	parent, state := carrier["traceparent"], carrier["tracestate"]
	if state == "" || len(parent)+1+len(state) > longest {
		return parent
	}
	return parent + " " + state
}

// recordError records in a span what went wrong, if anything did.
func recordError(span trace.Span, err error) {
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
}
