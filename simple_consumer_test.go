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
	"github.com/parley-broker/parley/operate"
	"github.com/parley-broker/parley/parleytest"
)

// jobsDatabase has the simple queue jobs, and a table in which handlers record what they did.
func jobsDatabase(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := parleytest.Database(t)
	fixture.Execute(t, pool, "select parley.create_queue('jobs', kind => 'SIMPLE', poison_rollbacks => 2)")
	fixture.Execute(t, pool, "create table handled (n bigint generated always as identity, body text)")
	return pool
}

// record writes what it is given into the table handled, and fails for the body bad after that.
func record(ctx context.Context, tx pgx.Tx, messages []parley.TakenMessage) error {
	for _, message := range messages {
		if _, err := tx.Exec(ctx, "insert into handled (body) values ($1)", string(message.Body)); err != nil {
			return err
		}
	}
	for _, message := range messages {
		switch string(message.Body) {
		case "bad":
			return errors.New("no such picture")
		case "worse":
			panic("oh no")
		case "late":
			_, err := tx.Exec(ctx, "select 1 / 0")
			return err
		}
	}
	return nil
}

// consumeJobs runs a consumer to the end of the test, or until what it returns is called.
func consumeJobs(t *testing.T, consumer parley.SimpleConsumer) (finish func() error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	log := &logtest.Log{}
	consumer.Queue, consumer.Logger = "jobs", log.Logger(slog.LevelInfo)
	if consumer.Handler == nil {
		consumer.Handler = record
	}
	done := make(chan error, 1)
	go func() { done <- consumer.Run(ctx) }()
	var ended error
	isEnded := false
	finish = func() error {
		stop()
		if !isEnded {
			ended, isEnded = <-done, true
		}
		return ended
	}
	t.Cleanup(func() {
		_ = finish()
		if t.Failed() {
			t.Logf("the consumer logged:\n%s", log)
		}
	})
	return finish
}

func handledJobs(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	var got string
	fixture.RequireNoError(t, pool.QueryRow(t.Context(), "select coalesce(string_agg(body, ' ' order by body), '') from handled").Scan(&got))
	return got
}

func TestSimpleConsumerHandlesWhatIsPut(t *testing.T) {
	t.Parallel()
	pool := jobsDatabase(t)
	// Longer than the test: it is the notification that wakes the readers.
	finish := consumeJobs(t, parley.SimpleConsumer{Pool: pool, Readers: 2, PollInterval: time.Hour})
	fixture.Must[parley.SentMessage](t)(parley.Put(t.Context(), pool, "jobs", []byte("a")))
	parleytest.Until(t, "the first is handled", func() bool { return handledJobs(t, pool) == "a" })
	fixture.RequireNoError(t, parley.PutBatch(t.Context(), pool, "jobs", [][]byte{[]byte("b"), []byte("c")}, parley.WithKey("k")))
	parleytest.Until(t, "the others are handled", func() bool { return handledJobs(t, pool) == "a b c" })
	fixture.RequireNoError(t, finish())
}

// Senders that notify wait for each other's commits. A consumer that did not count would have them notify for ever.
func TestSimpleConsumerThatIsBusyCountsWhatItTakes(t *testing.T) {
	t.Parallel()
	pool := jobsDatabase(t)
	fixture.Must[parley.SentMessage](t)(parley.Put(t.Context(), pool, "jobs", []byte("a")))
	counts, err := parley.CountsWhatItTakes(t.Context(), pool, "jobs",
		func(context.Context, pgx.Tx, []parley.TakenMessage) error { return nil })
	fixture.RequireNoError(t, err)
	if !counts {
		t.Error("it does not count what it takes")
	}
}

func TestSimpleConsumerSetsWhatFailsAsideWithItsError(t *testing.T) {
	t.Parallel()
	for body, c := range map[string]struct{ sqlstate, error string }{
		"bad": {"", "no such picture"}, "worse": {"", "handler panicked: oh no"}, "late": {"22012", "division by zero"},
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			pool := jobsDatabase(t)
			fixture.RequireNoError(t, parley.PutBatch(t.Context(), pool, "jobs", [][]byte{[]byte("a"), []byte(body), []byte("c")}))
			finish := consumeJobs(t, parley.SimpleConsumer{Pool: pool, Count: 10, PollInterval: soon})
			parleytest.Until(t, "the others are handled", func() bool { return handledJobs(t, pool) == "a c" })
			var found []operate.FailedMessage
			parleytest.Until(t, "the bad one is set aside", func() bool {
				var err error
				found, err = operate.ReadFailedMessages(t.Context(), pool, operate.FailedMessageFilter{Queue: "jobs"})
				fixture.RequireNoError(t, err)
				return len(found) == 1
			})
			f := found[0]
			if f.Rollbacks != 2 || string(f.Body) != body || f.Error == nil || !strings.Contains(*f.Error, c.error) ||
				(f.SQLState == nil) != (c.sqlstate == "") || f.SQLState != nil && *f.SQLState != c.sqlstate || f.SetAsideSince == nil {
				t.Errorf("set aside is %+v", f)
			}
			fixture.RequireNoError(t, finish())
			fixture.RequireNoError(t, operate.RetryMessage(t.Context(), pool, "jobs", f.MessageID))
			requireTakenBodies(t, pool, 1, body)
			_, err := operate.DiscardMessage(t.Context(), pool, "jobs", f.MessageID)
			if number, _ := parley.ErrorNumber(err); number != 8426 {
				t.Errorf("discarded what is not set aside: %v", err)
			}
		})
	}
}

func TestFailingMessageIsReported(t *testing.T) {
	t.Parallel()
	pool := jobsDatabase(t)
	fixture.Must[parley.SentMessage](t)(parley.Put(t.Context(), pool, "jobs", []byte("a"), parley.WithKey("k")))
	tx, err := pool.Begin(t.Context())
	fixture.RequireNoError(t, err)
	taken, err := parley.Take(t.Context(), tx, "jobs", 1)
	fixture.RequireNoError(t, err)
	fixture.RequireNoError(t, tx.Rollback(t.Context()))
	id := taken[0].MessageID
	if ok, err := parley.RecordMessageFailure(t.Context(), pool, "jobs", id, errors.New("not\x00 today")); !ok || err != nil {
		t.Fatalf("recorded %t, %v", ok, err)
	}
	found, err := operate.ReadFailedMessages(t.Context(), pool, operate.FailedMessageFilter{Failing: true, Limit: 5})
	fixture.RequireNoError(t, err)
	if len(found) != 1 || found[0].MessageID != id || *found[0].Key != "k" || *found[0].Error != "not? today" || found[0].SetAsideSince != nil {
		t.Errorf("failing are %+v", found)
	}
}

func TestPausedSimpleConsumerTakesNothing(t *testing.T) {
	t.Parallel()
	pool := jobsDatabase(t)
	fixture.RequireNoError(t, operate.PauseReaders(t.Context(), pool, "jobs"))
	fixture.Must[parley.SentMessage](t)(parley.Put(t.Context(), pool, "jobs", []byte("a")))
	finish := consumeJobs(t, parley.SimpleConsumer{Pool: pool, PollInterval: soon})
	// It asks to be notified when it has scanned and found nothing.
	parleytest.Until(t, "the consumer has scanned", func() bool {
		var is bool
		fixture.RequireNoError(t, pool.QueryRow(t.Context(),
			"select coalesce(pg_sequence_last_value(wakeup_sequence), 0) > 1 from parley._p_queue where name = 'jobs'").Scan(&is))
		return is
	})
	if got := handledJobs(t, pool); got != "" {
		t.Errorf("handled %q while paused", got)
	}
	fixture.RequireNoError(t, operate.ResumeReaders(t.Context(), pool, "jobs"))
	parleytest.Until(t, "it is handled", func() bool { return handledJobs(t, pool) == "a" })
	fixture.RequireNoError(t, finish())
}

func TestSimpleConsumerFinishesItsHandlers(t *testing.T) {
	t.Parallel()
	pool := jobsDatabase(t)
	begun, release := make(chan struct{}), make(chan struct{})
	finish := consumeJobs(t, parley.SimpleConsumer{Pool: pool, PollInterval: soon, Handler: func(ctx context.Context, tx pgx.Tx, m []parley.TakenMessage) error {
		close(begun)
		<-release
		return record(ctx, tx, m)
	}})
	fixture.Must[parley.SentMessage](t)(parley.Put(t.Context(), pool, "jobs", []byte("a")))
	parleytest.Receive(t, begun, "the handler begins")
	ended := make(chan error, 1)
	go func() { ended <- finish() }()
	close(release)
	fixture.RequireNoError(t, parleytest.Receive(t, ended, "the consumer ends"))
	if got := handledJobs(t, pool); got != "a" {
		t.Errorf("handled %q", got)
	}
}

func TestSimpleConsumerRefusesWhatItCannotRun(t *testing.T) {
	t.Parallel()
	pool := jobsDatabase(t)
	for want, consumer := range map[string]parley.SimpleConsumer{
		"Pool is missing":      {Queue: "jobs", Handler: record},
		"Queue is missing":     {Pool: pool, Handler: record},
		"Handler is missing":   {Pool: pool, Queue: "jobs"},
		"must not be negative": {Pool: pool, Queue: "jobs", Handler: record, Count: -1},
	} {
		if err := consumer.Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// A consumer works on a simple queue until its context ends, in a program typically on a signal.
func ExampleSimpleConsumer() {
	ctx, pool, done := exampleDatabase()
	defer done()
	_, err := pool.Exec(ctx, `
		select parley.create_queue('jobs', kind => 'SIMPLE');
		create table done (job text not null)`, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		panic(err)
	}
	if err := parley.PutBatch(ctx, pool, "jobs", [][]byte{[]byte("resize 17.png"), []byte("goodbye")}, parley.WithKey("17")); err != nil {
		panic(err)
	}

	ctx, stop := context.WithCancel(ctx)
	consumer := parley.SimpleConsumer{
		Pool:    pool,
		Queue:   "jobs",
		Readers: 4,
		Handler: func(ctx context.Context, tx pgx.Tx, messages []parley.TakenMessage) error {
			for _, message := range messages {
				fmt.Printf("%s\n", message.Body)
				if _, err := tx.Exec(ctx, "insert into done values ($1)", string(message.Body)); err != nil {
					return err
				}
				if string(message.Body) == "goodbye" {
					stop()
				}
			}
			return nil
		},
	}
	if err := consumer.Run(ctx); err != nil {
		panic(err)
	}

	// Output:
	// resize 17.png
	// goodbye
}

// An outage is over before the attempts are: nothing is set aside, and others are not held up.
func TestSimpleConsumerTriesAgainByThePolicyOfItsQueue(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	fixture.Execute(t, pool, `
		select parley.create_queue('jobs', kind => 'SIMPLE', retry => '{"first": "100 ms", "longest": "200 ms", "jitter": 0, "attempts": 1000}')`)
	fixture.Execute(t, pool, "create table handled (n bigint generated always as identity, body text)")
	var isBack atomic.Bool
	var attempts atomic.Int32
	finish := consumeJobs(t, parley.SimpleConsumer{
		Pool: pool, Readers: 2, PollInterval: soon, Handler: func(ctx context.Context, tx pgx.Tx, messages []parley.TakenMessage) error {
			if string(messages[0].Body) == "call" && !isBack.Load() {
				attempts.Store(messages[0].Attempt)
				return errors.New("connection refused")
			}
			return record(ctx, tx, messages)
		},
	})
	fixture.Must[parley.SentMessage](t)(parley.Put(t.Context(), pool, "jobs", []byte("call")))
	parleytest.Until(t, "it has failed four times", func() bool { return attempts.Load() >= 4 })
	found, err := operate.ReadFailedMessages(t.Context(), pool, operate.FailedMessageFilter{Queue: "jobs", Failing: true})
	fixture.RequireNoError(t, err)
	if len(found) != 1 || found[0].RetryAt == nil || found[0].Error == nil || *found[0].Error != "connection refused" {
		t.Errorf("failing: %+v", found)
	}
	fixture.Must[parley.SentMessage](t)(parley.Put(t.Context(), pool, "jobs", []byte("other")))
	parleytest.Until(t, "the other is handled", func() bool { return handledJobs(t, pool) == "other" })
	isBack.Store(true)
	parleytest.Until(t, "all are handled", func() bool { return handledJobs(t, pool) == "call other" })
	fixture.RequireNoError(t, finish())
}

func TestHandlerSaysWhatBecomesOfItsMessage(t *testing.T) {
	t.Parallel()
	pool := jobsDatabase(t)
	finish := consumeJobs(t, parley.SimpleConsumer{
		Pool: pool, PollInterval: soon, Handler: func(_ context.Context, _ pgx.Tx, messages []parley.TakenMessage) error {
			if string(messages[0].Body) == "later" {
				return fmt.Errorf("not now: %w", parley.RetryAfter(time.Hour, errors.New("busy")))
			}
			return parley.Final(errors.New("no such picture"))
		},
	})
	fixture.Must[parley.SentMessage](t)(parley.Put(t.Context(), pool, "jobs", []byte("later")))
	fixture.Must[parley.SentMessage](t)(parley.Put(t.Context(), pool, "jobs", []byte("never")))
	var failing, setAside []operate.FailedMessage
	parleytest.Until(t, "one waits and one is set aside", func() bool {
		var err error
		failing, err = operate.ReadFailedMessages(t.Context(), pool, operate.FailedMessageFilter{Failing: true})
		fixture.RequireNoError(t, err)
		setAside, err = operate.ReadFailedMessages(t.Context(), pool, operate.FailedMessageFilter{})
		fixture.RequireNoError(t, err)
		return len(failing) == 1 && failing[0].RetryAt != nil && len(setAside) == 1
	})
	if time.Until(*failing[0].RetryAt) < 50*time.Minute || *failing[0].Error != "not now: busy" || setAside[0].Rollbacks != 1 {
		t.Errorf("failing %+v, set aside %+v", failing[0], setAside[0])
	}
	cancelled, err := parley.CancelMessage(t.Context(), pool, "jobs", failing[0].MessageID, false)
	if fixture.RequireNoError(t, err); !cancelled {
		t.Error("the message that waits is not cancelled")
	}
	fixture.RequireNoError(t, finish())
}
