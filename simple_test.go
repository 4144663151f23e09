package parley_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
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
	fixture.RequireNoError(t, parley.Put(t.Context(), pool, "jobs", []byte("usual")))
	fixture.RequireNoError(t, parley.Put(t.Context(), pool, "jobs", []byte("first"), parley.WithPriority(9), parley.WithKey("k")))
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
	fixture.RequireNoError(t, parley.Put(t.Context(), pool, "jobs", []byte("later"), parley.DeliverAt(time.Now().Add(time.Second))))
	requireTakenBodies(t, pool, 1, "later")
	_, err := parley.Take(t.Context(), pool, "none", 1)
	if number, _ := parley.ErrorNumber(err); number != parley.QueueNotFound {
		t.Errorf("got %v", err)
	}
	if number, _ := parley.ErrorNumber(parley.Put(t.Context(), pool, "jobs", nil, parley.WithPriority(11))); number != 8402 {
		t.Error("a priority out of range is taken")
	}
}
