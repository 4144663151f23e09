package parley_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/parleytest"
)

// waitForSleepers waits until senders to the queue target are asked to notify.
func waitForSleepers(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	parleytest.Until(t, "somebody sleeps on the queue", func() bool {
		return fixture.Value[bool](t, pool, `
			select coalesce(pg_sequence_last_value(q.wakeup_sequence), 0) > extract(epoch from clock_timestamp())
			from parley._p_queue as q
			where q.name = 'target'`)
	})
}

func TestConsumerThatSleepsIsWokenByASender(t *testing.T) {
	t.Parallel()
	pool := serviceDatabase(t)
	start(t, parley.Consumer{Pool: pool, Handler: store, PollInterval: never})
	handle := beginDialog(t, pool)
	for i, text := range []string{"one", "two", "three"} {
		waitForSleepers(t, pool)
		send(t, pool, handle, text)
		waitForHandled(t, pool, i+1)
	}
	requireHandled(t, pool, "one two three")
}

func TestConsumerWithManyReadersWakesAllForABurst(t *testing.T) {
	t.Parallel()
	pool := serviceDatabase(t)
	start(t, parley.Consumer{Pool: pool, Handler: store, PollInterval: never, Readers: 4, Top: 1})
	waitForSleepers(t, pool)
	for range 10 {
		send(t, pool, beginDialog(t, pool), "a", "b")
	}
	waitForHandled(t, pool, 20)
}

func TestConsumerComesBackAfterItsConnectionsAreLost(t *testing.T) {
	t.Parallel()
	pool := serviceDatabase(t)
	consumer := start(t, parley.Consumer{Pool: pool, Handler: store, PollInterval: soon, Readers: 2})
	waitForSleepers(t, pool)
	admin := fixture.Connect(t, pool)
	fixture.Execute(t, admin, `
		select pg_terminate_backend(pid)
		from pg_stat_activity
		where datname = current_database() and pid <> pg_backend_pid()`)
	parleytest.Until(t, "the loss is reported", func() bool { return strings.Contains(consumer.log.String(), "not notified") })
	handle := beginDialog(t, admin)
	send(t, admin, handle, "one")
	parleytest.Until(t, "the message is handled", func() bool { return fixture.Value[int](t, admin, "select count(*) from handled") == 1 })
	parleytest.Until(t, "it listens again", func() bool {
		return fixture.Value[int](t, admin, "select count(*) from pg_stat_activity where datname = current_database() and query = 'listen parley'") == 1
	})
}

func TestConsumerPollsThroughAPooler(t *testing.T) {
	t.Parallel()
	pool := serviceDatabase(t)
	consumer := start(t, parley.Consumer{Pool: throughPooler(t, pool), Handler: store, PollInterval: soon, Readers: 2})
	parleytest.Until(t, "it says so", func() bool { return strings.Contains(consumer.log.String(), "pooler") })
	send(t, pool, beginDialog(t, pool), "one", "two", "three")
	waitForHandled(t, pool, 3)
	requireHandled(t, pool, "one two three")
}

func TestConsumerBehindAPoolerIsNotifiedOnADirectConnection(t *testing.T) {
	t.Parallel()
	pool := serviceDatabase(t)
	start(t, parley.Consumer{
		Pool: throughPooler(t, pool), Handler: store, PollInterval: never,
		ListenConfig: pool.Config().ConnConfig,
	})
	waitForSleepers(t, pool)
	send(t, pool, beginDialog(t, pool), "one")
	waitForHandled(t, pool, 1)
}

func throughPooler(t *testing.T, pool *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	pooled, err := pgxpool.New(t.Context(), parleytest.PgBouncer(t, pool))
	fixture.RequireNoError(t, err)
	t.Cleanup(pooled.Close)
	return pooled
}
