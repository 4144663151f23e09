package broker_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/sqltest"
)

func requireBrokerState(s sqltest.Session, want string) {
	s.Helper()
	sqltest.Equal(s, want, "select broker_state from parley.databases")
	sqltest.Equal(s, want == "ENABLED", "select is_broker_enabled from parley.databases")
	sqltest.Equal(s, want == "ENABLED", "select disabled_at is null from parley.databases")
}

func TestBrokerIsEnabledWhenItIsInstalled(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	requireBrokerState(b.Session, "ENABLED")
	sqltest.Equal(b.Session, true, "select advice is null from parley.attach_broker()")
}

// SEND takes what it always takes; nothing arrives, and the sender can see why.
func TestDisabledBrokerTakesMessagesAndDeliversThemInOrderOnceEnabled(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	known, target := b.Conversation()
	b.Send(known, sqltest.Request, "before")
	b.Exec("select parley.disable_broker()")
	requireBrokerState(b.Session, "DISABLED")

	b.Send(known, sqltest.Request, "second")
	b.Send(known, sqltest.Note, "third")
	b.Exec("select parley.send_batch($1::uuid, '//test/Request', array['fourth', 'fifth'])", known)
	fresh := b.Dialog()
	b.Send(fresh, sqltest.Request, "hello")
	sqltest.Equal(b.Session, 1, "select count(*)::int from parley_queue.\"Answering\"")
	sqltest.Equal(b.Session, 5, "select count(*)::int from parley.transmission_queue")
	sqltest.Equal(b.Session, "The broker is disabled in this database.", "select parley.get_transmission_status($1)", known)
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley.conversation_endpoints where far_service = '//test/Asker' and conversation_handle <> $1", target)

	// Messages that were delivered before can be received.
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"before"}) {
		t.Errorf("received %v while the broker is disabled", got)
	}
	b.Exec("select parley.fire_timers()")
	sqltest.Equal(b.Session, 5, "select count(*)::int from parley.transmission_queue")

	b.Exec("select parley.enable_broker()")
	requireBrokerState(b.Session, "ENABLED")
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley.transmission_queue")
	b.Send(known, sqltest.Request, "sixth")
	got := sqltest.BodiesOf(b.Messages("select * from parley.receive('Answering', conversation_handle => $1)", target))
	if want := []string{"second", "third", "fourth", "fifth", "sixth"}; !slices.Equal(got, want) {
		t.Errorf("received %v, want %v", got, want)
	}
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"hello"}) {
		t.Errorf("the new conversation brought %v", got)
	}
}

func TestEndOfAConversationWaitsWhileTheBrokerIsDisabled(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		end  func(s sqltest.Session, handle string)
		want []string
	}{
		{"plainly", sqltest.Session.End, []string{sqltest.Request, sqltest.EndDialog}},
		{"with an error", func(s sqltest.Session, handle string) { s.EndWithError(handle, 1, "no") }, []string{sqltest.ErrorMessage}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			initiator, target := b.Conversation()
			b.Exec("select parley.disable_broker()")
			b.Send(initiator, sqltest.Request, "last")
			test.end(b.Session, initiator)
			sqltest.Equal(b.Session, "CO", "select state from parley.conversation_endpoints where conversation_handle = $1", target)
			b.Exec("select parley.enable_broker()")
			types := []string{}
			for _, m := range b.Receive("Answering") {
				types = append(types, m.MessageTypeName)
			}
			if !slices.Equal(types, test.want) {
				t.Errorf("received %v, want %v", types, test.want)
			}
			b.End(target)
			sqltest.Equal(b.Session, 0, "select count(*)::int from parley.conversation_endpoints where state <> 'CD'")
		})
	}
}

func TestBothSidesMayEndWhileTheBrokerIsDisabled(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	b.Exec("select parley.disable_broker()")
	b.End(initiator)
	b.End(target)
	b.Exec("select parley.enable_broker()")
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley.conversation_endpoints where state <> 'CD'")
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley.transmission_queue")
}

func TestServicesAreNotFoundWhileTheBrokerIsDisabled(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	early := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Late', allow_unknown_target => true)")
	b.Send(early, "DEFAULT", "x")
	b.Exec("select parley.disable_broker()")
	b.Exec("select parley.create_queue('Late'); select parley.create_service('//test/Late', 'Late', array['DEFAULT'])")
	sqltest.Equal(b.Session, 1, "select count(*)::int from parley.transmission_queue")
	b.Exec("select parley.enable_broker()")
	if got := b.Bodies("Late"); !slices.Equal(got, []string{"x"}) {
		t.Errorf("received %v", got)
	}
}

// A sender on the short way is no obstacle; one that has asked the switch has to finish first.
func TestSwitchWaitsForSendersThatHaveAskedForIt(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	known, _ := b.Conversation()
	b.Send(known, sqltest.Request, "second")
	quick := b.Begin()
	quick.Send(known, sqltest.Request, "on the short way")
	b.Exec("select parley.disable_broker(wait_seconds => 0)")
	quick.Commit()
	b.Exec("select parley.enable_broker(wait_seconds => 0)")

	slow := b.Begin()
	slow.Send(slow.Dialog(), sqltest.Request, "on the long way")
	pid := sqltest.Value[string](slow, "select pg_backend_pid()::text")
	if refusal := b.Refuses(5061, "select parley.disable_broker(wait_seconds => 0)"); !strings.Contains(refusal.Detail, pid) {
		t.Errorf("who is in the way is not reported: %s", refusal.Detail)
	}
	requireBrokerState(b.Session, "ENABLED")
	slow.Commit()
	b.Exec("select parley.disable_broker()")
}

func TestSwitchIsPartOfItsTransaction(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	known, _ := b.Conversation()
	tx := b.Begin()
	tx.Exec("select parley.disable_broker()")
	tx.Rollback()
	requireBrokerState(b.Session, "ENABLED")
	b.Send(known, sqltest.Request, "x")
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley.transmission_queue")
}

// An old snapshot does not know that the broker was disabled since; its messages wait all the same.
func TestSendAtRepeatableReadSeesTheSwitchAsItIs(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Dialog()
	old := b.Begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	sqltest.Equal(old, true, "select is_broker_enabled from parley.databases")
	b.Exec("select parley.disable_broker()")
	old.Send(handle, sqltest.Request, "x")
	old.Commit()
	sqltest.Equal(b.Session, 1, "select count(*)::int from parley.transmission_queue")
}

func TestNewBrokerForgetsConversationsAndKeepsDefinitions(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(sqltest.Scene)
	b.Exec("select parley.alter_queue('Asking', retention => true)")
	b.Send(b.Dialog(), sqltest.Request, "kept")
	b.Exec("select parley.begin_conversation_timer($1::uuid, 60)", b.Dialog())
	delayed := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Missing', allow_unknown_target => true)")
	b.Send(delayed, "DEFAULT", "x")
	before := sqltest.Value[string](b.Session, "select service_broker_guid::text from parley.databases")
	b.Exec("select parley.invite_peer()")
	b.Exec("select parley._p_request_pairing($1, '', '{}', 'code', 'remote') from parley.open_pairing()", sqltest.OneKey)

	b.Exec("select parley.create_queue('jobs', kind => 'SIMPLE'), parley.create_queue('after', kind => 'SIMPLE')")
	b.Exec("select parley.put_group('jobs', array['a', 'b'], 'after', 'all done')")
	b.Exec("select parley.put_unique('jobs', 'one', 'only once'::text)")

	b.Exec("select parley.drop_event_notification('activated', 'Event')")
	id := sqltest.Value[string](b.Session, "select parley.new_broker()")
	if id == before {
		t.Error("the id is the old one")
	}
	requireBrokerState(b.Session, "ENABLED")
	sqltest.Equal(b.Session, id, "select service_broker_guid::text from parley.databases")

	// Every table is either a definition or empty. A new table has to choose.
	definitions := []string{
		"_p_activated_task", "_p_dropped_queue", "_p_leader", "_p_queue_monitor", // what the daemon did, and who it is
		"_p_event_notification", "_p_external_activation", "_p_broker", "_p_contract", "_p_contract_message_type", "_p_installation", "_p_message_type", "_p_peer", "_p_peer_certificate", "_p_broker_certificate",
		"_p_permission", "_p_priority", "_p_role_number", "_p_role_place",
		"_p_queue", "_p_route", "_p_service", "_p_service_contract", "_p_certificate", "_p_remote_service_binding",
		"_p_retry_policy", "_p_queue_limit", "_p_schedule", "_p_schedule_run", "_p_operator_action",
		"_p_rollback_counter", "_p_limit_slot", // rows that exist to be locked
	}
	for _, table := range sqltest.Values[string](b.Session,
		"select relname::text from pg_class where relnamespace = 'parley'::regnamespace and relkind in ('r', 'p') order by relname") {
		if !slices.Contains(definitions, table) {
			sqltest.Equal(b.Session, 0, "select count(*)::int from parley."+table)
		}
	}
	initiator, _ := b.Conversation()
	b.Send(initiator, sqltest.Request, "goes on")
}

func TestErrorBrokerConversationsInformsBothSides(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	b.Send(target, sqltest.Reply, "unread")
	ended, half := b.Conversation()
	b.End(ended)
	b.Exec("select parley.disable_broker()")
	id := sqltest.Value[string](b.Session, "select service_broker_guid::text from parley.databases")
	b.Send(initiator, sqltest.Request, "never delivered")

	sqltest.Equal(b.Session, 3, "select parley.error_broker_conversations()")
	requireBrokerState(b.Session, "ENABLED")
	sqltest.Equal(b.Session, id, "select service_broker_guid::text from parley.databases")
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley.transmission_queue")
	for handle, queue := range map[string]string{initiator: "Asking", target: "Answering", half: "Answering"} {
		got := b.Messages("select * from parley.receive($1, conversation_handle => $2)", queue, handle)
		if len(got) == 0 || got[0].MessageTypeName != sqltest.ErrorMessage || !strings.Contains(string(got[0].MessageBody), "<Code>-9719</Code>") {
			t.Errorf("%s got %v, want an Error of -9719 first", queue, sqltest.BodiesOf(got))
		}
		b.End(handle)
	}
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley.conversation_endpoints where state <> 'CD'")
}

// An event notification speaks through a conversation, and has to get another one.
func TestEventNotificationsOutliveANewBroker(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(sqltest.Scene)
	before := sqltest.Value[string](b.Session, "select conversation_handle::text from parley._p_event_notification")
	b.Exec("update parley._p_event_notification set broker_instance = (select service_broker_guid from parley.databases)")
	id := sqltest.Value[string](b.Session, "select parley.new_broker()::text")
	sqltest.Equal(b.Session, true, `
		select n.conversation_handle <> $1 and n.broker_instance = $2 and e.state = 'SO'
		from parley._p_event_notification as n
		join parley.conversation_endpoints as e using (conversation_handle)`, before, id)
}

// A copy of a database is no place for a daemon, whatever it was started for.
func TestDaemonThatLeadsACopySwitchesItOff(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec("update parley._p_broker set system_identifier = 1")
	sqltest.Equal(b.Session, int64(1), "select parley._p_lead('test', 0, 1000)")
	sqltest.Equal(b.Session, false, "select is_broker_enabled from parley.databases")
}
