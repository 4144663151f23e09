package parleyotel_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/parleyotel"
	"github.com/parley-broker/parley/parleytest"
)

func TestTraceGoesThroughASimpleQueue(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	if _, err := pool.Exec(t.Context(), "select parley.create_queue('traced', kind => 'SIMPLE')"); err != nil {
		t.Fatal(err)
	}
	ctx, span := spans.Start(t.Context(), "order")
	if _, err := parley.Put(ctx, pool, "traced", []byte("one")); err != nil {
		t.Fatal(err)
	}
	if err := parley.PutBatch(ctx, pool, "traced", [][]byte{[]byte("two")}, parley.WithKey("k")); err != nil {
		t.Fatal(err)
	}
	span.End()
	if _, err := parley.Put(t.Context(), pool, "traced", []byte("untraced")); err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(t.Context())
	var got []trace.TraceID
	consumer := parley.SimpleConsumer{Pool: pool, Queue: "traced"}
	consumer.Handler = parleyotel.SimpleHandler(provider, "traced", func(ctx context.Context, _ pgx.Tx, _ []parley.TakenMessage) error {
		if got = append(got, trace.SpanContextFromContext(ctx).TraceID()); len(got) == 3 {
			stop()
		}
		return nil
	})
	if err := consumer.Run(running); err != nil {
		t.Fatal(err)
	}
	want := span.SpanContext().TraceID()
	if got[0] != want || got[1] != want || got[2] == want {
		t.Errorf("the traces are %v, want %v, the same and another", got, want)
	}
}
