package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// busyKeys are the keys of a backlog whose first messages others are at work on, so that none of it can be taken.
var busyKeys = []string{"busy 1", "busy 2"}

// putBacklog lets --messages of busy keys wait, in turns of a thousand behind the first of each.
func (b *bench) putBacklog(ctx context.Context, conn *pgx.Conn) error {
	padding := strings.Repeat("x", b.Size)
	for put, turn := 0, 0; put < b.Messages || turn < len(busyKeys); turn++ {
		count := 1
		if turn >= len(busyKeys) {
			count = min(1000, b.Messages-put)
		}
		_, err := conn.Exec(ctx, "select parley.put_batch($1, array(select $2 from generate_series(1, $3)), key => $4)",
			jobsQueue, padding, count, busyKeys[turn%len(busyKeys)])
		if err != nil {
			return fmt.Errorf("put a backlog: %w", err)
		}
		put += count
	}
	return nil
}

// holdKeys takes the first message of each busy key. The function that comes back gives them back.
func holdKeys(ctx context.Context, d database) (release func() error, err error) {
	conn, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	tx, err := conn.Begin(ctx)
	if err == nil {
		_, err = tx.Exec(ctx, "select from parley.take($1, $2)", jobsQueue, len(busyKeys))
	}
	if err != nil {
		closeAll(ctx, []*pgx.Conn{conn})
		return nil, fmt.Errorf("hold the first of each key: %w", err)
	}
	return func() error {
		defer closeAll(ctx, []*pgx.Conn{conn})
		if err := tx.Rollback(context.WithoutCancel(ctx)); err != nil && !errors.Is(err, pgx.ErrTxClosed) {
			return fmt.Errorf("give the first of each key back: %w", err)
		}
		return nil
	}, nil
}
