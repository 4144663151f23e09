package parleyotel

import (
	"context"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-broker/parley"
)

// SimpleHandler is [Handler] for a [parley.SimpleConsumer].
func SimpleHandler(provider trace.TracerProvider, queue string, handler parley.TakenHandler) parley.TakenHandler {
	spans := tracer(provider)
	return func(ctx context.Context, tx pgx.Tx, taken []parley.TakenMessage) (err error) {
		messages := make([]parley.Message, len(taken))
		for i, m := range taken {
			messages[i].MessageEnqueueTime = m.EnqueuedAt
			if m.TraceContext != nil {
				messages[i].TraceContext = *m.TraceContext
			}
		}
		ctx, span := startProcessing(ctx, spans, queue, messages)
		// End records a panic that passes through.
		defer span.End()
		err = handler(ctx, tx, taken)
		recordError(span, err)
		return err
	}
}

// tracePuts makes each put of this process that runs under a span a span of its own.
func tracePuts(spans trace.Tracer) {
	parley.TracePuts(func(ctx context.Context, queue string) (context.Context, string, func(error)) {
		if !trace.SpanContextFromContext(ctx).IsValid() {
			return ctx, "", nil
		}
		ctx, span := spans.Start(ctx, "put "+queue, trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
			attribute.String("messaging.system", "parley"),
			attribute.String("messaging.operation.type", "send"),
			attribute.String("messaging.destination.name", queue),
		))
		return ctx, inject(ctx), func(err error) {
			recordError(span, err)
			span.End()
		}
	})
}
