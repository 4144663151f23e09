package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
)

// pgmqQueue is a queue of pgmq that the benchmark makes and drops.
const (
	pgmqQueue = "parley_bench"
	pgmqCount = "select count(*) from pgmq.q_" + pgmqQueue + " where $1 = ''"
)

// findPGMQ reports whether pgmq can be measured: its extension can be created on this server, or the database that is given has its
// schema. It is not ours, and never brought here by us.
func (b *bench) findPGMQ(ctx context.Context) (bool, error) {
	var isAvailable, isThere bool
	err := b.cluster.admin.QueryRow(ctx, `
		select exists (select from pg_available_extensions where name = 'pgmq'), to_regnamespace('pgmq') is not null`).
		Scan(&isAvailable, &isThere)
	if err != nil {
		return false, fmt.Errorf("search pgmq: %w", err)
	}
	switch {
	case isThere:
		b.settled["pgmq"] = "schema of the database that was given"
	case isAvailable:
		b.settled["pgmq"] = "extension"
	default:
		b.settled["pgmq"] = "not there"
	}
	return isThere || isAvailable, nil
}

// onPGMQ runs work in a database that has pgmq, with a queue of so many messages. Its schema cannot be copied out of the database
// that is given as long as others use that, so it is measured there.
func (b *bench) onPGMQ(ctx context.Context, messages int, work func(d database) (float64, error)) (rate float64, err error) {
	d := database{config: b.cluster.admin.Config(), name: b.cluster.admin.Config().Database}
	if b.settled["pgmq"] == "extension" {
		if d, err = b.cluster.create(ctx, database{}); err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, b.cluster.drop(ctx, d)) }()
	}
	if err := d.withConnection(ctx, func(conn *pgx.Conn) error { return b.preparePGMQ(ctx, conn, messages) }); err != nil {
		return 0, fmt.Errorf("prepare pgmq: %w", err)
	}
	defer func() {
		err = errors.Join(err, d.withConnection(ctx, func(conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "drop schema if exists bench cascade; select pgmq.drop_queue('"+pgmqQueue+"')")
			return err
		}))
	}()
	return work(d)
}

func (b *bench) preparePGMQ(ctx context.Context, conn *pgx.Conn, messages int) error {
	if b.settled["pgmq"] == "extension" {
		if _, err := conn.Exec(ctx, "create extension pgmq cascade"); err != nil {
			return err
		}
	}
	_, err := conn.Exec(ctx, "select pgmq.create('"+pgmqQueue+"'); create schema bench; "+pgmqDrain)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "select pgmq.send($1, $2::jsonb) from generate_series(1, $3)", pgmqQueue, pgmqBody(b.Size), messages)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "vacuum (analyze) pgmq.q_"+pgmqQueue)
	return err
}

// pgmqDrain reads and deletes all, as bench.take_counted takes all of a simple queue.
const pgmqDrain = `
	create procedure bench.read_and_delete(queue text, count integer, per_transaction integer, inout taken bigint)
	language plpgsql
	as $$
	declare
		v_ids bigint[];
		v_open integer := 0;
	begin
		loop
			v_ids := array(select r.msg_id from pgmq.read(queue, 3600, count) as r);
			perform pgmq.delete(queue, v_ids);
			taken := taken + cardinality(v_ids);
			v_open := v_open + cardinality(v_ids);
			if v_open >= per_transaction or cardinality(v_ids) = 0 then
				commit;
				v_open := 0;
			end if;
			exit when cardinality(v_ids) = 0;
		end loop;
	end
	$$`

// pgmqBody is a body of about as many bytes as ours: pgmq has jsonb alone.
func pgmqBody(size int) string { return fmt.Sprintf(`"%x"`, randomBodies(1, max(1, size/2))[0]) }

func (b *bench) pgmqTrial(v simpleVariant) trial {
	return trial{
		result: v.result(b, systemPGMQ),
		run: func(ctx context.Context) (float64, error) {
			messages := 0
			if v.takes {
				messages = b.Messages
			}
			return b.onPGMQ(ctx, messages, func(d database) (float64, error) {
				switch {
				case v.in == nil:
					return timeTakes(ctx, d, "call bench.read_and_delete($1, $2, $3, 0)", pgmqQueue, v.batch, messages)
				case v.takes:
					return b.driveCounted(ctx, d, v.sessions, untilTaken(messages, v.in, func(ctx context.Context, db parley.DB) (int, error) {
						tag, err := db.Exec(ctx, "select * from pgmq.pop($1)", pgmqQueue)
						return int(tag.RowsAffected()), err
					}), account{pgmqCount, "", -1})
				}
				body := pgmqBody(b.Size)
				return b.driveCounted(ctx, d, v.sessions, func(ctx context.Context, conn *pgx.Conn, _ int) (int, error) {
					return v.batch, v.in(ctx, conn, func(db parley.DB) error {
						if v.batch == 1 {
							_, err := db.Exec(ctx, "select pgmq.send($1, $2::jsonb)", pgmqQueue, body)
							return err
						}
						_, err := db.Exec(ctx, "select pgmq.send_batch($1, array_fill($2::jsonb, array[$3::integer]))", pgmqQueue, body, v.batch)
						return err
					})
				}, account{pgmqCount, "", 1})
			})
		},
	}
}
