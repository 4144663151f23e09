package operate_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/operate"
	"github.com/parley-broker/parley/parleytest"
)

func follow(t *testing.T, pool *pgxpool.Pool, from int64) *operate.Follower {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), parleytest.DSN(t, pool))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	f, err := operate.Follow(t.Context(), conn, "shop", from)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// next gives the bodies of what a follower sees next, with their positions checked for order inside one poll.
func next(t *testing.T, f *operate.Follower) []string {
	t.Helper()
	messages, err := f.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var bodies []string
	for _, m := range messages {
		bodies = append(bodies, string(m.MessageBody))
	}
	return bodies
}

func sendText(t *testing.T, db parley.DB, handle parley.UUID, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		if err := parley.Send(t.Context(), db, handle, "DEFAULT", []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFollowerSeesEachMessageOnceAndTakesNone(t *testing.T) {
	t.Parallel()
	pool, handle := fixture.Shop(t)
	sendText(t, pool, handle, "old")
	f, all := follow(t, pool, -1), follow(t, pool, 0)
	sendText(t, pool, handle, "a", "b")
	if got := next(t, f); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("saw %q", got)
	}
	if got := next(t, all); !slices.Equal(got, []string{"old", "a", "b"}) {
		t.Errorf("from the beginning: %q", got)
	}
	if got := next(t, f); got != nil {
		t.Errorf("saw %q twice", got)
	}
	if err := parley.SendBatch(t.Context(), pool, handle, "DEFAULT", [][]byte{[]byte("c"), []byte("d"), []byte("e")}); err != nil {
		t.Fatal(err)
	}
	// A reader takes a part of the batch; the rest keeps its place.
	if taken, err := parley.Receive(t.Context(), pool, "shop", parley.Top(4)); err != nil || len(taken) != 4 {
		t.Fatalf("received %d: %v", len(taken), err)
	}
	if got := next(t, f); !slices.Equal(got, []string{"d", "e"}) {
		t.Errorf("after a reader took one of the batch: %q", got)
	}
	if b := readShop(t, pool).Backlog; b.WaitingMessages != 2 {
		t.Errorf("%d messages wait, want 2", b.WaitingMessages)
	}
}

func TestFollowerSeesWhatCommitsLate(t *testing.T) {
	t.Parallel()
	pool, handle := fixture.Shop(t)
	sendText(t, pool, handle, "first") // the conversation can be sent on side by side from here on
	f := follow(t, pool, -1)
	tx, _ := begin(t, pool)
	sendText(t, tx, handle, "late")
	for n := range 3 {
		body := "early " + strconv.Itoa(n)
		sendText(t, pool, handle, body)
		if got := next(t, f); !slices.Equal(got, []string{body}) {
			t.Errorf("saw %q, want %q", got, body)
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := next(t, f); !slices.Equal(got, []string{"late"}) {
		t.Errorf("saw %q of what committed late", got)
	}
	for range 3 {
		if got := next(t, f); got != nil {
			t.Errorf("saw %q twice", got)
		}
	}
}

func TestFollowerSeesMoreThanOnePollHolds(t *testing.T) {
	t.Parallel()
	pool, handle := fixture.Shop(t)
	fixture.SendMany(t, pool, handle, 2345)
	f := follow(t, pool, 0)
	count := 0
	for polls := 0; ; polls++ {
		got := next(t, f)
		if count += len(got); got == nil {
			break
		}
		if polls > 10 {
			t.Fatal("there is no end")
		}
	}
	if count != 2345 {
		t.Errorf("saw %d of 2345", count)
	}
}

func TestFollowerWakesWhenReadersAskSendersToNotify(t *testing.T) {
	t.Parallel()
	pool, handle := fixture.Shop(t)
	sendText(t, pool, handle, "first")
	f := follow(t, pool, -1)
	if err := f.Wait(t.Context(), time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), "select parley.listen_for_messages('shop', 3600)"); err != nil {
		t.Fatal(err)
	}
	sendText(t, pool, handle, "news")
	// An hour is longer than the test may take.
	if err := f.Wait(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	if got := next(t, f); !slices.Equal(got, []string{"news"}) {
		t.Errorf("saw %q", got)
	}
}

func TestFollowRefusesAQueueThatIsNotThere(t *testing.T) {
	t.Parallel()
	pool, _ := fixture.Shop(t)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	_, err = operate.Follow(t.Context(), conn.Conn(), "shoe", 0)
	if number, _ := parley.ErrorNumber(err); number != parley.QueueNotFound {
		t.Errorf("the error is %v", err)
	}
}
