package parley_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/operate"
	"github.com/parley-broker/parley/parleytest"
)

func requireTakenBodies(t *testing.T, db parley.DB, count int, want ...string) {
	t.Helper()
	messages, err := parley.Take(t.Context(), db, "jobs", count, parley.Wait(10*time.Second))
	fixture.RequireNoError(t, err)
	got := []string{}
	for _, message := range messages {
		got = append(got, string(message.Body))
	}
	if len(got) != len(want) {
		t.Fatalf("took %q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("took %q, want %q", got, want)
		}
	}
}

func TestPutAndTake(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	fixture.Execute(t, pool, "select parley.create_queue('jobs', kind => 'SIMPLE')")
	fixture.Must[parley.SentMessage](t)(parley.Put(t.Context(), pool, "jobs", []byte("usual")))
	fixture.Must[parley.SentMessage](t)(parley.Put(t.Context(), pool, "jobs", []byte("first"), parley.WithPriority(9), parley.WithKey("k")))
	fixture.RequireNoError(t, parley.PutBatch(t.Context(), pool, "jobs", [][]byte{[]byte("a"), []byte("b")}, parley.WithKey("k")))
	fixture.RequireNoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		messages, err := parley.Take(t.Context(), tx, "jobs", 10)
		fixture.RequireNoError(t, err)
		if len(messages) != 1 || messages[0].Priority != 9 || messages[0].Key == nil || *messages[0].Key != "k" ||
			time.Since(messages[0].EnqueuedAt) > time.Hour {
			t.Errorf("took %+v", messages)
		}
		// The others of the key wait for the commit.
		requireTakenBodies(t, pool, 10, "usual")
		return err
	}))
	requireTakenBodies(t, pool, 10, "a", "b")
	fixture.Must[parley.SentMessage](t)(parley.Put(t.Context(), pool, "jobs", []byte("later"), parley.DeliverAt(time.Now().Add(time.Second))))
	requireTakenBodies(t, pool, 1, "later")
	_, err := parley.Take(t.Context(), pool, "none", 1)
	if number, _ := parley.ErrorNumber(err); number != parley.QueueNotFound {
		t.Errorf("got %v", err)
	}
	_, err = parley.Put(t.Context(), pool, "jobs", nil, parley.WithPriority(11))
	if number, _ := parley.ErrorNumber(err); number != 8402 {
		t.Error("a priority out of range is taken")
	}
}

func TestUniqueMessageIsPutAgainWhenTheFirstIsTaken(t *testing.T) {
	t.Parallel()
	pool := jobsDatabase(t)
	put := func() parley.SentMessage {
		sent, err := parley.PutUnique(t.Context(), pool, "jobs", []byte("rebuild"), "index", parley.WithPriority(7))
		fixture.RequireNoError(t, err)
		return sent
	}
	first, second := put(), put()
	if first.IsDuplicate || !second.IsDuplicate || first.MessageID == nil || *first.MessageID != *second.MessageID {
		t.Errorf("the first is %+v, the second %+v", first, second)
	}
	taken, err := parley.Take(t.Context(), pool, "jobs", 10)
	fixture.RequireNoError(t, err)
	if len(taken) != 1 || taken[0].MessageID != *first.MessageID || taken[0].Priority != 7 {
		t.Errorf("took %+v", taken)
	}
	if third := put(); third.IsDuplicate {
		t.Errorf("the third is %+v", third)
	}
	_, err = parley.PutUnique(t.Context(), pool, "jobs", nil, "")
	requireNumber(t, err, 8402)
}

func TestGroupAndResultsOfASimpleQueue(t *testing.T) {
	t.Parallel()
	pool := jobsDatabase(t)
	batch, err := parley.PutGroup(t.Context(), pool, "jobs", []string{"a", "b"}, "jobs", "all are done")
	fixture.RequireNoError(t, err)
	var messages int
	fixture.RequireNoError(t, pool.QueryRow(t.Context(), "select messages from parley.batches where batch_id = $1", batch).Scan(&messages))
	if messages != 2 {
		t.Errorf("the batch has %d messages", messages)
	}
	finish := func() bool {
		var isKept bool
		fixture.RequireNoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			taken, err := parley.Take(t.Context(), tx, "jobs", 1)
			if err != nil {
				return err
			}
			isKept, err = parley.Done(t.Context(), tx, "jobs", taken[0].MessageID, []byte(`{"rows": 3}`))
			return err
		}))
		return isKept
	}
	if finish() {
		t.Error("a queue that keeps nothing has kept a result")
	}
	hour := time.Hour
	fixture.RequireNoError(t, operate.KeepFinished(t.Context(), pool, "jobs", &hour))
	if !finish() {
		t.Error("the result was not kept")
	}
	var rows int
	fixture.RequireNoError(t, pool.QueryRow(t.Context(), "select (result ->> 'rows')::integer from parley.finished_messages").Scan(&rows))
	if rows != 3 {
		t.Errorf("the result has %d rows", rows)
	}
}
