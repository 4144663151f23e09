package parley_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
)

// One transaction takes many groups, the handler each of them by itself.
func TestConsumerHandlesManyGroupsInOneTransaction(t *testing.T) {
	t.Parallel()
	pool := serviceDatabase(t)
	const conversations, messages = 40, 3
	for range conversations {
		handle := beginDialog(t, pool)
		for n := range messages {
			send(t, pool, handle, fmt.Sprint(n))
		}
	}
	execute(t, pool, "create table transactions (id xid8 primary key)")
	var mixed atomic.Int32
	start(t, parley.Consumer{Pool: pool, Top: 60, Groups: 30, Handler: func(ctx context.Context, tx pgx.Tx, messages []parley.Message) error {
		for _, message := range messages {
			if message.ConversationGroupID != messages[0].ConversationGroupID {
				mixed.Add(1)
			}
		}
		if _, err := tx.Exec(ctx, "insert into transactions values (pg_current_xact_id()) on conflict do nothing"); err != nil {
			return err
		}
		return store(ctx, tx, messages)
	}})
	waitForHandled(t, pool, conversations*messages)
	if n := value[int](t, pool, "select count(*) from (select from handled group by conversation_handle having string_agg(body, '' order by n) = '012') as c"); n != conversations {
		t.Errorf("%d of %d conversations were handled once and in order", n, conversations)
	}
	if n := value[int](t, pool, "select count(*) from transactions"); n > 10 {
		t.Errorf("%d transactions for %d groups", n, conversations)
	}
	if mixed.Load() > 0 {
		t.Error("the handler was given messages of several groups at once")
	}
}

// The others of a transaction that fails with a bad message are neither counted up nor reported.
func TestConsumerReportsTheOneBadGroupOfMany(t *testing.T) {
	t.Parallel()
	pool := serviceDatabase(t)
	for n := range 20 {
		send(t, pool, beginDialog(t, pool), map[bool]string{true: "poison", false: "fine"}[n == 7])
	}
	var failures atomic.Int32
	consumer := start(t, parley.Consumer{Pool: pool, PollInterval: soon, Groups: 100, Handler: func(ctx context.Context, tx pgx.Tx, messages []parley.Message) error {
		if string(messages[0].MessageBody) == "poison" {
			failures.Add(1)
			return errors.New("poison")
		}
		return store(ctx, tx, messages)
	}})
	waitForHandled(t, pool, 19)
	var found []parley.PoisonConversation
	eventually(t, "the conversation is set aside", func() bool {
		var err error
		found, err = parley.ReadPoisonConversations(t.Context(), pool, parley.PoisonFilter{Queue: "target"})
		requireNoError(t, err)
		return len(found) > 0
	})
	if len(found) != 1 || failures.Load() != 5 || found[0].Rollbacks != 5 {
		t.Errorf("after %d failures %d are set aside: %+v", failures.Load(), len(found), found)
	}
	if n := value[int](t, pool, "select count(*) from parley._p_failure"); n != 1 {
		t.Errorf("failures of %d conversations were reported", n)
	}
	requireNoError(t, consumer.finish())
}

func TestReceiveFromManyGroupsIsRefusedWithOneNamed(t *testing.T) {
	t.Parallel()
	pool := serviceDatabase(t)
	handle := beginDialog(t, pool)
	_, err := parley.Receive(t.Context(), pool, "initiator", parley.Groups(2), parley.FromConversation(handle))
	if number, _ := parley.ErrorNumber(err); number != 8402 {
		t.Errorf("got %v", err)
	}
	for _, body := range []string{"a", "b"} {
		send(t, pool, beginDialog(t, pool), body)
	}
	messages, err := parley.Receive(t.Context(), pool, "target", parley.Groups(2))
	requireNoError(t, err)
	bodies := []string{}
	for _, message := range messages {
		bodies = append(bodies, string(message.MessageBody))
	}
	if !slices.Equal(bodies, []string{"a", "b"}) {
		t.Errorf("received %q", bodies)
	}
}
