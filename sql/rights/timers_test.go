package rights_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// overdue gives a broker something of each kind that fire_timers does: a timer of a side on the queue Asking, messages that can be
// delivered by now, a conversation that readers have found to be poisonous, a queue whose end is to be reported, and what has expired.
func overdue(t *testing.T) *sqltest.Broker {
	t.Helper()
	b := sqltest.NewWorld(t)
	asker := b.Dialog()
	b.Send(asker, sqltest.Request, "first")
	b.Exec("select parley.begin_conversation_timer($1::uuid, 0)", asker)
	b.Exec("select parley.send(parley.begin_dialog('//test/Asker', '//late', encryption => false, allow_unknown_target => true), 'DEFAULT', 'waits')")
	b.Exec("select parley.create_service('//early', 'Asking', array['DEFAULT'])")
	// A service that had another name when the message was sent: giving it one does not classify again what waits.
	b.Exec("update parley._p_service set name = '//late' where name = '//early'")
	b.Exec("insert into parley._p_fragment (conversation_id, from_initiator, sequence, first_byte, size, data, stored_at) " +
		"values (gen_random_uuid(), true, 0, 0, 1, 'x', now() - interval '2 days')")
	b.Exec("insert into parley._p_tombstone (conversation_handle, conversation_id, is_initiator, service_contract_id, conversation_group_id, " +
		"service_id, far_service, owner, lifetime, priority, expires_at) select gen_random_uuid(), gen_random_uuid(), false, 2, gen_random_uuid(), " +
		"s.service_id, '//far', s.owner, now(), 5, now() - interval '1 second' from parley._p_service as s where s.name = '//test/Answerer'")
	return b
}

const (
	waiting  = "select count(*) from parley._p_transmission"
	dueNow   = "select count(*) from parley._p_alarm where kind = 'timer'"
	heldRows = `
		select count(*) from parley._p_endpoint
		where endpoint_id not in (select e.endpoint_id from parley._p_endpoint as e for update skip locked)`
)

// fire_timers holds the conversations whose timers it fires until the transaction ends.
func TestRightsFireTimersHoldsNothingOfThoseWhoGaveNoRight(t *testing.T) {
	t.Parallel()
	b := overdue(t)
	role := b.Role("outsider")
	outsider := b.As(role)
	outsider.Exec("begin")
	sqltest.Equal(outsider, 0, "select parley.fire_timers()")
	sqltest.Equal(b.Session, 0, heldRows)
	for _, table := range []string{"parley._p_fragment", "parley._p_tombstone"} {
		sqltest.Equal(b.Session, 0, "select count(*) from "+table+" where ctid not in (select t.ctid from "+table+" as t for update skip locked)")
	}
	// Nor does it keep others from scanning, or make them wait.
	s := b.Connection()
	s.Exec("set lock_timeout = '2s'")
	sqltest.Equal(s, 1, "select parley.fire_timers()")
	sqltest.Equal(b.Session, 0, waiting)
	sqltest.Equal(b.Session, 0, dueNow)
	outsider.Rollback()
}

func TestRightsFireTimersFiresWhatTheCallerMayReceive(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		queue          string
		fired, waiting int
	}{
		{"Answering", 0, 1},
		{"Asking", 1, 0},
	} {
		t.Run(c.queue, func(t *testing.T) {
			t.Parallel()
			b := overdue(t)
			role := b.Role("reader")
			b.Grant(sqltest.RightTo("RECEIVE", "queue", c.queue), role)
			sqltest.Equal(b.As(role), c.fired, "select parley.fire_timers()")
			sqltest.Equal(b.Session, 1-c.fired, dueNow)
			sqltest.Equal(b.Session, c.waiting, waiting)
			// The next poll of those that may fire the rest is not put off by it.
			b.Exec("select parley.fire_timers()")
			sqltest.Equal(b.Session, 0, dueNow)
			sqltest.Equal(b.Session, 0, waiting)
		})
	}
}

// A conversation that is held is passed by; the others go on.
func TestFireTimersWaitsForNoSenderWhoseMessagesAreDelayed(t *testing.T) {
	t.Parallel()
	b := overdue(t)
	held := sqltest.Value[string](b.Session, "select conversation_handle::text from parley.transmission_queue where to_service_name = '//late'")
	b.Exec("update parley._p_service set name = '//early' where name = '//late'")
	free := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//late', encryption => false, allow_unknown_target => true)")
	b.Exec("select parley.send($1::uuid, 'DEFAULT', 'waits too')", free)
	b.Exec("update parley._p_service set name = '//late' where name = '//early'")
	sender := b.Begin()
	sender.Exec("select 1 from parley._p_endpoint where conversation_handle = $1 for update", held)
	fragments := b.Begin()
	fragments.Exec("select 1 from parley._p_fragment for update")
	s := b.Connection()
	s.Exec("set lock_timeout = '2s'")
	s.Exec("select parley.fire_timers()")
	sqltest.Equal(b.Session, held, "select conversation_handle::text from parley.transmission_queue")
	sender.Rollback()
	fragments.Rollback()
	s.Exec("select setval('parley._p_next_delayed_check', 0)")
	s.Exec("select parley.fire_timers()")
	sqltest.Equal(b.Session, 0, waiting)
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_fragment")
}

// A role that may read one queue does not report that another one was disabled, nor set aside what waits there.
func TestRightsFireTimersLeavesThePoisonOfOtherQueues(t *testing.T) {
	t.Parallel()
	b := sqltest.NewListener(t)
	b.Exec("select parley.alter_queue('Answering', poison_action => 'DISABLE_QUEUE')")
	b.Subscribe("disabled", "BROKER_QUEUE_DISABLED", false)
	b.Disable()
	const reported = "select is_reported from parley._p_event_notification"
	for _, c := range []struct {
		queue    string
		reported bool
	}{{"Asking", false}, {"Answering", true}} {
		role := b.Role("reader of " + c.queue)
		b.Grant(sqltest.RightTo("RECEIVE", "queue", c.queue), role)
		b.As(role).Exec("select parley.fire_timers()")
		if got := sqltest.Value[bool](b.Session, reported); got != c.reported {
			t.Errorf("a reader of %s reported: %v, want %v", c.queue, got, c.reported)
		}
	}
}

// The answer of a webhook may reveal the message that was sent to it.
func TestRightsFailedDeliveriesAreShownToOwnersAndAdministrators(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	owner, group, outsider := b.Role("owner"), b.Role("group"), b.Role("outsider")
	b.Exec("grant " + sqltest.Quote(group) + " to " + sqltest.Quote(owner))
	b.Exec("select parley.create_queue('Own'), parley.create_service('//own', 'Own', array['DEFAULT'], $1)", group)
	b.Exec("select parley.send(parley.begin_dialog('//own', '//own', encryption => false), 'DEFAULT', 'x')")
	b.Exec(`
		insert into parley._p_delivery_failure (
			endpoint_id, queue_id, conversation_handle, failures, attempts, last_error, first_failed_at, failed_at, retry_at
		)
		select e.endpoint_id, s.queue_id, e.conversation_handle, 1, 1, 'answer', now(), now(), now()
		from parley._p_endpoint as e
		join parley._p_service as s using (service_id)
		where not e.is_initiator`)
	const seen = "select count(*) from parley.delivery_failures"
	sqltest.Equal(b.As(outsider), 0, seen)
	sqltest.Equal(b.As(owner), 1, seen)
	sqltest.Equal(b.Session, 1, seen)
	b.Exec("select parley.alter_authorization('service', '//own', current_user::text)")
}
