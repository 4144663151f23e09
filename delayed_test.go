package parley_test

import (
	"testing"
	"time"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/parleytest"
)

func TestDelayedMessages(t *testing.T) {
	t.Parallel()
	ctx, pool := t.Context(), parleytest.Database(t)
	setUpServices(t, pool)
	due := time.Now().Add(time.Hour).Truncate(time.Second)
	handle := must[parley.UUID](t)(parley.BeginAndSend(ctx, pool, "initiator", "target", "DEFAULT", []byte("one"), parley.FirstMessageAt(due)))
	sent := must[parley.SentMessage](t)(parley.SendWith(ctx, pool, handle, "DEFAULT", []byte("two"), parley.SentAt(due), parley.SentOnce("k")))
	again := must[parley.SentMessage](t)(parley.SendWith(ctx, pool, handle, "DEFAULT", []byte("two"), parley.SentOnce("k")))
	if sent.IsDuplicate || !again.IsDuplicate || sent.DelayedID == nil || *again.DelayedID != *sent.DelayedID || *again.ConversationHandle != handle {
		t.Errorf("sent %+v, again %+v", sent, again)
	}
	delayed := must[[]parley.DelayedMessage](t)(parley.ReadDelayedMessages(ctx, pool, 10))
	if len(delayed) != 2 || !delayed[0].DueAt.Equal(due) || string(delayed[1].Body) != "two" || *delayed[0].FarService != "target" {
		t.Errorf("delayed %+v", delayed)
	}
	if !must[bool](t)(parley.RescheduleSend(ctx, pool, handle, *sent.DelayedID, due.Add(time.Hour))) {
		t.Error("not rescheduled")
	}
	for _, want := range []bool{true, false} {
		if got := must[bool](t)(parley.WithdrawSend(ctx, pool, handle, *sent.DelayedID)); got != want {
			t.Errorf("withdrawn %v, want %v", got, want)
		}
	}
	first := must[parley.UUID](t)(parley.BeginDialog(ctx, pool, "initiator", "target", parley.BegunOnce("b")))
	if must[parley.UUID](t)(parley.SendAndEnd(ctx, pool, "initiator", "target", "DEFAULT", nil, parley.BegunOnce("b"))) != first {
		t.Error("a dialog is begun twice")
	}
	// A simple queue.
	if _, err := pool.Exec(ctx, "select parley.create_queue('jobs', kind => 'SIMPLE')"); err != nil {
		t.Fatal(err)
	}
	put := must[parley.SentMessage](t)(parley.PutOnce(ctx, pool, "jobs", []byte("job"), "k", parley.DeliverAt(due)))
	if !must[parley.SentMessage](t)(parley.PutOnce(ctx, pool, "jobs", []byte("job"), "k")).IsDuplicate || put.DelayedID == nil {
		t.Errorf("put %+v", put)
	}
	if !must[bool](t)(parley.RescheduleMessage(ctx, pool, "jobs", *put.DelayedID, due)) ||
		!must[bool](t)(parley.WithdrawMessage(ctx, pool, "jobs", *put.DelayedID)) {
		t.Error("not there")
	}
}
