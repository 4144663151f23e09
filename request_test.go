package parley_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/parleytest"
)

// answering runs a consumer of the queue target until the test ends.
func answering(t *testing.T, pool *pgxpool.Pool, answer func(ctx context.Context, tx pgx.Tx, m parley.Message) error) {
	t.Helper()
	consumer := &parley.Consumer{Pool: pool, Queue: "target", Readers: 2, Handler: func(ctx context.Context, tx pgx.Tx, messages []parley.Message) error {
		for _, m := range messages {
			if err := answer(ctx, tx, m); err != nil {
				return err
			}
		}
		return nil
	}}
	runUntilTheEnd(t, consumer.Run)
}

func runUntilTheEnd(t *testing.T, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	finished := make(chan error, 1)
	go func() { finished <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		fixture.RequireNoError(t, parleytest.Receive(t, finished, "the end of Run"))
	})
}

func echo(ctx context.Context, tx pgx.Tx, m parley.Message) error {
	if err := parley.Send(ctx, tx, m.ConversationHandle, parley.DefaultMessageType, append([]byte("re: "), m.MessageBody...)); err != nil {
		return err
	}
	return parley.EndConversation(ctx, tx, m.ConversationHandle)
}

func ask(body string) parley.RequestMessage {
	return parley.RequestMessage{FromService: "initiator", ToService: "target", Body: []byte(body)}
}

// requester is the function Request, or the method of a Requester that runs.
type requester func(ctx context.Context, message parley.RequestMessage, timeout time.Duration) (parley.Message, error)

// bothRequesters runs a test with each of the two ways to ask.
func bothRequesters(t *testing.T, test func(t *testing.T, pool *pgxpool.Pool, request requester)) {
	t.Helper()
	t.Run("function", func(t *testing.T) {
		t.Parallel()
		pool := parleytest.Database(t)
		fixture.CreateServices(t, pool)
		test(t, pool, func(ctx context.Context, message parley.RequestMessage, timeout time.Duration) (parley.Message, error) {
			return parley.Request(ctx, pool, message, timeout)
		})
	})
	t.Run("Requester", func(t *testing.T) {
		t.Parallel()
		pool := parleytest.Database(t)
		fixture.CreateServices(t, pool)
		r := &parley.Requester{Pool: pool, Queue: "initiator"}
		runUntilTheEnd(t, r.Run)
		test(t, pool, r.Request)
	})
}

func requireNoConversations(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	parleytest.Until(t, "all conversations are over", func() bool {
		var open int
		err := pool.QueryRow(t.Context(), "select count(*) from parley.conversation_endpoints where state <> 'CD' and not is_system").Scan(&open)
		fixture.RequireNoError(t, err)
		return open == 0
	})
}

func TestRequestReturnsItsReply(t *testing.T) {
	t.Parallel()
	bothRequesters(t, func(t *testing.T, pool *pgxpool.Pool, request requester) {
		answering(t, pool, echo)
		var all sync.WaitGroup
		for n := range 12 {
			all.Go(func() {
				for i := range 3 {
					body := fmt.Sprintf("%d of %d", i, n)
					reply, err := request(t.Context(), ask(body), parleytest.Patience)
					if err != nil || string(reply.MessageBody) != "re: "+body {
						t.Errorf("asked %q, got %q, %v", body, reply.MessageBody, err)
					}
				}
			})
		}
		all.Wait()
		requireNoConversations(t, pool)
	})
}

func TestRequestReturnsAnErrorOfTheTarget(t *testing.T) {
	t.Parallel()
	bothRequesters(t, func(t *testing.T, pool *pgxpool.Pool, request requester) {
		answering(t, pool, func(ctx context.Context, tx pgx.Tx, m parley.Message) error {
			if string(m.MessageBody) == "silent" {
				return parley.EndConversation(ctx, tx, m.ConversationHandle)
			}
			return parley.EndConversationWithError(ctx, tx, m.ConversationHandle, 7, "no such thing")
		})
		_, err := request(t.Context(), ask("fail"), parleytest.Patience)
		failure, ok := errors.AsType[*parley.ConversationError](err)
		if !ok || failure.Code != 7 || failure.Description != "no such thing" {
			t.Errorf("got %v", err)
		}
		if _, err := request(t.Context(), ask("silent"), parleytest.Patience); !errors.Is(err, parley.ErrNoReply) {
			t.Errorf("got %v, want ErrNoReply", err)
		}
		refused := ask("x")
		refused.ToService = "initiator"
		_, err = request(t.Context(), refused, parleytest.Patience)
		if failure, ok := errors.AsType[*parley.ConversationError](err); !ok || failure.Code != -8408 {
			t.Errorf("a target that does not take the contract: got %v", err)
		}
		requireNoConversations(t, pool)
	})
}

func TestRequestIsGivenUp(t *testing.T) {
	t.Parallel()
	bothRequesters(t, func(t *testing.T, pool *pgxpool.Pool, request requester) {
		if _, err := request(t.Context(), ask("late"), 100*time.Millisecond); !errors.Is(err, parley.ErrRequestTimeout) {
			t.Errorf("got %v, want ErrRequestTimeout", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		reason := errors.New("nobody cares")
		done := make(chan error, 1)
		go func() {
			_, err := request(ctx, ask("cancelled"), parleytest.Patience)
			done <- err
		}()
		parleytest.Until(t, "the request is sent", func() bool {
			var isSent bool
			err := pool.QueryRow(t.Context(), `
				select exists (select from parley.conversation_endpoints where is_initiator = 1 and state = 'CO')`).Scan(&isSent)
			return err == nil && isSent
		})
		cancel(reason)
		if err := parleytest.Receive(t, done, "the end of the request"); !errors.Is(err, reason) {
			t.Errorf("got %v, want the cause of ctx", err)
		}
		if _, err := request(ctx, ask("too late"), parleytest.Patience); !errors.Is(err, reason) {
			t.Errorf("before it is sent: got %v, want the cause of ctx", err)
		}
		if _, err := request(t.Context(), ask("x"), 0); err == nil {
			t.Error("no time-out was not refused")
		}
		// The target learns of it.
		for range 2 {
			messages := fixture.Must[[]parley.Message](t)(parley.Receive(t.Context(), pool, "target"))
			if len(messages) == 0 || !messages[0].IsError() {
				t.Fatalf("the target received %+v", messages)
			}
			failure := fixture.Must[*parley.ConversationError](t)(parley.ParseError(messages[0].MessageBody))
			if failure.Code != parley.RequestGivenUp {
				t.Errorf("the target received error %d", failure.Code)
			}
			fixture.RequireNoError(t, parley.EndConversation(t.Context(), pool, messages[0].ConversationHandle))
		}
		requireNoConversations(t, pool)
	})
}

func TestRequestThatIsCancelledWhileItIsCommittedIsGivenUp(t *testing.T) {
	t.Parallel()
	bothRequesters(t, func(t *testing.T, pool *pgxpool.Pool, request requester) {
		// The commit waits for as long as somebody holds the lock.
		for _, statement := range []string{
			`create function public.wait() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock_shared(408); return null; end $$`,
			`create constraint trigger wait after insert on parley._p_message deferrable initially deferred for each row execute function public.wait()`,
		} {
			fixture.Must[pgconn.CommandTag](t)(pool.Exec(t.Context(), statement))
		}
		holder := fixture.Must[*pgxpool.Conn](t)(pool.Acquire(t.Context()))
		defer holder.Release()
		fixture.Must[pgconn.CommandTag](t)(holder.Exec(t.Context(), "select pg_advisory_lock(408)"))
		ctx, cancel := context.WithCancelCause(t.Context())
		reason := errors.New("nobody cares")
		done := make(chan error, 1)
		go func() {
			_, err := request(ctx, ask("cancelled"), parleytest.Patience)
			done <- err
		}()
		parleytest.Until(t, "the commit", func() bool {
			return fixture.Must[bool](t)(scanned[bool](holder.QueryRow(t.Context(), `
				select exists (
				  select from pg_locks
				  where locktype = 'advisory' and objid = 408 and not granted
				    -- The same test runs in other databases of the server.
				    and database = (select d.oid from pg_database as d where d.datname = current_database()))`)))
		})
		cancel(reason)
		fixture.Must[pgconn.CommandTag](t)(holder.Exec(t.Context(), "select pg_advisory_unlock(408)"))
		if err := parleytest.Receive(t, done, "the end of the request"); !errors.Is(err, reason) {
			t.Errorf("got %v, want the cause of ctx", err)
		}
		messages := fixture.Must[[]parley.Message](t)(parley.Receive(t.Context(), pool, "target"))
		if len(messages) == 0 || !messages[0].IsError() {
			t.Fatalf("the target received %+v", messages)
		}
		fixture.RequireNoError(t, parley.EndConversation(t.Context(), pool, messages[0].ConversationHandle))
		requireNoConversations(t, pool)
	})
}

func scanned[T any](row pgx.Row) (value T, err error) {
	err = row.Scan(&value)
	return value, err
}

// A program that crashes after it has sent leaves a dialog that ends by its lifetime.
func TestRequestHasALifetime(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	fixture.CreateServices(t, pool)
	if _, err := pool.Exec(t.Context(), "select parley.create_route('nowhere', 'LOCAL', 'nowhere')"); err != nil {
		t.Fatal(err)
	}
	var seconds float64
	_, err := parley.Request(t.Context(), pool, parley.RequestMessage{FromService: "initiator", ToService: "nowhere"}, 300*time.Millisecond)
	if !errors.Is(err, parley.ErrRequestTimeout) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		_, _ = parley.Request(ctx, pool, ask("x"), time.Minute)
	}()
	parleytest.Until(t, "the request is sent", func() bool {
		err := pool.QueryRow(t.Context(), `
			select extract(epoch from lifetime - begun_at) from parley.conversation_endpoints where is_initiator = 1 and state = 'CO'`).Scan(&seconds)
		return err == nil
	})
	if seconds < 64 || seconds > 66 {
		t.Errorf("its lifetime is %v seconds, want 65", seconds)
	}
	cancel()
	parleytest.Receive(t, finished, "the end of the request")
}

// A requester that does not run finds the replies nevertheless.
func TestRequesterThatDoesNotRunPolls(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	fixture.CreateServices(t, pool)
	answering(t, pool, echo)
	r := &parley.Requester{Pool: pool, Queue: "initiator", PollInterval: 20 * time.Millisecond}
	reply := fixture.Must[parley.Message](t)(r.Request(t.Context(), ask("x"), parleytest.Patience))
	if string(reply.MessageBody) != "re: x" {
		t.Errorf("got %q", reply.MessageBody)
	}
	for _, r := range []*parley.Requester{{Queue: "initiator"}, {Pool: pool}, {Pool: pool, Queue: "initiator", PollInterval: -1}} {
		if r.Run(t.Context()) == nil {
			t.Errorf("a requester that lacks something runs: %+v", r.Queue)
		}
	}
}
