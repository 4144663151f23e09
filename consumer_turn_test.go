package parley_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/parleytest"
)

// calls counts how often the handler was called for each body, before it fails in some way.
type calls struct {
	counts map[string]int
	fail   func(ctx context.Context, tx pgx.Tx) error
}

// handle is a handler that fails at its first call with the body "bad".
func (c *calls) handle(ctx context.Context, tx pgx.Tx, messages []parley.Message) error {
	if err := store(ctx, tx, messages); err != nil {
		return err
	}
	for _, message := range messages {
		body := string(message.MessageBody)
		c.counts[body]++
		if body == "bad" && c.counts[body] == 1 {
			return c.fail(ctx, tx)
		}
	}
	return nil
}

// A commit travels with the RECEIVE of the next transaction. When it fails that RECEIVE takes nothing: each message of others comes once.
func TestConsumerWhoseCommitFailsReceivesNothingWithIt(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(ctx context.Context, tx pgx.Tx) error{
		"Deferred constraint": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `create temporary table twice (n integer unique deferrable initially deferred) on commit drop;
				insert into twice values (1), (1)`)
			return err
		},
		"Error that the handler does not return": func(ctx context.Context, tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "select 1 / 0"); err == nil {
				return errors.New("a division by zero has succeeded")
			}
			return nil
		},
		"Connection lost at the commit": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "insert into public.killed values (true)")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := serviceDatabase(t)
			fixture.Execute(t, pool, `
				create table public.killed (is_killed boolean);
				create function public.kill() returns trigger language plpgsql as $$
				begin
					perform pg_terminate_backend(pg_backend_pid());
					return null;
				end $$;
				create constraint trigger kill after insert on public.killed deferrable initially deferred
				for each row execute function public.kill()`)
			for _, body := range []string{"before", "bad", "after", "last"} {
				send(t, pool, beginDialog(t, pool), body)
			}
			handler := calls{counts: map[string]int{}, fail: fail}
			consumer := start(t, parley.Consumer{Pool: pool, PollInterval: soon, Handler: handler.handle})
			waitForHandled(t, pool, 4)
			fixture.RequireNoError(t, consumer.finish())
			requireHandled(t, pool, "before bad after last")
			if !strings.Contains(consumer.log.String(), "handler failed; its messages are in the queue again") {
				t.Errorf("the consumer logged:\n%s", consumer.log)
			}
			for body, want := range map[string]int{"before": 1, "bad": 2, "after": 1, "last": 1} {
				if handler.counts[body] != want {
					t.Errorf("the handler was called %d times with %q, want %d", handler.counts[body], body, want)
				}
			}
		})
	}
}

// The batch that commits and receives is one in every way in which pgx speaks to a server or a pooler.
func TestConsumerInEveryQueryMode(t *testing.T) {
	t.Parallel()
	for _, mode := range queryModes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			config := serviceDatabase(t).Config()
			config.ConnConfig.DefaultQueryExecMode = mode
			pool := fixture.Must[*pgxpool.Pool](t)(pgxpool.NewWithConfig(t.Context(), config))
			t.Cleanup(pool.Close)
			for _, body := range []string{"before", "bad", "after"} {
				send(t, pool, beginDialog(t, pool), body)
			}
			handler := calls{counts: map[string]int{}, fail: func(ctx context.Context, tx pgx.Tx) error {
				_, err := tx.Exec(ctx, "create temporary table twice (n integer unique deferrable initially deferred) on commit drop")
				if err == nil {
					_, err = tx.Exec(ctx, "insert into twice values (1), (1)")
				}
				return err
			}}
			consumer := start(t, parley.Consumer{Pool: pool, PollInterval: soon, Handler: handler.handle})
			waitForHandled(t, pool, 3)
			fixture.RequireNoError(t, consumer.finish())
			requireHandled(t, pool, "before bad after")
			if handler.counts["before"] != 1 || handler.counts["bad"] != 2 || handler.counts["after"] != 1 {
				t.Errorf("the handler was called with %v", handler.counts)
			}
		})
	}
}

// Work that has committed is not done again when the RECEIVE fails that has travelled with the commit.
func TestConsumerWhoseReceiveFailsHasCommittedBeforeIt(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]string{
		"Error":           "raise exception 'not now'",
		"Connection lost": "perform pg_terminate_backend(pg_backend_pid()), pg_sleep(60)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := serviceDatabase(t)
			// A sequence counts what is rolled back too.
			fixture.Execute(t, pool, `
				create sequence public.receives;
				create function public.fail_the_second() returns trigger language plpgsql as $$
				begin
					if nextval('public.receives') = 2 then
						`+failure+`;
					end if;
					return new;
				end $$;
				create trigger fail before insert on parley._p_receive_progress for each row execute function public.fail_the_second()`)
			send(t, pool, beginDialog(t, pool), "one")
			send(t, pool, beginDialog(t, pool), "two")
			handler := calls{counts: map[string]int{}}
			consumer := start(t, parley.Consumer{Pool: pool, PollInterval: soon, Handler: handler.handle})
			waitForHandled(t, pool, 2)
			fixture.RequireNoError(t, consumer.finish())
			requireHandled(t, pool, "one two")
			if handler.counts["one"] != 1 || handler.counts["two"] != 1 {
				t.Errorf("the handler was called with %v", handler.counts)
			}
		})
	}
}

// A reader that always finds messages does not keep its connection from others.
func TestConsumerThatIsBusyLetsOthersHaveAConnection(t *testing.T) {
	t.Parallel()
	config := serviceDatabase(t).Config()
	config.MaxConns = 1
	pool := fixture.Must[*pgxpool.Pool](t)(pgxpool.NewWithConfig(t.Context(), config))
	t.Cleanup(pool.Close)
	send(t, pool, beginDialog(t, pool), "again")
	var handled atomic.Int32
	start(t, parley.Consumer{Pool: pool, Handler: func(ctx context.Context, tx pgx.Tx, messages []parley.Message) error {
		handled.Add(1)
		handle, err := parley.BeginDialog(ctx, tx, "initiator", "target")
		if err != nil {
			return err
		}
		return parley.Send(ctx, tx, handle, parley.DefaultMessageType, messages[0].MessageBody)
	}})
	parleytest.Until(t, "the consumer is busy", func() bool { return handled.Load() > 10 })
	before := handled.Load()
	ctx, cancel := context.WithTimeout(t.Context(), parleytest.Patience)
	defer cancel()
	conn := fixture.Must[*pgxpool.Conn](t)(pool.Acquire(ctx))
	conn.Release()
	parleytest.Until(t, "the consumer goes on", func() bool { return handled.Load() > before+10 })
}

// Many messages in a row end the notifications, which cost senders: the consumer scans then, until there are none for a while.
func TestConsumerScansWhileMessagesKeepComing(t *testing.T) {
	t.Parallel()
	consumer := parley.NewConsumerWakeUps()
	now := time.Now()
	for range 200 {
		now = now.Add(time.Millisecond)
		consumer.Received(now)
	}
	if consumer.Polls(now) {
		t.Error("it scans after a short burst")
	}
	for range 400 {
		now = now.Add(time.Millisecond)
		consumer.Received(now)
	}
	if !consumer.Polls(now) {
		t.Error("it does not scan though messages came for 600 ms without a pause")
	}
	if now = now.Add(time.Second); consumer.Polls(now) {
		t.Error("it still scans though nothing came for a second")
	}
	for range 200 {
		now = now.Add(time.Second)
		consumer.Received(now)
	}
	if consumer.Polls(now) {
		t.Error("it scans though messages come with pauses")
	}
}
