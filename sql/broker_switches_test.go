package sql_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Switching what cannot be switched.
var switchRefusals = []refusal{
	{number: 5061, because: "somebody sends", statement: `select parley._p_raise_in_use()`},
	{number: 8402, because: "wait less than no time", statement: `select parley.disable_broker(-1)`},
	{number: 8402, because: "wait the least integer", statement: `select parley.enable_broker(wait_seconds => -2147483648)`},
	{number: 8402, because: "wait longer than a lock can be waited for", statement: `select parley.new_broker(2147484)`},
	{number: 9772, because: "original is there", statement: `
		update parley._p_broker set database_oid = (select oid from pg_database where datname = 'postgres'); select parley.enable_broker()`},
	{number: 9775, because: "read-only", statement: `set transaction read only; select parley.new_broker()`},
	{number: 15151, because: "enable", statement: `select parley.enable_broker()`, ordinary: true},
	{number: 15151, because: "disable", statement: `select parley.disable_broker()`, ordinary: true},
	{number: 15151, because: "new", statement: `select parley.new_broker()`, ordinary: true},
	{number: 15151, because: "error", statement: `select parley.error_broker_conversations()`, ordinary: true},
}

func (s session) requireBrokerState(want string) {
	s.Helper()
	equal(s, want, "select broker_state from parley.databases")
	equal(s, want == "ENABLED", "select is_broker_enabled from parley.databases")
	equal(s, want == "ENABLED", "select disabled_at is null from parley.databases")
}

func TestBrokerIsEnabledWhenItIsInstalled(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	b.requireBrokerState("ENABLED")
	equal(b.session, true, "select advice is null from parley.attach_broker()")
}

// SEND takes what it always takes; nothing arrives, and the sender can see why.
func TestDisabledBrokerTakesMessagesAndDeliversThemInOrderOnceEnabled(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	known, target := b.conversation()
	b.send(known, request, "before")
	b.exec("select parley.disable_broker()")
	b.requireBrokerState("DISABLED")

	b.send(known, request, "second")
	b.send(known, note, "third")
	b.exec("select parley.send_batch($1::uuid, '//test/Request', array['fourth', 'fifth'])", known)
	fresh := b.dialog()
	b.send(fresh, request, "hello")
	equal(b.session, 1, "select count(*)::int from parley_queue.\"Answering\"")
	equal(b.session, 5, "select count(*)::int from parley.transmission_queue")
	equal(b.session, "The broker is disabled in this database.", "select parley.get_transmission_status($1)", known)
	equal(b.session, 0, "select count(*)::int from parley.conversation_endpoints where far_service = '//test/Asker' and conversation_handle <> $1", target)

	// What was delivered before can be received.
	if got := b.bodies("Answering"); !slices.Equal(got, []string{"before"}) {
		t.Errorf("received %v while the broker is disabled", got)
	}
	b.exec("select parley.fire_timers()")
	equal(b.session, 5, "select count(*)::int from parley.transmission_queue")

	b.exec("select parley.enable_broker()")
	b.requireBrokerState("ENABLED")
	equal(b.session, 0, "select count(*)::int from parley.transmission_queue")
	b.send(known, request, "sixth")
	got := bodiesOf(b.messages("select * from parley.receive('Answering', conversation_handle => $1)", target))
	if want := []string{"second", "third", "fourth", "fifth", "sixth"}; !slices.Equal(got, want) {
		t.Errorf("received %v, want %v", got, want)
	}
	if got := b.bodies("Answering"); !slices.Equal(got, []string{"hello"}) {
		t.Errorf("the new conversation brought %v", got)
	}
}

func TestEndOfAConversationWaitsWhileTheBrokerIsDisabled(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		end  func(s session, handle string)
		want []string
	}{
		{"plainly", session.end, []string{request, endDialog}},
		{"with an error", func(s session, handle string) { s.endWithError(handle, 1, "no") }, []string{errorMessage}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			initiator, target := b.conversation()
			b.exec("select parley.disable_broker()")
			b.send(initiator, request, "last")
			test.end(b.session, initiator)
			equal(b.session, "CO", "select state from parley.conversation_endpoints where conversation_handle = $1", target)
			b.exec("select parley.enable_broker()")
			types := []string{}
			for _, m := range b.receive("Answering") {
				types = append(types, m.MessageTypeName)
			}
			if !slices.Equal(types, test.want) {
				t.Errorf("received %v, want %v", types, test.want)
			}
			b.end(target)
			equal(b.session, 0, "select count(*)::int from parley.conversation_endpoints where state <> 'CD'")
		})
	}
}

func TestBothSidesMayEndWhileTheBrokerIsDisabled(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	b.exec("select parley.disable_broker()")
	b.end(initiator)
	b.end(target)
	b.exec("select parley.enable_broker()")
	equal(b.session, 0, "select count(*)::int from parley.conversation_endpoints where state <> 'CD'")
	equal(b.session, 0, "select count(*)::int from parley.transmission_queue")
}

func TestServicesAreNotFoundWhileTheBrokerIsDisabled(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	early := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Late', allow_unknown_target => true)")
	b.send(early, "DEFAULT", "x")
	b.exec("select parley.disable_broker()")
	b.exec("select parley.create_queue('Late'); select parley.create_service('//test/Late', 'Late', array['DEFAULT'])")
	equal(b.session, 1, "select count(*)::int from parley.transmission_queue")
	b.exec("select parley.enable_broker()")
	if got := b.bodies("Late"); !slices.Equal(got, []string{"x"}) {
		t.Errorf("received %v", got)
	}
}

// A sender on the short way is no obstacle; one that has asked the switch has to finish first.
func TestSwitchWaitsForSendersThatHaveAskedForIt(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	known, _ := b.conversation()
	b.send(known, request, "second")
	quick := b.begin()
	quick.send(known, request, "on the short way")
	b.exec("select parley.disable_broker(wait_seconds => 0)")
	quick.commit()
	b.exec("select parley.enable_broker(wait_seconds => 0)")

	slow := b.begin()
	slow.send(slow.dialog(), request, "on the long way")
	pid := value[string](slow, "select pg_backend_pid()::text")
	if refusal := b.refuses(5061, "select parley.disable_broker(wait_seconds => 0)"); !strings.Contains(refusal.Detail, pid) {
		t.Errorf("who is in the way is not reported: %s", refusal.Detail)
	}
	b.requireBrokerState("ENABLED")
	slow.commit()
	b.exec("select parley.disable_broker()")
}

func TestSwitchIsPartOfItsTransaction(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	known, _ := b.conversation()
	tx := b.begin()
	tx.exec("select parley.disable_broker()")
	tx.rollback()
	b.requireBrokerState("ENABLED")
	b.send(known, request, "x")
	equal(b.session, 0, "select count(*)::int from parley.transmission_queue")
}

// An old snapshot does not know that the broker was disabled since; its messages wait all the same.
func TestSendAtRepeatableReadSeesTheSwitchAsItIs(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := b.dialog()
	old := b.begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	equal(old, true, "select is_broker_enabled from parley.databases")
	b.exec("select parley.disable_broker()")
	old.send(handle, request, "x")
	old.commit()
	equal(b.session, 1, "select count(*)::int from parley.transmission_queue")
}

func TestNewBrokerForgetsConversationsAndKeepsDefinitions(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec(scene)
	b.exec("select parley.alter_queue('Asking', retention => true)")
	b.send(b.dialog(), request, "kept")
	b.exec("select parley.begin_conversation_timer($1::uuid, 60)", b.dialog())
	delayed := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Missing', allow_unknown_target => true)")
	b.send(delayed, "DEFAULT", "x")
	before := value[string](b.session, "select service_broker_guid::text from parley.databases")
	b.exec("select parley.invite_peer()")
	b.exec("select parley._p_request_pairing($1, '', '{}', 'code', 'remote') from parley.open_pairing()", oneKey)

	b.exec("select parley.drop_event_notification('activated', 'Event')")
	id := value[string](b.session, "select parley.new_broker()")
	if id == before {
		t.Error("the id is the old one")
	}
	b.requireBrokerState("ENABLED")
	equal(b.session, id, "select service_broker_guid::text from parley.databases")

	// Every table is either a definition or empty. A new table has to choose.
	definitions := []string{
		"_p_activated_task", "_p_dropped_queue", "_p_leader", "_p_queue_monitor", // what the daemon did, and who it is
		"_p_event_notification", "_p_external_activation", "_p_broker", "_p_contract", "_p_contract_message_type", "_p_installation", "_p_message_type", "_p_peer", "_p_peer_certificate", "_p_broker_certificate",
		"_p_permission", "_p_priority", "_p_role_number", "_p_role_place",
		"_p_queue", "_p_route", "_p_service", "_p_service_contract", "_p_certificate", "_p_remote_service_binding",
		"_p_rollback_counter", // rows that exist to be locked
	}
	for _, table := range values[string](b.session,
		"select relname::text from pg_class where relnamespace = 'parley'::regnamespace and relkind in ('r', 'p') order by relname") {
		if !slices.Contains(definitions, table) {
			equal(b.session, 0, "select count(*)::int from parley."+table)
		}
	}
	initiator, _ := b.conversation()
	b.send(initiator, request, "goes on")
}

func TestErrorBrokerConversationsInformsBothSides(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	b.send(target, reply, "unread")
	ended, half := b.conversation()
	b.end(ended)
	b.exec("select parley.disable_broker()")
	id := value[string](b.session, "select service_broker_guid::text from parley.databases")
	b.send(initiator, request, "never delivered")

	equal(b.session, 3, "select parley.error_broker_conversations()")
	b.requireBrokerState("ENABLED")
	equal(b.session, id, "select service_broker_guid::text from parley.databases")
	equal(b.session, 0, "select count(*)::int from parley.transmission_queue")
	for handle, queue := range map[string]string{initiator: "Asking", target: "Answering", half: "Answering"} {
		got := b.messages("select * from parley.receive($1, conversation_handle => $2)", queue, handle)
		if len(got) == 0 || got[0].MessageTypeName != errorMessage || !strings.Contains(string(got[0].MessageBody), "<Code>-9719</Code>") {
			t.Errorf("%s got %v, want an Error of -9719 first", queue, bodiesOf(got))
		}
		b.end(handle)
	}
	equal(b.session, 0, "select count(*)::int from parley.conversation_endpoints where state <> 'CD'")
}

// An event notification speaks through a conversation, and has to get another one.
func TestEventNotificationsOutliveANewBroker(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec(scene)
	before := value[string](b.session, "select conversation_handle::text from parley._p_event_notification")
	b.exec("update parley._p_event_notification set broker_instance = (select service_broker_guid from parley.databases)")
	id := value[string](b.session, "select parley.new_broker()::text")
	equal(b.session, true, `
		select n.conversation_handle <> $1 and n.broker_instance = $2 and e.state = 'SO'
		from parley._p_event_notification as n
		join parley.conversation_endpoints as e using (conversation_handle)`, before, id)
}

// Whatever a daemon was started for, a copy of a database is no place for it.
func TestDaemonThatLeadsACopySwitchesItOff(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	b.exec("update parley._p_broker set system_identifier = 1")
	equal(b.session, int64(1), "select parley._p_lead('test', 0, 1000)")
	equal(b.session, false, "select is_broker_enabled from parley.databases")
}
