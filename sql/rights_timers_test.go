package sql_test

import "testing"

// overdue gives a broker something of each kind that fire_timers does: a timer of a side on the queue Asking, messages that can be
// delivered by now, a conversation that readers have found to be poisonous, a queue whose end is to be reported, and what has expired.
func overdue(t *testing.T) *broker {
	t.Helper()
	b := newWorld(t)
	asker := b.dialog()
	b.send(asker, request, "first")
	b.exec("select parley.begin_conversation_timer($1::uuid, 0)", asker)
	b.exec("select parley.send(parley.begin_dialog('//test/Asker', '//late', encryption => false, allow_unknown_target => true), 'DEFAULT', 'waits')")
	b.exec("select parley.create_service('//early', 'Asking', array['DEFAULT'])")
	// A service that had another name when the message was sent: giving it one does not classify again what waits.
	b.exec("update parley._p_service set name = '//late' where name = '//early'")
	b.exec("insert into parley._p_fragment (conversation_id, from_initiator, sequence, first_byte, size, data, stored_at) " +
		"values (gen_random_uuid(), true, 0, 0, 1, 'x', now() - interval '2 days')")
	b.exec("insert into parley._p_tombstone (conversation_handle, conversation_id, is_initiator, service_contract_id, conversation_group_id, " +
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

// What fire_timers fires it holds until the transaction ends.
func TestRightsFireTimersHoldsNothingOfThoseWhoGaveNoRight(t *testing.T) {
	t.Parallel()
	b := overdue(t)
	role := b.role("outsider")
	outsider := b.as(role)
	outsider.exec("begin")
	equal(outsider, 0, "select parley.fire_timers()")
	equal(b.session, 0, heldRows)
	for _, table := range []string{"parley._p_fragment", "parley._p_tombstone"} {
		equal(b.session, 0, "select count(*) from "+table+" where ctid not in (select t.ctid from "+table+" as t for update skip locked)")
	}
	// Nor does it keep others from scanning, or make them wait.
	s := b.connection()
	s.exec("set lock_timeout = '2s'")
	equal(s, 1, "select parley.fire_timers()")
	equal(b.session, 0, waiting)
	equal(b.session, 0, dueNow)
	outsider.rollback()
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
			role := b.role("reader")
			b.grant(right{"RECEIVE", "queue", c.queue}, role)
			equal(b.as(role), c.fired, "select parley.fire_timers()")
			equal(b.session, 1-c.fired, dueNow)
			equal(b.session, c.waiting, waiting)
			// The next poll of those that may fire the rest is not put off by it.
			b.exec("select parley.fire_timers()")
			equal(b.session, 0, dueNow)
			equal(b.session, 0, waiting)
		})
	}
}

// A conversation that is held is passed by; the others go on.
func TestFireTimersWaitsForNoSenderWhoseMessagesAreDelayed(t *testing.T) {
	t.Parallel()
	b := overdue(t)
	held := value[string](b.session, "select conversation_handle::text from parley.transmission_queue where to_service_name = '//late'")
	b.exec("update parley._p_service set name = '//early' where name = '//late'")
	free := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//late', encryption => false, allow_unknown_target => true)")
	b.exec("select parley.send($1::uuid, 'DEFAULT', 'waits too')", free)
	b.exec("update parley._p_service set name = '//late' where name = '//early'")
	sender := b.begin()
	sender.exec("select 1 from parley._p_endpoint where conversation_handle = $1 for update", held)
	fragments := b.begin()
	fragments.exec("select 1 from parley._p_fragment for update")
	s := b.connection()
	s.exec("set lock_timeout = '2s'")
	s.exec("select parley.fire_timers()")
	equal(b.session, held, "select conversation_handle::text from parley.transmission_queue")
	sender.rollback()
	fragments.rollback()
	s.exec("select setval('parley._p_next_delayed_check', 0)")
	s.exec("select parley.fire_timers()")
	equal(b.session, 0, waiting)
	equal(b.session, 0, "select count(*) from parley._p_fragment")
}

// A role that may read one queue does not report that another one was disabled, nor set aside what waits there.
func TestRightsFireTimersLeavesThePoisonOfOtherQueues(t *testing.T) {
	t.Parallel()
	b := newListener(t)
	b.exec("select parley.alter_queue('Answering', poison_action => 'DISABLE_QUEUE')")
	b.subscribe("disabled", "BROKER_QUEUE_DISABLED", false)
	b.disable()
	const reported = "select is_reported from parley._p_event_notification"
	for _, c := range []struct {
		queue    string
		reported bool
	}{{"Asking", false}, {"Answering", true}} {
		role := b.role("reader of " + c.queue)
		b.grant(right{"RECEIVE", "queue", c.queue}, role)
		b.as(role).exec("select parley.fire_timers()")
		if got := value[bool](b.session, reported); got != c.reported {
			t.Errorf("a reader of %s reported: %v, want %v", c.queue, got, c.reported)
		}
	}
}

// What a webhook answered may reveal what was sent to it.
func TestRightsFailedDeliveriesAreShownToOwnersAndAdministrators(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	owner, group, outsider := b.role("owner"), b.role("group"), b.role("outsider")
	b.exec("grant " + quote(group) + " to " + quote(owner))
	b.exec("select parley.create_queue('Own'), parley.create_service('//own', 'Own', array['DEFAULT'], $1)", group)
	b.exec("select parley.send(parley.begin_dialog('//own', '//own', encryption => false), 'DEFAULT', 'x')")
	b.exec(`
		insert into parley._p_delivery_failure (
			endpoint_id, queue_id, conversation_handle, failures, attempts, last_error, first_failed_at, failed_at, retry_at
		)
		select e.endpoint_id, s.queue_id, e.conversation_handle, 1, 1, 'answer', now(), now(), now()
		from parley._p_endpoint as e
		join parley._p_service as s using (service_id)
		where not e.is_initiator`)
	const seen = "select count(*) from parley.delivery_failures"
	equal(b.as(outsider), 0, seen)
	equal(b.as(owner), 1, seen)
	equal(b.session, 1, seen)
	b.exec("select parley.alter_authorization('service', '//own', current_user::text)")
}
