package bench

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/measure/driver"
)

// insertTrial measures the bare INSERT, which a variant of the broker is compared with.
func (b *bench) insertTrial(variant string, sessions, batch int, op driver.Operation) trial {
	return trial{
		result: Result{System: systemInsert, Variant: variant, Sessions: sessions, Size: b.Size, Batch: batch},
		run: func(ctx context.Context) (float64, error) {
			s, err := b.stage(ctx, "tables", func(context.Context, *pgx.Conn, *stage) error { return nil })
			if err != nil {
				return 0, err
			}
			return b.onCopy(ctx, s, func(d database) (float64, error) { return b.driveCounted(ctx, d, sessions, op, moreRows()) })
		},
	}
}

// inserting is the operation that inserts one row, or the rows of a batch in one statement.
func (b *bench) inserting(batch int, in transaction) driver.Operation {
	return inserting(b.Size, batch, in)
}

func inserting(size, batch int, in transaction) driver.Operation {
	bodies := randomBodies(batch, size)
	return func(ctx context.Context, conn *pgx.Conn, _ int) (int, error) {
		return batch, in(ctx, conn, func(db parley.DB) error {
			if batch == 1 {
				_, err := db.Exec(ctx, "insert into bench.bare (body) values ($1)", bodies[0])
				return err
			}
			_, err := db.Exec(ctx, "insert into bench.bare (body) select unnest($1::bytea[])", bodies)
			return err
		})
	}
}

func (b *bench) insertingInServer(batch int) driver.Operation {
	return func(ctx context.Context, conn *pgx.Conn, _ int) (int, error) {
		_, err := conn.Exec(ctx, "call bench.insert_batches($1, $2, $3)", b.Size, batch, callsInServer)
		return batch * callsInServer, err
	}
}

// transaction runs a statement in a transaction of its own; both systems get the same.
type transaction func(ctx context.Context, conn *pgx.Conn, statement func(db parley.DB) error) error

// explicit is begin, statement, commit: three round trips, as an application has it that sends with its own data.
func explicit(ctx context.Context, conn *pgx.Conn, statement func(db parley.DB) error) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return statement(tx) })
}

// autocommit is the statement alone.
func autocommit(_ context.Context, conn *pgx.Conn, statement func(db parley.DB) error) error {
	return statement(conn)
}
