package conversation_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/sqltest"
)

// sides is both endpoints of the newest dialog without what differs between any two, and how many groups they have.
const sides = `
	select string_agg((to_jsonb(e) - array['endpoint_id', 'far_endpoint_id', 'group_id', 'conversation_handle', 'conversation_id', 'begun_at',
			'state_since', 'lifetime', 'bound_version'] || jsonb_build_object(
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
			b := sqltest.NewWorld(t)
			if setUp.before != "" {
				b.Exec(setUp.before)
			}
			begin := "parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work'" + setUp.begin + ")"
			b.Exec("select parley.send("+begin+", $1, null::text)", sqltest.Request)
			alone := sqltest.Value[string](b.Session, sides)
			b.Exec("select parley.send_batch("+begin+", $1, array[null, null]::text[])", sqltest.Request)
			if batch := sqltest.Value[string](b.Session, sides); alone != batch {
				t.Errorf("a message alone leaves\n%s\na batch leaves\n%s", alone, batch)
			}
			call := "select parley.begin_and_send('//test/Asker', '//test/Answerer', $1, contract => '//test/Work'" + setUp.begin + ")"
			b.Exec(call, sqltest.Request)
			if together := sqltest.Value[string](b.Session, sides); alone != together {
				t.Errorf("a message alone leaves\n%s\nboth in one call leave\n%s", alone, together)
			}
			sqltest.Equal(b.Session, 4, "select count(*) from parley.queue_contents('Answering')")
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
			b := sqltest.NewWorld(t)
			owner, sender := b.Role("owner"), b.Role("sender")
			b.Exec("select parley.alter_authorization('service', '//test/Asker', $1)", owner)
			b.Exec("select parley.grant('SEND', 'service', '//test/Answerer', 'public')")
			b.Exec("select parley.grant('RECEIVE', 'queue', 'Asking', $1), parley.grant('REFERENCES', 'contract', '//test/Work', $1)", sender)
			b.Afterwards("drop owned by " + sqltest.Quote(owner))
			s := b.As(sender)
			s.Exec(sqltest.UnknownTargets)
			s.Send(s.Dialog(), sqltest.Request, "before")
			s.Exec(sqltest.BeginAndSend)
			begun := s.Dialog()
			b.Exec(change.statement)
			handle := s.Dialog()
			s.Send(handle, sqltest.Request, "after")
			if !sqltest.Value[bool](b.Session, change.expectation, handle) {
				t.Error("the second dialog went as the first one")
			}
			// The priority alone is that of the time of BEGIN DIALOG.
			s.Send(begun, sqltest.Request, "begun before")
			if name != "priority" && !sqltest.Value[bool](b.Session, change.expectation, begun) {
				t.Error("the dialog that was begun before went as the first one")
			}
			if !sqltest.Value[bool](b.Session, change.expectation, sqltest.Value[string](s, sqltest.BeginAndSend)) {
				t.Error("the second dialog, begun and sent on in one call, went as the first one")
			}
		})
	}
}

func TestRollbackToASavepointTakesTheFirstMessageBack(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	tx := b.Begin()
	handle := tx.Dialog()
	tx.Exec("savepoint before")
	tx.Send(handle, sqltest.Request, "never")
	tx.Exec("rollback to before")
	tx.RequireState(handle, "SO")
	tx.Send(handle, sqltest.Request, "once")
	tx.Send(handle, sqltest.Request, "twice")
	tx.Commit()
	b.RequireState(handle, "CO")
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"once", "twice"}) {
		t.Errorf("received %q", got)
	}
	sqltest.Equal(b.Session, 2, "select count(*) from parley._p_endpoint")
	sqltest.Equal(b.Session, 2, "select count(*) from parley._p_conversation_group where service_id >= 65536")
}

func TestOneOfTwoFirstSendersMakesTheFarSide(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Dialog()
	tx := b.Begin()
	tx.Send(handle, sqltest.Request, "one")
	other := b.Blocked("select parley.send($1::uuid, $2, 'two')", handle, sqltest.Request)
	tx.Commit()
	other.RequireSuccess()
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("received %q", got)
	}
	sqltest.Equal(b.Session, 2, "select count(*) from parley._p_endpoint")
}

func TestFirstMessageWaitsForWhoeverAltersTheQueue(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Dialog()
	tx := b.Begin()
	tx.Exec("select parley.alter_queue('Asking', retention => true)")
	sender := b.Blocked("select parley.send($1::uuid, $2, 'kept')", handle, sqltest.Request)
	tx.Commit()
	sender.RequireSuccess()
	sqltest.Equal(b.Session, 1, "select count(*) from parley.queue_contents('Asking') where status = 3")
}

func TestFirstMessageOfAnOldSnapshotFails(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Dialog()
	tx := b.Begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	tx.RequireState(handle, "SO")
	b.Send(handle, sqltest.Request, "one")
	w := b.StartIn(tx, "select parley.send($1::uuid, $2, 'two')", handle, sqltest.Request)
	w.RequireCode("40001")
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"one"}) {
		t.Errorf("received %q", got)
	}
}
