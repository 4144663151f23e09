package host_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapters"
	"github.com/parley-broker/parley/internal/flow/host"
	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

// doors are locations and ports of HTTP, PostgreSQL and Service: requests become rows, rows become messages of a simple queue, these become
// requests.
const doors = `{
	"application": {"Doors": {}},
	"host": {"Receive": {"role": "$receive"}, "Send": {"role": "$send"}},
	"retry policy": {"at once": {"count": 100, "interval": "1 second", "jitter": 0}},
	"receive port": {"By HTTP": {"application": "Doors"}, "By rows": {"application": "Doors"}, "By queue": {"application": "Doors"}},
	"receive location": {
		"Requests": {"receive_port": "By HTTP", "host": "Receive", "adapter": "HTTP", "address": "http://$listen/orders",
			"pipeline": "JSONReceive", "settings": {"authentication": "none", "idempotency": "required", "openapi": "everyone", "promoted_headers": {"X-Key": "urn:p#Key"}}},
		"Rows": {"receive_port": "By rows", "host": "Receive", "adapter": "PostgreSQL", "address": "local", "pipeline": "PassThruReceive",
			"settings": {"statement": "delete from shop.orders where n in (select o.n from shop.orders as o order by o.n limit $1 for update skip locked) returning n, document",
				"body_column": "document", "batch_size": 10, "poll_interval": "100 milliseconds", "promoted": {"n": "urn:p#Key"}}},
		"Queue": {"receive_port": "By queue", "host": "Receive", "adapter": "Service", "address": "queue:orders", "pipeline": "PassThruReceive",
			"settings": {"poll_interval": "100 milliseconds", "promoted": {"Key": "urn:p#Key"}}}},
	"send port": {
		"Table": {"application": "Doors", "host": "Send", "adapter": "PostgreSQL", "address": "local", "retry_policy": "at once",
			"filter": [[{"property": "ReceivePortName", "operator": "=", "value": "By HTTP"}]],
			"settings": {"table": "shop.orders", "columns": {"message_id": {"property": "MessageID"}, "key": {"property": "urn:p#Key"}, "document": {"body": "text"}}}},
		"To queue": {"application": "Doors", "host": "Send", "adapter": "Service", "address": "queue:orders", "retry_policy": "at once",
			"filter": [[{"property": "ReceivePortName", "operator": "=", "value": "By rows"}]], "settings": {"key": "urn:p#Key"}},
		"Partner": {"application": "Doors", "host": "Send", "adapter": "HTTP", "address": "$partner/in", "retry_policy": "at once",
			"filter": [[{"property": "ReceivePortName", "operator": "=", "value": "By queue"}]], "settings": {"headers": {"X-Key": "{urn:p#Key}"}}}}
}`

// partner is a receiver that remembers idempotency keys, and refuses each message once.
type partner struct {
	mu      sync.Mutex
	refused map[string]bool
	bodies  map[string]string // by idempotency key
}

func (p *partner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	key := r.Header.Get("Idempotency-Key")
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.refused[key] {
		p.refused[key] = true
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	p.bodies[key] = string(body)
}

func (p *partner) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.bodies)
}

// post sends an order until it is answered with success.
func (e *engine) post(address, key, body string) {
	e.Helper()
	parleytest.Until(e.T, "order "+key+" is taken", func() bool {
		request, err := http.NewRequestWithContext(e.Context(), http.MethodPost, address, strings.NewReader(body))
		if err != nil {
			e.Fatal(err)
		}
		request.Header.Set("Idempotency-Key", key)
		request.Header.Set("X-Key", key)
		request.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		_ = answer.Body.Close()
		return answer.StatusCode/100 == 2
	})
}

func TestOrdersGoThroughHTTPTablesAndQueuesOnce(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.Exec(`create schema shop;
		create table shop.orders (n integer generated always as identity, message_id bigint, key text, document json)`)
	e.Exec("select parley.create_queue('orders', kind => 'SIMPLE')")
	for _, role := range []string{e.receive, e.send} {
		e.Afterwards("drop owned by " + sqltest.Quote(role))
		e.Exec("grant usage on schema shop to " + sqltest.Quote(role))
	}
	e.Exec("grant select, update, delete on shop.orders to " + sqltest.Quote(e.receive))
	e.Exec("grant insert on shop.orders to " + sqltest.Quote(e.send))
	e.Exec("select parley.grant('RECEIVE', 'QUEUE', 'orders', $1)", e.receive)
	e.Exec("select parley.grant('SEND', 'QUEUE', 'orders', $1)", e.send)
	receiver := &partner{refused: map[string]bool{}, bodies: map[string]string{}}
	server := httptest.NewServer(receiver)
	defer server.Close()
	listen := freeAddress(t)
	e.apply(strings.NewReplacer("$receive", e.receive, "$send", e.send, "$listen", listen, "$partner", server.URL).Replace(doors))
	withDoors := func(c *host.Config) {
		c.Adapters = adapters.All()
		c.Permission = adapter.Permission{Listen: []string{"127.0.0.1:*"}, Connect: []string{"127.0.0.1:*"}}
	}
	const orders = 30
	first := e.serve(withDoors)
	for i := range orders {
		key := fmt.Sprint(i)
		e.post("http://"+listen+"/orders", key, `{"order": `+key+`}`)
		switch i {
		case 5, 15:
			// A client that has seen no answer sends again.
			e.post("http://"+listen+"/orders", key, `{"order": `+key+`}`)
		case 10:
			first.stop()
			first = e.serve(withDoors)
		}
	}
	parleytest.Until(t, "all orders are at the partner", func() bool { return receiver.count() >= orders })
	e.untilEmpty()
	seen := map[string]int{}
	for _, body := range receiver.bodies {
		seen[body]++
	}
	for i := range orders {
		if body := fmt.Sprintf(`{"order": %d}`, i); seen[body] != 1 {
			t.Errorf("%s came %d times", body, seen[body])
		}
	}
	if left := sqltest.Value[int](e.Session, "select count(*)::integer from shop.orders"); left != 0 || len(receiver.bodies) != orders {
		t.Errorf("%d rows are left, %d messages came", left, len(receiver.bodies))
	}
}

// checkDescription holds what the listener says of itself against the definitions, also after these have changed.
func (e *engine) checkDescription(listen string) {
	e.Helper()
	says := func(part string) func() bool {
		return func() bool {
			request, err := http.NewRequestWithContext(e.Context(), http.MethodGet, "http://"+listen+"/openapi.json", http.NoBody)
			if err != nil {
				return false
			}
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				return false
			}
			defer answer.Body.Close()
			text, err := io.ReadAll(answer.Body)
			return err == nil && answer.StatusCode == http.StatusOK && strings.Contains(string(text), part)
		}
	}
	parleytest.Until(e.T, "the location is described", says(`"/orders"`))
	parleytest.Until(e.T, "its application is named", says(`"title": "Doors"`))
	e.Exec(`select parley_flow.apply('{"receive port": {"By HTTP": {"application": "Doors", "description": "orders of all shops"}}}')`)
	parleytest.Until(e.T, "a new description is shown", says("orders of all shops"))
}

func TestABadRequestIsSuspendedAndRowsOfABadOneAreNot(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.Exec(`create schema shop;
		create table shop.orders (n integer generated always as identity, message_id bigint, key text check (key <> 'bad'), document json)`)
	e.Exec("select parley.create_queue('orders', kind => 'SIMPLE')")
	e.Afterwards("drop owned by " + sqltest.Quote(e.send))
	e.Exec("grant usage on schema shop to " + sqltest.Quote(e.send))
	e.Exec("grant insert on shop.orders to " + sqltest.Quote(e.send))
	listen := freeAddress(t)
	written := strings.NewReplacer("$receive", e.receive, "$send", e.send, "$listen", listen, "$partner", "http://127.0.0.1:1").Replace(doors)
	e.apply(strings.NewReplacer(`"address": "local", "pipeline"`, `"address": "local", "enabled": false, "pipeline"`,
		`"address": "queue:orders", "pipeline"`, `"address": "queue:orders", "enabled": false, "pipeline"`).Replace(written))
	e.serve(func(c *host.Config) {
		c.Adapters = adapters.All()
		c.Permission = adapter.Permission{Listen: []string{"127.0.0.1:*"}, Connect: []string{"127.0.0.1:*"}}
	})
	address := "http://" + listen + "/orders"
	e.checkDescription(listen)
	e.post(address, "no JSON", "{")
	e.post(address, "bad", "{}")
	e.post(address, "good", "{}")
	parleytest.Until(t, "two are suspended", func() bool { _, suspended := e.inBox(); return suspended == 2 })
	parleytest.Until(t, "one is a row", func() bool {
		return sqltest.Value[int](e.Session, "select count(*)::integer from shop.orders where key = 'good'") == 1
	})
	codes := sqltest.Value[string](e.Session, "select string_agg(code, ',' order by code) from parley_flow.suspended")
	if !strings.HasPrefix(codes, "receive.") || !strings.HasSuffix(codes, ",send.refused") {
		t.Errorf("the codes are %s", codes)
	}
}
