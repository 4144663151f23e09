// Command warehouse packs each order that the shop sends. It may be stopped, or killed, at any time.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
)

func main() {
	if err := run(context.Background()); err != nil {
		slog.Error("the warehouse failed", "error", err)
		os.Exit(1)
	}
}

// run receives until ctx ends or a signal comes. The consumer waits, connects again when the database was away, reports what failed,
// and ends the conversations that the shop has ended.
func run(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer pool.Close()
	// One at a time: a message that keeps failing is set aside by itself, and what stands in front of it is done.
	consumer := parley.Consumer{Pool: pool, Queue: "warehouse_queue", Top: 1, Readers: 2, Handler: pack}
	return consumer.Run(ctx)
}

// pack handles messages in the transaction that received them: what fails, or is killed, is received again.
func pack(ctx context.Context, tx pgx.Tx, messages []parley.Message) error {
	for _, message := range messages {
		order, err := strconv.Atoi(string(message.MessageBody))
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "insert into parcels (order_id) values ($1)", order); err != nil {
			return err
		}
		if err := parley.Send(ctx, tx, message.ConversationHandle, parley.DefaultMessageType, message.MessageBody); err != nil {
			return err
		}
	}
	return nil
}
