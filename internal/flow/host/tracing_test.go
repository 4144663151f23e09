package host_test

import (
	"context"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/host"
	"github.com/parley-broker/parley/parleytest"
)

// A message is received, published and sent under one trace, that of its sender where it says one.
func TestSpansOfAMessageBelongTogether(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	passed := make(chan string, 1)
	e.destination("Out", func(ctx context.Context, messages []*adapter.Message) []adapter.Delivery {
		passed <- messages[0].Property("urn:parley:trace#traceparent")
		return e.record("Out")(ctx, messages)
	})
	e.serve(func(c *host.Config) { c.Tracer = provider.Tracer("test") })
	const id = "0af7651916cd43dd8448eb211c80319c"
	_, err := e.intake("Source").Take(t.Context(), []adapter.Input{{
		Body: []byte("x"), Written: map[string]any{"urn:parley:http#traceparent": "00-" + id + "-b7ad6b7169203331-01"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if header := parleytest.Receive(t, passed, "the message is sent"); !strings.HasPrefix(header, "00-"+id+"-") {
		t.Errorf("the destination gets %q", header)
	}
	e.untilSent(1)
	parleytest.Until(t, "all spans are ended", func() bool { return len(exporter.GetSpans()) == 3 })
	names := map[string]string{}
	for _, span := range exporter.GetSpans() {
		names[span.Name] = span.SpanContext.TraceID().String()
	}
	for _, name := range []string{"receive Source", "publish Source", "send Out"} {
		if names[name] != id {
			t.Errorf("%s has trace %q", name, names[name])
		}
	}
}
