package console_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/console"
	"github.com/parley-broker/parley/parleytest"
)

// visitor is one who uses a console, as a browser without scripts would.
type visitor struct {
	t      *testing.T
	client *http.Client
	base   string
	token  string
}

// target names a database as a role: the server of the tests lets every role in through its socket.
func target(t *testing.T, pool *pgxpool.Pool, role string) console.Target {
	t.Helper()
	config, err := pgx.ParseConfig(parleytest.DSN(t, pool))
	if err != nil {
		t.Fatal(err)
	}
	if role != "" {
		config.User = role
	}
	return console.Target{Name: "shop", Config: config}
}

// serve serves a console until the test ends and gives its address.
func serve(t *testing.T, config console.Config) string {
	t.Helper()
	config.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	served, err := console.New(config)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(served.Handler())
	listener := server.Listener
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- served.Serve(ctx, listener, nil) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String()
}

func newVisitor(t *testing.T, base string) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &visitor{t: t, base: base, client: &http.Client{
		Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// enter serves a console of a database and lets a visitor in as a role; "" is the owner of the database.
func enter(t *testing.T, pool *pgxpool.Pool, role string, readOnly bool) *visitor {
	t.Helper()
	v := newVisitor(t, serve(t, console.Config{Targets: []console.Target{target(t, pool, role)}, Key: "opensesame", ReadOnly: readOnly}))
	if status, _ := v.get("/login?key=opensesame"); status != http.StatusSeeOther {
		t.Fatalf("the key was answered with %d", status)
	}
	return v
}

func (v *visitor) do(request *http.Request) (int, string) {
	v.t.Helper()
	answer, err := v.client.Do(request)
	if err != nil {
		v.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

var tokenInput = regexp.MustCompile(`name="csrf_token" value="([^"]+)"`)

func (v *visitor) get(path string) (int, string) {
	v.t.Helper()
	request, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, v.base+path, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	status, body := v.do(request)
	if found := tokenInput.FindStringSubmatch(body); found != nil {
		v.token = found[1]
	}
	return status, body
}

// post sends a form with the token of the page that was read last.
func (v *visitor) post(path string, form url.Values, headers ...string) (int, string) {
	v.t.Helper()
	if !form.Has("csrf_token") {
		form.Set("csrf_token", v.token)
	}
	request, err := http.NewRequestWithContext(v.t.Context(), http.MethodPost, v.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	return v.do(request)
}

var onceInput = regexp.MustCompile(`name="once" value="([^"]+)"`)

// act chooses an action on rows, and confirms the question that comes.
func (v *visitor) act(path string, form url.Values) (int, string) {
	v.t.Helper()
	_, question := v.post(path, form)
	found := onceInput.FindStringSubmatch(question)
	if found == nil {
		v.t.Fatalf("%s asks nothing: %s", path, question)
	}
	return v.post(path, url.Values{"action": form["action"], "once": {found[1]}, "key": keysIn(question)})
}

func exec(t *testing.T, pool *pgxpool.Pool, statement string, arguments ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), statement, arguments...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// shop makes a queue of a service with a conversation, and a simple queue with a message and one that is not due.
func shop(t *testing.T, pool *pgxpool.Pool) (handle string) {
	t.Helper()
	exec(t, pool, "select parley.create_queue('orders')")
	exec(t, pool, "select parley.create_service('//shop', 'orders', array['DEFAULT'])")
	exec(t, pool, "select parley.create_queue('customers')")
	exec(t, pool, "select parley.create_service('//customer', 'customers', array['DEFAULT'])")
	exec(t, pool, "select parley.create_queue('jobs', kind => 'SIMPLE')")
	err := pool.QueryRow(t.Context(), "select parley.begin_dialog('//customer', '//shop', encryption => false)::text").Scan(&handle)
	if err != nil {
		t.Fatal(err)
	}
	exec(t, pool, "select parley.send($1::uuid, 'DEFAULT', '<order>&<script>alert(1)</script></order>'::text)", handle)
	exec(t, pool, "select parley.put('jobs', 'do it'::text, key => 'k1')")
	exec(t, pool, "select parley.put('jobs', 'later'::text, deliver_at => now() + interval '1 hour')")
	return handle
}
