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

// lasting makes a service whose messages are validated by a function that does not return.
func lasting(b *sqltest.Broker) {
	b.Exec("create function public.lasts(body bytea) returns boolean language plpgsql security definer as $$ begin perform pg_sleep(3600); return true; end $$")
	b.Exec("select parley.create_message_type('Lasting', 'FUNCTION', 'public.lasts(bytea)')")
	b.Exec("select parley.create_contract('Lasting', '{\"Lasting\": \"INITIATOR\"}'::jsonb), parley.create_queue('Lasting')")
	b.Exec("select parley.create_service('Lasting', 'Lasting', array['Lasting'])")
}

// lead fires the timers of a database until the function that it returns is called.
func lead(b *sqltest.Broker) (stop func()) {
	term := sqltest.Value[int64](b.Session, "select parley._p_lead(leader => 'a test', term => 0, milliseconds => 600000, serves_neighbours => false)")
	ctx, cancel := context.WithCancel(b.Context())
	logger := slog.New(slog.DiscardHandler)
	var leading sync.WaitGroup
	leading.Go(func() {
		events := notifier.New(notifier.Config{Pool: b.Pool, Logger: logger})
		timers.New(b.Pool, logger).Lead(ctx, &daemon.Term{Number: term, Notifier: events})
	})
	return func() {
		cancel()
		leading.Wait()
	}
}

// A message for later whose validation function does not return is put off. Timers fire meanwhile, and messages of others are sent.
func TestAValidationFunctionThatLastsKeepsNoTimerFromOthers(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	lasting(b)
	const later = ", 'x', deliver_at => clock_timestamp() + interval '0.2 seconds')"
	b.Exec("select parley.send(parley.begin_dialog('Lasting', 'Lasting', 'Lasting'), 'Lasting'" + later)
	handle := b.Dialog()
	b.Exec("select parley.send($1::uuid, $2"+later, handle, sqltest.Request)
	b.Exec("select parley.begin_conversation_timer($1::uuid, 0)", handle)
	stop := lead(b)
	defer stop()
	b.WaitUntil("select count(*) = 1 from parley.peek('Answering')")
	b.WaitUntil("select count(*) = 1 from parley.peek('Asking')")
	b.WaitUntil("select count(*) = 1 from parley._p_delayed_send where try_at > due_at + interval '30 seconds'")
}

// Messages that waited for their service, and whose validation function does not return, are put off. Those of others are delivered, and
// what has expired is removed.
func TestAValidationFunctionThatLastsKeepsNoDelayedMessageFromOthers(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	lasting(b)
	const begin = "parley.begin_dialog('//test/Asker', $1, $2, encryption => false, allow_unknown_target => true)"
	for _, waits := range [][]any{{"//late", "DEFAULT"}, {"//lasting", "Lasting"}, {"//late", "DEFAULT"}} {
		b.Exec("select parley.send("+begin+", $2, 'waits')", waits...)
	}
	b.Exec("select parley.create_service('//early', 'Asking', array['DEFAULT'])")
	// Services that had another name when the messages were sent: giving them one does not classify again what waits.
	b.Exec("update parley._p_service set name = '//late' where name = '//early'")
	b.Exec("update parley._p_service set name = '//lasting' where name = 'Lasting'")
	b.Exec("insert into parley._p_tombstone (conversation_handle, conversation_id, is_initiator, service_contract_id, conversation_group_id, " +
		"service_id, far_service, owner, lifetime, priority, expires_at) select gen_random_uuid(), gen_random_uuid(), false, 2, gen_random_uuid(), " +
		"s.service_id, '//far', s.owner, now(), 5, now() - interval '1 second' from parley._p_service as s where s.name = '//test/Answerer'")
	stop := lead(b)
	defer stop()
	b.WaitUntil("select count(*) = 0 from parley._p_tombstone")
	b.WaitUntil("select count(*) = 2 from parley.peek('Asking')")
	b.WaitUntil("select count(*) = 1 from parley._p_transmission where try_at > clock_timestamp() + interval '30 seconds'")
	// A session that fires timers by hand passes it by, too.
	b.Exec("select setval('parley._p_next_delayed_check', 0), parley.fire_timers()")
	sqltest.Equal(b.Session, 1, "select count(*) from parley._p_transmission")
}
