package parley_test

import (
	"testing"
	"time"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/operate"
	"github.com/parley-broker/parley/parleytest"
)

func TestDelayedMessages(t *testing.T) {
	t.Parallel()
	ctx, pool := t.Context(), parleytest.Database(t)
	fixture.CreateServices(t, pool)
	due := time.Now().Add(time.Hour).Truncate(time.Second)
	handle := fixture.Must[parley.UUID](t)(parley.BeginAndSend(ctx, pool, "initiator", "target", "DEFAULT", []byte("one"), parley.FirstMessageAt(due)))
	sent := fixture.Must[parley.SentMessage](t)(parley.SendWith(ctx, pool, handle, "DEFAULT", []byte("two"), parley.SentAt(due), parley.SentOnce("k")))
	again := fixture.Must[parley.SentMessage](t)(parley.SendWith(ctx, pool, handle, "DEFAULT", []byte("two"), parley.SentOnce("k")))
	if sent.IsDuplicate || !again.IsDuplicate || sent.DelayedID == nil || *again.DelayedID != *sent.DelayedID || *again.ConversationHandle != handle {
		t.Errorf("sent %+v, again %+v", sent, again)
	}
	delayed := fixture.Must[[]operate.DelayedMessage](t)(operate.ReadDelayedMessages(ctx, pool, 10))
	if len(delayed) != 2 || !delayed[0].DueAt.Equal(due) || string(delayed[1].Body) != "two" || *delayed[0].FarService != "target" {
		t.Errorf("delayed %+v", delayed)
	}
	if !fixture.Must[bool](t)(parley.RescheduleSend(ctx, pool, handle, *sent.DelayedID, due.Add(time.Hour))) {
		t.Error("not rescheduled")
	}
	for _, want := range []bool{true, false} {
		if got := fixture.Must[bool](t)(parley.WithdrawSend(ctx, pool, handle, *sent.DelayedID)); got != want {
			t.Errorf("withdrawn %v, want %v", got, want)
		}
	}
	first := fixture.Must[parley.UUID](t)(parley.BeginDialog(ctx, pool, "initiator", "target", parley.BegunOnce("b")))
	if fixture.Must[parley.UUID](t)(parley.SendAndEnd(ctx, pool, "initiator", "target", "DEFAULT", nil, parley.BegunOnce("b"))) != first {
		t.Error("a dialog is begun twice")
	}
	// A simple queue.
	if _, err := pool.Exec(ctx, "select parley.create_queue('jobs', kind => 'SIMPLE')"); err != nil {
		t.Fatal(err)
	}
	put := fixture.Must[parley.SentMessage](t)(parley.PutOnce(ctx, pool, "jobs", []byte("job"), "k", parley.DeliverAt(due)))
	if !fixture.Must[parley.SentMessage](t)(parley.PutOnce(ctx, pool, "jobs", []byte("job"), "k")).IsDuplicate || put.DelayedID == nil {
		t.Errorf("put %+v", put)
	}
	if !fixture.Must[bool](t)(parley.RescheduleMessage(ctx, pool, "jobs", *put.DelayedID, due)) ||
		!fixture.Must[bool](t)(parley.WithdrawMessage(ctx, pool, "jobs", *put.DelayedID)) {
		t.Error("not there")
	}
}
