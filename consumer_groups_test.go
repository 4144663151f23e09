package parley_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/operate"
	"github.com/parley-broker/parley/parleytest"
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
	fixture.Execute(t, pool, "create table transactions (id xid8 primary key)")
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
	if n := fixture.Value[int](t, pool, "select count(*) from (select from handled group by conversation_handle having string_agg(body, '' order by n) = '012') as c"); n != conversations {
		t.Errorf("%d of %d conversations were handled once and in order", n, conversations)
	}
	if n := fixture.Value[int](t, pool, "select count(*) from transactions"); n > 10 {
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
	var found []operate.PoisonConversation
	parleytest.Until(t, "the conversation is set aside", func() bool {
		var err error
		found, err = operate.ReadPoisonConversations(t.Context(), pool, operate.PoisonFilter{Queue: "target"})
		fixture.RequireNoError(t, err)
		return len(found) > 0
	})
	if len(found) != 1 || failures.Load() != 5 || found[0].Rollbacks != 5 {
		t.Errorf("after %d failures %d are set aside: %+v", failures.Load(), len(found), found)
	}
	if n := fixture.Value[int](t, pool, "select count(*) from parley._p_failure"); n != 1 {
		t.Errorf("failures of %d conversations were reported", n)
	}
	fixture.RequireNoError(t, consumer.finish())
}

// manyGroups are 50 conversations of one message, one of which, in the middle, says "bad"; and what became of them.
type manyGroups struct {
	*testing.T
	pool     *pgxpool.Pool
	consumer parley.Consumer
	another  sync.Once
	mu       sync.Mutex
	calls    map[string]int
	// fail is called when the handler has the body "bad" for the first time.
	fail func(ctx context.Context, tx pgx.Tx) error
	// also is called for the other bodies.
	also func(ctx context.Context, tx pgx.Tx, body string, call int) error
}

func newManyGroups(t *testing.T) *manyGroups {
	t.Helper()
	m := &manyGroups{T: t, pool: serviceDatabase(t), calls: map[string]int{}}
	m.also = func(context.Context, pgx.Tx, string, int) error { return nil }
	fixture.Execute(t, m.pool,
		"alter table handled add transaction_id xid8 default pg_current_xact_id()",
		"select parley.begin_and_send('initiator', 'target', body => case n when 25 then 'bad' else n::text end) from generate_series(1, 50) as s (n)")
	m.consumer = parley.Consumer{Pool: m.pool, PollInterval: soon, Groups: 100, Handler: m.handle}
	return m
}

// handle starts another consumer, once this one has its messages.
func (m *manyGroups) handle(ctx context.Context, tx pgx.Tx, messages []parley.Message) error {
	m.another.Do(func() { start(m.T, m.consumer) })
	if err := store(ctx, tx, messages); err != nil {
		return err
	}
	body := string(messages[0].MessageBody)
	m.mu.Lock()
	m.calls[body]++
	call := m.calls[body]
	m.mu.Unlock()
	if body != "bad" {
		return m.also(ctx, tx, body, call)
	}
	if call == 1 {
		return m.fail(ctx, tx)
	}
	return nil
}

// requireOnce waits until all are handled, each once.
func (m *manyGroups) requireOnce() {
	m.Helper()
	waitForHandled(m.T, m.pool, 50)
	if n := fixture.Value[int](m.T, m.pool, "select count(distinct body) from handled"); n != 50 {
		m.Errorf("%d of 50 messages were handled, some twice", n)
	}
}

// requireTogether reports whether so many of the others were handled in one transaction. A reader that tries a group in the moment in which
// the transaction goes back to its savepoint can make it pass that group over, so a few may come in transactions of their own.
func (m *manyGroups) requireTogether(want int) {
	m.Helper()
	n := fixture.Value[int](m.T, m.pool, "select max(n) from (select count(*) as n from handled where body <> 'bad' group by transaction_id) as t")
	if n > want || n < want-3 {
		m.Errorf("of the others %d were handled in one transaction, want %d", n, want)
	}
}

// The others stay locked and are handled again, once, in the transaction that gives the bad one back: whatever has failed, and however many
// consumers wait for what comes back.
func TestConsumerGivesBackOnlyTheGroupThatFails(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(ctx context.Context, tx pgx.Tx) error{
		"Error": func(context.Context, pgx.Tx) error { return errors.New("not today") },
		"Panic": func(context.Context, pgx.Tx) error { panic("oh no") },
		"Database": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "select 1 / 0")
			return err
		},
		"Unnoticed": func(ctx context.Context, tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "select 1 / 0"); err == nil {
				return errors.New("a division by zero has succeeded")
			}
			return nil
		},
		"Timeout": func(ctx context.Context, _ pgx.Tx) error {
			<-ctx.Done()
			return ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newManyGroups(t)
			m.fail = fail
			if name == "Timeout" {
				// Far more than a handler that does not wait needs on a slow machine.
				m.consumer.HandlerTimeout = 5 * time.Second
			}
			start(t, m.consumer)
			m.requireOnce()
			m.requireTogether(49)
			m.mu.Lock()
			defer m.mu.Unlock()
			for body, calls := range m.calls {
				if n, err := strconv.Atoi(body); (n < 25) != (calls == 2) || calls > 2 {
					t.Errorf("the handler was called %d times with %q (%v)", calls, body, err)
				}
			}
		})
	}
}

// A group may fail only when it is handled again, and another one be gone by then. Messages that are lost with the connection or at the
// commit come again, each alone, and only the group that has failed before is reported.
func TestConsumerThatHandlesGroupsOneByOneMayFailAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		also     func(ctx context.Context, tx pgx.Tx, body string, call int) error
		together int // of the 49 others, in one transaction
	}{
		"Second group": {func(_ context.Context, _ pgx.Tx, body string, call int) error {
			if body == "10" && call == 2 || body == "40" && call == 1 {
				return errors.New("nor this")
			}
			return nil
		}, 47},
		"Backend killed": {func(ctx context.Context, tx pgx.Tx, body string, call int) error {
			if body != "10" || call != 2 {
				return nil
			}
			_, err := tx.Exec(ctx, "select pg_terminate_backend(pg_backend_pid())")
			return err
		}, 1},
		"Commit": {func(ctx context.Context, tx pgx.Tx, body string, call int) error {
			if body != "10" || call != 2 {
				return nil
			}
			_, err := tx.Exec(ctx, `create temporary table twice (n integer unique deferrable initially deferred) on commit drop;
				insert into twice values (1), (1)`)
			return err
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newManyGroups(t)
			m.fail = func(context.Context, pgx.Tx) error { return errors.New("not today") }
			m.also = c.also
			start(t, m.consumer)
			m.requireOnce()
			m.requireTogether(c.together)
		})
	}
	t.Run("Conversation ended by another handler", func(t *testing.T) {
		t.Parallel()
		m := newManyGroups(t)
		m.fail = func(context.Context, pgx.Tx) error { return errors.New("not today") }
		m.also = func(ctx context.Context, tx pgx.Tx, body string, _ int) error {
			if body != "10" {
				return nil
			}
			_, err := tx.Exec(ctx, `
				with ended as (
					select parley.body_text(message_body) as body, parley.end_conversation(conversation_handle, cleanup => true)
					from parley.queue_contents('target')
					where parley.body_text(message_body) in ('30', '31')
				)
				insert into handled (body) select body from ended`)
			return err
		}
		start(t, m.consumer)
		m.requireOnce()
		m.requireTogether(49)
	})
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
	fixture.RequireNoError(t, err)
	bodies := []string{}
	for _, message := range messages {
		bodies = append(bodies, string(message.MessageBody))
	}
	if !slices.Equal(bodies, []string{"a", "b"}) {
		t.Errorf("received %q", bodies)
	}
}

// A second failure adds nothing to what is received alone already, and takes nothing from it.
func TestConsumerReceivesAloneAsManyAsTheLargestFailure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ planned, failed, want int }{{0, 3, 3}, {2, 5, 5}, {5, 2, 5}, {3, 3, 3}} {
		if got := parley.SeparateFailed(c.planned, c.failed); got != c.want {
			t.Errorf("of %d planned and %d that failed %d are received alone, want %d", c.planned, c.failed, got, c.want)
		}
	}
}
