package parley_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/internal/logtest"
	"github.com/parley-broker/parley/parleytest"
)

// soon is a poll interval for tests that are not about being notified.
const soon = 20 * time.Millisecond

// never is a poll interval for tests that are.
const never = time.Hour

// running is a consumer at work.
type running struct {
	stop context.CancelFunc
	done chan struct{}
	err  error
	log  *logtest.Log
}

// start runs a consumer until the test ends or stops it.
func start(t *testing.T, consumer parley.Consumer) *running {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r := &running{stop: stop, done: make(chan struct{}), log: &logtest.Log{}}
	consumer.Logger = r.log.Logger(slog.LevelInfo)
	if consumer.Queue == "" {
		consumer.Queue = "target"
	}
	go func() {
		defer close(r.done)
		r.err = consumer.Run(ctx)
	}()
	t.Cleanup(func() {
		_ = r.finish()
		if t.Failed() {
			t.Logf("the consumer logged:\n%s", r.log)
		}
	})
	return r
}

// finish stops the consumer and returns what Run returned.
func (r *running) finish() error {
	r.stop()
	<-r.done
	return r.err
}

func serviceDatabase(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := parleytest.Database(t)
	fixture.CreateServices(t, pool)
	fixture.Execute(t, pool, "create table handled (n bigint generated always as identity, conversation_handle uuid, body text)")
	return pool
}

// store writes what it is given into the table handled.
func store(ctx context.Context, tx pgx.Tx, messages []parley.Message) error {
	for _, message := range messages {
		_, err := tx.Exec(ctx, "insert into handled (conversation_handle, body) values ($1, $2)", message.ConversationHandle, string(message.MessageBody))
		if err != nil {
			return err
		}
	}
	return nil
}

func waitForHandled(t *testing.T, pool *pgxpool.Pool, want int) {
	t.Helper()
	parleytest.Until(t, fmt.Sprintf("%d messages are handled", want), func() bool {
		return fixture.Value[int](t, pool, "select count(*) from handled") >= want
	})
}

func requireHandled(t *testing.T, pool *pgxpool.Pool, want string) {
	t.Helper()
	if got := fixture.Value[string](t, pool, "select coalesce(string_agg(body, ' ' order by n), '') from handled"); got != want {
		t.Errorf("handled %q, want %q", got, want)
	}
}

func TestConsumerHandlesEveryMessageOnceAndInOrder(t *testing.T) {
	t.Parallel()
	pool := serviceDatabase(t)
	const conversations, messages = 20, 30
	start(t, parley.Consumer{Pool: pool, Handler: store, Readers: 4, Top: 7})
	for range conversations {
		handle := beginDialog(t, pool)
		for n := range messages {
			send(t, pool, handle, fmt.Sprintf("%02d", n))
		}
	}
	waitForHandled(t, pool, conversations*messages)
	const inOrder = `
		select count(*)
		from (
			select string_agg(body, ' ' order by n) = (select string_agg(to_char(i, 'FM00'), ' ' order by i) from generate_series(0, $1 - 1) as i) as is_whole
			from handled
			group by conversation_handle
		) as c
		where is_whole`
	if n := fixture.Value[int](t, pool, inOrder, messages); n != conversations {
		t.Errorf("%d of %d conversations were handled once and in order", n, conversations)
	}
}

func TestConsumerTakesMessagesAgainWhenTheHandlerFails(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("not now") },
		"panic": func() error { panic("not now") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := serviceDatabase(t)
			var calls atomic.Int32
			consumer := start(t, parley.Consumer{Pool: pool, Handler: func(ctx context.Context, tx pgx.Tx, messages []parley.Message) error {
				if err := store(ctx, tx, messages); err != nil {
					return err
				}
				if calls.Add(1) <= 2 {
					return fail()
				}
				return nil
			}})
			send(t, pool, beginDialog(t, pool), "one")
			waitForHandled(t, pool, 1)
			fixture.RequireNoError(t, consumer.finish())
			requireHandled(t, pool, "one")
			if got := strings.Count(consumer.log.String(), "not now"); got < 2 {
				t.Errorf("%d failures are in the log, want 2: %s", got, consumer.log)
			}
		})
	}
}

func TestConsumerReportsADisabledQueueAndGoesOnWhenItIsEnabled(t *testing.T) {
	t.Parallel()
	pool := serviceDatabase(t)
	fixture.Execute(t, pool, "select parley.alter_queue('target', poison_action => 'DISABLE_QUEUE')")
	var isHealed atomic.Bool
	consumer := start(t, parley.Consumer{Pool: pool, PollInterval: soon, Handler: func(ctx context.Context, tx pgx.Tx, messages []parley.Message) error {
		if !isHealed.Load() {
			return errors.New("poison")
		}
		return store(ctx, tx, messages)
	}})
	send(t, pool, beginDialog(t, pool), "one")
	parleytest.Until(t, "the queue is reported disabled", func() bool {
		return strings.Contains(consumer.log.String(), "queue is disabled")
	})
	if got := strings.Count(consumer.log.String(), "handler failed"); got != 5 {
		t.Errorf("the queue was disabled after %d rollbacks, want 5", got)
	}
	isHealed.Store(true)
	fixture.Execute(t, pool, "select parley.alter_queue('target', status => true)")
	waitForHandled(t, pool, 1)
	parleytest.Until(t, "the queue is reported enabled", func() bool {
		return strings.Contains(consumer.log.String(), "queue is enabled again")
	})
}

func TestConsumerEndsConversationsThatTheFarSideHasEnded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end    func(ctx context.Context, db parley.DB, handle parley.UUID) error
		logged string
	}{
		"EndDialog": {parley.EndConversation, ""},
		"Error": {func(ctx context.Context, db parley.DB, handle parley.UUID) error {
			return parley.EndConversationWithError(ctx, db, handle, 42, "changed my mind")
		}, "changed my mind"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := serviceDatabase(t)
			handle := beginDialog(t, pool)
			send(t, pool, handle, "one")
			consumer := start(t, parley.Consumer{Pool: pool, PollInterval: soon, Handler: store})
			waitForHandled(t, pool, 1)
			fixture.RequireNoError(t, test.end(t.Context(), pool, handle))
			parleytest.Until(t, "no conversation is open", func() bool {
				return fixture.Value[int](t, pool, "select count(*) from parley.conversation_endpoints where state <> 'CD'") == 0
			})
			fixture.RequireNoError(t, consumer.finish())
			requireHandled(t, pool, "one")
			if got := consumer.log.String(); !strings.Contains(got, test.logged) {
				t.Errorf("%q is not in the log: %s", test.logged, got)
			}
		})
	}
}

func TestConsumerToleratesThatTheHandlerHasEndedTheConversation(t *testing.T) {
	t.Parallel()
	pool := serviceDatabase(t)
	handle := beginDialog(t, pool)
	send(t, pool, handle, "one")
	fixture.RequireNoError(t, parley.EndConversation(t.Context(), pool, handle))
	consumer := start(t, parley.Consumer{Pool: pool, Handler: func(ctx context.Context, tx pgx.Tx, messages []parley.Message) error {
		if err := store(ctx, tx, messages); err != nil {
			return err
		}
		return parley.EndConversation(ctx, tx, messages[0].ConversationHandle)
	}})
	waitForHandled(t, pool, 1)
	fixture.RequireNoError(t, consumer.finish())
	requireHandled(t, pool, "one")
	if got := consumer.log.String(); got != "" {
		t.Errorf("logged: %s", got)
	}
}

func TestConsumerGivesSystemMessagesToAHandlerThatAsksForThem(t *testing.T) {
	t.Parallel()
	pool := serviceDatabase(t)
	handle := beginDialog(t, pool)
	send(t, pool, handle, "one")
	fixture.RequireNoError(t, parley.EndConversation(t.Context(), pool, handle))
	ended := make(chan parley.UUID, 1)
	start(t, parley.Consumer{Pool: pool, HandleSystemMessages: true, Handler: func(ctx context.Context, tx pgx.Tx, messages []parley.Message) error {
		for _, message := range messages {
			if message.IsEndDialog() {
				ended <- message.ConversationHandle
				return parley.EndConversation(ctx, tx, message.ConversationHandle)
			}
		}
		return nil
	}})
	select {
	case <-ended:
	case <-time.After(parleytest.Patience):
		t.Error("no EndDialog message came")
	}
}

func TestConsumerFiresTimersOfItsQueue(t *testing.T) {
	t.Parallel()
	pool := serviceDatabase(t)
	handle := beginDialog(t, pool)
	fired := make(chan parley.UUID, 1)
	start(t, parley.Consumer{Pool: pool, Queue: "initiator", PollInterval: soon, Handler: func(_ context.Context, _ pgx.Tx, messages []parley.Message) error {
		if messages[0].IsDialogTimer() {
			fired <- messages[0].ConversationHandle
		}
		return nil
	}})
	fixture.RequireNoError(t, parley.BeginConversationTimer(t.Context(), pool, handle, time.Second))
	select {
	case got := <-fired:
		if got != handle {
			t.Errorf("the timer of %s fired, want %s", got, handle)
		}
	case <-time.After(parleytest.Patience):
		t.Error("the timer did not fire")
	}
}

// The work of a RECEIVE without messages is committed: it ends targets that nobody has ended, and would do so again and again otherwise.
func TestConsumerCommitsAReceiveWithoutMessages(t *testing.T) {
	t.Parallel()
	pool := serviceDatabase(t)
	handle := beginDialog(t, pool)
	fixture.RequireNoError(t, parley.Send(t.Context(), pool, handle, parley.DefaultMessageType, []byte("x")))
	fixture.RequireNoError(t, parley.EndConversation(t.Context(), pool, handle))
	// Its reader takes both and forgets to end its side, which is late by now.
	fixture.Execute(t, pool, "select parley.receive('target')")
	fixture.Execute(t, pool, "update parley._p_alarm set due_at = now() where kind = 'abandoned'")
	fixture.Execute(t, pool, "select setval('parley._p_next_alarm', 0)")
	// A sequence counts what is rolled back too.
	fixture.Execute(t, pool, `
		create sequence public.ended;
		create function public.count_ended() returns trigger language plpgsql as $$ begin perform nextval('public.ended'); return null; end $$;
		create trigger count_ended after insert on parley._p_tombstone for each row execute function public.count_ended();`)
	start(t, parley.Consumer{Pool: pool, PollInterval: soon, Handler: store})
	var left, ended int
	parleytest.Until(t, "the target is ended, or was ended twice", func() bool {
		fixture.RequireNoError(t, pool.QueryRow(t.Context(), `
			select (select count(*) from parley.conversation_endpoints where state = 'DI'), (select case when is_called then last_value else 0 end from public.ended)`,
		).Scan(&left, &ended))
		return left == 0 || ended > 1
	})
	if left != 0 || ended != 1 {
		t.Errorf("the target that nobody ended was ended %d times, and is there %d times: the RECEIVE that ends it is rolled back", ended, left)
	}
}

func TestConsumerCancelsAHandlerThatTakesTooLong(t *testing.T) {
	t.Parallel()
	pool := serviceDatabase(t)
	var calls atomic.Int32
	consumer := start(t, parley.Consumer{Pool: pool, HandlerTimeout: soon, Handler: func(ctx context.Context, tx pgx.Tx, messages []parley.Message) error {
		if calls.Add(1) == 1 {
			<-ctx.Done()
			return ctx.Err()
		}
		return store(context.WithoutCancel(ctx), tx, messages)
	}})
	send(t, pool, beginDialog(t, pool), "one")
	waitForHandled(t, pool, 1)
	if got := consumer.log.String(); !strings.Contains(got, context.DeadlineExceeded.Error()) {
		t.Errorf("logged: %s", got)
	}
}

func TestConsumerLacksNothingItNeeds(t *testing.T) {
	t.Parallel()
	pool := parleytest.EmptyDatabase(t)
	for missing, consumer := range map[string]parley.Consumer{
		"Pool":    {Queue: "q", Handler: store},
		"Queue":   {Pool: pool, Handler: store},
		"Handler": {Pool: pool, Queue: "q"},
		"Top":     {Pool: pool, Queue: "q", Handler: store, Top: -1},
	} {
		if err := consumer.Run(t.Context()); err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("without %s: got error %v", missing, err)
		}
	}
}
