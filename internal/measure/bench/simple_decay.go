package bench

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

func simpleDecayVariants() []decayVariant {
	return []decayVariant{
		{Variant{"simple_old_snapshot", "old_snapshot of a simple queue"}, ageSimpleUnderOldSnapshot, true, false},
		{Variant{"simple_pg_dump", "pg_dump of a simple queue"}, ageSimpleUnderDump, true, false},
		{
			Variant{"simple_taken_neighbour", "messages in front were taken, and their transaction goes on: a tenth of --messages"},
			ageByTakenNeighbour, true, false,
		},
		{Variant{"simple_delayed", "many messages are not due yet"}, ageByDelayedMessages, true, false},
	}
}

func simpleDecayOperations() []decayOperation {
	return []decayOperation{
		{
			name: "put", top: 1,
			shape: func(c Config) (int, int) { return or(c.Sessions, sendSessions), 0 },
			run: func(ctx context.Context, b *bench, _ stage, d database) (float64, error) {
				rate, err := b.driveCounted(ctx, d, or(b.Sessions, sendSessions), b.putting(1, explicit), moreIn(simpleQueue))
				if err != nil {
					return 0, err
				}
				return rate, d.withConnection(ctx, func(conn *pgx.Conn) error { return takeAll(ctx, conn, 10_000) })
			},
		},
		{
			name: "take_1", top: 1,
			shape: func(c Config) (int, int) { return or(c.Sessions, receiveSessions), 0 },
			run:   runTakeOne,
		},
		{name: "take_100", top: 100, shape: func(Config) (int, int) { return 1, 0 }, run: runTakeHundred},
	}
}

func ageSimpleUnderOldSnapshot(ctx context.Context, b *bench, _ stage, d database) (lift func(), err error) {
	return underOldSnapshot(ctx, d, func() error { return b.churnSimple(ctx, d) })
}

func ageSimpleUnderDump(ctx context.Context, b *bench, _ stage, d database) (lift func(), err error) {
	lift, err = b.startDump(ctx, d)
	if err != nil {
		return nil, err
	}
	return lift, b.churnSimple(ctx, d)
}

func ageByTakenNeighbour(ctx context.Context, b *bench, _ stage, d database) (lift func(), err error) {
	conn, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	messages := max(1, b.Messages/10)
	if err = putMany(ctx, conn, b.Size, messages); err == nil {
		_, err = conn.Exec(ctx, "begin")
	}
	for taken := 0; taken < messages && err == nil; taken += 10_000 {
		_, err = conn.Exec(ctx, "select count(*) from parley.take($1, 10000)", simpleQueue)
	}
	return held(ctx, conn), err
}

func ageByDelayedMessages(ctx context.Context, b *bench, _ stage, d database) (lift func(), err error) {
	return func() {}, d.withConnection(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `
			select parley.put_batch_binary($1, array_fill('\x00'::bytea, array[$2::integer]), deliver_at => now() + interval '1 day')`,
			simpleQueue, max(1, b.Messages/10))
		return err
	})
}

func runTakeOne(ctx context.Context, b *bench, _ stage, d database) (float64, error) {
	load := b.decayLoad()
	err := d.withConnection(ctx, func(conn *pgx.Conn) error { return putMany(ctx, conn, b.Size, load) })
	if err != nil {
		return 0, err
	}
	rate, err := b.driveCounted(ctx, d, or(b.Sessions, receiveSessions), takingOne(load, explicit), fewerIn(simpleQueue))
	if err != nil {
		return 0, err
	}
	return rate, d.withConnection(ctx, func(conn *pgx.Conn) error { return takeAll(ctx, conn, 100) })
}

func runTakeHundred(ctx context.Context, b *bench, _ stage, d database) (float64, error) {
	load := b.decayLoad()
	err := d.withConnection(ctx, func(conn *pgx.Conn) error { return putMany(ctx, conn, b.Size, load) })
	if err != nil {
		return 0, err
	}
	return timeTakes(ctx, d, "call bench.take_counted($1, $2, $3, 0)", simpleQueue, 100, load)
}

// takeAll takes what nobody else has in his hands.
func takeAll(ctx context.Context, conn *pgx.Conn, count int) error {
	if _, err := conn.Exec(ctx, "call bench.take_counted($1, $2, $3, 0)", simpleQueue, count, count); err != nil {
		return fmt.Errorf("take all of the queue: %w", err)
	}
	return nil
}

// churnSimple puts and takes messages, in rounds, so that a queue is seen full and empty.
func (b *bench) churnSimple(ctx context.Context, d database) error {
	const rounds = 10
	share := max(1, b.Messages/rounds)
	return d.withConnection(ctx, func(conn *pgx.Conn) error {
		if err := relax(ctx, conn); err != nil {
			return err
		}
		for round := range rounds {
			b.progress("ageing: %d of %d messages", round*share, b.Messages)
			if err := putMany(ctx, conn, b.Size, share); err != nil {
				return err
			}
			if err := takeAll(ctx, conn, 100); err != nil {
				return err
			}
		}
		return nil
	})
}
