package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// suspendedOrder is a message that its port has refused, and the number of its suspension.
func suspendedOrder(f sqltest.Flow) (message, suspension int64) {
	f.Helper()
	message = sqltest.Value[int64](f.Session, `select parley_flow.publish(E'<Order>\n<script>alert(1)</script></Order>', '{"urn:p#Po": "4711"}', 'urn:s#Order')`)
	m := f.Tx.ClaimFlow("Send")[0]
	f.Tx.Exec("select parley_flow._p_suspend('Send', $1, array[$2::bigint], 'send.refused', 'it said <b>no</b>')", m.Lease, m.Item)
	return message, sqltest.Value[int64](f.Session, "select suspension_id from parley_flow.suspended where message_id = $1", message)
}

func TestPagesOfTheIntegrationEngineShowWhatRunsAndWhatWaits(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	message, suspension := suspendedOrder(f)
	f.PublishFlow("nobody", "{}")
	v := enter(t, f.Pool, "", false)
	for path, wanted := range map[string]string{
		"/flow": "ERP", "/flow/locations": "Routing folder", "/flow/applications": "Orders", "/flow/subscriptions?subscriber=Big": "&gt;= 1000",
		"/flow/hosts": "NEVER SERVED", "/flow/suspended?send_port=ERP": "send.refused", "/flow/failures": "ONE_PREDICATE",
		"/flow/messages?message_type=nobody": "nobody", "/flow/tracking?property=urn:p%23Po&value=4711": fmt.Sprintf("/flow/messages/%d", message),
		fmt.Sprintf("/flow/messages/%d", message): "SUSPENDED", fmt.Sprintf("/flow/suspended/%d", suspension): "it said &lt;b&gt;no",
	} {
		if status, body := v.get(path); status != http.StatusOK || !strings.Contains(body, wanted) {
			t.Errorf("%s was answered with %d: %s", path, status, body)
		}
	}
	for _, path := range []string{"/flow/suspended?send_port=nobody", "/flow/messages?message=99", "/flow/instances?status=NEW"} {
		if _, body := v.get(path); !strings.Contains(body, "Nothing fits") {
			t.Errorf("%s shows %s", path, body)
		}
	}
	for _, path := range []string{"/flow/messages/99", "/flow/suspended/99", "/flow/instances/99", "/flow/messages/x"} {
		if status, _ := v.get(path); status != http.StatusNotFound {
			t.Errorf("%s was answered with %d", path, status)
		}
	}
	if _, body := v.act("/flow", url.Values{"action": {"stop"}, "key": {`["Big"]`}}); !strings.Contains(body, "Done for 1") {
		t.Errorf("the port is not stopped: %s", body)
	}
	sqltest.Equal(f.Session, "Stopped", "select state from parley_flow.send_ports where name = 'Big'")
}

func TestSuspendedMessagesOfAFilterAreTriedAgainAtOnce(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	suspendedOrder(f)
	suspendedOrder(f)
	f.PublishFlow("nobody", "{}")
	v := enter(t, f.Pool, "", false)
	v.get("/flow/suspended")
	if _, body := v.act("/flow/suspended?send_port=ERP", url.Values{"action": {"resume"}, "all": {"1"}}); !strings.Contains(body, "Done for 2") {
		t.Errorf("they are not tried again: %s", body)
	}
	sqltest.Equal(f.Session, "ROUTE", "select string_agg(stage, ' ') from parley_flow.suspended")
	sqltest.Equal(f.Session, "/flow/suspended: resume 2", "select a.operation || ' ' || a.object_count from parley.operator_actions as a")
}

// The content of a message is shown to who may read it, as text, and the database records that it was read.
func TestContentOfAMessageIsShownOnDemandAndThatIsRecorded(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	message, _ := suspendedOrder(f)
	path := fmt.Sprintf("/flow/messages/%d", message)
	v := enter(t, f.Pool, "", false)
	if _, body := v.get(path); strings.Contains(body, "alert(1)") {
		t.Errorf("the body is shown before it was asked for: %s", body)
	}
	if status, body := v.post(path, url.Values{}); status != http.StatusOK || !strings.Contains(body, "&lt;script&gt;alert(1)") || !strings.Contains(body, "4711") {
		t.Errorf("the content was answered with %d: %s", status, body)
	}
	sqltest.Equal(f.Session, 2, "select count(*)::integer from parley_flow.audit where operation like 'read%'")
	v = enter(t, f.Pool, consoleRole(t, f.Pool, "select parley_flow.grant_right('VIEW', $1)"), false)
	if status, _ := v.get(path); status != http.StatusOK {
		t.Errorf("its way was answered with %d", status)
	}
	if status, body := v.post(path, url.Values{}); status != http.StatusForbidden || strings.Contains(body, "alert(1)") {
		t.Errorf("who may not read content got %d: %s", status, body)
	}
}

func TestMessageIsEditedAndResubmittedWithAReasonAndItsOriginalStays(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	message, suspension := suspendedOrder(f)
	path := fmt.Sprintf("/flow/suspended/%d", suspension)
	v := enter(t, f.Pool, "", false)
	v.get(path)
	form := func() (once, digest string) {
		_, page := v.post(path+"/edit", url.Values{})
		if strings.Contains(page, "<script>alert") {
			t.Errorf("the body is no text: %s", page)
		}
		_, digest, _ = strings.Cut(page, `name="digest" value="`)
		digest, _, _ = strings.Cut(digest, `"`)
		return onceInput.FindStringSubmatch(page)[1], digest
	}
	once, digest := form()
	// A browser ends lines in its own way, which is no change.
	same := url.Values{"once": {once}, "digest": {digest}, "body": {"<Order>\r\n<script>alert(1)</script></Order>"}, "reason": {"none"}}
	if status, body := v.post(path+"/resubmit", same); status != http.StatusUnprocessableEntity || !strings.Contains(body, "Nothing was changed") {
		t.Errorf("no change was answered with %d: %s", status, body)
	}
	once, digest = form()
	changed := url.Values{"once": {once}, "digest": {digest}, "body": {"<Order>\r\n</Order>"}, "properties": {`{"urn:p#Po": "4712"}`}}
	if status, _ := v.post(path+"/resubmit", changed); status != http.StatusUnprocessableEntity {
		t.Errorf("without a reason it was answered with %d", status)
	}
	changed.Set("reason", "no scripts")
	if status, body := v.post(path+"/resubmit", changed); status != http.StatusSeeOther {
		t.Fatalf("it was answered with %d: %s", status, body)
	}
	sqltest.Equal(f.Session, "<Order>\n</Order> 4712", `select convert_from(m.body, 'UTF8') || ' ' || (m.promoted ->> 'urn:p#Po')
		from parley_flow._p_message as m where m.parent_id = $1`, message)
	sqltest.Equal(f.Session, true, "select convert_from(parley_flow.read_message($1), 'UTF8') like '%alert(1)%'", message)
	sqltest.Equal(f.Session, "no scripts no scripts", `select (a.detail ->> 'reason') || ' ' || (select o.detail ->> 'reason' from parley.operator_actions as o)
		from parley_flow.audit as a where a.operation = 'resubmit'`)
	if status, _ := v.post(path+"/resubmit", changed); status != http.StatusConflict {
		t.Errorf("the form that came again was answered with %d", status)
	}
}

func TestInstanceSaysWhyItIsSuspendedAndGoesOn(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.Exec(`select parley_flow.apply('{"orchestration": {"Fulfil": {"application": "Orders", "host": "Send", "messages": {"in": "urn:s#Order"},
		"body": [{"receive": {"message": "in", "activate": true}}]}}}')`)
	id := sqltest.Value[int64](f.Session, `
		insert into parley_flow._p_instance (send_port_id, version, status, state, fault, passed)
		select s.send_port_id, 1, 'SUSPENDED', '{}', '{"code": "process.step", "path": "1", "message": "it said <i>no</i>", "remedy": "Ask it again."}', '{"0": 3}'
		from parley_flow._p_send_port as s where s.name = 'Fulfil' returning instance_id`)
	f.Exec("insert into parley_flow._p_instance_timer (instance_id, timer, host_id, at) values ($1, '1/timer', 1, now() + interval '1 hour')", id)
	path := fmt.Sprintf("/flow/instances/%d", id)
	v := enter(t, f.Pool, "", false)
	_, body := v.get(path)
	for _, wanted := range []string{"SUSPENDED", "process.step", "it said &lt;i&gt;no", "Ask it again.", "1/timer", "3 times"} {
		if !strings.Contains(body, wanted) {
			t.Errorf("the page lacks %s: %s", wanted, body)
		}
	}
	if _, body := v.get("/flow/instances?orchestration=Fulfil&status=SUSPENDED"); !strings.Contains(body, "timer 1/timer") {
		t.Errorf("the list does not say what it waits for: %s", body)
	}
	if _, body := v.act(path, url.Values{"action": {"resume"}}); !strings.Contains(body, "Done for 1") {
		t.Errorf("it does not go on: %s", body)
	}
	sqltest.Equal(f.Session, "WAITING", "select status from parley_flow.instances where instance_id = $1", id)
	v = enter(t, f.Pool, consoleRole(t, f.Pool, "select parley_flow.grant_right('VIEW', $1)"), false)
	v.get(path)
	if _, body := v.act(path, url.Values{"action": {"terminate"}}); !strings.Contains(body, "refused for 1") {
		t.Errorf("who only looks ends it: %s", body)
	}
}
