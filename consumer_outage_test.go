package parley_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/parleytest"
)

// Readers, however many there are, try together as seldom as one of them.
func TestConsumersTryToConnectFewTimesWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	quiet := slog.New(slog.DiscardHandler)
	pools := [2]func() (run func(context.Context) error, attempts func() int){
		func() (func(context.Context) error, func() int) {
			pool, attempts := parleytest.Away(t)
			c := &parley.Consumer{
				Pool: pool, Queue: "orders", Readers: 50, Logger: quiet,
				Handler: func(context.Context, pgx.Tx, []parley.Message) error { return nil },
			}
			return c.Run, attempts
		},
		func() (func(context.Context) error, func() int) {
			pool, attempts := parleytest.Away(t)
			c := &parley.SimpleConsumer{
				Pool: pool, Queue: "jobs", Readers: 50, Logger: quiet,
				Handler: func(context.Context, pgx.Tx, []parley.TakenMessage) error { return nil },
			}
			return c.Run, attempts
		},
	}
	for _, newConsumer := range pools {
		run, attempts := newConsumer()
		const tested = 3 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), tested)
		if err := run(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		// Some readers fail before one is known to have failed. Then one goes on, and the connection for notifications beside it.
		if n := attempts(); n < 5 || n > 30 {
			t.Errorf("%d attempts to connect in %v", n, tested)
		}
	}
}
