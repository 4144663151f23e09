package event_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/activation"
	"github.com/parley-broker/parley/internal/broker/activation/event"
	"github.com/parley-broker/parley/parleytest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/pgxpool.(*Pool).backgroundHealthCheck"),
		// The server of the tests, when this is the package that starts it.
		goleak.IgnoreAnyFunction("github.com/parley-broker/parley/internal/postgres.(*Server).launch.func1"))
}

func newQueue(t *testing.T) (*pgxpool.Pool, activation.Queue) {
	t.Helper()
	pool := parleytest.Database(t)
	for _, statement := range []string{
		"select parley.create_queue('initiator')", "select parley.create_service('initiator', 'initiator')",
		"select parley.create_queue('target')", "select parley.create_service('target', 'target', array['DEFAULT'])",
		"select parley.create_queue('listener')",
		"select parley.create_service('listener', 'listener', array['" + parley.PostEventNotificationContract + "'])",
		"select parley.create_event_notification('activated', 'target', 'QUEUE_ACTIVATION', 'listener')",
	} {
		exec(t, pool, statement)
	}
	q := activation.Queue{Name: "target", Kind: event.Kind}
	if err := pool.QueryRow(t.Context(), "select queue_id from parley._p_external_readers() where kind = 'event'").Scan(&q.ID); err != nil {
		t.Fatal(err)
	}
	handle, err := parley.BeginDialog(t.Context(), pool, "initiator", "target")
	if err == nil {
		err = parley.Send(t.Context(), pool, handle, parley.DefaultMessageType, []byte("x"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return pool, q
}

func exec(t *testing.T, pool *pgxpool.Pool, statement string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// receive waits for a message.
func receive(t *testing.T, pool *pgxpool.Pool, queue string) parley.Message {
	t.Helper()
	for {
		messages, err := parley.Receive(t.Context(), pool, queue, parley.Wait(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if len(messages) > 0 {
			return messages[0]
		}
	}
}

func TestEventIsRaisedOnceUntilSomebodyReceives(t *testing.T) {
	t.Parallel()
	pool, q := newQueue(t)
	reader, err := (&event.Starter{Pool: pool, Timeout: time.Hour}).NewReader(q, 1)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- reader.Run(t.Context()) }()
	if got := receive(t, pool, "listener"); got.MessageTypeName != parley.EventNotificationMessageType {
		t.Errorf("received %+v", got)
	}
	receive(t, pool, "target")
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if messages, err := parley.Receive(t.Context(), pool, "listener"); err != nil || len(messages) > 0 {
		t.Errorf("received %v, %v", messages, err)
	}
}

func TestEventMayBeRaisedAgainWhenTheTimeIsOver(t *testing.T) {
	t.Parallel()
	pool, q := newQueue(t)
	for range 2 {
		reader, err := (&event.Starter{Pool: pool, Timeout: time.Millisecond}).NewReader(q, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := reader.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		receive(t, pool, "listener")
	}
}

func TestEventThatReachesNobodyIsAFailure(t *testing.T) {
	t.Parallel()
	pool, q := newQueue(t)
	exec(t, pool, "select parley.drop_event_notification('activated', 'target')")
	reader, err := (&event.Starter{Pool: pool}).NewReader(q, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := reader.Run(t.Context()); err == nil {
		t.Error("it succeeds")
	}
}

func TestReaderStopsWhileItWaits(t *testing.T) {
	t.Parallel()
	pool, q := newQueue(t)
	reader, err := (&event.Starter{Pool: pool, Timeout: time.Hour}).NewReader(q, 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- reader.Run(ctx) }()
	receive(t, pool, "listener")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
