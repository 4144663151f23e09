package parley_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
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

// claimJobs runs a consumer of claims to the end of the test, or until what it returns is called.
func claimJobs(t *testing.T, consumer parley.ClaimConsumer) (finish func() error, log *logtest.Log) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	log = &logtest.Log{}
	consumer.Queue, consumer.Logger = "jobs", log.Logger(slog.LevelInfo)
	done := make(chan error, 1)
	go func() { done <- consumer.Run(ctx) }()
	finish = sync.OnceValue(func() error {
		stop()
		return <-done
	})
	t.Cleanup(func() {
		_ = finish()
		if t.Failed() {
			t.Logf("the consumer logged:\n%s", log)
		}
	})
	return finish, log
}

// recordWork writes its messages into the table handled, in the transaction that takes them.
func recordWork(ctx context.Context, work *parley.Work, result string) error {
	return work.Transaction(ctx, []byte(result), func(tx pgx.Tx) error { return record(ctx, tx, work.Messages) })
}

func queryJobs[T any](t *testing.T, pool *pgxpool.Pool, query string) (value T) {
	t.Helper()
	fixture.RequireNoError(t, pool.QueryRow(t.Context(), query).Scan(&value))
	return value
}

// No transaction is open while a handler works; its results and the end of its message are one.
func TestClaimConsumerWorksWithoutATransaction(t *testing.T) {
	t.Parallel()
	pool := jobsDatabase(t)
	fixture.Execute(t, pool, "select parley.keep_finished('jobs', '1 hour')")
	begun, release := make(chan struct{}), make(chan struct{})
	var turns []parley.Turn
	finish, _ := claimJobs(t, parley.ClaimConsumer{
		Pool: pool, PollInterval: time.Hour, Observer: func(turn parley.Turn) { turns = append(turns, turn) },
		Handler: func(ctx context.Context, work *parley.Work) ([]byte, error) {
			if string(work.Messages[0].Body) == "plain" {
				return []byte(`"returned"`), nil
			}
			if err := work.Progress(map[string]int{"pages": 3}); err != nil {
				return nil, err
			}
			close(begun)
			<-release
			return nil, recordWork(ctx, work, `"written"`)
		},
	})
	fixture.Must[parley.SentMessage](t)(parley.Put(t.Context(), pool, "jobs", []byte("a")))
	parleytest.Receive(t, begun, "the handler begins")
	if got := queryJobs[int](t, pool, "select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in%'"); got != 0 {
		t.Errorf("%d transactions are open", got)
	}
	claimed, err := operate.ReadClaimed(t.Context(), pool, "jobs")
	fixture.RequireNoError(t, err)
	if len(claimed) != 1 || claimed[0].MessageID == nil {
		t.Errorf("claimed are %+v", claimed)
	}
	close(release)
	parleytest.Until(t, "it is done", func() bool { return handledJobs(t, pool) == "a" })
	fixture.Must[parley.SentMessage](t)(parley.Put(t.Context(), pool, "jobs", []byte("plain")))
	parleytest.Until(t, "the other is done", func() bool {
		return queryJobs[int](t, pool, "select count(*) from parley.finished_messages") == 2
	})
	fixture.RequireNoError(t, finish())
	finished, err := operate.ReadFinished(t.Context(), pool, "", 10)
	fixture.RequireNoError(t, err)
	if len(finished) != 2 || string(finished[0].Result) != `"returned"` || string(finished[1].Result) != `"written"` {
		t.Errorf("finished are %+v", finished)
	}
	if len(turns) != 2 || turns[0].Messages != 1 || turns[0].Err != nil || turns[0].Queue != "jobs" {
		t.Errorf("observed were %+v", turns)
	}
}

// A heartbeat keeps a claim for as long as its handler works, and shows its progress.
func TestClaimConsumerKeepsItsClaims(t *testing.T) {
	t.Parallel()
	pool := jobsDatabase(t)
	shown := make(chan struct{})
	finish, _ := claimJobs(t, parley.ClaimConsumer{
		Pool: pool, PollInterval: soon, Lease: 6 * time.Second,
		Handler: func(ctx context.Context, work *parley.Work) ([]byte, error) {
			if err := work.Progress("half"); err != nil {
				return nil, err
			}
			<-shown
			return nil, recordWork(ctx, work, "null")
		},
	})
	fixture.Must[parley.SentMessage](t)(parley.Put(t.Context(), pool, "jobs", []byte("a")))
	parleytest.Until(t, "the progress is shown and the claim renewed", func() bool {
		return queryJobs[bool](t, pool, `
			select coalesce(bool_or(progress = '"half"' and leased_until > claimed_at + interval '7 seconds'), false) from parley.delivery_claims`)
	})
	close(shown)
	parleytest.Until(t, "it is done", func() bool { return handledJobs(t, pool) == "a" })
	fixture.RequireNoError(t, finish())
}

// Work whose message was cancelled is broken off: its context ends, and nothing of it is committed.
func TestClaimConsumerBreaksCancelledWorkOff(t *testing.T) {
	t.Parallel()
	pool := jobsDatabase(t)
	begun, ended := make(chan int64, 1), make(chan error, 1)
	finish, log := claimJobs(t, parley.ClaimConsumer{
		Pool: pool, PollInterval: soon, Lease: 3 * time.Second,
		Handler: func(ctx context.Context, work *parley.Work) ([]byte, error) {
			begun <- work.Messages[0].MessageID
			<-ctx.Done()
			ended <- recordWork(context.WithoutCancel(ctx), work, "null")
			return nil, context.Cause(ctx)
		},
	})
	fixture.Must[parley.SentMessage](t)(parley.Put(t.Context(), pool, "jobs", []byte("a")))
	is, err := parley.CancelMessage(t.Context(), pool, "jobs", parleytest.Receive(t, begun, "the handler begins"), true)
	if err != nil || !is {
		t.Fatalf("cancelled %t, %v", is, err)
	}
	if err := parleytest.Receive(t, ended, "the handler ends"); !errors.Is(err, parley.ErrClaimLost) {
		t.Errorf("the results were written: %v", err)
	}
	fixture.RequireNoError(t, finish())
	if got := handledJobs(t, pool); got != "" || !strings.Contains(log.String(), "broken off") {
		t.Errorf("handled %q", got)
	}
}

// Of several that failed together each comes again in a call of its own, and waits or is set aside alone.
func TestClaimConsumerGivesBackWhatFails(t *testing.T) {
	t.Parallel()
	pool := jobsDatabase(t)
	fixture.Execute(t, pool, "select parley.set_retry_policy('jobs', first => '1 ms', longest => '1 ms', attempts => 2)")
	fixture.RequireNoError(t, parley.PutBatch(t.Context(), pool, "jobs", [][]byte{[]byte("a"), []byte("bad"), []byte("final"), []byte("later")}))
	finish, _ := claimJobs(t, parley.ClaimConsumer{
		Pool: pool, PollInterval: soon, Count: 10,
		Handler: func(ctx context.Context, work *parley.Work) ([]byte, error) {
			for _, m := range work.Messages {
				switch string(m.Body) {
				case "final":
					if len(work.Messages) == 1 {
						return nil, parley.Final(errors.New("in vain"))
					}
				case "later":
					if len(work.Messages) == 1 {
						return nil, parley.RetryAfter(time.Hour, errors.New("not now"))
					}
				}
			}
			return nil, recordWork(ctx, work, "null")
		},
	})
	parleytest.Until(t, "the bad ones are out of the way", func() bool {
		return queryJobs[string](t, pool, `
			select concat_ws(' ', (
				select string_agg(parley.body_text(body) || ': ' || rollbacks || ' ' || error, ', ' order by body) from parley.set_aside_messages
			), (select 'later: ' || error from parley.failing_messages where retry_at > now() + interval '50 minutes'))`) ==
			"bad: 2 no such picture, final: 1 in vain later: not now"
	})
	fixture.RequireNoError(t, finish())
	if got := handledJobs(t, pool); got != "a" {
		t.Errorf("handled %q", got)
	}
}

// A consumer that is stopped says nothing about its messages: they are free at once, and nothing is counted.
func TestStoppedClaimConsumerReleasesItsMessages(t *testing.T) {
	t.Parallel()
	pool := jobsDatabase(t)
	fixture.Execute(t, pool, "select parley.set_retry_policy('jobs')")
	begun := make(chan struct{})
	finish, _ := claimJobs(t, parley.ClaimConsumer{
		Pool: pool, PollInterval: soon, GraceTime: time.Millisecond,
		Handler: func(ctx context.Context, _ *parley.Work) ([]byte, error) {
			close(begun)
			<-ctx.Done()
			return nil, context.Cause(ctx)
		},
	})
	fixture.Must[parley.SentMessage](t)(parley.Put(t.Context(), pool, "jobs", []byte("a")))
	parleytest.Receive(t, begun, "the handler begins")
	if err := finish(); err == nil || !strings.Contains(err.Error(), "1 handlers did not finish") {
		t.Errorf("got %v", err)
	}
	claimed, err := parley.Claim(t.Context(), pool, "jobs", 1, time.Minute)
	fixture.RequireNoError(t, err)
	if claimed == nil || claimed.Messages[0].Attempt != 1 {
		t.Fatalf("claimed %+v", claimed)
	}
	if again, err := parley.Claim(t.Context(), pool, "jobs", 1, time.Minute); again != nil || err != nil {
		t.Errorf("claimed twice: %+v, %v", again, err)
	}
}

func TestClaimConsumerRefusesWhatItCannotRun(t *testing.T) {
	t.Parallel()
	pool := jobsDatabase(t)
	handler := func(context.Context, *parley.Work) ([]byte, error) { return nil, nil }
	for want, consumer := range map[string]parley.ClaimConsumer{
		"Pool is missing":               {Queue: "jobs", Handler: handler},
		"Handler is missing":            {Pool: pool, Queue: "jobs"},
		"must not be negative":          {Pool: pool, Queue: "jobs", Handler: handler, Count: -1},
		"Lease must be between 0 and a": {Pool: pool, Queue: "jobs", Handler: handler, Lease: 2 * time.Hour},
	} {
		if err := consumer.Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// The errors of an observer are its own: the work is done.
func TestConsumersAreObserved(t *testing.T) {
	t.Parallel()
	pool := jobsDatabase(t)
	turns := make(chan parley.Turn, 10)
	finish := consumeJobs(t, parley.SimpleConsumer{Pool: pool, PollInterval: soon, Observer: func(turn parley.Turn) {
		turns <- turn
		panic("not today")
	}})
	fixture.Must[parley.SentMessage](t)(parley.Put(t.Context(), pool, "jobs", []byte("a")))
	if turn := parleytest.Receive(t, turns, "the first call is observed"); turn.Err != nil || turn.Messages != 1 || turn.Queue != "jobs" {
		t.Errorf("observed %+v", turn)
	}
	parleytest.Until(t, "it is handled", func() bool { return handledJobs(t, pool) == "a" })
	fixture.Must[parley.SentMessage](t)(parley.Put(t.Context(), pool, "jobs", []byte("bad")))
	if turn := parleytest.Receive(t, turns, "the failure is observed"); turn.Err == nil || turn.Err.Error() != "no such picture" {
		t.Errorf("observed %+v", turn)
	}
	fixture.RequireNoError(t, finish())
}

func TestPutEachSaysWhatCameOfEach(t *testing.T) {
	t.Parallel()
	pool := jobsDatabase(t)
	sent, err := parley.PutEach(t.Context(), pool, "jobs", []parley.NewMessage{
		{Body: "a", Key: "k"}, {Body: "b", DeduplicationKey: "once"}, {Body: "c", DeduplicationKey: "once"},
	}, parley.WithPriority(7))
	fixture.RequireNoError(t, err)
	if len(sent) != 3 || sent[0].IsDuplicate || sent[1].IsDuplicate || !sent[2].IsDuplicate || *sent[2].MessageID != *sent[1].MessageID {
		t.Fatalf("sent were %+v", sent)
	}
	is, err := parley.CancelMessage(t.Context(), pool, "jobs", *sent[0].MessageID, false)
	if err != nil || !is {
		t.Errorf("cancelled %t, %v", is, err)
	}
	requireTakenBodies(t, pool, 10, "b")
}

// A worker of long work: the message is claimed, no transaction is open, and a heartbeat keeps the claim.
func ExampleClaimConsumer() {
	ctx, pool, done := exampleDatabase()
	defer done()
	_, err := pool.Exec(ctx, `
		select parley.create_queue('films', kind => 'SIMPLE');
		create table converted (film text not null)`, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		panic(err)
	}
	if _, err := parley.Put(ctx, pool, "films", []byte("holiday.mp4")); err != nil {
		panic(err)
	}

	ctx, stop := context.WithCancel(ctx)
	consumer := parley.ClaimConsumer{
		Pool:  pool,
		Queue: "films",
		Handler: func(ctx context.Context, work *parley.Work) ([]byte, error) {
			film := string(work.Messages[0].Body)
			if err := work.Progress(map[string]int{"percent": 50}); err != nil {
				return nil, err
			}
			fmt.Println("converting", film)
			stop()
			return nil, work.Transaction(ctx, nil, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, "insert into converted values ($1)", film)
				return err
			})
		},
	}
	if err := consumer.Run(ctx); err != nil {
		panic(err)
	}

	// Output:
	// converting holiday.mp4
}
