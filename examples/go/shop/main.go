// Command shop takes five orders and waits until the warehouse has packed them.
package main

import (
	"context"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
)

func main() {
	if err := run(context.Background()); err != nil {
		slog.Error("the shop failed", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for range 5 {
		if err := place(ctx, conn); err != nil {
			return err
		}
	}
	for {
		var isWaiting bool
		if err := conn.QueryRow(ctx, "select exists (select from orders where not is_packed)").Scan(&isWaiting); err != nil || !isWaiting {
			return err
		}
		if err := collect(ctx, conn); err != nil {
			return err
		}
	}
}

// place commits the order and its message together, or neither.
func place(ctx context.Context, conn *pgx.Conn) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		handle, err := parley.BeginDialog(ctx, tx, "shop", "warehouse")
		if err != nil {
			return err
		}
		var order int
		insert := "insert into orders (conversation_handle) values ($1) returning order_id"
		if err := tx.QueryRow(ctx, insert, handle).Scan(&order); err != nil {
			return err
		}
		return parley.Send(ctx, tx, handle, parley.DefaultMessageType, []byte(strconv.Itoa(order)))
	})
}

// collect takes what the warehouse has packed, and ends the conversation about it.
func collect(ctx context.Context, conn *pgx.Conn) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		messages, err := parley.Receive(ctx, tx, "shop_queue", parley.Wait(5*time.Second))
		if err != nil {
			return err
		}
		for _, message := range messages {
			if message.MessageTypeName == parley.DefaultMessageType {
				update := "update orders set is_packed = true where conversation_handle = $1"
				if _, err := tx.Exec(ctx, update, message.ConversationHandle); err != nil {
					return err
				}
			}
			if err := parley.EndConversation(ctx, tx, message.ConversationHandle); err != nil {
				return err
			}
		}
		return nil
	})
}
