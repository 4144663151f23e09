package bench

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// decayOperation is an operation that is measured fresh and aged: it leaves nothing waiting in the queue that is received from.
type decayOperation struct {
	name  string
	top   int // messages of a call
	shape func(c Config) (sessions, conversations int)
	run   func(ctx context.Context, b *bench, s stage, d database) (float64, error)
}

func decayOperations() []decayOperation {
	return []decayOperation{
		{
			name: "send", top: 1,
			shape: func(c Config) (int, int) { return or(c.Sessions, sendSessions), or(c.Conversations, sendConversations) },
			run: func(ctx context.Context, b *bench, s stage, d database) (float64, error) {
				return b.driveCounted(ctx, d, or(b.Sessions, sendSessions), b.sending(s.dialogs[sendQueue], 1, explicit), moreIn(sendQueue))
			},
		},
		{
			name: "receive_top_1", top: 1,
			shape: func(c Config) (int, int) { return or(c.Sessions, receiveSessions), receiveConversations },
			run:   runReceiveOne,
		},
		{
			name: "receive_top_100", top: 100,
			shape: func(Config) (int, int) { return 1, receiveConversations },
			run:   runReceiveHundred,
		},
	}
}

// lifeOperation lives whole lives in the queue in which others were lived before.
func lifeOperation() decayOperation {
	return decayOperation{
		name: "life", top: 1,
		shape: func(c Config) (int, int) { return or(c.Sessions, lifeSessions), 0 },
		run: func(ctx context.Context, b *bench, _ stage, d database) (float64, error) {
			rate, err := b.drive(ctx, d, or(b.Sessions, lifeSessions), b.living(lifeIn(receiveQueue)))
			if err != nil {
				return 0, err
			}
			return rate, d.withConnection(ctx, func(conn *pgx.Conn) error { return requireNoMessages(ctx, conn) })
		},
	}
}

// requireNoMessages prevents a figure for lives that are not over.
func requireNoMessages(ctx context.Context, conn *pgx.Conn) error {
	var left int
	err := conn.QueryRow(ctx, `
		select (select count(*) from parley.queue_contents($1)) + (select count(*) from parley.queue_contents($2))`,
		receiveQueue, initiator(receiveQueue),
	).Scan(&left)
	if err == nil && left > 0 {
		err = fmt.Errorf("%d messages are left of lives that are over", left)
	}
	return err
}

// decayLoad is how many messages wait for one run of a receive, next to the number that ages the database.
func (b *bench) decayLoad() int { return max(1, b.Messages/5) }

func runReceiveOne(ctx context.Context, b *bench, s stage, d database) (float64, error) {
	load := b.decayLoad()
	if err := b.load(ctx, s, d, load); err != nil {
		return 0, err
	}
	rate, err := b.driveCounted(ctx, d, or(b.Sessions, receiveSessions), receivingOne(load, explicit), fewerIn(receiveQueue))
	if err != nil {
		return 0, err
	}
	return rate, d.withConnection(ctx, func(conn *pgx.Conn) error { return drain(ctx, conn, receiveQueue, 100, load) })
}

func runReceiveHundred(ctx context.Context, b *bench, s stage, d database) (float64, error) {
	load := b.decayLoad()
	if err := b.load(ctx, s, d, load); err != nil {
		return 0, err
	}
	return timeDrain(ctx, d, 100, 1, messagesPerTransaction, load)
}

// load lets messages wait that were sent one by one: rows of their own, which is where an aged database would be slow.
func (b *bench) load(ctx context.Context, s stage, d database, messages int) error {
	return d.withConnection(ctx, func(conn *pgx.Conn) error {
		return sendSingles(ctx, conn, s.dialogs[receiveQueue], b.Size, messages)
	})
}
