package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/backoff"
)

// killPhase is the phase in whose middle a reader is killed.
const killPhase = 1

// playPhase sends messages of one size for its share of the time, and for as long as it takes to kill a reader if one is to be killed.
func (r *run) playPhase(ctx context.Context, payloadBytes int, withKill bool) (Payload, error) {
	share := r.config.Duration / time.Duration(len(PayloadBytes))
	return r.stage.playPhase(ctx, r.senders, payloadBytes, func(ctx context.Context) error {
		err := backoff.Wait(ctx, share/2)
		if err == nil && withKill {
			err = r.killReader(ctx)
		}
		if err == nil {
			err = backoff.Wait(ctx, share/2)
		}
		return err
	})
}

func (r *run) killReader(ctx context.Context) error {
	process, err := r.readers.killOne(ctx)
	if err != nil {
		return err
	}
	at, err := r.now(ctx)
	if err != nil {
		return err
	}
	r.kill = kill{seconds: at.Sub(r.start).Seconds(), process: process}
	r.notice(fmt.Sprintf("A reader (process %d) was killed after it had received and inserted, before its commit. "+
		"The queue monitor starts another in its place.", process))
	return nil
}

// readPhase reads what the readers logged since a phase began.
func readPhase(ctx context.Context, conn *pgx.Conn, begun time.Time) (Payload, error) {
	var p Payload
	err := conn.QueryRow(ctx, `
		select
			coalesce(sum(messages), 0)::bigint, count(*), coalesce(percentile_disc(0.5) within group (order by messages), 0)::bigint,
			coalesce(max(messages), 0)::bigint, coalesce(extract(epoch from max(received_at) - $1), 0)::double precision
		from receive_log
		where received_at >= $1`, begun,
	).Scan(&p.MessagesReceived, &p.ReceiveCalls, &p.MessagesPerCallMedian, &p.MessagesPerCallMax, &p.Seconds)
	if err != nil {
		return Payload{}, fmt.Errorf("read the log of the readers: %w", err)
	}
	p.MessagesPerSecond = perSecond(p.MessagesReceived, p.Seconds)
	return p, nil
}

// readBatches counts the receive calls by how many messages they brought, in classes that double.
func readBatches(ctx context.Context, conn *pgx.Conn) ([]batch, error) {
	rows, err := conn.Query(ctx, `
		select c.class, count(l.messages)
		from (select floor(log(2, max(messages)))::integer as largest from receive_log) as m
		cross join lateral (select 1 << n as class from generate_series(0, m.largest) as n) as c
		left join receive_log as l on l.messages >= c.class and l.messages < c.class * 2
		group by c.class
		order by c.class`)
	if err != nil {
		return nil, fmt.Errorf("read the log of the readers: %w", err)
	}
	batches, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (b batch, err error) {
		return b, row.Scan(&b.atLeast, &b.calls)
	})
	if err != nil {
		return nil, fmt.Errorf("read the log of the readers: %w", err)
	}
	return batches, nil
}

// milliseconds gives the value below which a share of the sorted durations lies.
func milliseconds(sorted []time.Duration, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[int(share*float64(len(sorted)-1))]) / float64(time.Millisecond)
}
