package parley_test

import (
	"testing"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
)

func TestPeekTakesNothingAndSeesLockedGroups(t *testing.T) {
	t.Parallel()
	pool, handle := fixture.Shop(t)
	fixture.SendMany(t, pool, handle, 3)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	taken, err := parley.Receive(t.Context(), tx, "shop", parley.Top(2))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		seen, err := parley.Peek(t.Context(), pool, "shop", parley.FromConversation(taken[0].ConversationHandle))
		if err != nil {
			t.Fatal(err)
		}
		if len(seen) != 3 || seen[2].MessageSequenceNumber != 2 || seen[0].Status != 1 {
			t.Errorf("peek while a reader works: %+v", seen)
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen, err := parley.Peek(t.Context(), pool, "shop")
	if err != nil {
		t.Fatal(err)
	}
	if len(seen) != 1 || seen[0].MessageSequenceNumber != 2 {
		t.Errorf("peek after the reader: %+v", seen)
	}
}

func TestPeekGoesOnBehindAMessage(t *testing.T) {
	t.Parallel()
	pool, handle := fixture.Shop(t)
	fixture.SendMany(t, pool, handle, 3)
	page := fixture.Must[[]parley.Message](t)(parley.Peek(t.Context(), pool, "shop", parley.Top(2)))
	last := page[1]
	for _, options := range [][]parley.ReceiveOption{nil, {parley.FromConversation(last.ConversationHandle)}} {
		options = append(options, parley.After(last.Priority, last.QueuingOrder))
		rest := fixture.Must[[]parley.Message](t)(parley.Peek(t.Context(), pool, "shop", options...))
		if len(rest) != 1 || rest[0].MessageSequenceNumber != 2 {
			t.Errorf("behind the second there are %+v", rest)
		}
	}
	fixture.Execute(t, pool, "select parley.create_queue('jobs', kind => 'SIMPLE')")
	fixture.RequireNoError(t, parley.PutBatch(t.Context(), pool, "jobs", [][]byte{[]byte("a"), []byte("b")}))
	jobs := fixture.Must[[]parley.TakenMessage](t)(parley.PeekMessages(t.Context(), pool, "jobs", 1))
	jobs = fixture.Must[[]parley.TakenMessage](t)(
		parley.PeekMessages(t.Context(), pool, "jobs", 10, parley.After(jobs[0].Priority, jobs[0].MessageID)))
	if len(jobs) != 1 || string(jobs[0].Body) != "b" {
		t.Errorf("behind the first there are %+v", jobs)
	}
}
