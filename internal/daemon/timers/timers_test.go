package timers_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/daemon"
	"github.com/parley-broker/parley/internal/daemon/timers"
	"github.com/parley-broker/parley/internal/notifier"
	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

func TestFiringTimersPausesWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	away, attempts := parleytest.Away(t)
	logger := slog.New(slog.DiscardHandler)
	term := &daemon.Term{Number: 1, Notifier: notifier.New(notifier.Config{Pool: away, Logger: logger})}
	const tested = 2 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), tested)
	defer cancel()
	timers.New(away, logger).Lead(ctx, term)
	// Pauses of 50 to 100 ms that double.
	if n := attempts(); n < 2 || n > 12 {
		t.Errorf("%d attempts to connect in %v", n, tested)
	}
}

// A message for later whose validation function does not return is put off. Timers fire meanwhile, and messages of others are sent.
func TestAValidationFunctionThatLastsKeepsNoTimerFromOthers(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("create function public.lasts(body bytea) returns boolean language plpgsql security definer as $$ begin perform pg_sleep(3600); return true; end $$")
	b.Exec("select parley.create_message_type('Lasting', 'FUNCTION', 'public.lasts(bytea)')")
	b.Exec("select parley.create_contract('Lasting', '{\"Lasting\": \"INITIATOR\"}'::jsonb), parley.create_queue('Lasting')")
	b.Exec("select parley.create_service('Lasting', 'Lasting', array['Lasting'])")
	const later = ", 'x', deliver_at => clock_timestamp() + interval '0.2 seconds')"
	b.Exec("select parley.send(parley.begin_dialog('Lasting', 'Lasting', 'Lasting'), 'Lasting'" + later)
	handle := b.Dialog()
	b.Exec("select parley.send($1::uuid, $2"+later, handle, sqltest.Request)
	b.Exec("select parley.begin_conversation_timer($1::uuid, 0)", handle)
	term := sqltest.Value[int64](b.Session, "select parley._p_lead(leader => 'a test', term => 0, milliseconds => 600000, serves_neighbours => false)")
	ctx, stop := context.WithCancel(t.Context())
	logger := slog.New(slog.DiscardHandler)
	var leading sync.WaitGroup
	leading.Go(func() {
		events := notifier.New(notifier.Config{Pool: b.Pool, Logger: logger})
		timers.New(b.Pool, logger).Lead(ctx, &daemon.Term{Number: term, Notifier: events})
	})
	b.WaitUntil("select count(*) = 1 from parley.peek('Answering')")
	b.WaitUntil("select count(*) = 1 from parley.peek('Asking')")
	b.WaitUntil("select count(*) = 1 from parley._p_delayed_send where try_at > due_at + interval '30 seconds'")
	stop()
	leading.Wait()
}
