package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

var everyPage = []string{
	"/", "/queues", "/queues/orders", "/queues/jobs", "/queues/orders/figures", "/conversations", "/conversations?state=CONVERSING",
	"/failed", "/failed/messages", "/failed/failing", "/failed/failing-messages", "/delayed", "/delayed/sends", "/schedules", "/schedules/runs", "/servers",
	"/servers/queue", "/servers/connections", "/servers/routes", "/servers/peers", "/mail", "/mail/messages", "/mail/tracking?to=a",
	"/mail/pressure", "/flow", "/flow?application=Orders", "/flow/locations", "/flow/orchestrations", "/flow/instances?status=NEW", "/flow/suspended",
	"/flow/failures", "/flow/messages?message=1", "/flow/tracking", "/flow/applications", "/flow/subscriptions", "/flow/hosts", "/daemon", "/daemon/readers", "/daemon/sessions", "/daemon/mail", "/diagnosis", "/actions", "/actions/integration",
}

func TestEachPageIsAnsweredToOneWhoIsLoggedInAndToNobodyElse(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	handle := shop(t, pool)
	v := enter(t, pool, "", false)
	outsider := newVisitor(t, v.base)
	for _, path := range append(everyPage, "/conversations/"+handle) {
		if status, body := v.get(path); status != http.StatusOK {
			t.Errorf("%s was answered with %d: %s", path, status, body)
		}
		if status, body := outsider.get(path); status != http.StatusSeeOther || strings.Contains(body, "<table") {
			t.Errorf("an outsider got %d on %s: %s", status, path, body)
		}
	}
	if status, _ := v.get("/nothing"); status != http.StatusNotFound {
		t.Errorf("a page that does not exist was answered with %d", status)
	}
	if status, _ := v.get("/queues/nothing"); status != http.StatusNotFound {
		t.Errorf("a queue that does not exist was answered with %d", status)
	}
	// A body is text on the page, whatever is in it.
	_, body := v.get("/queues/orders")
	if !strings.Contains(body, "&lt;script&gt;") || strings.Contains(body, "<script>alert") {
		t.Errorf("the body of the message is not on the page as text: %s", body)
	}
	// The key serves once, and a session ends with the logout.
	if status, _ := newVisitor(t, v.base).get("/login?key=opensesame"); status != http.StatusForbidden {
		t.Errorf("the key was taken a second time: %d", status)
	}
	v.get("/")
	v.post("/logout", url.Values{})
	if status, _ := v.get("/queues"); status != http.StatusSeeOther {
		t.Errorf("after the logout a page was answered with %d", status)
	}
}

func TestPageShowsARoleItsOwnRightsAlone(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	handle := shop(t, pool)
	role := "console_" + strings.ReplaceAll(handle, "-", "")
	exec(t, pool, `create role "`+role+`" login`)
	t.Cleanup(func() {
		_, _ = pool.Exec(t.Context(), `drop owned by "`+role+`"; drop role "`+role+`"`)
	})
	v := enter(t, pool, role, false)
	for _, path := range everyPage {
		status, body := v.get(path)
		if status >= http.StatusInternalServerError {
			t.Errorf("%s was answered with %d: %s", path, status, body)
		}
		if strings.Contains(body, "do it") || strings.Contains(body, "&lt;order&gt;") {
			t.Errorf("%s shows a body to a role that may receive nothing: %s", path, body)
		}
	}
	if status, body := v.get("/conversations/" + handle); status != http.StatusForbidden && status != http.StatusUnprocessableEntity {
		t.Errorf("the conversation of others was answered with %d: %s", status, body)
	}
	v.get("/queues/orders")
	status, body := v.act("/queues/orders", url.Values{"action": {"off"}})
	if status != http.StatusOK || !strings.Contains(body, "refused for 1") {
		t.Errorf("switching a queue of others off was answered with %d: %s", status, body)
	}
	var isOn bool
	err := pool.QueryRow(t.Context(), "select q.is_receive_enabled from parley.service_queues as q where q.name = 'orders'").Scan(&isOn)
	if err != nil || !isOn {
		t.Errorf("the queue is off: %v", err)
	}
}

func TestActionAsksFirstThenDoesAllAndIsRecorded(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	shop(t, pool)
	exec(t, pool, "select parley.put('jobs', 'later still'::text, deliver_at => now() + interval '2 hours')")
	v := enter(t, pool, "", false)
	v.get("/delayed")
	status, body := v.post("/delayed?queue=jobs", url.Values{"action": {"withdraw"}, "all": {"1"}})
	if status != http.StatusOK || !strings.Contains(body, "these 2") || !strings.Contains(body, "cannot be taken back") {
		t.Fatalf("the question is %d: %s", status, body)
	}
	waiting := func() (n int) {
		if err := pool.QueryRow(t.Context(), "select count(*) from parley.delayed_messages").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if waiting() != 2 {
		t.Fatal("the question has changed something")
	}
	form := url.Values{"action": {"withdraw"}, "once": {onceInput.FindStringSubmatch(body)[1]}, "key": keysIn(body)}
	// The second key is gone before: the first is done all the same.
	exec(t, pool, "select parley.withdraw_message('jobs', (select max(d.delayed_id) from parley.delayed_messages as d))")
	status, body = v.post("/delayed?queue=jobs", form)
	if status != http.StatusOK || !strings.Contains(body, "Done for 1, refused for 1") || waiting() != 0 {
		t.Errorf("the action was answered with %d: %s", status, body)
	}
	// The same form does nothing a second time.
	if status, _ := v.post("/delayed?queue=jobs", form); status != http.StatusConflict {
		t.Errorf("the form that came again was answered with %d", status)
	}
	var role, operation string
	var objects int
	err := pool.QueryRow(t.Context(), `
		select a.role_name, a.operation, a.object_count from parley.operator_actions as a`).Scan(&role, &operation, &objects)
	if err != nil || operation != "/delayed: withdraw" || objects != 2 {
		t.Errorf("recorded are %s, %s, %d: %v", role, operation, objects, err)
	}
}

func keysIn(page string) (keys []string) {
	for part := range strings.SplitSeq(page, `name="key" value="`) {
		if value, _, ok := strings.Cut(part, `">`); ok && strings.HasPrefix(value, "[") {
			keys = append(keys, strings.ReplaceAll(value, "&#34;", `"`))
		}
	}
	return keys
}

func TestChangeIsRefusedWithoutTheTokenFromAnotherSiteAndReadOnly(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	shop(t, pool)
	off := url.Values{"action": {"off"}}
	v := enter(t, pool, "", false)
	v.get("/queues/orders")
	without := url.Values{"action": {"off"}, "csrf_token": {"x"}}
	if status, _ := v.post("/queues/orders", without); status != http.StatusForbidden {
		t.Errorf("without the token it was answered with %d", status)
	}
	if status, _ := v.post("/queues/orders", off, "Sec-Fetch-Site", "cross-site"); status != http.StatusForbidden {
		t.Errorf("from another site it was answered with %d", status)
	}
	if status, _ := v.post("/login", url.Values{}, "Sec-Fetch-Site", "cross-site"); status != http.StatusForbidden {
		t.Errorf("a login from another site was answered with %d", status)
	}
	reader := enter(t, pool, "", true)
	if _, body := reader.get("/queues/orders"); strings.Contains(body, `value="off"`) {
		t.Error("a console that only shows has a button that changes something")
	}
	reader.get("/delayed")
	if status, _ := reader.post("/queues/orders", off); status != http.StatusForbidden {
		t.Errorf("a console that only shows changed something: %d", status)
	}
	var isOn bool
	err := pool.QueryRow(t.Context(), "select q.is_receive_enabled from parley.service_queues as q where q.name = 'orders'").Scan(&isOn)
	if err != nil || !isOn {
		t.Errorf("the queue is off: %v", err)
	}
}

func TestAnswerForbidsScriptsOfOthersFramesAndCaches(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	v := enter(t, pool, "", false)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, v.base+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := v.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	policy := answer.Header.Get("Content-Security-Policy")
	for _, wanted := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, wanted) {
			t.Errorf("the policy lacks %s: %s", wanted, policy)
		}
	}
	if strings.Contains(policy, "unsafe") || answer.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers: %v", answer.Header)
	}
}

func TestWorkThatFailsIsSetAsideWithItsErrorAndWithdrawn(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	shop(t, pool)
	exec(t, pool, "select parley.put('jobs', 'another'::text)")
	var first, second, handle string
	err := pool.QueryRow(t.Context(), `
		select (array_agg(p.message_id::text order by p.message_id))[1], (array_agg(p.message_id::text order by p.message_id))[2],
			(select e.conversation_handle::text from parley.conversation_endpoints as e where e.is_initiator = 0)
		from parley.peek_messages('jobs') as p`).Scan(&first, &second, &handle)
	if err != nil {
		t.Fatal(err)
	}
	for _, number := range []string{first, second} {
		exec(t, pool, "select parley.retry('jobs', $1::text::bigint, 'it failed', delay => '1 hour')", number)
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "select from parley.receive('orders')"); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec(t, pool, "select parley.record_failure($1::text::uuid, '22000', 'it failed too')", handle)
	v := enter(t, pool, "", false)
	v.get("/failed/failing-messages")
	for path, form := range map[string]url.Values{
		"/failed/failing-messages?queue=jobs":   {"action": {"set-aside"}, "key": {`["jobs","` + first + `"]`}},
		"/failed/failing-messages?error=failed": {"action": {"withdraw"}, "key": {`["jobs","` + second + `"]`}},
		"/failed/failing":                       {"action": {"set-aside"}, "key": {`["` + handle + `"]`}},
	} {
		if _, body := v.act(path, form); !strings.Contains(body, "Done for 1") {
			t.Errorf("%s: %s", path, body)
		}
	}
	for path, wanted := range map[string]string{"/failed/messages": "it failed", "/failed": "it failed too", "/conversations/" + handle: "it failed too"} {
		if _, body := v.get(path); !strings.Contains(body, wanted) {
			t.Errorf("%s lacks the error: %s", path, body)
		}
	}
	if _, body := v.get("/failed/failing-messages"); !strings.Contains(body, "fails now") {
		t.Errorf("a message still fails: %s", body)
	}
}

func TestMessageOfASimpleQueueIsEditedOnItsPage(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	shop(t, pool)
	number := setAside(t, pool)
	v := enter(t, pool, "", false)
	path := "/failed/messages/jobs/" + number
	if _, list := v.get("/failed/messages"); !strings.Contains(list, `href="`+path+`"`) {
		t.Errorf("the list has no link to the message: %s", list)
	}
	_, form := v.get(path + "/edit")
	status, body := v.post(path+"/edit", url.Values{
		"once": {onceInput.FindStringSubmatch(form)[1]}, "body": {"</textarea><script>alert(2)</script>"}, "reason": {"a try"},
	})
	if status != http.StatusSeeOther {
		t.Fatalf("the edit was answered with %d: %s", status, body)
	}
	for _, page := range []string{path, path + "/edit"} {
		_, body = v.get(page)
		if strings.Contains(body, "<script>alert(2)") || !strings.Contains(body, "a try") || !strings.Contains(body, "do it") {
			t.Errorf("%s: %s", page, body)
		}
	}
	var reason string
	err := pool.QueryRow(t.Context(), "select a.detail ->> 'reason' from parley.operator_actions as a").Scan(&reason)
	if err != nil || reason != "a try" {
		t.Errorf("recorded is %q: %v", reason, err)
	}
}

// The findings take the longest when most is wrong: the rest of the overview is needed then.
func TestOverviewIsShownWithoutFindingsThatTakeTooLong(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	shop(t, pool)
	v := enter(t, pool, "", false)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), "lock table parley._p_route"); err != nil {
		t.Fatal(err)
	}
	if status, body := v.get("/"); status != http.StatusOK || !strings.Contains(body, `href="/queues/orders"`) || !strings.Contains(body, "takes too long") {
		t.Errorf("the overview was answered with %d: %s", status, body)
	}
}
