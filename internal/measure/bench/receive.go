package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/measure/driver"
	"github.com/parley-broker/parley/internal/measure/observe"
)

const (
	receiveSessions      = 8
	receiveConversations = 100
)

// receiveQueue is the queue that all messages wait in.
const receiveQueue = "receive"

// receiveVariant is a variant of RECEIVE with what sets it apart.
type receiveVariant struct {
	Variant
	top        int
	groups     int         // from how many groups a call receives, of conversations of one message each; 0 means one of many messages
	singles    bool        // whether the messages were sent one by one
	commitEach bool        // whether each call is a transaction
	paper      bool        // whether the paper's procedure receives
	in         transaction // for TOP (1)
}

func (c Config) receiveVariants() []receiveVariant {
	return []receiveVariant{
		{Variant: Variant{"top_100", "one session drains what was sent in batches: 100 a call, 10,000 a transaction"}, top: 100},
		{Variant: Variant{"top_100_commit_each", "the same, a transaction a call"}, top: 100, commitEach: true},
		{Variant: Variant{"top_10000", "as top_100, 10,000 a call"}, top: 10_000},
		{Variant: Variant{"paper_procedure", "a procedure moves 10,000 a transaction into a table and logs"}, top: 10_000, paper: true},
		{Variant: Variant{"top_100_single_rows", "as top_100, of what was sent one by one"}, top: 100, singles: true},
		{Variant: Variant{"top_100_single_rows_commit_each", "the same, a transaction a call"}, top: 100, singles: true, commitEach: true},
		{Variant: Variant{"top_10000_single_rows", "as top_10000, of what was sent one by one"}, top: 10_000, singles: true},
		{
			Variant: Variant{"groups", "as top_100, of a fiftieth as many conversations of one message each, from up to 100 groups a call"},
			top:     100, groups: 100,
		},
		{Variant: Variant{"top_1", "8 sessions, begin, receive one, commit, against a bare INSERT"}, top: 1, singles: true, in: explicit},
		{Variant: Variant{"top_1_autocommit", "the same as single statements"}, top: 1, singles: true, in: autocommit},
	}
}

func receiveScenario() Scenario {
	s := Scenario{
		Name:  "receive",
		Short: "RECEIVE from a queue in which many messages wait",
		measure: func(ctx context.Context, b *bench) ([]Result, error) {
			var trials []trial
			for _, v := range b.receiveVariants() {
				switch {
				case !b.wants(v.Name):
				case v.top == 1:
					trials = append(trials, b.receiveTrial(v), b.insertTrial(v.Name, or(b.Sessions, receiveSessions), 1, b.inserting(1, v.in)))
				default:
					trials = append(trials, b.receiveTrial(v))
				}
			}
			return b.measure(ctx, trials)
		},
	}
	for _, v := range (Config{}).receiveVariants() {
		s.Variants = append(s.Variants, v.Variant)
	}
	return s
}

// conversations is how many a variant has: of those of one message each a fiftieth of so many messages, if not as many as were asked for.
func (v receiveVariant) conversations(b *bench) int {
	if v.groups > 0 {
		return or(b.Conversations, max(1, b.Messages/50))
	}
	return or(b.Conversations, receiveConversations)
}

// groupsStage has conversations of one message each waiting.
func (b *bench) groupsStage(ctx context.Context, conversations int) (stage, error) {
	name := fmt.Sprintf("%d conversations of one message", conversations)
	return b.stage(ctx, name, func(ctx context.Context, conn *pgx.Conn, s *stage) error {
		if err := s.addQueue(ctx, conn, receiveQueue, conversations); err != nil {
			return err
		}
		return sendSingles(ctx, conn, s.dialogs[receiveQueue], b.Size, conversations)
	})
}

// receiveStage has messages waiting.
func (b *bench) receiveStage(ctx context.Context, singles bool) (stage, error) {
	how, fill := "in batches", sendBatches
	if singles {
		how, fill = "one by one", sendSingles
	}
	name := fmt.Sprintf("%d messages sent %s", b.Messages, how)
	return b.stage(ctx, name, func(ctx context.Context, conn *pgx.Conn, s *stage) error {
		if err := s.addQueue(ctx, conn, receiveQueue, or(b.Conversations, receiveConversations)); err != nil {
			return err
		}
		return fill(ctx, conn, s.dialogs[receiveQueue], b.Size, b.Messages)
	})
}

func (b *bench) receiveTrial(v receiveVariant) trial {
	sessions := 1
	if v.top == 1 {
		sessions = or(b.Sessions, receiveSessions)
	}
	return trial{
		result: Result{
			System: systemParley, Variant: v.Name,
			Sessions: sessions, Conversations: v.conversations(b), Size: b.Size, Batch: v.top,
		},
		run: func(ctx context.Context) (float64, error) {
			var s stage
			var err error
			messages := b.Messages
			if v.groups > 0 {
				messages = v.conversations(b)
				s, err = b.groupsStage(ctx, messages)
			} else {
				s, err = b.receiveStage(ctx, v.singles)
			}
			if err != nil {
				return 0, err
			}
			return b.onCopy(ctx, s, func(d database) (float64, error) {
				switch {
				case v.top == 1:
					return b.driveCounted(observe.WithTaking(ctx), d, sessions, receivingOne(b.Messages, v.in), fewerIn(receiveQueue))
				case v.paper:
					return timePaperProcedure(ctx, d, v.top, b.Messages)
				case v.commitEach:
					return timeDrain(ctx, d, v.top, 1, v.top, messages)
				default:
					return timeDrain(ctx, d, v.top, max(1, v.groups), messagesPerTransaction, messages)
				}
			})
		},
	}
}

// receivingOne is the operation that receives one message, until none of so many is left.
func receivingOne(messages int, in transaction) driver.Operation {
	var received atomic.Int64
	return func(ctx context.Context, conn *pgx.Conn, _ int) (int, error) {
		var got []parley.Message
		err := in(ctx, conn, func(db parley.DB) (err error) {
			got, err = parley.Receive(ctx, db, receiveQueue, parley.Top(1))
			return err
		})
		if err != nil {
			return 0, err
		}
		// An empty result is not the end: the last groups may be locked by other sessions.
		if all := received.Add(int64(len(got))); len(got) == 0 && all >= int64(messages) {
			return 0, driver.ErrNothingLeft
		}
		return len(got), nil
	}
}

// messagesPerTransaction is how many messages a drain receives between two commits where RECEIVE is measured and not the disk.
const messagesPerTransaction = 10_000

// timeDrain receives all in the server, where the rows are counted too.
func timeDrain(ctx context.Context, d database, top, groups, perTransaction, messages int) (rate float64, err error) {
	err = d.withConnection(ctx, func(conn *pgx.Conn) error {
		defer observe.From(ctx).Window()()
		begun, received := time.Now(), 0
		err := conn.QueryRow(ctx, "call bench.drain_counted($1, $2, $3, $4, 0)", receiveQueue, top, groups, perTransaction).Scan(&received)
		if err != nil {
			return fmt.Errorf("drain the queue: %w", err)
		}
		rate = float64(received) / time.Since(begun).Seconds()
		observe.From(ctx).Out(received)
		return requireAll(received, messages)
	})
	return rate, err
}

// timePaperProcedure lets the paper's procedure empty the queue.
func timePaperProcedure(ctx context.Context, d database, top, messages int) (rate float64, err error) {
	err = d.withConnection(ctx, func(conn *pgx.Conn) error {
		defer observe.From(ctx).Window()()
		begun := time.Now()
		if _, err := conn.Exec(ctx, "call bench.paper_procedure($1, $2)", receiveQueue, top); err != nil {
			return fmt.Errorf("run the receive procedure: %w", err)
		}
		rate = float64(messages) / time.Since(begun).Seconds()
		var received int
		if err := conn.QueryRow(ctx, "select count(*) from bench.message_drop").Scan(&received); err != nil {
			return fmt.Errorf("count what was received: %w", err)
		}
		return requireAll(received, messages)
	})
	return rate, err
}

// requireAll prevents a figure for messages that were not received.
func requireAll(received, messages int) error {
	if received != messages {
		return fmt.Errorf("%d messages were received, %d had been sent", received, messages)
	}
	return nil
}
