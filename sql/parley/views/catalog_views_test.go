package views_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

const messageColumns = "status priority queuing_order conversation_group_id conversation_handle message_sequence_number service_name service_id " +
	"service_contract_name service_contract_id message_type_name message_type_id validation message_body message_enqueue_time message_id"

const endpointColumns = "name endpoint_id principal_id protocol protocol_desc type type_desc state state_desc is_admin_endpoint"

// Columns have the documented names in the documented order (spec 4.3, 8.1, 8.2); what is ours stands behind them.
func TestViewsHaveTheDocumentedColumns(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	for view, documented := range map[string]string{
		"parley.service_message_types":           "name message_type_id principal_id validation validation_desc xml_collection_id",
		"parley.service_contracts":               "name service_contract_id principal_id",
		"parley.service_contract_message_usages": "service_contract_id message_type_id is_sent_by_initiator is_sent_by_target",
		"parley.services":                        "name service_id principal_id service_queue_id",
		"parley.service_contract_usages":         "service_id service_contract_id",
		"parley.service_queue_usages":            "service_id service_queue_id",
		"parley.conversation_priorities":         "priority_id name service_contract_id local_service_id remote_service_name priority",
		"parley.service_queues": "name object_id principal_id schema_name parent_object_id type type_desc create_date modify_date is_ms_shipped " +
			"is_published is_schema_published max_readers activation_procedure execute_as_principal_id is_activation_enabled is_receive_enabled " +
			"is_enqueue_enabled is_retention_enabled is_poison_message_handling_enabled",
		"parley.conversation_endpoints": "conversation_handle conversation_id is_initiator service_contract_id conversation_group_id service_id lifetime " +
			"state state_desc far_service far_broker_instance principal_id far_principal_id outbound_session_key_identifier " +
			"inbound_session_key_identifier security_timestamp dialog_timer send_sequence last_send_tran_id end_dialog_sequence receive_sequence " +
			"receive_sequence_frag system_sequence first_out_of_order_sequence last_out_of_order_sequence last_out_of_order_frag is_system priority",
		"parley.conversation_groups": "conversation_group_id service_id is_system",
		"parley.transmission_queue": "conversation_handle to_service_name to_broker_instance from_service_name service_contract_name enqueue_time " +
			"message_sequence_number message_type_name is_conversation_error is_end_of_dialog message_body transmission_status priority",
		"parley.databases": "name database_id service_broker_guid is_broker_enabled is_honor_broker_priority_on is_trustworthy_on " +
			"is_master_key_encrypted_by_server",
		"parley.message_type_xml_schema_collection_usages": "message_type_id xml_collection_id",
		"parley.event_notifications": "name object_id parent_class parent_class_desc parent_id create_date modify_date is_ms_shipped service_name " +
			"broker_instance creator_sid principal_id",
		"parley.server_event_notifications": "name object_id parent_class parent_class_desc parent_id create_date modify_date service_name " +
			"broker_instance creator_sid principal_id",
		"parley.events": "object_id type type_desc is_trigger_event event_group_type event_group_type_desc",
		"parley.routes": "name route_id principal_id remote_service_name broker_instance lifetime address mirror_address",
		"parley.remote_service_bindings": "name remote_service_binding_id principal_id remote_service_name service_contract_id remote_principal_id " +
			"is_anonymous_on",
		"parley.service_broker_endpoints": endpointColumns + " is_message_forwarding_enabled message_forwarding_size connection_auth " +
			"connection_auth_desc certificate_id encryption_algorithm encryption_algorithm_desc",
		"parley.tcp_endpoints":             endpointColumns + " port is_dynamic_port ip_address",
		"parley.dm_broker_activated_tasks": "spid database_id queue_id procedure_name execute_as",
		"parley.dm_broker_queue_monitors":  "database_id queue_id state last_empty_rowset_time last_activated_time tasks_waiting",
		"parley.dm_broker_forwarded_messages": "conversation_id is_initiator to_service_name to_broker_instance from_service_name " +
			"from_broker_instance adjacent_broker_address message_sequence_number message_fragment_number message_id hops_remaining time_to_live " +
			"time_consumed",
		"parley.dm_broker_connections": "connection_id transport_stream_id state state_desc connect_time login_time last_activity_time " +
			"authentication_method principal_name remote_user_name is_accept login_state login_state_desc peer_certificate_id encryption_algorithm " +
			"encryption_algorithm_desc receives_posted sends_posted is_receive_flow_controlled is_send_flow_controlled total_bytes_sent " +
			"total_bytes_received total_fragments_sent total_fragments_received total_sends total_receives peer_arbitration_id",
		"parley.received_message":  messageColumns,
		`parley_queue."Answering"`: messageColumns,
	} {
		got := sqltest.Values[string](b.Session, "select attname::text from pg_attribute where attrelid = $1::regclass and attnum > 0 order by attnum", view)
		if want := strings.Fields(documented); len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
			t.Errorf("%s has the columns %q, want %q", view, got, want)
		}
	}
}

func TestQueueColumnsInTheCatalog(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	sqltest.Equal(b.Session, "SQ SERVICE_QUEUE dbo f", `
		select format('%s %s %s %s', type, type_desc, schema_name, is_ms_shipped) from parley.service_queues where name = 'Asking'`)
	sqltest.Equal(b.Session, 3, "select count(*) from parley.service_queues where is_ms_shipped")
	before := sqltest.Value[string](b.Session, "select format('%s %s', create_date, modify_date) from parley.service_queues where name = 'Asking'")
	b.Exec("select parley.alter_queue('Asking', retention => true)")
	sqltest.Equal(b.Session, true, "select create_date < modify_date from parley.service_queues where name = 'Asking'")
	if after := sqltest.Value[string](b.Session, "select format('%s %s', create_date, modify_date) from parley.service_queues where name = 'Asking'"); after == before {
		t.Error("modify_date did not change")
	}
}

// A notification has one event, under the number that SQL Server has for it; of a server and of schema collections there is nothing.
func TestEventsOfNotificationsAreInTheCatalog(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_queue('Notices')")
	b.Exec(`select parley.create_service('//test/Notices', 'Notices', array['http://schemas.microsoft.com/SQL/Notifications/PostEventNotification'])`)
	for _, event := range []string{"QUEUE_ACTIVATION", "BROKER_QUEUE_DISABLED"} {
		b.Exec("select parley.create_event_notification($1, 'Answering', $1, '//test/Notices')", event)
	}
	got := sqltest.Values[string](b.Session, `
		select format('%s: %s %s %s', n.name, e.type, e.type_desc, e.is_trigger_event)
		from parley.events as e join parley.event_notifications as n using (object_id) order by e.type`)
	if want := []string{"BROKER_QUEUE_DISABLED: 160 BROKER_QUEUE_DISABLED f", "QUEUE_ACTIVATION: 173 QUEUE_ACTIVATION f"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	sqltest.Equal(b.Session, 0, "select count(*) from parley.server_event_notifications")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.message_type_xml_schema_collection_usages")
	// A role that does not see the queue sees none of its events.
	outsider := b.As(b.Role("outsider"))
	sqltest.Equal(outsider, 0, "select count(*) from parley.events")
	sqltest.Equal(b.Session, "f f", "select format('%s %s', is_trustworthy_on, is_master_key_encrypted_by_server) from parley.databases")
}

func TestUsagesShowWhatIsBoundToWhat(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	got := sqltest.Values[string](b.Session, `
		select format('%s %s %s', s.name, q.name, c.name)
		from parley.services as s
		join parley.service_queue_usages as qu using (service_id)
		join parley.service_queues as q on q.object_id = qu.service_queue_id and q.object_id = s.service_queue_id
		join parley.service_contract_usages as cu using (service_id)
		join parley.service_contracts as c using (service_contract_id)
		where not q.is_ms_shipped
		order by 1`)
	want := []string{"//test/Answerer Answering //test/Work", "//test/Answerer Answering DEFAULT", "//test/Asker Asking //test/Work", "//test/Asker Asking DEFAULT"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestDatabasesShowWhetherPrioritiesAreHonored(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	shown := "select is_honor_broker_priority_on from parley.databases"
	sqltest.Equal(b.Session, false, shown)
	for _, honored := range []bool{true, false} {
		b.Exec("select parley.honor_broker_priority($1)", honored)
		sqltest.Equal(b.Session, honored, shown)
	}
}

func TestEndpointsCountWhatWasSentAndReceived(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	b.Send(initiator, sqltest.Request, "1")
	b.Exec("select parley.send_batch($1::uuid, '//test/Request', array['2', '3'])", initiator)
	b.Send(target, sqltest.Reply, "0")
	b.Messages("select * from parley.receive('Answering', 2)")
	counters := "select format('%s %s', send_sequence, receive_sequence) from parley.conversation_endpoints where conversation_handle = $1"
	sqltest.Equal(b.Session, "4 0", counters, initiator)
	sqltest.Equal(b.Session, "1 3", counters, target)
	b.Exec("select parley.begin_conversation_timer($1::uuid, 0)", target)
	b.Exec("select parley.fire_timers()")
	b.Receive("Answering")
	b.Receive("Asking")
	sqltest.Equal(b.Session, "4 1", counters, initiator)
	sqltest.Equal(b.Session, "1 4", counters, target)
}

func TestEndpointsOfClosedTargetsShowWhenTheyAreForgotten(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	sqltest.Equal(b.Session, true, "select security_timestamp is null from parley.conversation_endpoints where conversation_handle = $1", target)
	b.End(initiator)
	b.End(target)
	sqltest.Equal(b.Session, "CD CLOSED 0 //test/Asker //test/Work", `
		select format('%s %s %s %s %s', state, state_desc, is_initiator, far_service, service_contract_name)
		from parley.conversation_endpoints where conversation_handle = $1 and security_timestamp > now()`, target)
}

func TestConversationsAreShownToTheirOwnersAndAdministrators(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	role := b.Role("owner")
	b.Exec("select parley.create_queue('Mine', \"authorization\" => $1)", role)
	b.Exec("select parley.create_service('//mine', 'Mine', array['DEFAULT'], $1)", role)
	mine := sqltest.Value[string](b.Session, "select parley.begin_dialog('//mine', '//missing', allow_unknown_target => true)")
	b.Send(mine, "DEFAULT", "x")
	b.Dialog()
	sqltest.Equal(b.Session, 2, "select count(*) from parley.conversation_endpoints")
	sqltest.Equal(b.Session, 1, "select count(*) from parley.transmission_queue")
	s := b.As(role)
	sqltest.Equal(s, mine, "select string_agg(conversation_handle::text, ' ') from parley.conversation_endpoints")
	sqltest.Equal(s, 1, "select count(*) from parley.conversation_groups")
	sqltest.Equal(s, 1, "select count(*) from parley.stuck_conversations")
	// The transmission queue shows bodies: it is for administrators only.
	sqltest.Equal(s, 0, "select count(*) from parley.transmission_queue")
}

func TestTransmissionQueueDistinguishesErrorsAndEnds(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.alter_queue('Answering', status => false)")
	ended, failed := b.Dialog(), b.Dialog()
	b.Send(ended, sqltest.Request, "x")
	b.Send(failed, sqltest.Request, "y")
	b.End(ended)
	b.EndWithError(failed, 1, "no")
	got := sqltest.Values[string](b.Session, `
		select format('%s %s %s %s', message_type_name, is_conversation_error, is_end_of_dialog, transmission_status like '%disabled%')
		from parley.transmission_queue order by 1`)
	want := []string{sqltest.Request + " f f t", sqltest.EndDialog + " f t t", sqltest.ErrorMessage + " t f t"}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the transmission queue holds %q, want %q", got, want)
	}
}

// The number that a message will be received with, wherever it waits.
func TestTransmissionQueueShowsTheNumbersOfMessages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, off, on string }{
		{"the target's queue is off", "select parley.alter_queue('Answering', status => false)", "select parley.alter_queue('Answering', status => true)"},
		{"the broker is disabled", "select parley.disable_broker()", "select parley.enable_broker()"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			initiator := b.Dialog()
			b.Send(initiator, sqltest.Request, "a")
			b.Exec("select parley.send_batch($1::uuid, '//test/Request', array['b', 'c', 'd'])", initiator)
			b.Messages("select * from parley.receive('Answering', top => 2)")
			b.Exec(c.off)
			b.Exec("select parley.begin_conversation_timer($1::uuid, 0)", b.FarHandle(initiator))
			b.Exec("select parley.fire_timers()")
			b.Send(initiator, sqltest.Request, "e")
			b.Exec("select parley.send_batch($1::uuid, '//test/Request', array['f', 'g'])", initiator)
			b.End(initiator)
			waiting := sqltest.Values[string](b.Session, `
				select format('%s %s', message_sequence_number, coalesce(convert_from(message_body, 'UTF8'), 'end'))
				from parley.transmission_queue where conversation_handle = $1 order by message_sequence_number`, initiator)
			if want := []string{"4 e", "5 f", "6 g", "7 end"}; !slices.Equal(waiting, want) {
				t.Errorf("the transmission queue shows %q, want %q", waiting, want)
			}
			b.Exec(c.on)
			b.Exec("select parley.fire_timers()")
			var received []string
			for _, m := range b.Receive("Answering") {
				if m.MessageTypeName == sqltest.EndDialog {
					m.MessageBody = sqltest.Text("end")
				}
				received = append(received, fmt.Sprintf("%d %s", m.MessageSequenceNumber, m.MessageBody))
			}
			if want := append([]string{"-1 ", "2 c", "3 d"}, waiting...); !slices.Equal(received, want) {
				t.Errorf("received %q, want %q", received, want)
			}
		})
	}
}

func TestTransmissionStatusOfWhatIsUnknownOrDeliveredIsEmpty(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	for _, handle := range []any{initiator, target, "00000000-0000-0000-0000-000000000001", nil} {
		sqltest.Equal(b.Session, "", "select parley.get_transmission_status($1)", handle)
	}
}
