package pages

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/parleytest"
)

// The page for people who come from another queue shows these calls as they stand here.
func TestCallsInGoForThoseWhoComeFromOtherQueuesRun(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	fixture.Execute(t, pool, "select parley.create_queue('jobs', kind => 'SIMPLE'), parley.keep_finished('jobs', '1 day')")
	fixture.RequireNoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return putAsThePageSaysIt(t.Context(), tx)
	}))
	fixture.RequireNoError(t, takeAsThePageSaysIt(t.Context(), pool))
	handled := make(chan string, 10)
	resize := func(_ context.Context, _ pgx.Tx, messages []parley.TakenMessage) error {
		handled <- string(messages[0].Body)
		return nil
	}
	encode := func(_ context.Context, work *parley.Work) ([]byte, error) {
		handled <- string(work.Messages[0].Body)
		return nil, nil
	}
	simple := parley.SimpleConsumer{Pool: pool, Queue: "jobs", Readers: 4, Handler: resize}
	requireHandled(t, pool, simple.Run, handled)
	long := parley.ClaimConsumer{Pool: pool, Queue: "jobs", Readers: 4, Handler: encode}
	requireHandled(t, pool, long.Run, handled)
}

func putAsThePageSaysIt(ctx context.Context, tx pgx.Tx) error {
	body, bodies, tomorrow := []byte("a"), [][]byte{[]byte("b")}, time.Now().AddDate(0, 0, 1)
	_, one := parley.Put(ctx, tx, "jobs", body)
	many := parley.PutBatch(ctx, tx, "jobs", bodies)
	_, later := parley.Put(ctx, tx, "jobs", body, parley.DeliverAt(tomorrow))
	_, unique := parley.PutUnique(ctx, tx, "jobs", body, "index")
	_, once := parley.PutOnce(ctx, tx, "jobs", body, "key")
	return errors.Join(one, many, later, unique, once)
}

// takeAsThePageSaysIt does one job, cancels one and reports the failures of two.
func takeAsThePageSaysIt(ctx context.Context, pool *pgxpool.Pool) error {
	var failed []int64
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		messages, err := parley.Take(ctx, tx, "jobs", 1)
		if err != nil {
			return err
		}
		id := messages[0].MessageID
		if isKept, err := parley.Done(ctx, tx, "jobs", id, nil); err != nil || !isKept {
			return errors.Join(errors.New("what is done is not kept"), err)
		}
		left, err := parley.PeekMessages(ctx, tx, "jobs", 10)
		if err != nil {
			return err
		}
		id = left[0].MessageID
		if isCancelled, err := parley.CancelMessage(ctx, tx, "jobs", id, true); err != nil || !isCancelled {
			return errors.Join(errors.New("it is not cancelled"), err)
		}
		failed = []int64{left[1].MessageID, left[2].MessageID}
		return nil
	})
	if err != nil {
		return err
	}
	err = errors.New("no answer")
	waits, waitErr := parley.RetryMessage(ctx, pool, "jobs", failed[0], parley.RetryAfter(time.Hour, err))
	over, finalErr := parley.RetryMessage(ctx, pool, "jobs", failed[1], parley.Final(err))
	if waitErr != nil || finalErr != nil || waits.RetryAt.IsZero() || !over.IsSetAside {
		return errors.Join(errors.New("the failures are not recorded"), waitErr, finalErr)
	}
	return nil
}

// requireHandled runs a consumer until it has handled a message.
func requireHandled(t *testing.T, pool *pgxpool.Pool, run func(context.Context) error, handled <-chan string) {
	t.Helper()
	_, err := parley.Put(t.Context(), pool, "jobs", []byte("job"))
	fixture.RequireNoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	var got string
	parleytest.Until(t, "the consumer has handled the message", func() bool {
		select {
		case got = <-handled:
			return true
		default:
			return false
		}
	})
	cancel()
	fixture.RequireNoError(t, <-ended)
	if got != "job" {
		t.Errorf("handled %q", got)
	}
}
