// Command films does work of minutes: a claim that a heartbeat renews holds the message, and no transaction is open meanwhile. It may be
// stopped, or killed, at any time.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
)

func main() {
	if err := run(context.Background()); err != nil {
		slog.Error("the worker failed", "error", err)
		os.Exit(1)
	}
}

// run claims until ctx ends or a signal comes.
func run(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer pool.Close()
	consumer := parley.ClaimConsumer{Pool: pool, Queue: "films", Lease: 5 * time.Second, Readers: 4, Handler: render}
	return consumer.Run(ctx)
}

// render writes its results in a transaction at whose end the message is taken: what fails, or is killed, is claimed again.
func render(ctx context.Context, work *parley.Work) ([]byte, error) {
	for scene := range 3 {
		if err := work.Progress(map[string]int{"scene": scene}); err != nil {
			return nil, err
		}
	}
	return nil, work.Transaction(ctx, nil, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "insert into rendered (film) values ($1)", string(work.Messages[0].Body))
		return err
	})
}
