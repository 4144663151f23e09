package bench

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
)

const (
	dialogRate           = 500
	dialogLatencySenders = 4
	dialogLatencyReaders = 4
)

// Latency between databases is compared with the same traffic in one.
const (
	operationBetween = "between_databases"
	operationWithin  = "one_database"
)

// dialogLatencyTrials measure how soon a message of one database is worked on in another, and in the same.
func dialogLatencyTrials(b *bench, variant string) []trial {
	t := traffic{
		initiators: 1, targets: 1, sessions: or(b.Sessions, dialogLatencySenders), readers: or(b.Dialog.Readers, dialogLatencyReaders),
		conversations: or(b.Conversations, receiveConversations), size: max(b.Size, leastBody), batch: 1, in: explicit,
	}
	within := LatencyConfig{
		Rate: or(b.Dialog.Rate, dialogRate), Duration: b.Duration, WarmUp: b.WarmUp,
		Senders: t.sessions, Readers: t.readers, Conversations: t.conversations, Size: t.size,
	}
	return []trial{
		latencyTrial(variant, operationBetween, t, func(ctx context.Context) (round LatencyRound, err error) {
			made, err := b.newDeployment(ctx, t, latencyQueue, "bench.begin_work")
			if err != nil {
				return round, err
			}
			round, err = b.offerThrough(ctx, made, t)
			return round, closeDeployment(ctx, made, err)
		}),
		latencyTrial(variant, operationWithin, t, func(ctx context.Context) (LatencyRound, error) {
			return measureOnce(ctx, b.cluster, activationSystem(), within)
		}),
	}
}

func latencyTrial(variant, operation string, t traffic, run func(ctx context.Context) (LatencyRound, error)) trial {
	r := Result{
		System: systemParley, Variant: variant, Operation: operation,
		Sessions: t.sessions, Conversations: t.conversations, Size: t.size, Batch: 1,
	}
	if operation != operationWithin {
		r.Base = operationWithin
	}
	var rounds []LatencyRound
	return trial{
		result: r,
		run: func(ctx context.Context) (float64, error) {
			round, err := run(ctx)
			rounds = append(rounds, round)
			return round.SentPerSecond, err
		},
		conclude: func(r *Result) {
			latency := summarize(systemParley, rounds).Latency
			r.Latency = &latency
		},
	}
}

// offerThrough sends at the rate, and takes the times in both databases, whose clock is that of the machine.
func (b *bench) offerThrough(ctx context.Context, made *deployment, t traffic) (round LatencyRound, err error) {
	conns, err := made.senders(ctx, t.sessions)
	if err != nil {
		return round, err
	}
	defer closeAll(ctx, conns)
	// The first message of each conversation has set up its target; it does not count.
	target := made.targets[0]
	if err := waitForRows(ctx, target.control, int64(t.conversations)); err != nil {
		return round, err
	}
	if _, err := target.control.Exec(ctx, "truncate bench.begun"); err != nil {
		return round, fmt.Errorf("forget the first messages: %w", err)
	}
	senders := make([]send, t.sessions)
	for session := range senders {
		body := randomBodies(1, t.size)[0]
		handles := made.initiators[0].handles
		senders[session] = func(ctx context.Context, tx pgx.Tx, number int64) error {
			binary.BigEndian.PutUint64(body, uint64(number))
			return parley.Send(ctx, tx, handles[number%int64(len(handles))], messageType, body)
		}
	}
	rate := or(b.Dialog.Rate, dialogRate)
	total := max(1, int64(float64(rate)*(b.WarmUp+b.Duration).Seconds()))
	committed, seconds, err := sendAtRate(ctx, conns, senders, rate, total)
	if err != nil {
		return round, err
	}
	begun, err := waitForWork(ctx, target.control, total)
	if err != nil {
		return round, err
	}
	round, err = takeTimes(committed, begun, min(int64(float64(rate)*b.WarmUp.Seconds()), total-1))
	round.SentPerSecond = float64(total) / seconds
	return round, err
}
