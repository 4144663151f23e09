package rights_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// twoOrchestrations has one that the host Receive serves, of the thief, and one that the host Send serves, with an instance and a message.
func twoOrchestrations(t *testing.T) (f sqltest.Flow, instance, message int64) {
	t.Helper()
	f = sqltest.NewFlow(t)
	f.Exec(`select parley_flow.apply('{"orchestration": {
		"Mine": {"application": "Orders", "host": "Receive", "messages": {"in": "urn:s#Mine"}, "correlations": {"by_po": ["urn:p#Po"]},
			"body": [{"receive": {"message": "in", "follow": ["by_po"]}}]},
		"Theirs": {"application": "Orders", "host": "Send", "messages": {"in": "urn:s#Theirs"}, "body": [{"receive": {"message": "in", "activate": true}}],
			"activations": [{"receive": "0", "filter": [[{"property": "MessageType", "operator": "=", "value": "urn:s#Theirs"}]]}]}}}')`)
	instance = sqltest.Value[int64](f.Session, `insert into parley_flow._p_instance (send_port_id, version, status, state)
		select s.send_port_id, 1, 'WAITING', '{}' from parley_flow._p_send_port as s where s.name = 'Theirs' returning instance_id`)
	message = sqltest.Value[int64](f.Session, "select parley_flow.publish('TOPSECRET', message_type => 'urn:s#Theirs')")
	return f, instance, message
}

const advanceMine = `select parley_flow._p_advance('Receive', 'Mine', '{}', '{}', steps => $1::jsonb, states => array_fill('{}'::text, array[jsonb_array_length($1::jsonb)]))`

// A host saves steps of instances of the orchestration that it names, and of no other one.
func TestAHostStepsNoInstanceOfAnotherHost(t *testing.T) {
	t.Parallel()
	f, instance, _ := twoOrchestrations(t)
	for _, status := range []string{"WAITING", "SUSPENDED", "FINISHED", "TERMINATED", "FAILED", "PARKED"} {
		f.Rx.RefusesFlow(6, `select parley_flow._p_advance('Receive', 'Mine', '{}', '{}', states => array['stolen'], steps => jsonb_build_array(
			jsonb_build_object('instance', $1::bigint, 'version', 1, 'status', $2::text)))`, instance, status)
	}
	sqltest.Equal(f.Session, "WAITING {} 0", "select status || ' ' || state || ' ' || steps from parley_flow._p_instance where instance_id = $1", instance)
	f.Rx.RefusesFlow(6, advanceMine, `[{"instance": 4711, "version": 1, "status": "WAITING"}]`)
}

// A host has its instances hold, keep and give back messages that came for them, and no others: by none of these it reads what is another's.
func TestAHostTakesNoMessageOfAnother(t *testing.T) {
	t.Parallel()
	f, _, message := twoOrchestrations(t)
	id := sqltest.Value[string](f.Session, "select $1::bigint::text", message)
	for _, part := range []string{
		`"status": "WAITING", "holds": [$]`, `"status": "WAITING", "parked": [{"kind": "RECEIVED", "message": $}]`,
		`"status": "PARKED", "parked": [{"kind": "ACTIVATED", "message": $}]`, `"status": "WAITING", "unread": [{"message": $, "came_by": "k"}]`,
		`"status": "FINISHED", "unread": [{"message": $, "came_by": "i1"}]`,
	} {
		f.Rx.RefusesFlow(6, advanceMine, `[{"version": 1, `+strings.ReplaceAll(part, "$", id)+"}]")
	}
	f.Rx.RefusesFlow(6, "select parley_flow._p_advance('Receive', 'Mine', '{}', '{}', unread => jsonb_build_array(jsonb_build_object('instance', 1, 'message', $1::bigint)))", message)
	sqltest.Equal(f.Rx, 0, "select count(*)::integer from parley_flow._p_messages_of('Receive', array[$1::bigint])", message)
	sqltest.Equal(f.Session, 0, "select count(*)::integer from parley_flow._p_suspended")
}

// An instance waits by the properties of its correlation sets for messages of the types that its definition declares: a host that says
// otherwise gets no message.
func TestAHostWaitsForNothingThatItsDefinitionDoesNotSay(t *testing.T) {
	t.Parallel()
	f, _, _ := twoOrchestrations(t)
	step := func(equal, filter string) string {
		return `[{"version": 1, "status": "WAITING", "waits": [{"id": "0@1", "receive": "0", "is_open": true, "equal": ` + equal + `, "filter": ` + filter + `}]}]`
	}
	const ofType = `[{"property": "MessageType", "type": "text", "operator": "=", "value": "urn:s#Mine"}]`
	f.Rx.Exec(advanceMine, step(`{"urn:p#Po": "17"}`, ofType))
	for _, wait := range []string{
		step(`{"MessageType": "urn:s#Theirs"}`, "[]"), step(`{"ReceivePortName": "In", "urn:p#Po": "17"}`, ofType),
		step(`{"urn:p#Po": "17"}`, "[]"), step(`{"urn:p#Po": "17"}`, "null"),
		step(`{"urn:p#Po": "17"}`, strings.ReplaceAll(ofType, "Mine", "Theirs")), step(`{"urn:p#Po": "17"}`, strings.ReplaceAll(ofType, `"="`, `"<>"`)),
	} {
		f.Rx.RefusesFlow(6, advanceMine, wait)
	}
	f.Rx.RefusesFlow(6, advanceMine, strings.ReplaceAll(step(`{"urn:p#Po": "17"}`, ofType), `"version": 1`, `"version": 7`))
}

// The token by which an instance asks, and the names of the activities that it waits for, are shown to no operator and to no reader: whoever
// has one of them could answer for somebody else.
func TestTokensOfInstancesAreNotShown(t *testing.T) {
	t.Parallel()
	f, instance, message := twoOrchestrations(t)
	f.Exec(`update parley_flow._p_instance set state = '{"c": {"asked": {"CorrelationToken": "TOPSECRET \"1"}}, "i": "TOPSECRET 2", "kept": "17"}', convoy_key = 'TOPSECRET 3'
		where instance_id = $1`, instance)
	f.Exec("update parley_flow._p_send_port set convoy = array['CorrelationToken'] where name = 'Theirs'")
	f.Exec(`select parley_flow._p_change_waits(array[$1::bigint], array[jsonb_populate_record(null::parley_flow._p_step, '{"n": 1, "status": "WAITING", "waits": [
		{"id": "a", "receive": "1", "equal": {"CorrelationToken": "TOPSECRET 4"}}, {"id": "b", "receive": "1", "equal": {"Aa": "1", "CorrelationToken": "TOPSECRET 5"}}]}')])`, instance)
	f.Exec(`insert into parley_flow._p_instance_activity (activity, instance_id, host_id, name, queue) values ('TOPSECRET 2', $1, 1, 'x', 'x')`, instance)
	f.Exec(`update parley_flow._p_message set promoted = promoted || '{"CorrelationToken": "TOPSECRET 6"}', written = '{"CorrelationToken": "TOPSECRET 7"}'
		where message_id = $1`, message)
	for _, statement := range []string{
		"select string_agg(i::text, ' ') from parley_flow.instances as i", "select parley_flow.read_instance($1)",
		"select string_agg(m::text, ' ') from parley_flow.messages as m",
	} {
		var arguments []any
		if strings.Contains(statement, "$1") {
			arguments = []any{instance}
		}
		if got := sqltest.Value[string](f.Session, statement, arguments...); strings.Contains(got, "TOPSECRET") {
			t.Errorf("%s: %s", statement, got)
		}
	}
	sqltest.Equal(f.Session, false, "select coalesce(string_agg(p::text, ' '), '') ~ 'TOPSECRET' from parley_flow.read_properties($1) as p", message)
	sqltest.Equal(f.Session, "17", "select parley_flow.read_instance($1)::jsonb ->> 'kept'", instance)
}

// A role that may publish so many messages a minute begins no more instances than that.
func TestStartsCountAgainstTheQuota(t *testing.T) {
	t.Parallel()
	f, _, _ := twoOrchestrations(t)
	role := f.Role("publisher")
	f.Exec("select parley_flow.grant_right('PUBLISH', $1, application => 'Orders')", role)
	f.Exec("select parley_flow.set_quota($1, messages_per_minute => 2)", role)
	s := f.As(role)
	const start = "select parley_flow.start_orchestration('Mine')"
	s.Exec(start)
	s.Exec(start)
	s.RefusesFlow(13, start)
}
