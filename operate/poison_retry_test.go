package operate_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/operate"
	"github.com/parley-broker/parley/parleytest"
)

// setAside makes a number of conversations whose first message came back once too often.
func setAside(t *testing.T, pool *pgxpool.Pool, count int) {
	t.Helper()
	fixture.Execute(t, pool, "select parley.alter_queue('target', poison_rollbacks => 1)")
	for i := range count {
		handle := fixture.Must[parley.UUID](t)(parley.BeginDialog(t.Context(), pool, "initiator", "target"))
		fixture.RequireNoError(t, parley.Send(t.Context(), pool, handle, parley.DefaultMessageType, []byte(fmt.Sprint(i))))
	}
	for range count {
		tx, err := pool.Begin(t.Context())
		fixture.RequireNoError(t, err)
		messages := fixture.Must[[]parley.Message](t)(parley.Receive(t.Context(), tx, "target", parley.Top(1)))
		fixture.RequireNoError(t, tx.Rollback(t.Context()))
		fixture.RequireNoError(t, parley.RecordFailure(t.Context(), pool, errors.New("the printer is off"), messages[0].ConversationHandle))
	}
}

func TestRetryPoisonAtRate(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	fixture.CreateServices(t, pool)
	setAside(t, pool, 6)
	ctx := t.Context()
	filter := operate.PoisonFilter{Queue: "target", ServiceName: "target", Contract: "DEFAULT", ErrorText: "PRINTER", Limit: 4}
	if found := fixture.Must[[]operate.PoisonConversation](t)(operate.ReadPoisonConversations(ctx, pool, filter)); len(found) != 4 {
		t.Fatalf("found %d, want 4", len(found))
	}
	began := time.Now()
	reported := 0
	count := fixture.Must[int](t)(operate.RetryPoisonAtRate(ctx, pool, filter, 20, func(retried []operate.RetriedPoison) { reported += len(retried) }))
	if took := time.Since(began); count != 4 || reported != 4 || took < 150*time.Millisecond {
		t.Errorf("put back %d, reported %d in %v, want 4 in at least 150 ms", count, reported, took)
	}
	filter.SQLState = "00000"
	if count := fixture.Must[int](t)(operate.RetryPoisonAtRate(ctx, pool, filter, 0, nil)); count != 0 {
		t.Errorf("put back %d that do not match", count)
	}
	if _, err := operate.RetryMatchingPoison(ctx, pool, operate.PoisonFilter{Failing: true}); err == nil {
		t.Error("those that only fail were not refused")
	}
	stopped, cancel := context.WithCancel(ctx)
	count, err := operate.RetryPoisonAtRate(stopped, pool, operate.PoisonFilter{}, 0.01, func([]operate.RetriedPoison) { cancel() })
	if count != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("stopped after %d with %v", count, err)
	}
}
