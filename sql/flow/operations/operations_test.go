package operations_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// suspendThree suspends three orders at ERP, with two codes, and one message that matched nothing.
func suspendThree(f sqltest.Flow) []int64 {
	f.Helper()
	var ids []int64
	for n, code := range []string{"send.refused", "send.refused", "x-other"} {
		ids = append(ids, sqltest.Value[int64](f.Session, "select parley_flow.publish('body', jsonb_build_object('urn:p#Po', $1::integer::text, 'urn:p#Card', 'geheim'), 'urn:s#Order')", n))
		m := f.Tx.ClaimFlow("Send")[0]
		f.Tx.Exec("select parley_flow._p_suspend('Send', $1, array[$2::bigint], $3, 'it said no')", m.Lease, m.Item, code)
	}
	return append(ids, f.PublishFlow("nobody", "{}"))
}

func TestSuspendedMessagesAreFoundByFilter(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	ids := suspendThree(f)
	for filter, want := range map[string]int{
		`{}`: 4, `{"send_port": "ERP"}`: 3, `{"code": "send.refused"}`: 2, `{"stage": "route"}`: 1, `{"error": "said"}`: 3, `{"error": "%"}`: 0,
		`{"application": "Orders"}`: 3, `{"older": "1 hour"}`: 0, `{"newer": "1 hour"}`: 4, `{"message_type": "nobody"}`: 1,
		`{"property": "urn:p#Po", "value": "1"}`: 1, `{"property": "urn:p#Card", "value": "geheim"}`: 0, `{"host": "Send"}`: 3, `{"is_resumable": false}`: 0,
		`{"cause": 1}`: 0, `{"code": "send.refused", "property": "urn:p#Po", "value": "0"}`: 1,
	} {
		sqltest.Equal(f.Session, want, "select count(*)::integer from parley_flow.suspended_matching($1::jsonb)", filter)
		sqltest.Equal(f.Session, want, "select parley_flow.terminate_suspended($1::jsonb, dry_run => true)", filter)
	}
	sqltest.Equal(f.Session, ids[3], `select message_id from parley_flow.suspended_matching(
		(select jsonb_build_object('cause', cause_id) from parley_flow.routing_failures))`)
	sqltest.Equal(f.Session, ids[1], "select message_id from parley_flow.suspended_matching('{}', top => 1, after => 1)")
	sqltest.Equal(f.Session, "ERP send.refused 2, ERP x-other 1,  routing.no-subscription 1", `
		select string_agg(coalesce(send_port, '') || ' ' || code || ' ' || messages, ', ' order by messages desc, sample) from parley_flow.suspended_groups()`)
	for _, filter := range []string{`[]`, `7`, `{"nothing": 1}`, `{"code": null}`, `{"older": "soon"}`, `{"messages": "all"}`, `{"messages": ["x"]}`, `{"is_resumable": "yes"}`, `{"property": "x"}`} {
		f.RefusesFlow(10, "select count(*) from parley_flow.suspended_matching($1::jsonb)", filter)
		f.RefusesFlow(10, "select parley_flow.resume_suspended($1::jsonb)", filter)
	}
	f.RefusesFlow(10, "select parley_flow.resume_suspended('{}', top => 0)")
	f.RefusesFlow(10, "select parley_flow.resume_suspended('{}', rate => 0)")
}

// Terminating one message touches no other, in slices that end.
func TestTerminatingOneMessageTouchesNoOther(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	ids := suspendThree(f)
	sqltest.Equal(f.Session, 1, "select parley_flow.terminate_suspended(jsonb_build_object('messages', jsonb_build_array($1::bigint)))", ids[1])
	sqltest.Equal(f.Session, 3, "select count(*)::integer from parley_flow.suspended")
	sqltest.Equal(f.Session, 3, "select count(*)::integer from parley_flow._p_message")
	for _, want := range []int{2, 1, 0} {
		sqltest.Equal(f.Session, want, "select parley_flow.terminate_suspended('{}', top => 2)")
	}
	sqltest.Equal(f.Session, 0, "select count(*)::integer from parley_flow._p_message")
	sqltest.Equal(f.Session, "terminate 1, terminate 2, terminate 1", "select string_agg(operation || ' ' || (detail ->> 'messages'), ', ' order by audit_id) from parley_flow.audit where operation = 'terminate'")
}

// Resumed messages are sent by their port; what matched nothing is routed anew, and stays where it matches nothing still.
func TestResumedMessagesGoOn(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	ids := suspendThree(f)
	sqltest.Equal(f.Session, 3, "select parley_flow.resume_suspended('{}')")
	if got := f.Tx.ClaimFlow("Send"); len(got) != 3 {
		t.Fatalf("claimed %+v", got)
	} else {
		f.Tx.CompleteFlow("Send", got...)
	}
	sqltest.Equal(f.Session, ids[3], "select message_id from parley_flow.suspended")
	f.SendPort("Late", "nobody", "{}")
	f.SendPort("Later", "nobody", "{}")
	sqltest.Equal(f.Session, 1, "select parley_flow.resume_suspended('{}', rate => 1000)")
	got := f.Tx.ClaimFlow("Send")
	if len(got) != 2 {
		t.Fatalf("claimed %+v", got)
	}
	f.Tx.CompleteFlow("Send", got[0])
	sqltest.Equal(f.Session, 1, "select count(*)::integer from parley_flow._p_message")
	f.Tx.CompleteFlow("Send", got[1])
	sqltest.Equal(f.Session, 0, "select count(*)::integer from parley_flow._p_message")
	sqltest.Equal(f.Session, 4, "select value::integer from parley_flow.counters where counter = 'Documents resubmitted'")
}

// A caller that resumes until nothing is left to resume reaches all, whatever stands in front and cannot go.
func TestMessagesThatCannotGoKeepNoOthersFromBeingResumed(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	for range 3 {
		f.Exec("select parley_flow.publish('x'::text, message_type => 'urn:nobody#Has')")
	}
	suspendThree(f)
	for _, want := range []int{2, 1, 0} {
		sqltest.Equal(f.Session, want, "select parley_flow.resume_suspended('{}', top => 2)")
	}
	sqltest.Equal(f.Session, 4, "select count(*)::integer from parley_flow.suspended")
}

// At a rate the first is tried at once, and the others are delayed, each by its share of a second.
func TestResumingAtARateSpreadsMessages(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	ids := suspendThree(f)
	sqltest.Equal(f.Session, 3, `select parley_flow.resume_suspended('{"send_port": "ERP"}', rate => 2)`)
	if got := f.Tx.ClaimFlow("Send"); len(got) != 1 || got[0].Message != ids[0] {
		t.Errorf("claimed %+v, want the first alone", got)
	}
	sqltest.Equal(f.Session, "0.5 1.0", `
		select string_agg(to_char(extract(epoch from w.due_at - min_at.at), 'FM0.0'), ' ' order by w.due_at)
		from parley_store.work_items as w
		cross join (select min(o.due_at) - interval '0.5 s' as at from parley_store.work_items as o where o.state = 'DELAYED') as min_at
		where w.state = 'DELAYED'`)
}

// A message that is edited and resubmitted is another one, with a link, for the port at which the first was suspended.
func TestResubmittedMessageIsLinked(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	first := f.PublishFlow("urn:s#Order", `{"urn:p#Amount": 2000, "urn:p#Po": "1"}`)
	for _, m := range f.Tx.ClaimFlow("Send") {
		if m.Port == "Big" {
			f.Tx.CompleteFlow("Send", m)
		} else {
			f.Tx.Exec("select parley_flow._p_suspend('Send', $1, array[$2::bigint], 'send.refused', 'no')", m.Lease, m.Item)
		}
	}
	f.RefusesFlow(10, "select parley_flow.resubmit(1, properties => '{\"MessageType\": \"x\"}')")
	f.RefusesFlow(6, "select parley_flow.resubmit(99)")
	second := sqltest.Value[int64](f.Session, `select parley_flow.resubmit(suspension_id, 'mended', '{"urn:p#Po": "2", "urn:p#Amount": null}') from parley_flow.suspended`)
	got := f.Tx.ClaimFlow("Send")
	if len(got) != 1 || got[0].Message != second || got[0].Port != "ERP" {
		t.Fatalf("claimed %+v", got)
	}
	sqltest.Equal(f.Session, `mended 2 f`, `select convert_from(body, 'UTF8') || ' ' || (promoted ->> 'urn:p#Po') || ' ' || case when promoted ? 'urn:p#Amount' then 't' else 'f' end
		from parley_flow._p_message where message_id = $1 and parent_id = $2`, second, first)
	f.Tx.CompleteFlow("Send", got...)
	sqltest.Equal(f.Session, first, "select message_id from parley_flow._p_message")
	letOriginalsGo(f)
	sqltest.Equal(f.Session, 0, "select count(*)::integer from parley_flow._p_message")
	sqltest.Equal(f.Session, "SELF SEND Big, SELF SUSPEND ERP, SELF RESUBMIT ERP, SELF TERMINATE ERP, DESCENDANT SEND ERP", `
		select string_agg(concat_ws(' ', relation, event, send_port), ', ' order by at, message) from parley_flow.track($1)`, first)
	sqltest.Equal(f.Session, "ANCESTOR", "select distinct relation from parley_flow.track($1) where message = $2", second, first)
}

func letOriginalsGo(f sqltest.Flow) {
	f.Helper()
	f.Exec("update parley_flow._p_original set kept_until = clock_timestamp() - interval '1 s'")
	f.Exec("select parley_flow.maintain()")
}

// A message that an operator edits stays as it came, for who may read content, with the reason in the audit; deliveries of it that are open
// outlive that time.
func TestOriginalOfAnEditedMessageStays(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	first := f.PublishFlow("urn:s#Order", `{"urn:p#Amount": 2000, "urn:p#Po": "1"}`)
	var open sqltest.ClaimedFlow
	for _, m := range f.Tx.ClaimFlow("Send") {
		if m.Port == "Big" {
			open = m
			continue
		}
		f.Tx.Exec("select parley_flow._p_suspend('Send', $1, array[$2::bigint], 'send.refused', 'no')", m.Lease, m.Item)
	}
	f.Exec("select parley_flow.resubmit(suspension_id, 'mended', reason => 'a slip of the pen') from parley_flow.suspended")
	sqltest.Equal(f.Session, "<x/>", "select convert_from(parley_flow.read_message($1), 'UTF8')", first)
	sqltest.Equal(f.Session, "a slip of the pen", "select detail ->> 'reason' from parley_flow.audit where operation = 'resubmit'")
	letOriginalsGo(f)
	sqltest.Equal(f.Session, "<x/>", "select convert_from(parley_flow.read_message($1), 'UTF8')", first)
	f.Tx.CompleteFlow("Send", open)
	f.Tx.CompleteFlow("Send", f.Tx.ClaimFlow("Send")...)
	f.RefusesFlow(6, "select parley_flow.read_message($1)", first)
	sqltest.Equal(f.Session, 0, "select ((select count(*) from parley_flow._p_message) + (select count(*) from parley_flow._p_done))::integer")
}

// A message that is resubmitted as it was leaves nothing behind.
func TestMessageThatIsResubmittedAsItWasLeavesNoOriginal(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.PublishFlow("urn:s#Order", "{}")
	m := f.Tx.ClaimFlow("Send")[0]
	f.Tx.Exec("select parley_flow._p_suspend('Send', $1, array[$2::bigint], 'send.refused', 'no')", m.Lease, m.Item)
	f.Exec("select parley_flow.resubmit(suspension_id) from parley_flow.suspended")
	f.Tx.CompleteFlow("Send", f.Tx.ClaimFlow("Send")...)
	sqltest.Equal(f.Session, 0, "select count(*)::integer from parley_flow._p_message")
}

// The path of a message is there while it is, and after that.
func TestTrackGivesThePathOfAMessage(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	ids := sqltest.Value[[]int64](f.Session, `select parley_flow.publish_many(array_fill('x'::bytea, array[70]), message_types => array_fill('urn:s#Order'::text, array[70]),
		properties => (select array_agg(jsonb_build_object('urn:p#Po', g % 2)) from generate_series(1, 70) as g), receive_port => 'In')`)
	sqltest.Equal(f.Session, "RECEIVE, WAITING", "select string_agg(event, ', ' order by event) from parley_flow.track($1)", ids[3])
	claimed := f.Tx.ClaimFlow("Send")
	f.Tx.Exec("select parley_flow._p_complete('Send', $1, $2, details => (select array_agg(jsonb_build_object('to', i)) from unnest($2::bigint[]) as i))",
		leasesOf(claimed), itemsOf(claimed))
	for _, id := range []int64{ids[0], ids[35], ids[69]} {
		sqltest.Equal(f.Session, `SEND Send ERP urn:s#Order In 1 true`, `select concat_ws(' ', event, host, send_port, fields ->> 'message_type', fields ->> 'receive_port', fields ->> 'attempts', (fields -> 'details' ? 'to')::text)
			from parley_flow.track($1)`, id)
	}
	if rows := sqltest.Value[int](f.Session, "select count(*)::integer from parley_store.tracking where event = 'SEND'"); rows > 3 {
		t.Errorf("70 messages that are alike have %d rows", rows)
	}
	sqltest.Equal(f.Session, 35, "select count(*)::integer from parley_flow.find_tracked('urn:p#Po', '1')")
	sqltest.Equal(f.Session, 0, "select count(*)::integer from parley_flow.find_tracked('urn:p#Card', 'geheim')")
	f.Exec("select parley_flow.apply(jsonb_set(parley_flow.export(), '{application,Orders,tracking}', 'false'))")
	id := f.PublishFlow("urn:s#Order", "{}")
	f.Tx.CompleteFlow("Send", f.Tx.ClaimFlow("Send")...)
	sqltest.Equal(f.Session, 0, "select count(*)::integer from parley_flow.track($1)", id)
}

func leasesOf(claimed []sqltest.ClaimedFlow) (leases []int64) {
	for _, m := range claimed {
		leases = append(leases, m.Lease)
	}
	return leases
}

func itemsOf(claimed []sqltest.ClaimedFlow) (items []int64) {
	for _, m := range claimed {
		items = append(items, m.Item)
	}
	return items
}

// Finished messages stay as long as their application says.
func TestFinishedMessagesStayAsLongAsTheirApplicationSays(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.Exec("select parley_flow.apply(jsonb_set(parley_flow.export(), '{application,Orders,keep_finished}', '\"1 hour\"'))")
	id := f.PublishFlow("urn:s#Order", "{}")
	f.Tx.CompleteFlow("Send", f.Tx.ClaimFlow("Send")...)
	f.Exec("select parley_flow.maintain()")
	sqltest.Equal(f.Session, "<x/>", "select convert_from(parley_flow.read_message($1), 'UTF8')", id)
	f.Exec("update parley_flow._p_kept_message set kept_until = clock_timestamp() - interval '1 s'; select parley_flow.maintain()")
	f.RefusesFlow(6, "select parley_flow.read_message($1)", id)
}

// Maintenance does all of its tasks, and one that fails keeps no other.
func TestMaintenanceDoesAllTasks(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	sqltest.Equal(f.Session, 0, "select count(*)::integer from parley_flow.maintain() where error is not null")
	f.Exec("alter table parley_flow._p_begun_body rename to gone")
	sqltest.Equal(f.Session, "begun bodies", "select string_agg(task, ' ') from parley_flow.maintain() where error is not null")
	sqltest.Equal(f.Session, "flow-maintenance", "select string_agg(code, ' ') from parley_flow._p_find_faults('RUNTIME', '0') where code = 'flow-maintenance'")
	f.Exec("alter table parley_flow.gone rename to _p_begun_body")
	f.Exec("select parley_flow.maintain()")
	sqltest.Equal(f.Session, 0, "select count(*)::integer from parley_flow._p_maintenance_failure")
}

// Faults are found, each with the statement that cures it.
func TestDiagnosisFindsWhatIsWrongWithTheEngine(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	suspendThree(f)
	f.Exec("select parley_flow.stop('ERP')")
	f.PublishFlow("urn:s#Order", "{}")
	f.Rx.Exec("select parley_flow._p_report('Receive', 'n1', '{}'), parley_flow._p_report_location('Receive', 'Folder', 'n1', 'no such folder')")
	f.Rx.Exec(`select parley_flow._p_receive('Receive', 'Folder', array['x']::bytea[], keys => array['a.xml 1'], entries => array['{"name": "a.xml"}'::jsonb])`)
	codes := sqltest.Value[string](f.Session, "select string_agg(distinct code, ' ' order by code) from parley_flow._p_find_faults('RUNTIME', '0')")
	for _, code := range []string{"flow-location", "flow-no-node", "flow-no-subscription", "flow-port-stopped", "flow-source-left", "flow-suspended"} {
		if !strings.Contains(codes, code) {
			t.Errorf("%s was not found: %s", code, codes)
		}
	}
	sqltest.Equal(f.Session, "Send", "select string_agg(object_name, ' ') from parley_flow._p_find_faults('RUNTIME', '0') where code = 'flow-no-node'")
	f.Exec("select parley_flow.start('ERP')")
	sqltest.Equal(f.Session, 0, "select count(*)::integer from parley_flow._p_find_faults('RUNTIME', '0') where code = 'flow-port-stopped'")
	f.Exec("select parley_flow.stop('ERP')")
	f.RequireFinding("parley.diagnose_runtime()", "flow-port-stopped")
}

func TestMessagesAreFoundByFilterTheNewestFirst(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	ids := suspendThree(f)
	for filter, want := range map[string]int{
		`{}`: 4, `{"message_type": "nobody"}`: 1, `{"application": "Orders"}`: 0, `{"receive_port": "In"}`: 0, `{"location": "Folder"}`: 0, `{"message": 0}`: 0,
	} {
		sqltest.Equal(f.Session, want, "select count(*)::integer from parley_flow.messages_matching($1::jsonb)", filter)
	}
	sqltest.Equal(f.Session, ids[3], "select message_id from parley_flow.messages_matching(top => 1)")
	sqltest.Equal(f.Session, ids[2], "select message_id from parley_flow.messages_matching(top => 1, before => $1)", ids[3])
	sqltest.Equal(f.Session, true, "select not promoted ? 'urn:p#Card' and promoted ? 'urn:p#Po' from parley_flow.messages_matching(jsonb_build_object('message', $1::bigint))", ids[0])
	sqltest.Equal(f.Session, true, "select m = v from parley_flow.messages_matching(top => 1) as m, parley_flow.messages as v where v.message_id = m.message_id")
	for _, filter := range []string{`[]`, `7`, `{"nothing": "1"}`, `{"message_type": null}`, `{"message": "1"}`, `{"message": 1.5}`} {
		f.RefusesFlow(10, "select count(*) from parley_flow.messages_matching($1::jsonb)", filter)
	}
	f.RefusesFlow(10, "select count(*) from parley_flow.messages_matching(top => 0)")
	outsider := f.As(f.Role("outsider"))
	sqltest.Equal(outsider, 0, "select count(*)::integer from parley_flow.messages_matching()")
}
