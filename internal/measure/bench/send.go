package bench

import (
	"context"
	"math/rand/v2"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/measure/bottleneck"
	"github.com/parley-broker/parley/internal/measure/driver"
)

const (
	sendSessions      = 16
	sendConversations = 10_000
	sendBatch         = 1000
)

// sendVariant is a variant of SEND with what sets it apart.
type sendVariant struct {
	Variant
	sessions, conversations, batch int
	in                             transaction
	inServer                       bool // whether a procedure sends, so that no client encodes the bodies
}

func (c Config) sendVariants() []sendVariant {
	sessions, conversations, batch := or(c.Sessions, sendSessions), or(c.Conversations, sendConversations), or(c.Batch, sendBatch)
	return []sendVariant{
		{Variant{"many_conversations", "16 sessions, 10,000 conversations, begin, send, commit"}, sessions, conversations, 1, explicit, false},
		{Variant{"one_conversation", "16 sessions share one conversation, begin, send, commit"}, sessions, 1, 1, explicit, false},
		{Variant{"many_conversations_autocommit", "the same as single statements"}, sessions, conversations, 1, autocommit, false},
		{Variant{"one_conversation_autocommit", "the same as single statements"}, sessions, 1, 1, autocommit, false},
		{Variant{"batch_1000", "one session, 1,000 messages a call"}, or(c.Sessions, 1), or(c.Conversations, 1), batch, explicit, false},
		{Variant{"batch_1000_two_sessions", "two sessions, 1,000 messages a call"}, 2, or(c.Conversations, 2), batch, explicit, false},
		{Variant{"batch_1000_in_server", "a procedure sends, 1,000 messages a transaction"}, or(c.Sessions, 1), 1, batch, nil, true},
	}
}

func sendScenario() Scenario {
	s := Scenario{
		Name:    "send",
		Short:   "SEND against a bare INSERT",
		Changes: []string{bottleneck.SettingSessions},
		measure: func(ctx context.Context, b *bench) ([]Result, error) {
			var trials []trial
			for _, v := range b.sendVariants() {
				if !b.wants(v.Name) {
					continue
				}
				insert := b.inserting(v.batch, v.in)
				if v.inServer {
					insert = b.insertingInServer(v.batch)
				}
				trials = append(trials, b.sendTrial(v), b.insertTrial(v.Name, v.sessions, v.batch, insert))
			}
			return b.measure(ctx, trials)
		},
	}
	for _, v := range (Config{}).sendVariants() {
		s.Variants = append(s.Variants, v.Variant)
	}
	return s
}

// sendQueue is the queue that all sends go to.
const sendQueue = "send"

func (b *bench) sendStage(ctx context.Context, conversations int) (stage, error) {
	return b.stage(ctx, strconv.Itoa(conversations)+" conversations", func(ctx context.Context, conn *pgx.Conn, s *stage) error {
		return s.addQueue(ctx, conn, sendQueue, conversations)
	})
}

func (b *bench) sendTrial(v sendVariant) trial {
	return trial{
		result: Result{
			System: systemParley, Variant: v.Name,
			Sessions: v.sessions, Conversations: v.conversations, Size: b.Size, Batch: v.batch,
		},
		run: func(ctx context.Context) (float64, error) {
			s, err := b.sendStage(ctx, v.conversations)
			if err != nil {
				return 0, err
			}
			send := b.sending(s.dialogs[sendQueue], v.batch, v.in)
			if v.inServer {
				send = b.sendingInServer(s.dialogs[sendQueue][0], v.batch)
			}
			return b.onCopy(ctx, s, func(d database) (float64, error) { return b.driveCounted(ctx, d, v.sessions, send, moreIn(sendQueue)) })
		},
	}
}

// sending is the operation that sends one message, or one batch, on any of the conversations.
func (b *bench) sending(handles []parley.UUID, batch int, in transaction) driver.Operation {
	bodies := randomBodies(batch, b.Size)
	return func(ctx context.Context, conn *pgx.Conn, _ int) (int, error) {
		handle := handles[rand.IntN(len(handles))]
		return batch, in(ctx, conn, func(db parley.DB) error {
			if batch == 1 {
				return parley.Send(ctx, db, handle, messageType, bodies[0])
			}
			return parley.SendBatch(ctx, db, handle, messageType, bodies)
		})
	}
}

// callsInServer is how many transactions a procedure runs before its client gets an answer.
const callsInServer = 100

func (b *bench) sendingInServer(handle parley.UUID, batch int) driver.Operation {
	return func(ctx context.Context, conn *pgx.Conn, _ int) (int, error) {
		_, err := conn.Exec(ctx, "call bench.send_batches($1, $2, $3, $4)", handle, b.Size, batch, callsInServer)
		return batch * callsInServer, err
	}
}

// drive runs an operation in new sessions of a database.
func (b *bench) drive(ctx context.Context, d database, sessions int, op driver.Operation) (float64, error) {
	conns, err := d.sessions(ctx, sessions)
	if err != nil {
		return 0, err
	}
	defer closeAll(ctx, conns)
	return driver.Drive(ctx, conns, b.WarmUp, b.Duration, op)
}
