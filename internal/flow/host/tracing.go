package host

import (
	"context"
	"maps"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-broker/parley/internal/flow/adapter"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// traceProperty carries the span under which a message was taken in, as the header traceparent has it. An adapter may give one of another
// namespace, under this name.
const traceProperty = "urn:parley:trace#traceparent"

// isTrace reports whether a property carries a span.
func isTrace(name string) bool { return strings.HasSuffix(strings.ToLower(name), "#traceparent") }

// withParent gives a context under a span that came from elsewhere; ctx itself where parent is none.
func withParent(ctx context.Context, parent string) context.Context {
	if parent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": parent})
}

// header gives the span of a context as the header traceparent has it; empty where nothing is traced.
func header(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"]
}

// parentOf gives the span that an input came under.
func parentOf(in *adapter.Input) string {
	for _, properties := range []map[string]any{in.Promoted, in.Written} {
		for name, value := range properties {
			if text, is := value.(string); is && isTrace(name) {
				return text
			}
		}
	}
	return ""
}

// startReceive begins the span of a call of Take.
func (t *take) startReceive(ctx context.Context) (context.Context, func(error)) {
	ctx, span := t.in.host.server.config.Tracer.Start(withParent(ctx, parentOf(t.inputs[0].input)), "receive "+t.in.name,
		trace.WithSpanKind(trace.SpanKindConsumer))
	if !span.IsRecording() {
		return ctx, func(error) { span.End() }
	}
	t.trace = header(ctx)
	span.SetAttributes(attribute.String("messaging.system", "parley"), attribute.String("parley.host", t.in.host.name),
		attribute.Int("messaging.batch.message_count", len(t.inputs)))
	return ctx, func(err error) { endSpan(span, err) }
}

// startPublish begins the span in which what was taken is stored and routed.
func (t *take) startPublish(ctx context.Context) func(error) {
	_, span := t.in.host.server.config.Tracer.Start(ctx, "publish "+t.in.name, trace.WithSpanKind(trace.SpanKindProducer))
	return func(err error) { endSpan(span, err) }
}

func endSpan(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// traced gives a draft the span under which it came.
func (t *take) traced(d *draft) {
	if t.trace == "" {
		return
	}
	written := maps.Clone(d.written)
	if written == nil {
		written = map[string]any{}
	}
	written[traceProperty] = t.trace
	d.written = written
}

// startSend begins the span of a message that is sent, under that of its receipt, and lets the adapter pass it on.
func (r *run) startSend(ctx context.Context, c *flowstore.Claimed, m *adapter.Message) trace.Span {
	parent := m.Written[traceProperty]
	for _, properties := range []map[string]string{m.Promoted, m.Written} {
		for name, value := range properties {
			if parent == "" && isTrace(name) {
				parent = value
			}
		}
	}
	ctx, span := r.host.server.config.Tracer.Start(withParent(ctx, parent), "send "+r.port.name, trace.WithSpanKind(trace.SpanKindProducer))
	if span.IsRecording() {
		span.SetAttributes(attribute.String("messaging.system", "parley"), attribute.String("parley.host", r.host.name),
			attribute.Int64("messaging.message.id", c.Message), attribute.Int("parley.attempts", c.Attempts))
		m.Written[traceProperty] = header(ctx)
	}
	return span
}
