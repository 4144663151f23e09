package publish_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// waiting makes an orchestration of an application with instances that wait for answers to some orders.
func waiting(f sqltest.Flow, application string, orders ...string) {
	f.Helper()
	f.Exec(`select parley_flow.apply(jsonb_build_object('application', jsonb_build_object($1::text, '{}'::jsonb), 'orchestration', jsonb_build_object('Fulfil', jsonb_build_object(
		'application', $1::text, 'host', 'Send', 'body', '[]'::jsonb, 'activations', '[{"receive": "0", "filter": [[{"property": "MessageType", "operator": "=", "value": "begins"}]]}]'::jsonb))))`,
		application)
	for _, order := range orders {
		f.Exec(`with made as (
				insert into parley_flow._p_instance (send_port_id, version, status, state)
				select s.send_port_id, 1, 'WAITING', '{}' from parley_flow._p_send_port as s where s.name = 'Fulfil'
				returning instance_id
			)
			select parley_flow._p_change_waits(array[m.instance_id], array[jsonb_populate_record(null::parley_flow._p_step, jsonb_build_object(
				'n', 1, 'status', 'WAITING', 'waits', jsonb_build_array(
					jsonb_build_object('id', 'a', 'receive', '1/receive', 'is_open', true, 'equal', jsonb_build_object('urn:p#Po', $1::text),
						'filter', '[{"property": "MessageType", "operator": "=", "value": "answer"}]'::jsonb),
					jsonb_build_object('id', 'b', 'receive', '2/failed', 'is_open', true, 'equal', jsonb_build_object('urn:p#Po', $1::text),
						'filter', '[{"property": "ErrorReport.ErrorType", "operator": "exists"}]'::jsonb))))])
			from made as m`, order)
	}
}

// An answer that no instance waits for is explained by the wait that was nearest: by its values, which are not shown and make one cause of
// all that come too late, or by its filter. A wait for failed messages is near to no other, and a nearer send port stays the explanation.
func TestRoutingFailureNamesTheReceiveThatWaits(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	waiting(f, "Orders", "secret-1", "secret-2")
	f.PublishFlow("answer", `{"urn:p#Po": "late-1"}`)
	f.PublishFlow("answer", `{"urn:p#Po": "late-2"}`)
	f.PublishFlow("other", `{"urn:p#Po": "secret-1"}`)
	f.Exec(`select parley_flow.publish('x', '{"urn:p#Po": "secret-2"}')`)
	f.SendPort("Near", "near", `{"filter": [[{"property": "MessageType", "operator": "=", "value": "answer"}, {"property": "urn:p#Po", "operator": "=", "value": "one"},
		{"property": "urn:p#Amount", "operator": "exists"}]]}`)
	f.PublishFlow("answer", `{"urn:p#Po": "two", "urn:p#Amount": 1}`)
	const want = "NO_INSTANCE Fulfil 1/receive urn:p#Po true 2, ONE_PREDICATE Fulfil 1/receive MessageType true 1, " +
		"UNTYPED Fulfil 1/receive MessageType false 1, ONE_PREDICATE Near urn:p#Po true 1"
	for range 2 {
		sqltest.Equal(f.Session, want, `
			select string_agg(concat_ws(' ', explanation, send_port, receive, missed #>> '{0,property}', missed #>> '{0,is_promoted}', failures), ', ' order by first_at)
			from parley_flow.routing_failures`)
		sqltest.Equal(f.Session, 0, "select count(*)::integer from parley_flow.maintain() where error is not null")
	}
	sqltest.Equal(f.Session, 0, `select count(*)::integer from parley_flow.routing_failures as f where concat(missed, remedy) ~ 'secret' or remedy is null`)
	sqltest.Equal(f.Session, true, `select remedy ~ 'orchestration "Fulfil" wait at 1/receive .* urn:p#Po' from parley_flow.routing_failures where explanation = 'NO_INSTANCE'`)
	// An orchestration of another application is nobody's to see.
	role := f.Role("viewer")
	f.Exec("select parley_flow.apply('{\"application\": {\"Ours\": {}}, \"receive port\": {\"Our in\": {\"application\": \"Ours\"}}}')")
	f.Exec("select parley_flow.grant_right('VIEW', $1, application => 'Ours')", role)
	f.Exec(`select parley_flow.publish('x', '{"urn:p#Po": "late"}', 'answer', receive_port => 'Our in')`)
	sqltest.Equal(f.As(role), "NO_INSTANCE - - []", `select concat_ws(' ', explanation, coalesce(send_port, '-'), coalesce(receive, '-'), missed) from parley_flow.routing_failures`)
}

// A failed message goes to instances whose receive asks for failed ones, by the values that it had; not to those that wait for its type.
func TestFailedMessagesReachWaitsThatAskForThem(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	waiting(f, "Orders", "1", "2")
	id := sqltest.Value[int64](f.Session, `select message_id from parley_flow._p_receive(host => 'Receive', location => 'Routing folder', bodies => array['x'::bytea],
		promoted => array['{"urn:p#Po": "2"}'::jsonb], message_types => array['unknown'])`)
	sqltest.Equal(f.Session, "2 FailedMessage", `
		select concat_ws(' ', w.value, m.promoted ->> 'ErrorReport.ErrorType')
		from parley_flow._p_claim('Send', 'x') as c
		join parley_flow._p_message as m on m.message_id = c.message_id and (m.written ->> 'ErrorReport.FailureMessageID')::bigint = $1
		join parley_flow._p_instance_wait as w on c.order_key = 'i' || w.instance_id and w.wait = 'b'`, id)
	sqltest.Equal(f.Session, 0, "select count(*)::integer from parley_flow._p_suspended")
}
