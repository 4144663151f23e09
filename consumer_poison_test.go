package parley_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/operate"
	"github.com/parley-broker/parley/parleytest"
)

// The consumer does what the broker cannot: it reports why a message came back.
func TestConsumerReportsWhyItsHandlerFailed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fail            func(ctx context.Context, tx pgx.Tx) error
		sqlstate, error string
	}{
		"Error": {func(context.Context, pgx.Tx) error { return errors.New("no such\x00 customer\xff") }, "", "no such? customer?"},
		"Database": {func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "select 1 / 0")
			return fmt.Errorf("divide: %w", err)
		}, "22012", "divide: ERROR: division by zero"},
		"Panic": {func(context.Context, pgx.Tx) error { panic("oh no") }, "", "handler panicked: oh no"},
		"Commit": {func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `create temporary table twice (n integer unique deferrable initially deferred) on commit drop;
				insert into twice values (1), (1)`)
			return err
		}, "23505", "commit: ERROR: duplicate key"},
		"Connection": {func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "select pg_terminate_backend(pg_backend_pid())")
			return err
		}, "57P01", "terminating connection"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := serviceDatabase(t)
			var healed atomic.Bool
			var failures atomic.Int32
			consumer := start(t, parley.Consumer{Pool: pool, PollInterval: soon, Handler: func(ctx context.Context, tx pgx.Tx, messages []parley.Message) error {
				if string(messages[0].MessageBody) == "poison" && !healed.Load() {
					failures.Add(1)
					return c.fail(ctx, tx)
				}
				return store(ctx, tx, messages)
			}})
			send(t, pool, beginDialog(t, pool), "poison")
			send(t, pool, beginDialog(t, pool), "fine")
			waitForHandled(t, pool, 1)
			var found []operate.PoisonConversation
			parleytest.Until(t, "the conversation is set aside", func() bool {
				var err error
				found, err = operate.ReadPoisonConversations(t.Context(), pool, operate.PoisonFilter{Queue: "target"})
				fixture.RequireNoError(t, err)
				return len(found) == 1
			})
			p := found[0]
			if p.Rollbacks != 5 || failures.Load() != 5 || p.WaitingMessages != 1 || p.SetAsideSince == nil {
				t.Errorf("after %d failures: %+v", failures.Load(), p)
			}
			if p.Error == nil || !strings.Contains(*p.Error, c.error) || (p.SQLState == nil) != (c.sqlstate == "") || (p.SQLState != nil && *p.SQLState != c.sqlstate) {
				t.Errorf("reported: %v %v, want %s %s", p.SQLState, p.Error, c.sqlstate, c.error)
			}
			healed.Store(true)
			if n, err := operate.RetryPoison(t.Context(), pool, p.ConversationHandle); n != 1 || err != nil {
				t.Errorf("put back %d, error %v", n, err)
			}
			waitForHandled(t, pool, 2)
			fixture.RequireNoError(t, consumer.finish())
		})
	}
}

func TestFailingConversationIsReported(t *testing.T) {
	t.Parallel()
	pool := serviceDatabase(t)
	send(t, pool, beginDialog(t, pool), "one")
	tx, err := pool.Begin(t.Context())
	fixture.RequireNoError(t, err)
	messages, err := parley.Receive(t.Context(), tx, "target")
	fixture.RequireNoError(t, err)
	fixture.RequireNoError(t, tx.Rollback(t.Context()))
	handle := messages[0].ConversationHandle
	fixture.RequireNoError(t, parley.RecordFailure(t.Context(), pool, errors.New("not today"), handle, parley.UUID{1}))
	for _, failing := range []bool{true, false} {
		found, err := operate.ReadPoisonConversations(t.Context(), pool, operate.PoisonFilter{Conversation: handle, Failing: failing})
		fixture.RequireNoError(t, err)
		if (len(found) == 1) != failing {
			t.Fatalf("failing %v: %+v", failing, found)
		}
		if failing && (*found[0].Error != "not today" || found[0].Rollbacks != 1 || found[0].SetAsideSince != nil) {
			t.Errorf("reported: %+v", found[0])
		}
	}
	_, err = operate.RetryPoison(t.Context(), pool, handle)
	if number, _ := parley.ErrorNumber(err); number != parley.ConversationNotFound {
		t.Errorf("put back what is not set aside: %v", err)
	}
}

func TestDiscardGivesWhatIsLost(t *testing.T) {
	t.Parallel()
	pool := serviceDatabase(t)
	fixture.Execute(t, pool, "select parley.alter_queue('target', poison_rollbacks => 1)")
	initiator := beginDialog(t, pool)
	for _, body := range []string{"one", "two", "three"} {
		send(t, pool, initiator, body)
	}
	setAside := func() parley.UUID {
		tx, err := pool.Begin(t.Context())
		fixture.RequireNoError(t, err)
		messages, err := parley.Receive(t.Context(), tx, "target", parley.Top(1))
		fixture.RequireNoError(t, err)
		fixture.RequireNoError(t, tx.Rollback(t.Context()))
		fixture.RequireNoError(t, parley.RecordFailure(t.Context(), pool, errors.New("never"), messages[0].ConversationHandle))
		return messages[0].ConversationHandle
	}
	lost, err := operate.DiscardPoisonMessage(t.Context(), pool, setAside())
	if err != nil || len(lost) != 1 || string(lost[0].MessageBody) != "one" {
		t.Errorf("the message: %v, error %v", lost, err)
	}
	lost, err = operate.DiscardPoisonConversation(t.Context(), pool, setAside(), 42, "give up")
	if err != nil || len(lost) != 2 || string(lost[0].MessageBody) != "two" || lost[1].MessageSequenceNumber != 2 {
		t.Errorf("the conversation: %v, error %v", lost, err)
	}
	received, err := parley.Receive(t.Context(), pool, "initiator")
	fixture.RequireNoError(t, err)
	if len(received) != 1 || !received[0].IsError() {
		t.Errorf("the other side got %v", received)
	}
}

// A bad message takes none of those in front of it along: what failed together is received one by one.
func TestConsumerHandlesWhatStandsInFrontOfABadMessage(t *testing.T) {
	t.Parallel()
	pool := serviceDatabase(t)
	consumer := start(t, parley.Consumer{Pool: pool, PollInterval: soon, Handler: func(ctx context.Context, tx pgx.Tx, messages []parley.Message) error {
		for _, message := range messages {
			if string(message.MessageBody) == "poison" {
				return errors.New("poison")
			}
		}
		return store(ctx, tx, messages)
	}})
	handle := beginDialog(t, pool)
	tx, err := pool.Begin(t.Context())
	fixture.RequireNoError(t, err)
	for _, body := range []string{"1", "2", "3", "poison", "5"} {
		fixture.RequireNoError(t, parley.Send(t.Context(), tx, handle, parley.DefaultMessageType, []byte(body)))
	}
	fixture.RequireNoError(t, tx.Commit(t.Context()))
	var found []operate.PoisonConversation
	parleytest.Until(t, "the conversation is set aside", func() bool {
		found, err = operate.ReadPoisonConversations(t.Context(), pool, operate.PoisonFilter{Queue: "target"})
		fixture.RequireNoError(t, err)
		return len(found) == 1 && found[0].SetAsideSince != nil
	})
	waitForHandled(t, pool, 3)
	if found[0].WaitingMessages != 2 {
		t.Errorf("%d messages are set aside, want the bad one and the one behind it", found[0].WaitingMessages)
	}
	fixture.RequireNoError(t, consumer.finish())
}
