package parley_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/parleytest"
)

// failInTurns fails as handlers do: every second time by an error of a statement, which gives the message back before the client knows.
func failInTurns(calls *atomic.Int32) func(ctx context.Context, tx pgx.Tx) error {
	return func(ctx context.Context, tx pgx.Tx) error {
		if calls.Add(1)%2 == 0 {
			_, err := tx.Exec(ctx, "select 1 / 0")
			return err
		}
		return errors.New("no such picture")
	}
}

// Readers that are idle meanwhile leave a message that failed to the report of who saw it fail.
func TestReadersSideBySideFailAsOftenAsThePolicySays(t *testing.T) {
	t.Parallel()
	const jobs, attempts = 20, 1
	policy := fmt.Sprintf(`'{"first": "10 ms", "longest": "10 ms", "attempts": %d}'`, attempts)
	t.Run("SimpleConsumer", func(t *testing.T) {
		t.Parallel()
		pool := parleytest.Database(t)
		fixture.Execute(t, pool, "select parley.create_queue('jobs', kind => 'SIMPLE', retry => "+policy+")")
		fixture.Execute(t, pool, fmt.Sprintf("select parley.put_batch('jobs', array(select n::text from generate_series(1, %d) as n))", jobs))
		var calls atomic.Int32
		fail := failInTurns(&calls)
		finish := consumeJobs(t, parley.SimpleConsumer{
			Pool: pool, Readers: 4, PollInterval: soon,
			Handler: func(ctx context.Context, tx pgx.Tx, _ []parley.TakenMessage) error { return fail(ctx, tx) },
		})
		parleytest.Until(t, "all are set aside", func() bool {
			return fixture.Value[int](t, pool, "select count(*) from parley.set_aside_messages") == jobs
		})
		fixture.RequireNoError(t, finish())
		requireReported(t, pool, "parley.set_aside_messages", int(calls.Load()), jobs, attempts)
	})
	t.Run("Consumer", func(t *testing.T) {
		t.Parallel()
		pool := serviceDatabase(t)
		fixture.Execute(t, pool, "select parley.alter_queue('target', retry => "+policy+")")
		for range jobs {
			send(t, pool, beginDialog(t, pool), "bad")
		}
		var calls atomic.Int32
		fail := failInTurns(&calls)
		consumer := start(t, parley.Consumer{
			Pool: pool, Readers: 4, PollInterval: soon,
			Handler: func(ctx context.Context, tx pgx.Tx, _ []parley.Message) error { return fail(ctx, tx) },
		})
		parleytest.Until(t, "all are set aside", func() bool {
			return fixture.Value[int](t, pool, "select count(*) from parley.poison_conversations") == jobs
		})
		fixture.RequireNoError(t, consumer.finish())
		requireReported(t, pool, "parley.poison_conversations", int(calls.Load()), jobs, attempts)
	})
}

// requireReported compares how often a handler was called with what a view shows of the work that is set aside, which has an error each.
func requireReported(t *testing.T, pool parley.DB, view string, calls, jobs, attempts int) {
	t.Helper()
	if calls != jobs*attempts {
		t.Errorf("%d calls, want %d", calls, jobs*attempts)
	}
	var reported int
	err := pool.QueryRow(t.Context(), "select count(*) from "+view+" where length(error) > 0 and rollbacks = $1", attempts).Scan(&reported)
	if fixture.RequireNoError(t, err); reported != jobs {
		t.Errorf("%d of %d have an error and failed %d times", reported, jobs, attempts)
	}
}
