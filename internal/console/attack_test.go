package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/console"
	"github.com/parley-broker/parley/parleytest"
)

// consoleRole makes a role for a test, which drops it at its end.
func consoleRole(t *testing.T, pool *pgxpool.Pool, grants ...string) string {
	t.Helper()
	var role string
	if err := pool.QueryRow(t.Context(), "select 'console_' || replace(gen_random_uuid()::text, '-', '')").Scan(&role); err != nil {
		t.Fatal(err)
	}
	exec(t, pool, `create role "`+role+`" login`)
	t.Cleanup(func() {
		_, _ = pool.Exec(t.Context(), `drop owned by "`+role+`"; drop role "`+role+`"`)
	})
	for _, grant := range grants {
		exec(t, pool, grant, role)
	}
	return role
}

// setAside has the message of the simple queue of the shop set aside, and gives its number.
func setAside(t *testing.T, pool *pgxpool.Pool) (number string) {
	t.Helper()
	err := pool.QueryRow(t.Context(), "select p.message_id::text from parley.peek_messages('jobs') as p").Scan(&number)
	if err != nil {
		t.Fatal(err)
	}
	exec(t, pool, "select parley.fail('jobs', $1::text::bigint, '<b>it is broken</b>')", number)
	return number
}

func TestRoleThatMayReceiveMendsItsQueueAndNothingElse(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	handle := shop(t, pool)
	number := setAside(t, pool)
	v := enter(t, pool, consoleRole(t, pool, "select parley.grant('RECEIVE', 'queue', 'jobs', $1)"), false)
	if _, body := v.get("/failed/messages/jobs/" + number); !strings.Contains(body, "do it") || strings.Contains(body, "<b>it") {
		t.Errorf("its message is shown as %s", body)
	}
	if _, body := v.get("/queues/orders"); strings.Contains(body, "&lt;order&gt;") {
		t.Error("it sees a message of another queue")
	}
	if status, _ := v.get("/conversations/" + handle); status < http.StatusBadRequest {
		t.Errorf("the conversation of others was answered with %d", status)
	}
	for path, action := range map[string]string{"/queues/orders": "off", "/queues/jobs": "off"} {
		if _, body := v.act(path, url.Values{"action": {action}}); !strings.Contains(body, "refused for 1") {
			t.Errorf("%s %s: %s", path, action, body)
		}
	}
	// To edit a message is to put another one, which it may not.
	_, form := v.get("/failed/messages/jobs/" + number + "/edit")
	status, _ := v.post("/failed/messages/jobs/"+number+"/edit", url.Values{
		"once": {onceInput.FindStringSubmatch(form)[1]}, "body": {"stolen"}, "reason": {"why not"},
	})
	if status < http.StatusBadRequest {
		t.Errorf("an edit without SEND was answered with %d", status)
	}
	if _, body := v.act("/failed/messages", url.Values{"action": {"retry"}, "key": {`["jobs","` + number + `"]`}}); !strings.Contains(body, "Done for 1") {
		t.Errorf("its own message is not put back: %s", body)
	}
}

func TestValueOfAFilterIsNeverSQL(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	shop(t, pool)
	exec(t, pool, "create table public.kept (n integer)")
	v := enter(t, pool, "", false)
	for _, value := range []string{`'; drop table public.kept; --`, `") or true --`, "$1", "?", "%", "\x00", "\xff", `{"a":1}`, strings.Repeat("9", 40)} {
		for _, path := range console.FilteredPaths(value) {
			if status, body := v.get(path); status >= http.StatusInternalServerError {
				t.Errorf("%s was answered with %d: %s", path, status, body)
			}
		}
	}
	exec(t, pool, "select from public.kept")
}

func TestReadOnlyConsoleRefusesEveryForm(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	shop(t, pool)
	number := setAside(t, pool)
	v := enter(t, pool, "", true)
	v.get("/queues/orders")
	paths := append(console.ChangingPaths(), "/queues/jobs", "/failed/messages/jobs/"+number, "/failed/messages/jobs/"+number+"/edit",
		"/flow/instances/1", "/flow/messages/1", "/flow/suspended/1", "/flow/suspended/1/edit", "/flow/suspended/1/resubmit")
	for _, path := range paths {
		if status, body := v.post(path, url.Values{"action": {"retry"}, "once": {"x"}}); status != http.StatusForbidden || !strings.Contains(body, "only shows") {
			t.Errorf("%s was answered with %d: %s", path, status, body)
		}
	}
}

func TestActionIsDoneOnlyAfterItsQuestionAndOnce(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	shop(t, pool)
	exec(t, pool, "select parley.schedule('nightly', 'jobs', 'x', every => '1 day')")
	runs := func() (n int) {
		if err := pool.QueryRow(t.Context(), "select count(*) from parley.schedule_runs").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	v := enter(t, pool, "", false)
	v.get("/schedules")
	run := url.Values{"action": {"run"}, "key": {`["nightly"]`}}
	if _, body := v.post("/schedules", url.Values{"action": run["action"], "key": run["key"], "confirmed": {"1"}}); !strings.Contains(body, `name="once"`) {
		t.Errorf("it was not asked: %s", body)
	}
	if status, _ := v.post("/schedules", url.Values{"action": run["action"], "key": run["key"], "once": {"made up"}}); status != http.StatusConflict {
		t.Errorf("an answer to no question was answered with %d", status)
	}
	_, question := v.post("/schedules", run)
	answer := url.Values{"action": run["action"], "key": run["key"], "once": {onceInput.FindStringSubmatch(question)[1]}}
	var sent sync.WaitGroup
	for range 4 {
		sent.Go(func() {
			v.post("/schedules", url.Values{"action": answer["action"], "key": answer["key"], "once": answer["once"]})
		})
	}
	sent.Wait()
	if n := runs(); n != 1 {
		t.Errorf("it was done %d times", n)
	}
}

// A page of elsewhere whose name leads to this machine would be of the same origin as the console.
func TestConsoleOfThisMachineIsReachedByNoNameOfElsewhere(t *testing.T) {
	t.Parallel()
	v := newVisitor(t, serve(t, console.Config{Targets: []console.Target{target(t, parleytest.Database(t), "")}}))
	for host, isRefused := range map[string]bool{
		"elsewhere.example": true, "elsewhere.example:7440": true, "127.0.0.1.elsewhere.example": true, "192.0.2.1": true, "localhost:1": false, "[::1]:1": false,
		"127.0.0.1": false,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, v.base+"/login", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		if status, _ := v.do(request); (status == http.StatusMisdirectedRequest) != isRefused {
			t.Errorf("as %s it was answered with %d", host, status)
		}
	}
}

func TestLoginTakesNoSessionThatIsGivenAndEndsTheOneBefore(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	base := serve(t, console.Config{Targets: []console.Target{target(t, pool, "")}, Key: "opensesame"})
	where, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	v := newVisitor(t, base)
	name := "parley_console_" + where.Port()
	v.client.Jar.SetCookies(where, []*http.Cookie{{Name: name, Value: "planted", Path: "/"}})
	v.get("/login?key=opensesame")
	cookies := v.client.Jar.Cookies(where)
	if len(cookies) != 1 || cookies[0].Name != name || cookies[0].Value == "planted" {
		t.Fatalf("the cookies are %v", cookies)
	}
	if status, _ := v.get("/"); status != http.StatusOK {
		t.Fatalf("the session is answered with %d", status)
	}
	thief := newVisitor(t, base)
	thief.client.Jar.SetCookies(where, []*http.Cookie{{Name: name, Value: "planted", Path: "/"}})
	if status, _ := thief.get("/"); status != http.StatusSeeOther {
		t.Errorf("the planted session is answered with %d", status)
	}
}

func TestSessionEndsWithItsRole(t *testing.T) {
	t.Parallel()
	for _, end := range []string{`drop role "%"`, `alter role "%" nologin`, `alter role "%" valid until 'yesterday'`} {
		pool := parleytest.Database(t)
		role := consoleRole(t, pool)
		v := enter(t, pool, role, false)
		if status, _ := v.get("/actions"); status != http.StatusOK {
			t.Fatalf("a page was answered with %d", status)
		}
		exec(t, pool, strings.ReplaceAll(end, "%", role))
		if status, body := v.get("/actions"); status != http.StatusSeeOther {
			t.Errorf("after %s a page was answered with %d: %s", end, status, body)
		}
	}
}

func TestFormsThatAreTooLargeOrOfAnotherKindAreRefused(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	shop(t, pool)
	v := enter(t, pool, "", false)
	v.get("/delayed")
	if status, _ := v.post("/delayed", url.Values{"action": {"withdraw"}, "key": {strings.Repeat("x", 2<<20)}}); status != http.StatusRequestEntityTooLarge {
		t.Errorf("two megabytes were answered with %d", status)
	}
	for _, kind := range []string{"application/json", "multipart/form-data; boundary=x", "text/plain", ""} {
		if status, _ := v.post("/queues/jobs", url.Values{"action": {"off"}}, "Content-Type", kind); status != http.StatusUnsupportedMediaType {
			t.Errorf("%q was answered with %d", kind, status)
		}
		if status, _ := newVisitor(t, v.base).post("/login", url.Values{"role": {"x"}}, "Content-Type", kind); status != http.StatusUnsupportedMediaType {
			t.Errorf("a login of %q was answered with %d", kind, status)
		}
	}
	// Behind a zero byte would stand parameters of the connection.
	for _, role := range []string{strings.Repeat("x", 64), "x\x00options\x00-c role=y"} {
		status, body := newVisitor(t, v.base).post("/login", url.Values{"role": {role}, "password": {"y"}})
		if status != http.StatusUnprocessableEntity {
			t.Errorf("the role %q was answered with %d: %s", role, status, body)
		}
	}
}

func TestAnswerHasNoHeaderThatARequestNames(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	v := enter(t, pool, "", false)
	for _, path := range []string{"/queues/a%0d%0aX-Planted:%201", "/login?next=/a%0d%0aX-Planted:%201", "/%0d%0aX-Planted:%201", "/delayed?queue=%0d%0aX-Planted:%201"} {
		for _, visitor := range []*visitor{v, newVisitor(t, v.base)} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, v.base+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Hx-Request", "true")
			answer, err := visitor.client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if answer.Header.Get("X-Planted") != "" || answer.Header.Get("X-Frame-Options") != "DENY" {
				t.Errorf("%s: %v", path, answer.Header)
			}
		}
	}
}

// Many attempts at once get no more than the same number one after the other.
func TestPasswordsAreGuessedAtOnceNoFasterThanInTurn(t *testing.T) {
	t.Parallel()
	one := target(t, parleytest.Database(t), "")
	base := serve(t, console.Config{Targets: []console.Target{one}})
	answers := make(chan int, 60)
	var sent sync.WaitGroup
	for range cap(answers) {
		sent.Go(func() {
			status, _ := newVisitor(t, base).post("/login", url.Values{"role": {one.Config.User}, "password": {"guessed"}})
			answers <- status
		})
	}
	sent.Wait()
	close(answers)
	counted := map[int]int{}
	for status := range answers {
		counted[status]++
	}
	if counted[http.StatusForbidden] > 10 || counted[http.StatusTooManyRequests] < 50 {
		t.Errorf("the answers are %v", counted)
	}
}

// The errors of a connection name hosts, roles and files of the console's own configuration.
func TestLoginThatFailsSaysNothingOfTheConfiguration(t *testing.T) {
	t.Parallel()
	config, err := pgx.ParseConfig("postgres://keeper:swordfish@127.0.0.1:1/vault?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	v := newVisitor(t, serve(t, console.Config{Targets: []console.Target{{Name: "shop", Config: config}}, Key: "opensesame"}))
	for range 2 { // the key serves again when it has let nobody in
		status, body := v.get("/login?key=opensesame")
		for _, hidden := range []string{"keeper", "swordfish", "127.0.0.1", "vault"} {
			if status != http.StatusBadGateway || strings.Contains(body, hidden) {
				t.Errorf("the key was answered with %d: %s", status, body)
			}
		}
	}
	if status, body := v.post("/login", url.Values{"role": {"clerk"}, "password": {"x"}}); status != http.StatusBadGateway || strings.Contains(body, "vault") {
		t.Errorf("the login was answered with %d: %s", status, body)
	}
}
