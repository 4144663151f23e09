package operate_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/operate"
)

// lockBySavepoint receives in a savepoint that it releases: the row has the number of a subtransaction that is in no list.
func lockBySavepoint(t *testing.T, pool *pgxpool.Pool) (tx pgx.Tx, pid int32) {
	t.Helper()
	tx, pid = begin(t, pool)
	if _, err := tx.Exec(t.Context(), "create temporary table mine (x integer) on commit drop"); err != nil {
		t.Fatal(err)
	}
	err := pgx.BeginFunc(t.Context(), tx, func(savepoint pgx.Tx) error {
		taken, err := parley.Receive(t.Context(), savepoint, "shop")
		if err == nil && len(taken) == 0 {
			t.Fatal("there is nothing to receive")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tx, pid
}

func lockedConversations(t *testing.T, pool *pgxpool.Pool) (locked []operate.ConversationActivity) {
	t.Helper()
	for _, c := range readActivity(t, pool).Conversations {
		if c.IsLocked {
			locked = append(locked, c)
		}
	}
	return locked
}

func TestActivityNamesTheSessionThatHoldsAGroup(t *testing.T) {
	t.Parallel()
	pool, handle := fixture.Shop(t)
	fixture.SendMany(t, pool, handle, 1)
	tx, pid := begin(t, pool)
	if _, err := tx.Exec(t.Context(), "set local application_name = 'the reader'"); err != nil {
		t.Fatal(err)
	}
	if _, err := parley.Receive(t.Context(), tx, "shop"); err != nil {
		t.Fatal(err)
	}
	locked := lockedConversations(t, pool)
	if len(locked) != 1 || locked[0].LockedBy == nil || *locked[0].LockedBy != pid || locked[0].Holder == nil {
		t.Fatalf("got %+v", locked)
	}
	h := locked[0].Holder
	if h.Role == "" || h.ApplicationName != "the reader" || h.State != "idle in transaction" || h.TransactionSeconds <= 0 || h.IsHidden {
		t.Errorf("the holder is %+v", h)
	}
}

func TestActivityNamesTheSessionThatHoldsAGroupByAReleasedSavepoint(t *testing.T) {
	t.Parallel()
	pool, handle := fixture.Shop(t)
	fixture.SendMany(t, pool, handle, 1)
	_, pid := lockBySavepoint(t, pool)
	locked := lockedConversations(t, pool)
	if len(locked) != 1 || locked[0].LockedBy == nil || *locked[0].LockedBy != pid {
		t.Fatalf("held by %d, got %+v", pid, locked)
	}
}

// PostgreSQL does not show whose subtransaction it was: then each session that it may have been is named.
func TestActivityNamesTheSessionsOneOfWhichHoldsAGroup(t *testing.T) {
	t.Parallel()
	pool, handle := fixture.Shop(t)
	fixture.SendMany(t, pool, handle, 1)
	other, err := parley.BeginDialog(t.Context(), pool, "Web", "Shop")
	if err != nil {
		t.Fatal(err)
	}
	fixture.SendMany(t, pool, other, 1)
	_, first := lockBySavepoint(t, pool)
	_, second := lockBySavepoint(t, pool)
	want := []int32{min(first, second), max(first, second)}
	isAmbiguous := false
	for _, c := range lockedConversations(t, pool) {
		switch {
		case c.LockedBy != nil:
			// The first subtransaction is older than the other session's transaction.
			if *c.LockedBy != first {
				t.Errorf("the group of %d is said to be held by %d", first, *c.LockedBy)
			}
		case slices.Equal(c.LockedByOneOf, want):
			isAmbiguous = true
		default:
			t.Errorf("got %+v, want one of %v", c, want)
		}
	}
	if !isAmbiguous {
		t.Error("no group may be held by either of the two")
	}
}

func TestActivityNamesThePreparedTransactionThatHoldsAGroup(t *testing.T) {
	t.Parallel()
	pool, handle := fixture.Shop(t)
	fixture.SendMany(t, pool, handle, 1)
	var enabled bool
	if err := pool.QueryRow(t.Context(), "select current_setting('max_prepared_transactions')::integer > 0").Scan(&enabled); err != nil {
		t.Fatal(err)
	}
	if !enabled {
		t.Skip("this server prepares no transactions")
	}
	tx, _ := begin(t, pool)
	if _, err := parley.Receive(t.Context(), tx, "shop"); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "set local parley.notify = off"); err != nil {
		t.Fatal(err)
	}
	var gid string
	if err := tx.QueryRow(t.Context(), "select current_database()::text").Scan(&gid); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "prepare transaction '"+gid+"'"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = pool.Exec(t.Context(), "rollback prepared '"+gid+"'") })
	locked := lockedConversations(t, pool)
	if len(locked) != 1 || locked[0].LockedByPrepared == nil || *locked[0].LockedByPrepared != gid {
		t.Errorf("got %+v", locked)
	}
	if _, err := pool.Exec(t.Context(), "rollback prepared '"+gid+"'"); err != nil {
		t.Fatal(err)
	}
}
