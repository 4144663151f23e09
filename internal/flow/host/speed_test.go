package host_test

import (
	"bytes"
	"context"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/parleytest"
)

// A hop through the box is held against the same bodies copied into a table and deleted, a hundred in a transaction, in turn in one run.
// PARLEY_TEST_LONG=1 measures it; docs/internals/flow.md has the figures.
func TestHopIsAShareOfCopyAndDelete(t *testing.T) {
	if os.Getenv("PARLEY_TEST_LONG") == "" {
		t.Skip("it takes half a minute: set PARLEY_TEST_LONG=1")
	}
	const inFlight, rounds, seconds = 200, 3, 4 * time.Second
	e := newEngine(t)
	e.Exec("create table floor (body bytea)")
	text := bytes.Repeat([]byte("x"), 188)
	var sent atomic.Int64
	e.destination("Out", func(_ context.Context, messages []*adapter.Message) []adapter.Delivery {
		sent.Add(int64(len(messages)))
		return make([]adapter.Delivery, len(messages))
	})
	e.serve()
	in := e.intake("Source")
	hop := func() float64 {
		before, began := sent.Load(), time.Now()
		var taking sync.WaitGroup
		for range inFlight {
			taking.Go(func() {
				for time.Since(began) < seconds {
					if _, err := in.Take(t.Context(), []adapter.Input{{Body: text}}); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		taking.Wait()
		parleytest.Until(t, "all are sent", func() bool { messages, _ := e.inBox(); return messages == 0 })
		return float64(sent.Load()-before) / time.Since(began).Seconds()
	}
	floor := func() float64 {
		conn, err := e.Pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
		began, copied := time.Now(), 0
		for time.Since(began) < seconds {
			_, err := conn.Conn().CopyFrom(t.Context(), pgx.Identifier{"floor"}, []string{"body"},
				pgx.CopyFromSlice(100, func(int) ([]any, error) { return []any{text}, nil }))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Exec(t.Context(), `delete from floor where ctid = any (array(select ctid from floor limit 100))`); err != nil {
				t.Fatal(err)
			}
			copied += 100
		}
		return float64(copied) / time.Since(began).Seconds()
	}
	hop()
	for range rounds {
		f, h := floor(), hop()
		t.Logf("floor %.0f/s, hop %.0f/s, ratio %.3f", f, h, h/f)
	}
}
