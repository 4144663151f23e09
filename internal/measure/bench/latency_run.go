package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/observe"
)

// workTimeout is how long after the last commit the last work may begin.
const workTimeout = time.Minute

// measureOnce runs one system in a database of its own.
func measureOnce(ctx context.Context, cluster *cluster, system latencySystem, config LatencyConfig) (LatencyRound, error) {
	template, err := database{}, error(nil)
	if system.isOnBroker {
		template, err = cluster.furnish(ctx)
	}
	if err != nil {
		return LatencyRound{}, err
	}
	d, err := cluster.create(ctx, template)
	if err != nil {
		return LatencyRound{}, err
	}
	err = d.withConnection(ctx, func(conn *pgx.Conn) error {
		switch {
		case !system.isOnBroker:
			if err := furnishOurs(ctx, conn); err != nil {
				return err
			}
		default:
			if _, err := conn.Exec(ctx, "select parley.new_broker()"); err != nil {
				return fmt.Errorf("name the broker of a copy: %w", err)
			}
		}
		return system.prepare(ctx, conn, config)
	})
	if err != nil {
		return LatencyRound{}, fmt.Errorf("prepare the database: %w", err)
	}
	round, err := offer(ctx, d, system, config)
	if err != nil {
		return LatencyRound{}, err // the clean-up drops the database
	}
	return round, cluster.drop(ctx, d)
}

// offer lets the readers work, sends to them at the rate, and takes the times.
func offer(ctx context.Context, d database, system latencySystem, config LatencyConfig) (round LatencyRound, err error) {
	conns, err := d.sessions(ctx, config.Senders+1)
	if err != nil {
		return LatencyRound{}, err
	}
	defer closeAll(ctx, conns)
	senders := make([]send, config.Senders)
	for session := range senders {
		if senders[session], err = system.sender(ctx, conns[session], config, session); err != nil {
			return LatencyRound{}, fmt.Errorf("prepare to send: %w", err)
		}
	}
	stop, err := system.work(ctx, d, config)
	if err != nil {
		return LatencyRound{}, fmt.Errorf("start the readers: %w", err)
	}
	defer func() { err = errors.Join(err, stop()) }()

	total := max(1, int64(float64(config.Rate)*(config.WarmUp+config.Duration).Seconds()))
	defer observe.From(ctx).Window()()
	committed, seconds, err := sendAtRate(ctx, conns, senders, config.Rate, total)
	if err != nil {
		return LatencyRound{}, err
	}
	begun, err := waitForWork(ctx, conns[config.Senders], total)
	if err != nil {
		return LatencyRound{}, err
	}
	warmUp := int64(float64(config.Rate) * config.WarmUp.Seconds())
	round, err = takeTimes(committed, begun, min(warmUp, total-1))
	round.SentPerSecond = float64(total) / seconds
	return round, err
}

// sendAtRate sends so many messages, each when its time has come, however long the others take; one that is late is sent at once.
// It gives the time of each commit by the clock of the server.
func sendAtRate(ctx context.Context, conns []*pgx.Conn, senders []send, rate int, total int64) ([]time.Time, float64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	committed := make([]time.Time, total)
	var working sync.WaitGroup
	begun := time.Now()
	for session, send := range senders {
		working.Go(func() {
			for number := int64(session); number < total; number += int64(len(senders)) {
				if !waitUntil(ctx, begun.Add(time.Duration(float64(number)/float64(rate)*float64(time.Second)))) {
					return
				}
				at, err := sendAndCommit(ctx, conns[session], send, number)
				if err != nil {
					cancel(fmt.Errorf("send message %d: %w", number, err))
					return
				}
				committed[number] = at
				observe.From(ctx).In(1)
			}
		})
	}
	working.Wait()
	return committed, time.Since(begun).Seconds(), context.Cause(ctx)
}

func waitUntil(ctx context.Context, at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// sendAndCommit sends one message in a transaction, and reads the clock of the server as the first thing after the commit. Both
// travel in one round trip, so what lies between them is the server's own work only.
func sendAndCommit(ctx context.Context, conn *pgx.Conn, send send, number int64) (time.Time, error) {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return time.Time{}, err
	}
	if err := send(ctx, tx, number); err != nil {
		return time.Time{}, err
	}
	results, err := conn.PgConn().Exec(ctx, "commit; select (extract(epoch from clock_timestamp()) * 1000000)::bigint").ReadAll()
	if err != nil {
		return time.Time{}, fmt.Errorf("commit: %w", err)
	}
	if len(results) != 2 || len(results[1].Rows) != 1 {
		return time.Time{}, errors.New("commit: the server did not return its time")
	}
	var microseconds int64
	if _, err := fmt.Sscan(string(results[1].Rows[0][0]), &microseconds); err != nil {
		return time.Time{}, fmt.Errorf("read the server's time: %w", err)
	}
	return time.UnixMicro(microseconds), nil
}

// waitForWork waits until work on all messages has begun, and gives the time of each.
func waitForWork(ctx context.Context, conn *pgx.Conn, total int64) ([]time.Time, error) {
	if err := waitForRows(ctx, conn, total); err != nil {
		return nil, err
	}
	rows, err := conn.Query(ctx, "select b.number, b.begun_at from bench.begun as b")
	if err != nil {
		return nil, fmt.Errorf("read the times: %w", err)
	}
	begun := make([]time.Time, total)
	var number int64
	var at time.Time
	_, err = pgx.ForEachRow(rows, []any{&number, &at}, func() error {
		if number < 0 || number >= total || !begun[number].IsZero() {
			return fmt.Errorf("message %d was worked on twice, or was never sent", number)
		}
		begun[number] = at
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the times: %w", err)
	}
	return begun, nil
}

// waitForRows waits until work on so many messages has begun.
func waitForRows(ctx context.Context, conn *pgx.Conn, total int64) error {
	deadline := time.Now().Add(workTimeout)
	for {
		var count int64
		if err := conn.QueryRow(ctx, "select count(*) from bench.begun").Scan(&count); err != nil {
			return fmt.Errorf("count the work: %w", err)
		}
		if count >= total {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("work on %d of %d messages has begun %s after the last was sent", count, total, workTimeout)
		}
		if !waitUntil(ctx, time.Now().Add(100*time.Millisecond)) {
			return ctx.Err()
		}
	}
}
