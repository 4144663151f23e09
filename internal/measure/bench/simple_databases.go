package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/measure/driver"
)

// spread is the variant that shares the same sessions out among some databases of the server.
const spread = "databases"

// spreads are how many databases there are.
var spreads = []int{1, 2, 4}

func onDatabases(n int) string {
	if n == 1 {
		return "one_database"
	}
	return fmt.Sprintf("%d_databases", n)
}

func (c Config) spreadVariant() simpleVariant {
	return simpleVariant{
		Variant{spread, "16 sessions, put one, commit, take one, commit, in one database, and shared out among two and four"},
		true, or(c.Sessions, sendSessions), 1, explicit,
	}
}

// spreadTrials are the same sessions on one database and on several.
func (b *bench) spreadTrials() []trial {
	v := b.spreadVariant()
	trials := make([]trial, 0, len(spreads))
	for _, n := range spreads {
		result := v.result(b, systemParley)
		result.Operation = onDatabases(n)
		if n > 1 {
			result.Base = onDatabases(1)
		}
		trials = append(trials, trial{result: result, run: func(ctx context.Context) (float64, error) { return b.driveOn(ctx, n, v) }})
	}
	return trials
}

// driveOn puts and takes by sessions that are shared out among so many databases.
func (b *bench) driveOn(ctx context.Context, databases int, v simpleVariant) (rate float64, err error) {
	s, err := b.simpleStage(ctx, 0)
	if err != nil {
		return 0, err
	}
	places := make([]database, databases)
	for i := range places {
		if places[i], err = b.cluster.create(ctx, s.database); err != nil {
			return 0, err
		}
	}
	rate, err = b.drivePlaces(ctx, places, v)
	if err != nil {
		return 0, err // the clean-up drops them
	}
	for _, place := range places {
		err = errors.Join(err, b.cluster.drop(ctx, place))
	}
	return rate, err
}

func (b *bench) drivePlaces(ctx context.Context, places []database, v simpleVariant) (float64, error) {
	conns := make([]*pgx.Conn, 0, v.sessions)
	defer func() { closeAll(ctx, conns) }()
	for i := range v.sessions {
		conn, err := places[i%len(places)].connect(ctx)
		if err != nil {
			return 0, err
		}
		conns = append(conns, conn)
	}
	return driver.Drive(ctx, conns, b.WarmUp, b.Duration, b.puttingAndTaking(v.in))
}

// puttingAndTaking is the operation that puts a message and takes one. A take passes by messages in the hands of another session, so it may
// find none; another session takes that message then.
func (b *bench) puttingAndTaking(in transaction) driver.Operation {
	body := randomBodies(1, b.Size)[0]
	return func(ctx context.Context, conn *pgx.Conn, _ int) (taken int, err error) {
		err = in(ctx, conn, func(db parley.DB) error {
			_, err := parley.Put(ctx, db, simpleQueue, body)
			return err
		})
		if err != nil {
			return 0, err
		}
		err = in(ctx, conn, func(db parley.DB) error {
			messages, err := parley.Take(ctx, db, simpleQueue, 1)
			taken = len(messages)
			return err
		})
		return taken, err
	}
}
