// Command pictures works on a simple queue, in the transaction that takes the message. It may be stopped, or killed, at any time.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

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

// run takes until ctx ends or a signal comes.
func run(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer pool.Close()
	consumer := parley.SimpleConsumer{Pool: pool, Queue: "pictures", Readers: 4, Handler: resize}
	return consumer.Run(ctx)
}

// resize works in the transaction that took the messages: what fails, or is killed, is taken again.
func resize(ctx context.Context, tx pgx.Tx, messages []parley.TakenMessage) error {
	for _, message := range messages {
		if _, err := tx.Exec(ctx, "insert into resized (picture) values ($1)", string(message.Body)); err != nil {
			return err
		}
	}
	return nil
}
