package rights_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// A host tracks what it did, and makes by that no message the child of another, nor the path of one unreadable.
func TestAHostTracksNoMessageAsTheChildOfAnother(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.Exec(`select parley_flow.apply('{"application": {"Other": {}}, "receive port": {"Other in": {"application": "Other"}}}')`)
	theirs := sqltest.Value[int64](f.Session, "select parley_flow.publish('x', message_type => 'nobody', receive_port => 'Other in')")
	ours := sqltest.Value[int64](f.Session, "select parley_flow.publish('x', message_type => 'nobody', receive_port => 'In')")
	f.Exec("select parley_flow.grant_right('VIEW', $1, application => 'Orders')", sqltest.Value[string](f.Rx, "select current_user::text"))
	f.Rx.Exec(`select parley_flow._p_track('Receive', array['x', 'y'], array[$1::bigint, $1], array[
		jsonb_build_object('child', $2::bigint, 'location_id', 'x', 'received', 'x'), '{"child": "x", "location_id": [1]}'])`, ours, theirs)
	sqltest.Equal(f.Rx, "HOST x, HOST y, RECEIVE, SUSPENDED", "select string_agg(event, ', ' order by event) from parley_flow.track($1)", ours)
	sqltest.Equal(f.Rx, ours, "select distinct message from parley_flow.track($1)", ours)
}

// A key of an order whose property is sensitive is shown under another name, by which its messages are found, and nobody who guesses the
// value learns whether he is right.
func TestAKeyThatIsSensitiveIsNotShown(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.SendPort("ByCard", "urn:s#Paid", `{"ordered": true, "order_key": "urn:p#Card"}`)
	f.SendPort("ByPo", "urn:s#Paid", `{"ordered": true, "order_key": "urn:p#Po"}`)
	role := f.Role("operator")
	f.Exec("select parley_flow.grant_right('OPERATE', $1)", role)
	operator := f.As(role)
	var ids []int64
	for range 2 {
		ids = append(ids, f.PublishFlow("urn:s#Paid", `{"urn:p#Card": "TOPSECRET", "urn:p#Po": "17"}`))
	}
	for {
		claimed := f.Tx.ClaimFlow("Send")
		if len(claimed) == 0 {
			break
		}
		isSeen := map[string]bool{}
		for _, m := range claimed {
			if !isSeen[m.Port] { // what stands behind it in its key is given back
				f.Tx.Exec("select parley_flow._p_suspend('Send', $1, array[$2::bigint], 'send.refused', 'no')", m.Lease, m.Item)
			}
			isSeen[m.Port] = true
		}
	}
	for _, id := range ids {
		if got := sqltest.Value[string](operator, "select string_agg(t::text, ' ') from parley_flow.track($1) as t", id); strings.Contains(got, "TOPSECRET") {
			t.Errorf("the path of message %d is %s", id, got)
		}
	}
	shown := sqltest.Value[string](operator, "select order_key from parley_flow.suspended where send_port = 'ByCard'")
	if !strings.HasPrefix(shown, "hidden:") {
		t.Errorf("the key is shown as %q", shown)
	}
	sqltest.Equal(operator, "17", "select order_key from parley_flow.suspended where send_port = 'ByPo'")
	for _, statement := range []string{
		"select string_agg(s::text, ' ') from parley_flow.suspended as s", "select string_agg(s::text, ' ') from parley_flow.suspended_matching() as s",
		"select string_agg(f::text, ' ') from parley_flow._p_find_faults('RUNTIME', '0') as f",
	} {
		if got := sqltest.Value[string](f.Session, statement); strings.Contains(got, "TOPSECRET") || !strings.Contains(got, shown) {
			t.Errorf("%s: %s", statement, got)
		}
	}
	count := "select count(*)::integer from parley_flow.suspended_matching(jsonb_build_object('order_key', $1::text))"
	sqltest.Equal(operator, 0, count, "TOPSECRET")
	sqltest.Equal(operator, 1, count, shown)
	sqltest.Equal(operator, 1, "select parley_flow.terminate_suspended(jsonb_build_object('order_key', $1::text))", shown)
}

// The values of a property that were recorded before it was declared sensitive are not shown any more.
func TestAPropertyThatHasBecomeSensitiveIsNotShown(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.PublishFlow("nobody", `{"urn:p#Po": "TOPSECRET"}`)
	f.PublishFlow("urn:s#Order", `{"urn:p#Po": "TOPSECRET"}`)
	f.Exec("select parley_flow.apply(jsonb_set(parley_flow.export(), '{property schema,urn:p,properties,Po}', '{\"sensitive\": true, \"tracked\": true}'))")
	sqltest.Equal(f.Session, 0, "select count(*)::integer from parley_flow.find_tracked('urn:p#Po', 'TOPSECRET')")
	sqltest.Equal(f.Session, false, "select string_agg(sample::text, ' ') ~ 'TOPSECRET' from parley_flow.routing_failures")
}

// A role learns of no application in which it may see nothing, neither by an error nor by what nodes report of others.
func TestARoleLearnsOfNoApplicationOfOthers(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.Exec(`select parley_flow.apply(jsonb_build_object('application', '{"TOPSECRET": {}, "Ours": {}}'::jsonb, 'receive port', '{"Theirs": {"application": "TOPSECRET"}}'::jsonb,
		'send port', '{"Their out": {"application": "TOPSECRET", "host": "Send", "adapter": "A", "address": "x", "state": "Bound"}}'::jsonb))`)
	id := sqltest.Value[int64](f.Session, "select parley_flow.publish('x', message_type => 'nobody', receive_port => 'Theirs')")
	f.Tx.Exec(`select parley_flow._p_report('Send', 'n', '{"problems": [{"object": "TOPSECRET", "cause": "TOPSECRET"}], "in_process": 7}')`)
	role := f.Role("viewer")
	f.Exec("select parley_flow.grant_right('VIEW', $1, application => 'Ours')", role)
	s := f.As(role)
	for _, statement := range []string{
		"select parley_flow.track($1)", "select parley_flow.read_message($1)", "select parley_flow.read_properties($1)", "select parley_flow.resubmit(1)",
		"select parley_flow.stop('Their out')", "select parley_flow.start('Their out')", "select parley_flow.enlist('Their out')", "select parley_flow.unenlist('Their out')",
	} {
		var arguments []any
		if strings.Contains(statement, "$1") {
			arguments = []any{id}
		}
		if refused := s.RefusesFlow(1, statement, arguments...); strings.Contains(sqltest.Describe(&refused), "TOPSECRET") {
			t.Errorf("%s: %s", statement, sqltest.Describe(&refused))
		}
	}
	sqltest.Equal(s, "7 f", "select (report ->> 'in_process') || ' ' || left((report::text ~ 'TOPSECRET')::text, 1) from parley_flow.hosts where host = 'Send'")
	sqltest.Equal(f.Tx, true, "select report::text ~ 'TOPSECRET' from parley_flow.hosts where host = 'Send'")
	f.Exec("select parley_flow.grant_right('VIEW', $1)", role)
	sqltest.Equal(s, true, "select report::text ~ 'TOPSECRET' from parley_flow.hosts where host = 'Send'")
	if refused := s.RefusesFlow(1, "select parley_flow.stop('Their out')"); !strings.Contains(sqltest.Describe(&refused), "TOPSECRET") {
		t.Errorf("who may see it is not told of the application: %s", sqltest.Describe(&refused))
	}
}

// The option to grant a right for one application says nothing of another: what a role holds by itself it does not grant to itself.
func TestARoleGrantsToItselfNoRightByTheOptionForAnother(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	group, member := f.Role("group"), f.Role("member")
	f.Exec("grant " + sqltest.Quote(group) + " to " + sqltest.Quote(member))
	f.Exec("select parley_flow.grant_right('PUBLISH', $1, application => 'A', with_grant_option => true)", group)
	f.Exec("select parley_flow.grant_right('PUBLISH', $1, application => 'B', with_grant_option => true)", member)
	s := f.As(member)
	s.RefusesFlow(1, "select parley_flow.grant_right('PUBLISH', $1, application => 'B')", member)
	s.Exec("select parley_flow.grant_right('PUBLISH', $1, application => 'A')", member)
	s.Exec("select parley_flow.grant_right('PUBLISH', $1, application => 'B')", group)
}

// The send port that was nearest to a message may be one of another application: its name and its filter are shown to who may see that one.
func TestTheNearestPortOfAnotherApplicationIsNotShown(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.Exec(`select parley_flow.apply('{"application": {"Theirs": {}, "Ours": {}}, "receive port": {"Our in": {"application": "Ours"}},
		"send port": {"TOPSECRET out": {"application": "Theirs", "host": "Send", "adapter": "A", "address": "x", "filter": [[
			{"property": "MessageType", "operator": "=", "value": "urn:s#Ours"}, {"property": "urn:p#Po", "operator": "=", "value": "TOPSECRET 1"}]]}}}')`)
	f.Exec("select parley_flow.publish('x', message_type => 'urn:s#Ours', receive_port => 'Our in')")
	role := f.Role("viewer")
	f.Exec("select parley_flow.grant_right('VIEW', $1, application => 'Ours')", role)
	s := f.As(role)
	const shown = "select string_agg(f::text, ' ') from parley_flow.routing_failures as f"
	for _, statement := range []string{shown, "select string_agg(u::text, ' ') from parley_flow.suspended as u"} {
		if got := sqltest.Value[string](s, statement); strings.Contains(got, "TOPSECRET") {
			t.Errorf("%s: %s", statement, got)
		}
	}
	sqltest.Equal(s, true, "select remedy ~ 'another application' from parley_flow.routing_failures")
	f.Exec("select parley_flow.grant_right('VIEW', $1, application => 'Theirs')", role)
	if got := sqltest.Value[string](s, shown); !strings.Contains(got, "TOPSECRET out") || !strings.Contains(got, "TOPSECRET 1") {
		t.Errorf("who may see it is shown %s", got)
	}
}
