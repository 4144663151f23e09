package parley_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/operate"
	"github.com/parley-broker/parley/parleytest"
)

// A consumer of a queue whose readers are paused receives nothing, while others do, and goes on when they are resumed.
func TestConsumerIsPaused(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	fixture.CreateServices(t, pool)
	ctx := t.Context()
	handled := make(chan string, 10)
	answering(t, pool, func(_ context.Context, _ pgx.Tx, m parley.Message) error {
		handled <- string(m.MessageBody)
		return nil
	})
	handle := fixture.Must[parley.UUID](t)(parley.BeginDialog(ctx, pool, "initiator", "target"))
	send := func(body string) {
		fixture.RequireNoError(t, parley.Send(ctx, pool, handle, parley.DefaultMessageType, []byte(body)))
	}
	send("before")
	if got := parleytest.Receive(t, handled, "the first message"); got != "before" {
		t.Errorf("handled %q", got)
	}
	fixture.RequireNoError(t, operate.PauseReaders(ctx, pool, "target"))
	queues := fixture.Must[[]operate.QueueStatus](t)(operate.ReadQueues(ctx, pool))
	for _, q := range queues {
		if (q.ReadersPausedAt != nil) != (q.Queue == "target") {
			t.Errorf("queue %s is paused since %v", q.Queue, q.ReadersPausedAt)
		}
	}
	send("by hand")
	send("after")
	// More than a poll interval: a consumer that is not paused has taken it by then.
	select {
	case got := <-handled:
		t.Errorf("handled %q while paused", got)
	case <-time.After(1500 * time.Millisecond):
	}
	messages := fixture.Must[[]parley.Message](t)(parley.Receive(ctx, pool, "target", parley.Top(1)))
	if len(messages) != 1 || string(messages[0].MessageBody) != "by hand" {
		t.Errorf("received %+v", messages)
	}
	fixture.RequireNoError(t, operate.ResumeReaders(ctx, pool, "target"))
	if got := parleytest.Receive(t, handled, "the last message"); got != "after" {
		t.Errorf("handled %q", got)
	}
}
