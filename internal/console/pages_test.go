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
	"/mail/pressure", "/daemon", "/daemon/readers", "/daemon/sessions", "/daemon/mail", "/diagnosis", "/actions",
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
	status, body := v.post("/queues/orders", url.Values{"action": {"off"}, "confirmed": {"1"}})
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
	form := url.Values{"action": {"withdraw"}, "confirmed": {"1"}, "key": keysIn(body)}
	// The second key is gone before: the first is done all the same.
	exec(t, pool, "select parley.withdraw_message('jobs', (select max(d.delayed_id) from parley.delayed_messages as d))")
	status, body = v.post("/delayed?queue=jobs", form)
	if status != http.StatusOK || !strings.Contains(body, "Done for 1, refused for 1") || waiting() != 0 {
		t.Errorf("the action was answered with %d: %s", status, body)
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
	off := url.Values{"action": {"off"}, "confirmed": {"1"}}
	v := enter(t, pool, "", false)
	v.get("/queues/orders")
	without := url.Values{"action": {"off"}, "confirmed": {"1"}, "csrf_token": {"x"}}
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
