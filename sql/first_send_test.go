package sql_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
)

// sides is both endpoints of the newest dialog without what differs between any two, and how many groups they have.
const sides = `
	select string_agg((to_jsonb(e) - array['endpoint_id', 'far_endpoint_id', 'group_id', 'conversation_handle', 'conversation_id', 'begun_at', 'state_since',
			'lifetime'] || jsonb_build_object(
				'knows its far side', e.far_endpoint_id = o.endpoint_id, 'ends at the same time', e.lifetime = o.lifetime,
				'group', (select g.service_id = e.service_id from parley._p_conversation_group as g where g.group_id = e.group_id),
				'alarms', (select array_agg(a.kind) from parley._p_alarm as a where a.endpoint_id = e.endpoint_id)
			))::text, E'\n' order by e.is_initiator)
	from parley._p_endpoint as e
	join parley._p_endpoint as o on o.conversation_id = e.conversation_id and o.is_initiator <> e.is_initiator
	where e.conversation_id = (select n.conversation_id from parley._p_endpoint as n order by n.endpoint_id desc limit 1)`

// A batch takes the long way, a message alone the short one.
func TestFirstMessageAloneLeavesTheSidesThatABatchLeaves(t *testing.T) {
	t.Parallel()
	for name, setUp := range map[string]struct{ before, begin string }{
		"plain":      {"", ""},
		"lifetime":   {"", ", lifetime => 1000"},
		"instance":   {"", ", broker_instance => 'CURRENT DATABASE'"},
		"encryption": {"", ", encryption => false"},
		"priority":   {"select parley.create_broker_priority('high', priority_level => 8)", ""},
		"retention":  {"select parley.alter_queue('Asking', retention => true)", ""},
		"validation": {"select parley.alter_message_type('//test/Request', 'EMPTY')", ""},
		"route":      {"select parley.create_route('here', 'LOCAL', service_name => '//test/Answerer')", ""},
		"notified":   {"select parley.listen_for_messages('Answering', 60)", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			if setUp.before != "" {
				b.exec(setUp.before)
			}
			begin := "parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work'" + setUp.begin + ")"
			b.exec("select parley.send("+begin+", $1, null::text)", request)
			alone := value[string](b.session, sides)
			b.exec("select parley.send_batch("+begin+", $1, array[null, null]::text[])", request)
			if batch := value[string](b.session, sides); alone != batch {
				t.Errorf("a message alone leaves\n%s\na batch leaves\n%s", alone, batch)
			}
			call := "select parley.begin_and_send('//test/Asker', '//test/Answerer', $1, contract => '//test/Work'" + setUp.begin + ")"
			b.exec(call, request)
			if together := value[string](b.session, sides); alone != together {
				t.Errorf("a message alone leaves\n%s\nboth in one call leave\n%s", alone, together)
			}
			equal(b.session, 4, "select count(*) from parley.queue_contents('Answering')")
		})
	}
}

// Nothing of the catalog may be remembered from one conversation to the next one in a session.
func TestWhatChangesBetweenTwoDialogsOfASessionCounts(t *testing.T) {
	t.Parallel()
	status := "select parley.get_transmission_status($1) <> ''"
	refused := "select state = 'ER' from parley.conversation_endpoints where conversation_handle = $1"
	for name, change := range map[string]struct{ statement, expectation string }{
		"revoke SEND":   {"select parley.revoke('SEND', 'service', '//test/Answerer', 'public')", refused},
		"drop contract": {"select parley.alter_service('//test/Answerer', drop_contracts => array['//test/Work'])", refused},
		"validation":    {"select parley.alter_message_type('//test/Request', 'EMPTY')", refused},
		"route away": {
			"select parley.create_route('away', 'tcp://elsewhere:4022', service_name => '//test/Answerer')",
			"select destination_id is not null from parley._p_endpoint where conversation_handle = $1",
		},
		"no route":       {"select parley.drop_route('AutoCreatedLocal')", status},
		"drop service":   {"select parley.drop_service('//test/Answerer')", status},
		"disable broker": {"select parley.disable_broker()", status},
		"retention": {
			"select parley.alter_queue('Asking', retention => true)",
			"select count(*) = 1 from parley.queue_contents('Asking') where status = 3 and conversation_handle = $1",
		},
		"priority": {
			"select parley.create_broker_priority('high', priority_level => 9)",
			"select priority = 9 from parley.conversation_endpoints where conversation_handle = $1",
		},
		"disable queue": {
			"select parley.alter_queue('Answering', status => false)",
			"select count(*) = 1 from parley.transmission_queue where conversation_handle = $1",
		},
		"move the service": {
			"select parley.create_queue('Other'), parley.alter_service('//test/Answerer', queue => 'Other')",
			"select count(*) >= 3 and bool_or($1::uuid is not null) from parley.queue_contents('Other')",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			owner, sender := b.role("owner"), b.role("sender")
			b.exec("select parley.alter_authorization('service', '//test/Asker', $1)", owner)
			b.exec("select parley.grant('SEND', 'service', '//test/Answerer', 'public')")
			b.exec("select parley.grant('RECEIVE', 'queue', 'Asking', $1), parley.grant('REFERENCES', 'contract', '//test/Work', $1)", sender)
			b.afterwards("drop owned by " + quote(owner))
			s := b.as(sender)
			s.exec(unknownTargets)
			s.send(s.dialog(), request, "before")
			s.exec(beginAndSend)
			b.exec(change.statement)
			handle := s.dialog()
			s.send(handle, request, "after")
			if !value[bool](b.session, change.expectation, handle) {
				t.Error("the second dialog went as the first one")
			}
			if !value[bool](b.session, change.expectation, value[string](s, beginAndSend)) {
				t.Error("the second dialog, begun and sent on in one call, went as the first one")
			}
		})
	}
}

func TestRightsAreAskedForAtEachFirstMessage(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	sender, readers := b.role("sender"), b.role("readers")
	b.exec("grant " + quote(readers) + " to " + quote(sender))
	b.exec("select parley.grant('RECEIVE', 'queue', 'Asking', $1), parley.grant('REFERENCES', 'contract', '//test/Work', $1)", readers)
	s := b.as(sender)
	s.send(s.dialog(), request, "before")
	handle := s.dialog()
	b.exec("revoke " + quote(readers) + " from " + quote(sender))
	s.refuses(229, "select parley.send($1::uuid, $2, 'after')", handle, request)
	s.refuses(229, "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work')")
	equal(b.session, 1, "select count(*) from parley.queue_contents('Answering')")
}

func TestRollbackToASavepointTakesTheFirstMessageBack(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	tx := b.begin()
	handle := tx.dialog()
	tx.exec("savepoint before")
	tx.send(handle, request, "never")
	tx.exec("rollback to before")
	tx.requireState(handle, "SO")
	tx.send(handle, request, "once")
	tx.send(handle, request, "twice")
	tx.commit()
	b.requireState(handle, "CO")
	if got := b.bodies("Answering"); !slices.Equal(got, []string{"once", "twice"}) {
		t.Errorf("received %q", got)
	}
	equal(b.session, 2, "select count(*) from parley._p_endpoint")
	equal(b.session, 2, "select count(*) from parley._p_conversation_group where service_id >= 65536")
}

func TestOneOfTwoFirstSendersMakesTheFarSide(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := b.dialog()
	tx := b.begin()
	tx.send(handle, request, "one")
	other := b.blocked("select parley.send($1::uuid, $2, 'two')", handle, request)
	tx.commit()
	other.requireSuccess()
	if got := b.bodies("Answering"); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("received %q", got)
	}
	equal(b.session, 2, "select count(*) from parley._p_endpoint")
}

func TestFirstMessageWaitsForWhoeverAltersTheQueue(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := b.dialog()
	tx := b.begin()
	tx.exec("select parley.alter_queue('Asking', retention => true)")
	sender := b.blocked("select parley.send($1::uuid, $2, 'kept')", handle, request)
	tx.commit()
	sender.requireSuccess()
	equal(b.session, 1, "select count(*) from parley.queue_contents('Asking') where status = 3")
}

func TestFirstMessageOfAnOldSnapshotFails(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := b.dialog()
	tx := b.begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	tx.requireState(handle, "SO")
	b.send(handle, request, "one")
	w := b.startIn(tx, "select parley.send($1::uuid, $2, 'two')", handle, request)
	w.requireCode("40001")
	if got := b.bodies("Answering"); !slices.Equal(got, []string{"one"}) {
		t.Errorf("received %q", got)
	}
}
