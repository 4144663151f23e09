package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/measure/driver"
)

// simpleQueue is the simple queue that messages are put into and taken from.
const simpleQueue = "simple"

// The alternatives to a simple queue, within a variant.
const (
	systemSend = "parley_send" // SEND, instead of put
	systemPGMQ = "pgmq"
)

// simpleVariant is a variant of put or take with what sets it apart.
type simpleVariant struct {
	Variant
	takes    bool // whether messages wait and are taken, and not put
	sessions int
	batch    int
	in       transaction // nil: a procedure in the server takes all
}

func (c Config) simpleVariants() []simpleVariant {
	return []simpleVariant{
		{Variant{"put", "16 sessions, begin, put, commit, beside SEND"}, false, or(c.Sessions, sendSessions), 1, explicit},
		{Variant{"put_autocommit", "the same as single statements"}, false, or(c.Sessions, sendSessions), 1, autocommit},
		{Variant{"put_batch", "one session, 1,000 messages a call"}, false, or(c.Sessions, 1), or(c.Batch, sendBatch), explicit},
		{
			Variant{"take_100", "one session drains what was put in batches: 100 a call, 10,000 a transaction; pgmq reads and deletes"},
			true, 1, 100, nil,
		},
		{Variant{"take_1", "8 sessions, begin, take one, commit, beside pgmq.pop"}, true, or(c.Sessions, receiveSessions), 1, explicit},
		{Variant{"take_1_autocommit", "the same as single statements"}, true, or(c.Sessions, receiveSessions), 1, autocommit},
	}
}

func simpleScenario() Scenario {
	s := Scenario{
		Name: "simple",
		Short: "put and take of simple queues against SEND, a bare INSERT, and pgmq where the database that is given has its schema " +
			"or the server its extension",
		measure: func(ctx context.Context, b *bench) ([]Result, error) {
			hasPGMQ, err := b.findPGMQ(ctx)
			if err != nil {
				return nil, err
			}
			var trials []trial
			for _, v := range b.simpleVariants() {
				if !b.wants(v.Name) {
					continue
				}
				trials = append(trials, b.simpleTrial(v))
				if !v.takes {
					trials = append(trials, b.sendBeside(v))
				}
				if hasPGMQ {
					trials = append(trials, b.pgmqTrial(v))
				}
				if v.in != nil {
					trials = append(trials, b.insertTrial(v.Name, v.sessions, v.batch, b.inserting(v.batch, v.in)))
				}
			}
			if b.wants(spread) {
				trials = append(trials, b.spreadTrials()...)
			}
			return b.measure(ctx, trials)
		},
	}
	for _, v := range (Config{}).simpleVariants() {
		s.Variants = append(s.Variants, v.Variant)
	}
	s.Variants = append(s.Variants, Config{}.spreadVariant().Variant)
	return s
}

func (v simpleVariant) result(b *bench, system string) Result {
	return Result{System: system, Variant: v.Name, Sessions: v.sessions, Size: b.Size, Batch: v.batch}
}

// simpleStage has a simple queue with so many messages.
func (b *bench) simpleStage(ctx context.Context, messages int) (stage, error) {
	return b.stage(ctx, fmt.Sprintf("a simple queue with %d messages", messages), func(ctx context.Context, conn *pgx.Conn, _ *stage) error {
		if _, err := conn.Exec(ctx, "select parley.create_queue($1, kind => 'SIMPLE')", simpleQueue); err != nil {
			return err
		}
		return putMany(ctx, conn, b.Size, messages)
	})
}

// putMany lets messages without keys wait.
func putMany(ctx context.Context, conn *pgx.Conn, size, messages int) error {
	bodies := randomBodies(min(messages, 1000), size)
	for left := messages; left > 0; left -= len(bodies) {
		bodies = bodies[:min(left, len(bodies))]
		if err := parley.PutBatch(ctx, conn, simpleQueue, bodies); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) simpleTrial(v simpleVariant) trial {
	return trial{
		result: v.result(b, systemParley),
		run: func(ctx context.Context) (float64, error) {
			messages := 0
			if v.takes {
				messages = b.Messages
			}
			s, err := b.simpleStage(ctx, messages)
			if err != nil {
				return 0, err
			}
			return b.onCopy(ctx, s, func(d database) (float64, error) {
				switch {
				case v.in == nil:
					return timeTakes(ctx, d, "call bench.take_counted($1, $2, $3, 0)", simpleQueue, v.batch, messages)
				case v.takes:
					return b.driveCounted(ctx, d, v.sessions, takingOne(messages, v.in), fewerIn(simpleQueue))
				}
				return b.driveCounted(ctx, d, v.sessions, b.putting(v.batch, v.in), moreIn(simpleQueue))
			})
		},
	}
}

// putting is the operation that puts one message, or one batch.
func (b *bench) putting(batch int, in transaction) driver.Operation {
	bodies := randomBodies(batch, b.Size)
	return func(ctx context.Context, conn *pgx.Conn, _ int) (int, error) {
		return batch, in(ctx, conn, func(db parley.DB) error {
			if batch == 1 {
				_, err := parley.Put(ctx, db, simpleQueue, bodies[0])
				return err
			}
			return parley.PutBatch(ctx, db, simpleQueue, bodies)
		})
	}
}

// takingOne is the operation that takes one message, until none of so many is left.
func takingOne(messages int, in transaction) driver.Operation {
	return untilTaken(messages, in, func(ctx context.Context, db parley.DB) (int, error) {
		got, err := parley.Take(ctx, db, simpleQueue, 1)
		return len(got), err
	})
}

func untilTaken(messages int, in transaction, take func(ctx context.Context, db parley.DB) (int, error)) driver.Operation {
	var taken atomic.Int64
	return func(ctx context.Context, conn *pgx.Conn, _ int) (n int, err error) {
		err = in(ctx, conn, func(db parley.DB) (err error) {
			n, err = take(ctx, db)
			return err
		})
		if err != nil {
			return 0, err
		}
		// An empty result is not the end: others may have the last messages in their hands.
		if all := taken.Add(int64(n)); n == 0 && all >= int64(messages) {
			return 0, driver.ErrNothingLeft
		}
		return n, nil
	}
}

// timeTakes lets a procedure take all in the server, count messages a call, where the rows are counted too.
func timeTakes(ctx context.Context, d database, call, queue string, count, messages int) (rate float64, err error) {
	err = d.withConnection(ctx, func(conn *pgx.Conn) error {
		begun, taken := time.Now(), 0
		if err := conn.QueryRow(ctx, call, queue, count, messagesPerTransaction).Scan(&taken); err != nil {
			return fmt.Errorf("take all of the queue: %w", err)
		}
		rate = float64(taken) / time.Since(begun).Seconds()
		return requireAll(taken, messages)
	})
	return rate, err
}

// sendBeside measures SEND by as many sessions, on as many conversations.
func (b *bench) sendBeside(v simpleVariant) trial {
	return trial{
		result: v.result(b, systemSend),
		run: func(ctx context.Context) (float64, error) {
			s, err := b.sendStage(ctx, v.sessions)
			if err != nil {
				return 0, err
			}
			return b.onCopy(ctx, s, func(d database) (float64, error) {
				return b.driveCounted(ctx, d, v.sessions, b.sending(s.dialogs[sendQueue], v.batch, v.in), moreIn(sendQueue))
			})
		},
	}
}
