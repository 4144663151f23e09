package operate_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/operate"
)

func readShop(t *testing.T, pool *pgxpool.Pool) operate.QueueStatus {
	t.Helper()
	queues, err := operate.ReadQueues(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(queues, func(q operate.QueueStatus) bool { return q.Queue == "shop" })
	if i < 0 {
		t.Fatalf("no queue shop among %v", queues)
	}
	return queues[i]
}

func TestBacklogIsCountedUpToALimitAndEstimatedBeyond(t *testing.T) {
	t.Parallel()
	pool, handle := fixture.Shop(t)
	fixture.SendMany(t, pool, handle, 9_999)
	if b := readShop(t, pool).Backlog; b.WaitingMessages != 9_999 || b.IsEstimated {
		t.Errorf("%d messages, estimated %v; want 9999, counted", b.WaitingMessages, b.IsEstimated)
	}
	// Messages that stand as dense as those that were counted are estimated well.
	fixture.SendMany(t, pool, handle, 5_001)
	if b := readShop(t, pool).Backlog; b.WaitingMessages < 14_900 || b.WaitingMessages > 15_100 || !b.IsEstimated {
		t.Errorf("%d messages, estimated %v; want about 15000, estimated", b.WaitingMessages, b.IsEstimated)
	}
}

func TestQueueStatusReportsPoison(t *testing.T) {
	t.Parallel()
	pool, handle := fixture.Shop(t)
	fixture.Execute(t, pool, "select parley.alter_queue('shop', poison_action => 'DISABLE_QUEUE')")
	fixture.SendMany(t, pool, handle, 1)
	receiveAndRollBack := func() error {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(t.Context()) }()
		_, err = parley.Receive(t.Context(), tx, "shop")
		return err
	}
	for range 3 {
		if err := receiveAndRollBack(); err != nil {
			t.Fatal(err)
		}
	}
	// A rollback is noticed when the message is received again.
	if q := readShop(t, pool); q.Status != operate.QueueOn || q.Backlog.Rollbacks != 2 || q.Backlog.RollbacksBeforeDisable != 5 {
		t.Errorf("after three rollbacks: %s, %d of %d", q.Status, q.Backlog.Rollbacks, q.Backlog.RollbacksBeforeDisable)
	}
	for range 2 {
		if err := receiveAndRollBack(); err != nil {
			t.Fatal(err)
		}
	}
	if number, _ := parley.ErrorNumber(receiveAndRollBack()); number != parley.QueueDisabled {
		t.Errorf("error %d after five rollbacks, want %d", number, parley.QueueDisabled)
	}
	if q := readShop(t, pool); q.Status != operate.QueuePoisoned || q.Backlog.Rollbacks != 5 || q.Backlog.WaitingMessages != 1 {
		t.Errorf("after five rollbacks: %s, %d rollbacks, %d waiting", q.Status, q.Backlog.Rollbacks, q.Backlog.WaitingMessages)
	}
}
