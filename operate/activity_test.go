package operate_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/operate"
	"github.com/parley-broker/parley/parleytest"
)

func readActivity(t *testing.T, pool *pgxpool.Pool) operate.Activity {
	t.Helper()
	activity, err := operate.ReadActivity(t.Context(), pool, 10)
	if err != nil {
		t.Fatal(err)
	}
	return activity
}

func queueActivity(t *testing.T, activity operate.Activity, name string) operate.QueueActivity {
	t.Helper()
	i := slices.IndexFunc(activity.Queues, func(q operate.QueueActivity) bool { return q.Queue == name })
	if i < 0 {
		t.Fatalf("no queue %s among %v", name, activity.Queues)
	}
	return activity.Queues[i]
}

// awaitSession waits until a session is as it is waited for.
func awaitSession(t *testing.T, pool *pgxpool.Pool, is func(operate.SessionActivity) bool) (session operate.SessionActivity) {
	t.Helper()
	parleytest.Until(t, "the session waits", func() bool {
		sessions := readActivity(t, pool).Sessions
		i := slices.IndexFunc(sessions, is)
		if i >= 0 {
			session = sessions[i]
		}
		return i >= 0
	})
	return session
}

func begin(t *testing.T, pool *pgxpool.Pool) (pgx.Tx, int32) {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(t.Context()) })
	var pid int32
	if err := tx.QueryRow(t.Context(), "select pg_backend_pid()").Scan(&pid); err != nil {
		t.Fatal(err)
	}
	return tx, pid
}

func TestActivityShowsWhichSessionHoldsWhichConversation(t *testing.T) {
	t.Parallel()
	pool, handle := fixture.Shop(t)
	fixture.SendMany(t, pool, handle, 3)
	other, err := parley.BeginDialog(t.Context(), pool, "Web", "Shop")
	if err != nil {
		t.Fatal(err)
	}
	fixture.SendMany(t, pool, other, 2)
	tx, pid := begin(t, pool)
	taken, err := parley.Receive(t.Context(), tx, "shop")
	if err != nil {
		t.Fatal(err)
	}

	activity := readActivity(t, pool)
	if q := queueActivity(t, activity, "shop"); q.WaitingMessages != 5 || q.EnqueuedRows != 5 || q.LockedGroups != 1 || !slices.Equal(q.LockHolders, []int32{pid}) {
		t.Errorf("while %d receives: %+v", pid, q)
	}
	if len(activity.Conversations) != 2 {
		t.Fatalf("conversations %+v", activity.Conversations)
	}
	// Locked groups come first.
	locked, free := activity.Conversations[0], activity.Conversations[1]
	if locked.ConversationHandle != taken[0].ConversationHandle || !locked.IsLocked || locked.LockedBy == nil || *locked.LockedBy != pid || locked.WaitingMessages != 3 {
		t.Errorf("locked: %+v", locked)
	}
	if free.IsLocked || free.LockedBy != nil || free.WaitingMessages != 2 || free.Queue != "shop" || free.ServiceName != "Shop" || free.FarService != "Web" {
		t.Errorf("free: %+v", free)
	}
	if i := slices.IndexFunc(activity.Sessions, func(s operate.SessionActivity) bool { return s.PID == pid }); i < 0 {
		t.Errorf("session %d is not among %+v", pid, activity.Sessions)
	} else if s := activity.Sessions[i]; s.State != "idle in transaction" || len(s.BlockedBy) > 0 {
		t.Errorf("session: %+v", s)
	}

	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if q := queueActivity(t, readActivity(t, pool), "shop"); q.WaitingMessages != 2 || q.EnqueuedRows != 5 || q.LockedGroups != 0 {
		t.Errorf("after the reader: %+v", q)
	}
}

func TestActivityShowsWhichLockASessionWaitsFor(t *testing.T) {
	t.Parallel()
	pool, handle := fixture.Shop(t)
	fixture.SendMany(t, pool, handle, 1)
	holder, holderPID := begin(t, pool)
	taken, err := parley.Receive(t.Context(), holder, "shop")
	if err != nil {
		t.Fatal(err)
	}
	waiter, waiterPID := begin(t, pool)
	done := make(chan error, 1)
	go func() { done <- parley.EndConversation(t.Context(), waiter, taken[0].ConversationHandle) }()
	session := awaitSession(t, pool, func(s operate.SessionActivity) bool { return s.PID == waiterPID && len(s.BlockedBy) > 0 })
	if !slices.Equal(session.BlockedBy, []int32{holderPID}) || session.WaitEventType != "Lock" {
		t.Errorf("the waiting session: %+v", session)
	}
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := parleytest.Receive(t, done, "the end of the conversation"); err != nil {
		t.Fatal(err)
	}
}

func TestActivityShowsInWhichQueueASessionWaits(t *testing.T) {
	t.Parallel()
	pool, _ := fixture.Shop(t)
	waiter, pid := begin(t, pool)
	done := make(chan error, 1)
	go func() {
		_, err := parley.Receive(t.Context(), waiter, "shop", parley.Wait(parley.WaitForever))
		done <- err
	}()
	awaitSession(t, pool, func(s operate.SessionActivity) bool {
		return s.PID == pid && s.WaitsInQueue != nil && *s.WaitsInQueue == "shop"
	})
	if _, err := pool.Exec(t.Context(), "select pg_terminate_backend($1)", pid); err != nil {
		t.Fatal(err)
	}
	if err := parleytest.Receive(t, done, "the end of the reader"); err == nil {
		t.Error("a reader that was cut off came back without an error")
	}
}

func TestActivityShowsOnlyQueuesThatTheRoleMayReceiveFrom(t *testing.T) {
	t.Parallel()
	pool, handle := fixture.Shop(t)
	fixture.SendMany(t, pool, handle, 1)
	tx, _ := begin(t, pool)
	if _, err := tx.Exec(t.Context(), "set local role pg_monitor"); err != nil {
		t.Fatal(err)
	}
	activity, err := operate.ReadActivity(t.Context(), tx, 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(activity.Queues)+len(activity.Conversations) != 0 {
		t.Errorf("a outsider sees %+v", activity)
	}
}

func TestQueueStatusIsSwitched(t *testing.T) {
	t.Parallel()
	pool, _ := fixture.Shop(t)
	for _, want := range []string{operate.QueueOff, operate.QueueOn} {
		if err := operate.SetQueueStatus(t.Context(), pool, "shop", want == operate.QueueOn); err != nil {
			t.Fatal(err)
		}
		if q := queueActivity(t, readActivity(t, pool), "shop"); q.Status != want {
			t.Errorf("status %s, want %s", q.Status, want)
		}
	}
	err := operate.SetQueueStatus(t.Context(), pool, "shopp", true)
	if number, _ := parley.ErrorNumber(err); number != parley.QueueNotFound {
		t.Errorf("error %v for a queue that is not there", err)
	}
}
