package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/driver"
)

// The floor is what PostgreSQL does with the same bodies when it has only to keep them and to forget them.
const (
	floorBatch  = 100
	floorTable  = "create table public.floor (id bigint primary key, body bytea not null)"
	floorDelete = "delete from public.floor where id between $1 and $2"
)

// copyAndDelete copies batches in and deletes them, each in a transaction, in one session.
func (f *flow) copyAndDelete(ctx context.Context, size int) (round FlowRound, err error) {
	d, err := f.cluster.create(ctx, database{})
	if err != nil {
		return FlowRound{}, err
	}
	defer func() { err = errors.Join(err, f.cluster.drop(context.WithoutCancel(ctx), d)) }()
	err = d.withConnection(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, floorTable)
		return err
	})
	if err != nil {
		return FlowRound{}, fmt.Errorf("make the table of the floor: %w", err)
	}
	conns, err := d.sessions(ctx, 1)
	if err != nil {
		return FlowRound{}, err
	}
	defer closeAll(ctx, conns)
	rate, err := driver.Drive(ctx, conns, f.WarmUp, f.Duration, copyingAndDeleting(size))
	if err != nil {
		return FlowRound{}, err
	}
	return FlowRound{
		Messages: int64(rate * f.Duration.Seconds()), ReceivedPerSecond: rate, ProcessedPerSecond: rate,
	}, nil
}

func copyingAndDeleting(size int) driver.Operation {
	var next int64
	body := bodiesOf(size)
	return func(ctx context.Context, conn *pgx.Conn, _ int) (int, error) {
		first := next
		next += floorBatch
		_, err := conn.CopyFrom(ctx, pgx.Identifier{"public", "floor"}, []string{"id", "body"},
			pgx.CopyFromSlice(floorBatch, func(i int) ([]any, error) { return []any{first + int64(i), body(first + int64(i))}, nil }))
		if err != nil {
			return 0, fmt.Errorf("copy a batch: %w", err)
		}
		tag, err := conn.Exec(ctx, floorDelete, first, first+floorBatch-1)
		if err != nil {
			return 0, fmt.Errorf("delete a batch: %w", err)
		}
		return int(tag.RowsAffected()), nil
	}
}
