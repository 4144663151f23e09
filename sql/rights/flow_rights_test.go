package rights_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// flowWalkScene gives every function of the engine something of another role to work on.
const flowWalkScene = `
	select parley_flow.publish('TOPSECRET 1', '{"urn:p#Po": "TOPSECRET 2", "urn:p#Card": "TOPSECRET 3"}', 'urn:s#Order', receive_port => 'In');
	select parley_flow.publish('TOPSECRET 4', message_type => 'TOPSECRET 5', written => '{"urn:p#Po": "TOPSECRET 6"}');
	select parley_flow.set_quota('pg_monitor', messages_per_minute => 7);
	select parley_flow.grant_right('VIEW', 'pg_monitor', application => 'TOPSECRET 7');
	select parley_flow._p_report('Send', 'TOPSECRET 8', '{}'), parley_flow._p_report_location('Receive', 'Folder', 'x', 'TOPSECRET 9');
	select parley_flow._p_receive('Receive', 'Folder', array['TOPSECRET 10']::bytea[], keys => array['TOPSECRET'], entries => array['{"TOPSECRET": 1}'::jsonb],
		failure_codes => array['x-TOPSECRET'], failure_errors => array['TOPSECRET 11']);
	select parley_flow._p_begin_body('Receive');
	select parley_flow.apply('{"receive port": {"Desk": {"application": "Orders", "responds": true}}, "receive location": {"Desk": {"receive_port": "Desk",
		"host": "Receive", "adapter": "HTTP", "address": "http://x/y"}}}');
	select parley_flow._p_receive('Receive', 'Desk', array['TOPSECRET 12']::bytea[], node => 'x');
	update parley_flow._p_request set answer_id = (select min(message_id) from parley_flow._p_message);
	insert into parley_flow._p_definition (kind, name, settings, version, changed_by) values ('application', 'TOPSECRET', '{}', 1, 'x');
	select parley_flow._p_count('Send', array['documents_processed'], array[77]);
	select parley_flow.apply('{"orchestration": {"Approve": {"application": "Orders", "host": "Receive", "description": "TOPSECRET 12", "body": [],
		"activations": [{"receive": "0", "filter": [[{"property": "MessageType", "operator": "=", "value": "TOPSECRET 13"}]]}]}}}');
	select parley_flow.start_orchestration('Approve', '{"TOPSECRET": 14}');
	update parley_flow._p_instance set instance_id = 1, status = 'SUSPENDED', state = 'TOPSECRET 15';
	insert into parley_flow._p_instance_timer (instance_id, timer, host_id, at)
		select 1, 'TOPSECRET', host_id, clock_timestamp() from parley_flow._p_host where name = 'Receive';
	insert into parley_flow._p_instance_hold (instance_id, message_id) values (1, 1);
	insert into parley_flow._p_instance_activity (activity, instance_id, host_id, name, queue) values ('TOPSECRET', 1, 1, 'x', 'x');
	select parley_flow._p_track_instances('FAULT', '', 'Approve', array[1], array['{"fault": "TOPSECRET 16"}'::jsonb]);
	select parley_flow._p_claim('Send', 'x')`

// flowAsksWithoutShowing are the functions whose check the walk does not come to, with the reason.
var flowAsksWithoutShowing = map[string]string{
	"parley_flow._p_configuration_version(parley.caller)":                   "a number that says nothing of anybody",
	"parley_flow.complete_activity(text, jsonb, parley.caller)":             "it asks for the name of the activity, which nobody can guess",
	"parley_flow.fail_activity(text, text, boolean, parley.caller)":         "it asks for the name of the activity",
	"parley_flow.instances_matching(jsonb, integer, bigint, parley.caller)": "it asks parley_flow._p_instance_rows, to which the walk comes",
	"parley_flow.port_activity(parley.caller)":                              "it asks parley_flow._p_send_port_rows, to which the walk comes",
	"parley_flow.renew_activity(text, parley.caller)":                       "it asks for the name of the activity",
}

var flowLiterals = map[string]string{
	"host": "'Receive'", "location": "'Folder'", "name": "'ERP'", "send_port": "'ERP'", "kind": "'send port'", "definitions": "'{}'", "application": "null",
	"receive_port": "null", "role": "'public'", "keys": "array['TOPSECRET']", "property": "'urn:p#Po'", "value": "'TOPSECRET 2'", "message_id": "1", "part": "1",
	"suspension_id": "1", "filter": "'{}'", "dry_run": "false", "prune": "false", "after": "0", "before": "null", "top": "10", "rate": "null", "properties": "'{}'", "written": "null",
	"idempotency_key": "null", "bodies": "array['x']", "leases": "array[1]", "items": "array[1]", "details": "null", "inputs": "null", "answered": "array[5]", "outcomes": "array['GIVEN']", "requests": "array[1]", "token": "null", "entries": "null",
	"contents": "null", "parts": "null", "failure_codes": "null", "failure_errors": "null", "epoch": "null", "matched_messages": "null", "matched_ports": "null",
	"resubmission_lease": "null", "resubmission_item": "null", "promoted": "null", "message_types": "null", "message_type": "'x'", "body": "'1'", "code": "'x-a'",
	"events": "array['x']", "message_ids": "array[1]", "fields": "null", "retry_after": "null", "lease": "'1 minute'", "timeout": "0", "lanes": "1", "each": "1",
	"passed_by": "null", "interchange_id": "null", "resource": "'spool'", "medium_at": "5", "high_at": "6", "medium_below": "5", "normal_below": "4",
	"history_polls": "0", "is_watched": "true", "node": "'x'", "event_id": "15004", "from_level": "'NORMAL'", "to_level": "'HIGH'", "measured": "1",
	"actions": "null", "message": "'x'", "what": "'audit'", "retention": "'1 year'",
	"orchestration": "'Approve'", "instance_id": "1", "version": "1", "parameters": "'{}'", "activity": "'guessed'", "result": "null", "error": "'x'",
	"is_final": "true", "messages": "array[1]", "ended": "null", "ended_steps": "null", "copied_ids": "null", "parents": "null", "send_ports": "null",
	"publishing_steps": "null", "steps": "null", "states": "null", "unread": "null", "starts": "null", "instances": "null",
	"content_id": "1", "lease_id": "1", "number": "0", "bytes": "1", "from_number": "0", "to_number": "0", "messages_per_minute": "1", "bytes_per_minute": "1",
}

// flowEntries are the functions and views of the engine that every role can reach.
func flowEntries(f sqltest.Flow) []entry {
	f.Helper()
	return entriesWith(f.Session, func(function, argument string) (string, bool) {
		if argument == "name" && strings.HasSuffix(function, "_right") {
			return "'PUBLISH'", true
		}
		literal, ok := flowLiterals[argument]
		return literal, ok
	}, "parley_flow")
}

// Everything of the engine that every role can call is called by a role that was granted nothing; and each function does another thing
// for a superuser, so that the walk comes to its check.
func TestRightsWalkOverTheEngine(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.Exec(flowWalkScene)
	entries := flowEntries(f)
	s := f.As(f.Role("nobody"))
	before, answers := mailEverything(f.Session), map[string]string{}
	for _, e := range entries {
		o := call(s, e.Statement)
		answers[e.Name] = o.text
		if o.err != nil {
			answers[e.Name] = o.err.Error()
		}
		if shows(answers[e.Name]) {
			t.Errorf("%s shows what is somebody else's: %s", e.Statement, sqltest.Clip(answers[e.Name]))
		}
	}
	if after := mailEverything(f.Session); after != before {
		t.Errorf("the engine was changed:\n%s", sqltest.Difference(before, after))
	}
	super := sqltest.Value[string](f.Session, "select format('%s::oid', oid) from pg_roles where rolname = current_user")
	tx := f.Connection()
	tried := 0
	for _, e := range entries {
		if _, _, isFunction := strings.Cut(e.Name, "("); !isFunction || flowAsksWithoutShowing[e.Name] != "" {
			continue
		}
		definition := sqltest.Value[string](f.Session, "select pg_get_functiondef($1::regprocedure)", e.Name)
		credulous := strings.ReplaceAll(definition, "parley.caller_role(caller)", super)
		if credulous == definition {
			t.Errorf("%s does not ask who calls", e.Name)
			continue
		}
		tried++
		tx.Exec("begin")
		tx.Exec(credulous)
		tx.Exec("set local role " + sqltest.Quote(f.Role("credulous")))
		o := call(tx, e.Statement)
		tx.Exec("rollback")
		got := o.text
		if o.err != nil {
			got = o.err.Error()
		}
		if got == answers[e.Name] {
			t.Errorf("the walk does not come to the check of %s: %s", e.Statement, sqltest.Clip(got))
		}
	}
	if tried < 50 {
		t.Errorf("only %d functions were tried", tried)
	}
}

// A right of an application shows and moves what is its own, and nothing of others.
func TestRightsOfAnApplicationEndThere(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.Exec(`select parley_flow.apply(jsonb_build_object('application', '{"Other": {}}'::jsonb, 'receive port', '{"Other in": {"application": "Other"}}'::jsonb,
		'send port', '{"Other out": {"application": "Other", "host": "Send", "adapter": "A", "address": "x",
			"filter": [[{"property": "MessageType", "operator": "=", "value": "other"}]]}}'::jsonb))`)
	role := f.Role("operator")
	f.Exec("select parley_flow.grant_right('OPERATE', $1, application => 'Orders'), parley_flow.grant_right('PUBLISH', $1, receive_port => 'In')", role)
	s := f.As(role)
	ours := sqltest.Value[int64](s, "select parley_flow.publish('x', message_type => 'nobody', receive_port => 'In')")
	s.RefusesFlow(1, "select parley_flow.publish('x')")
	s.RefusesFlow(1, "select parley_flow.publish('x', receive_port => 'Other in')")
	s.RefusesFlow(1, "select parley_flow.publish('x', receive_port => 'no such port')")
	f.Exec("select parley_flow.publish('x', message_type => 'nobody', receive_port => 'Other in')")
	sqltest.Equal(s, ours, "select message_id from parley_flow.suspended")
	sqltest.Equal(s, "Big ERP", "select string_agg(name, ' ' order by name) from parley_flow.send_ports")
	sqltest.Equal(s, 1, "select parley_flow.terminate_suspended('{}')")
	sqltest.Equal(f.Session, 1, "select count(*)::integer from parley_flow.suspended")
	s.Exec("select parley_flow.stop('ERP')")
	s.RefusesFlow(1, "select parley_flow.stop('Other out')")
	s.RefusesFlow(1, "select parley_flow.stop('no such port')")
	s.RefusesFlow(1, "select parley_flow.apply('{}')")
	s.RefusesFlow(1, "select parley_flow.read_message(1)")
	f.Exec("select parley_flow.grant_right('READ_CONTENT', $1, application => 'Orders')", role)
	id := f.PublishFlow("urn:s#Order", "{}")
	s.RefusesFlow(1, "select parley_flow.read_message($1)", id) // it came by no port of the application
	sqltest.Equal(f.Session, true, "select parley_flow.revoke_right('OPERATE', $1, application => 'Orders')", role)
	sqltest.Equal(s, 0, "select count(*)::integer from parley_flow.send_ports")
}

// A host has its own claims and leases, and nothing of another host's.
func TestHostsHaveTheirOwnWork(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.PublishFlow("urn:s#Order", "{}")
	if got := f.Rx.ClaimFlow("Receive"); len(got) != 0 {
		t.Errorf("claimed %+v of another host", got)
	}
	m := f.Tx.ClaimFlow("Send")[0]
	f.Rx.RefusesFlow(1, "select parley_flow._p_claim('Send', 'x')")
	f.Rx.RefusesFlow(1, "select parley_flow._p_claim('no such host', 'x')")
	f.Rx.RefusesFlow(7, "select parley_flow._p_complete('Receive', array[$1::bigint], array[$2::bigint])", m.Lease, m.Item)
	f.Rx.RefusesFlow(7, "select parley_flow._p_retry('Receive', $1, array[$2::bigint], 'x-a', 'b')", m.Lease, m.Item)
	f.Rx.RefusesFlow(7, "select parley_flow._p_release('Receive', $1)", m.Lease)
	sqltest.Equal(f.Rx, m.Lease, "select gone[1] from parley_flow._p_renew('Receive', array[$1::bigint])", m.Lease)
	sqltest.Equal(f.Tx, m.Lease, "select renewed[1] from parley_flow._p_renew('Send', array[$1::bigint])", m.Lease)
	for _, name := range []string{"messages", "suspended", "definitions", "counters", "subscriptions"} {
		sqltest.Equal(f.Tx, 0, "select count(*)::integer from parley_flow."+name)
	}
	sqltest.Equal(f.Tx, "Send", "select string_agg(host, ' ') from parley_flow.hosts")
}

// Each situation of an error is raised by something, and each fault is given by something.
func TestErrorsOfTheEngineAreUsed(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	bodies := strings.Join(sqltest.Values[string](f.Session, "select prosrc from pg_proc where pronamespace = 'parley_flow'::regnamespace"), "\n")
	for _, situation := range slices.Concat(
		sqltest.Values[string](f.Session, "select situation from parley_flow.errors"), sqltest.Values[string](f.Session, "select situation from parley_flow._p_fault_text"),
	) {
		if !strings.Contains(bodies, "'"+situation+"'") {
			t.Errorf("nothing raises %q", situation)
		}
	}
}
