package host_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapters"
	"github.com/parley-broker/parley/internal/flow/host"
	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

// desk has a location that responds, and who answers: a function, another server, and an application, by the property Key.
const desk = `{
	"application": {"Desk": {}},
	"host": {"Receive": {"role": "$receive"}, "Send": {"role": "$send"}},
	"receive port": {"Desk": {"application": "Desk", "responds": true, "response_timeout": "$timeout"}},
	"receive location": {"Desk": {"receive_port": "Desk", "host": "Receive", "adapter": "HTTP", "address": "http://$listen/desk",
		"settings": {"authentication": "none", "promoted_headers": {"X-Key": "urn:p#Key"}}}},
	"send port": {
		"Function": {"application": "Desk", "host": "Send", "adapter": "PostgreSQL", "address": "local", "responds": true,
			"filter": [[{"property": "urn:p#Key", "operator": "=", "value": "function"}]],
			"settings": {"function": "desk.answer", "arguments": {"document": {"body": "text"}}}},
		"Clerk": {"application": "Desk", "host": "Send", "adapter": "HTTP", "address": "$clerk/in", "responds": true,
			"filter": [[{"property": "urn:p#Key", "operator": "=", "value": "clerk"}]]},
		"Table": {"application": "Desk", "host": "Send", "adapter": "PostgreSQL", "address": "local",
			"filter": [[{"property": "urn:p#Key", "operator": "=", "value": "table"}]],
			"settings": {"table": "desk.asked", "columns": {"token": {"property": "CorrelationToken"}, "document": {"body": "text"}}}}
	}
}`

// newDesk gives a database with it, which two nodes serve: one takes requests in, the other one sends.
// It gives the address of the desk, and the first node.
func newDesk(t *testing.T, timeout string, more ...func(*host.Config)) (e *engine, address string, front *node) {
	t.Helper()
	e = newEngine(t)
	e.Exec(`create schema desk;
		create table desk.asked (token text, document text);
		create function desk.answer(document text) returns json language sql as $$ select json_build_object('said', document) $$`)
	e.Afterwards("drop owned by " + sqltest.Quote(e.send))
	e.Exec("grant usage on schema desk to " + sqltest.Quote(e.send))
	e.Exec("grant insert on desk.asked to " + sqltest.Quote(e.send))
	clerk := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/csv; charset=latin1")
		_, _ = w.Write([]byte(strings.Repeat(string(body), 100_000)))
	}))
	t.Cleanup(clerk.Close)
	listen := freeAddress(t)
	e.apply(strings.NewReplacer("$receive", e.receive, "$send", e.send, "$listen", listen, "$clerk", clerk.URL, "$timeout", timeout).Replace(desk))
	front = e.serve(append(more, ofDesk, func(c *host.Config) { c.Hosts, c.Node = []string{"Receive"}, "front" })...)
	e.serve(append(more, ofDesk, func(c *host.Config) { c.Hosts, c.Node = []string{"Send"}, "back" })...)
	address = "http://" + listen + "/desk"
	parleytest.Until(t, "the desk is open", func() bool {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = answer.Body.Close()
		}
		return err == nil && answer.StatusCode == http.StatusMethodNotAllowed
	})
	return e, address, front
}

func ofDesk(c *host.Config) {
	c.Adapters = adapters.All()
	c.Permission = adapter.Permission{Listen: []string{"127.0.0.1:*"}, Connect: []string{"127.0.0.1:*"}}
}

// reply is a response, or why a client got none.
type reply struct {
	status int
	header http.Header
	body   string
	err    error
}

// ask sends a request, and gives what the client got.
func ask(ctx context.Context, address, to, body string, headers ...string) (got reply) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		return reply{err: err}
	}
	request.Header.Set("X-Key", to)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return reply{err: err}
	}
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	return reply{answer.StatusCode, answer.Header, string(read), err}
}

// asked waits until the table has a request, takes it, and gives its token.
func (e *engine) asked(document string) (token string) {
	e.Helper()
	parleytest.Until(e.T, document+" is asked", func() bool {
		token = sqltest.Value[string](e.Session, `with taken as (delete from desk.asked where document = $1 returning token)
			select coalesce(max(token), '') from taken`, document)
		return token != ""
	})
	return token
}

// untilOver waits until no request waits, and no message but those that are suspended.
func (e *engine) untilOver(suspended int) {
	e.Helper()
	parleytest.Until(e.T, "requests are over", func() bool {
		return sqltest.Value[string](e.Session, `select format('%s %s %s', (select count(*) from parley_flow._p_request where nodes <> '{}'),
			(select count(*) from parley_flow._p_message), (select count(*) from parley_flow._p_suspended))`) ==
			fmt.Sprintf("0 %d %[1]d", suspended)
	})
}

// The node that holds a request gives its client what a function, a server or an application answers, on whichever node they are.
func TestRequestsAreAnsweredThroughTheBox(t *testing.T) {
	t.Parallel()
	e, address, _ := newDesk(t, "1 minute")
	got := ask(t.Context(), address, "function", "hello")
	if got.err != nil || got.status != 200 || got.body != `{"said" : "hello"}` ||
		got.header.Get("Content-Type") != "application/json; charset=utf-8" {
		t.Errorf("the function gave %+v", got)
	}
	got = ask(t.Context(), address, "clerk", "0123456789")
	if got.status != 200 || got.body != strings.Repeat("0123456789", 100_000) || got.header.Get("Content-Type") != "text/csv; charset=latin1" {
		t.Errorf("the server gave %d, %v, %d bytes, %v", got.status, got.header, len(got.body), got.err)
	}
	answered := make(chan reply, 1)
	go func() { answered <- ask(t.Context(), address, "table", "an application") }()
	token := e.asked("an application")
	sqltest.Equal(e.Session, "ANSWERED", `select parley_flow.answer($1, 'no such thing'::text, '{"urn:parley:http#Status": 404}')`, token)
	if got := parleytest.Receive(t, answered, "the answer of the application"); got.status != 404 || got.body != "no such thing" {
		t.Errorf("the application gave %+v", got)
	}
	if got := ask(t.Context(), address, "nobody", "hello"); got.status != 500 || !strings.Contains(got.body, "SUSPENDED") {
		t.Errorf("nobody gave %+v", got)
	}
	e.untilOver(1)
	// A function that fails is no reason to wait for the time to be over.
	e.Exec("create or replace function desk.answer(document text) returns json language plpgsql as $$ begin raise 'no'; end $$")
	if got := ask(t.Context(), address, "function", "hello"); got.status != 502 {
		t.Errorf("a function that fails gave %+v", got)
	}
	sqltest.Equal(e.Session, 1, `select parley_flow.terminate_suspended('{"code": "send.refused"}')`)
	e.Exec("create or replace function desk.answer(document text) returns json language sql as $$ select json_build_object('said', document) $$")
	var asking sync.WaitGroup
	for i := range 200 {
		asking.Go(func() {
			body := fmt.Sprint("m", i)
			if got := ask(t.Context(), address, "function", body); got.status != 200 || got.body != `{"said" : "`+body+`"}` {
				t.Errorf("%s gave %+v", body, got)
			}
		})
		if i%50 == 49 {
			asking.Wait()
		}
	}
	asking.Wait()
	e.untilOver(1)
}

// A client gets no answer behind its time; that comes late. One that has left gets none. A repeat under its key gets it.
func TestRequestsEndWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	e, address, _ := newDesk(t, "2 seconds")
	if got := ask(t.Context(), address, "table", "slow"); got.status != 504 || !strings.Contains(got.body, "no answer came in time") {
		t.Errorf("the client got %+v", got)
	}
	sqltest.Equal(e.Session, "LATE", "select parley_flow.answer($1, 'x'::text)", e.asked("slow"))
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan reply, 1)
	go func() { left <- ask(ctx, address, "table", "impatient") }()
	token := e.asked("impatient")
	leave()
	parleytest.Receive(t, left, "the client has left")
	parleytest.Until(t, "the request is over", func() bool {
		return sqltest.Value[bool](e.Session, "select not exists (select from parley_flow._p_request where nodes <> '{}')")
	})
	sqltest.Equal(e.Session, "LATE", "select parley_flow.answer($1, 'x'::text)", token)
	sqltest.Equal(e.Session, 2, "select count(*)::integer from parley_flow._p_suspended where code = 'routing.late-answer'")
	if got := ask(t.Context(), address, "table", "keyed", "Idempotency-Key", "k"); got.status != 504 {
		t.Errorf("the client got %+v", got)
	}
	repeated := make(chan reply, 2)
	for range 2 {
		go func() { repeated <- ask(t.Context(), address, "table", "keyed", "Idempotency-Key", "k") }()
	}
	token = e.asked("keyed")
	parleytest.Until(t, "repeats wait", func() bool {
		return sqltest.Value[bool](e.Session, "select exists (select from parley_flow._p_request where nodes <> '{}')")
	})
	sqltest.Equal(e.Session, "ANSWERED", "select parley_flow.answer($1, 'at last'::text)", token)
	for range 2 {
		if got := parleytest.Receive(t, repeated, "a repeat"); got.status != 200 || got.body != "at last" {
			t.Errorf("the repeat got %+v", got)
		}
	}
	if got := ask(t.Context(), address, "table", "keyed", "Idempotency-Key", "k"); got.status != 200 || got.body != "at last" {
		t.Errorf("a repeat of what was answered got %+v", got)
	}
	sqltest.Equal(e.Session, 0, "select count(*)::integer from desk.asked")
}

// Answers are found too when the connection that is notified of them breaks.
func TestAnswersAreFoundWithoutNotifications(t *testing.T) {
	t.Parallel()
	e, address, _ := newDesk(t, "1 minute")
	answered := make(chan reply, 1)
	go func() { answered <- ask(t.Context(), address, "table", "x") }()
	token := e.asked("x")
	tx := e.Begin()
	tx.Exec("set local parley.notify = off")
	tx.Exec("select parley_flow.answer($1, 'silent'::text)", token)
	tx.Exec("commit")
	e.Exec("select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'parley flow listener%' and datname = current_database()")
	if got := parleytest.Receive(t, answered, "the answer"); got.body != "silent" {
		t.Errorf("the client got %+v", got)
	}
	// A node that is asked to stop ends what it has in hand: the answer comes while it waits for its clients.
	go func() { answered <- ask(t.Context(), address, "table", "stopping") }()
	token = e.asked("stopping")
	e.Exec(`select parley_flow.disable('Desk')`)
	parleytest.Until(t, "the desk takes nothing more", func() bool {
		got := ask(t.Context(), address, "nobody", "x")
		return got.err != nil || got.status == http.StatusServiceUnavailable
	})
	e.Exec("select parley_flow.answer($1, 'still'::text)", token)
	if got := parleytest.Receive(t, answered, "the answer"); got.body != "still" {
		t.Errorf("the client got %+v", got)
	}
}

// While backends are terminated and the node that holds the requests is replaced, each request is done once, and a client that repeats it
// under its key gets its answer.
func TestRequestsAreDoneOnceWhateverFails(t *testing.T) {
	t.Parallel()
	e, address, front := newDesk(t, "10 seconds")
	e.Exec(`create table desk.done (document text);
		create or replace function desk.answer(document text) returns json language sql as $$
			insert into desk.done (document) values ($1); select json_build_object('said', $1) $$`)
	e.Exec("grant insert on desk.done to " + sqltest.Quote(e.send))
	done := make(chan struct{})
	var killing, asking sync.WaitGroup
	killing.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(200 * time.Millisecond):
			}
			_, _ = e.DB.Exec(context.Background(), `select pg_terminate_backend(pid) from pg_stat_activity
				where datname = current_database() and pid <> pg_backend_pid() and query ~ 'parley_flow' order by random() limit 1`)
		}
	})
	const clients, each = 5, 20
	half := make(chan struct{}, clients)
	for client := range clients {
		asking.Go(func() {
			for n := range each {
				body := fmt.Sprintf("%d:%d", client, n)
				parleytest.Until(t, body+" is answered", func() bool {
					got := ask(t.Context(), address, "function", body, "Idempotency-Key", body)
					if got.err != nil { // a part of an answer is none
						return false
					}
					if got.status == 200 && got.body != `{"said" : "`+body+`"}` {
						t.Errorf("the answer to %s is %s", body, got.body)
					}
					return got.status == 200
				})
				if n == each/2 {
					half <- struct{}{}
				}
			}
		})
	}
	for range clients {
		parleytest.Receive(t, half, "half of the requests")
	}
	front.stop()
	e.serve(ofDesk, func(c *host.Config) { c.Hosts, c.Node = []string{"Receive"}, "other front" })
	asking.Wait()
	close(done)
	killing.Wait()
	sqltest.Equal(e.Session, "100 100", "select format('%s %s', count(*), count(distinct document)) from desk.done")
}

// While requests are held back those that wait get their answers: what would end the pressure passes.
func TestRequestsAreHeldUnderPressureAndAnswersPass(t *testing.T) {
	t.Parallel()
	e, address, _ := newDesk(t, "1 minute")
	answered := make(chan reply, 1)
	go func() { answered <- ask(t.Context(), address, "table", "before") }()
	token := e.asked("before")
	e.Exec(`select parley_flow.apply(jsonb_build_object('host', jsonb_build_object('Receive',
		jsonb_build_object('role', $1::text, 'publishing_throttling', 'force'))))`, e.receive)
	parleytest.Until(t, "requests are held", func() bool {
		got := ask(t.Context(), address, "function", "held")
		return got.status == http.StatusServiceUnavailable && got.header.Get("Retry-After") != ""
	})
	e.Exec("select parley_flow.answer($1, 'passes'::text)", token)
	if got := parleytest.Receive(t, answered, "the answer"); got.status != 200 || got.body != "passes" {
		t.Errorf("the client got %+v", got)
	}
}
