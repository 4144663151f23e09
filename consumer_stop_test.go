package parley_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/parleytest"
)

func TestConsumerThatIsStoppedLetsTheHandlerFinish(t *testing.T) {
	t.Parallel()
	pool := serviceDatabase(t)
	handling, goOn := make(chan struct{}), make(chan struct{})
	consumer := start(t, parley.Consumer{Pool: pool, Handler: func(ctx context.Context, tx pgx.Tx, messages []parley.Message) error {
		close(handling)
		select {
		case <-goOn:
		case <-t.Context().Done():
		}
		return store(ctx, tx, messages)
	}})
	handle := beginDialog(t, pool)
	send(t, pool, handle, "one")
	parleytest.Receive(t, handling, "the handler")
	send(t, pool, handle, "two")
	consumer.stop()
	close(goOn)
	fixture.RequireNoError(t, consumer.finish())
	requireHandled(t, pool, "one")
	if n := fixture.Value[int](t, pool, "select count(*) from parley.queue_contents('target')"); n != 1 {
		t.Errorf("%d messages wait, want the one that came while it stopped", n)
	}
}

func TestConsumerThatIsStoppedCutsHandlersOffAfterTheGraceTime(t *testing.T) {
	t.Parallel()
	pool := serviceDatabase(t)
	handling := make(chan struct{})
	consumer := start(t, parley.Consumer{Pool: pool, GraceTime: soon, Handler: func(ctx context.Context, tx pgx.Tx, messages []parley.Message) error {
		close(handling)
		<-ctx.Done()
		return store(ctx, tx, messages)
	}})
	send(t, pool, beginDialog(t, pool), "one")
	parleytest.Receive(t, handling, "the handler")
	if err := consumer.finish(); err == nil || !strings.Contains(err.Error(), "did not finish") {
		t.Errorf("got error %v", err)
	}
	requireHandled(t, pool, "")
	if n := fixture.Value[int](t, pool, "select count(*) from parley.queue_contents('target')"); n != 1 {
		t.Errorf("%d messages wait, want 1", n)
	}
}

// Also with readers that are about to sleep: nothing but the stop would wake them before the poll interval.
func TestConsumerThatIsStoppedLeavesNoConnectionBehind(t *testing.T) {
	t.Parallel()
	pool := serviceDatabase(t)
	idle := parley.Consumer{Pool: pool, Handler: store, Readers: 3, PollInterval: time.Hour}
	for round := range 20 {
		consumer := start(t, idle)
		<-time.After(time.Duration(round) * time.Millisecond)
		fixture.RequireNoError(t, consumer.finish())
	}
	consumer := start(t, idle)
	waitForSleepers(t, pool)
	fixture.RequireNoError(t, consumer.finish())
	parleytest.Until(t, "all connections are back in the pool", func() bool { return pool.Stat().AcquiredConns() == 0 })
	parleytest.Until(t, "nobody listens", func() bool {
		return fixture.Value[int](t, pool, "select count(*) from pg_stat_activity where datname = current_database() and query = 'listen parley'") == 0
	})
}
