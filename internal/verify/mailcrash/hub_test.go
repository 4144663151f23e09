//go:build unix

package mailcrash_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/verify/mailcheck"
)

// hub is mail transport with all that is around it: a database, daemons, and the places where letters arrive.
type hub struct {
	*database
	daemons []*daemon
	hosts   map[string]*mailcheck.Host
	// addresses are those of the hosts; that of the dead one is nobody's.
	addresses map[string]string
	mailboxes string
	// isHealed is whether hosts fail no more.
	isHealed atomic.Bool
}

// odds are how often a host fails at each step, in a thousand.
var odds = map[string]map[mailcheck.Step]int{
	"steady": {},
	"flaky":  {mailcheck.AtGreeting: 60, mailcheck.AtSender: 30, mailcheck.AtRecipient: 60, mailcheck.AtData: 30, mailcheck.AtEnd: 150},
	"bare":   {mailcheck.AtGreeting: 20, mailcheck.AtRecipient: 30, mailcheck.AtEnd: 60},
	"lmtp":   {mailcheck.AtGreeting: 20, mailcheck.AtRecipient: 20, mailcheck.AtEnd: 60},
}

var faults = []mailcheck.Fault{
	mailcheck.Defer, mailcheck.Defer, mailcheck.Refuse, mailcheck.Leave, mailcheck.Drop, mailcheck.DropTaken, mailcheck.Hang, mailcheck.HangTaken,
	mailcheck.Goodbye,
}

// newHub makes everything, and starts the daemons.
func newHub(t testing.TB, seed uint64, daemons int, lease time.Duration) *hub {
	t.Helper()
	h := &hub{database: newDatabase(t), hosts: map[string]*mailcheck.Host{}, addresses: map[string]string{"dead": freeAddress(t)}}
	h.mailboxes = t.TempDir()
	for i, name := range []string{"steady", "flaky", "bare", "lmtp"} {
		h.startHost(t, name, rand.New(rand.NewPCG(seed, uint64(i))))
	}
	var bindings []string
	for range daemons {
		bindings = append(bindings, freeAddress(t))
	}
	h.configure(t, bindings)
	for i, binding := range bindings {
		d := newDaemon(t, fmt.Sprint("daemon-", i+1), binding, h.dsn("hub"), h.mailboxes, lease)
		h.daemons = append(h.daemons, d)
		d.start(t)
	}
	return h
}

func (h *hub) startHost(t testing.TB, name string, random *rand.Rand) {
	t.Helper()
	var mu sync.Mutex
	host := &mailcheck.Host{Name: name, LMTP: name == "lmtp", Bare: name == "bare", Fault: func(step mailcheck.Step) mailcheck.Fault {
		mu.Lock()
		defer mu.Unlock()
		if h.isHealed.Load() || random.IntN(1000) >= odds[name][step] {
			return mailcheck.None
		}
		return faults[random.IntN(len(faults))]
	}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host.Serve(listener)
	t.Cleanup(func() { _ = host.Close() })
	h.hosts[name], h.addresses[name] = host, listener.Addr().String()
}

// smartHost writes the address of a host as a send connector names it.
func (h *hub) smartHost(name string) string {
	address, port, _ := net.SplitHostPort(h.addresses[name])
	return fmt.Sprintf(`"routing": "SMART_HOST", "tls": "OFF", "inactivity_timeout": 30, "max_connections_per_domain": 6,
		"smart_hosts": [{"host": "[%s]", "port": %s}]`, address, port)
}

// configure defines the domains that are ours and where the rest goes, and makes the places in the database where letters arrive.
func (h *hub) configure(t testing.TB, bindings []string) {
	t.Helper()
	conn := h.connect(t)
	defer conn.Close(context.Background())
	listen, _ := json.Marshal(bindings)
	configuration := fmt.Sprintf(`{
		"organization": {"organization": {"default_domain": "shop.example", "fqdn": "hub.shop.example", "dsn_rate": 100000,
			"connection_rate_per_node": 0}},
		"accepted domain": {"shop.example": {}},
		"mailbox store": {"lmtp": {"address": %q}, "maildir": {"driver": "MAILDIR", "address": %q}},
		"mailbox": {"ann@shop.example": {"store": "lmtp"}, "eve@shop.example": {"store": "lmtp"}, "bob@shop.example": {"store": "maildir"},
			"shop@shop.example": {"store": "maildir"}},
		"service binding": {"orders": {"pattern": "orders@shop.example", "table": "public.arrived"},
			"desk": {"pattern": "desk@shop.example", "service": "desk", "from_service": "desk"}},
		"permission group": {"Workload": {"principals": ["ANONYMOUS"], "rights": ["SUBMIT", "ANY_RECIPIENT", "ANY_SENDER", "ACCEPT_ROUTING_HEADERS"]}},
		"receive connector": {"inbound": {"bindings": %s, "remote_ranges": ["127.0.0.0/8"], "tls": "OFF", "permission_groups": ["Workload"],
			"max_connections_per_source": 0, "max_connections_per_source_percent": 100, "connection_rate": 0, "tarpit": 0, "spf": "OFF",
			"dkim": "OFF", "dmarc": "OFF"}},
		"send connector": {
			"steady": {"address_spaces": [{"pattern": "steady.example"}, {"pattern": "out.example"}], %s},
			"flaky": {"address_spaces": [{"pattern": "flaky.example"}], %s},
			"bare": {"address_spaces": [{"pattern": "bare.example"}], %s},
			"dead": {"address_spaces": [{"pattern": "dead.example"}], %s}}
	}`, h.addresses["lmtp"], h.mailboxes+"/{local}", listen, h.smartHost("steady"), h.smartHost("flaky"), h.smartHost("bare"), h.smartHost("dead"))
	for _, statement := range []string{
		`create role hub login`, `create role shop login`,
		`create table public.sold (key text primary key)`, `grant insert on public.sold to shop`,
		`create table public.arrived (recipient text, raw text)`,
		`select parley.create_queue('desk')`, `select parley.create_service('desk', 'desk', array['DEFAULT'])`,
	} {
		must(t, conn, statement)
	}
	must(t, conn, `select parley_mail.apply($1::jsonb)`, configuration)
	must(t, conn, `select parley_mail.grant_right('SERVE', 'hub'), parley_mail.grant_right('SEND', 'shop')`)
	// A failed delivery is tried again soon: the test is about its fate, not about when.
	must(t, conn, `select parley_store.set_retry_policy(p.policy, 'STEPS', '1 second', expires_after => '90 days') from parley_store.retry_policies as p`)
}

func must(t testing.TB, conn *pgx.Conn, statement string, arguments ...any) {
	t.Helper()
	if _, err := conn.Exec(context.Background(), statement, arguments...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func ask[T any](t testing.TB, conn *pgx.Conn, query string, arguments ...any) (value T) {
	t.Helper()
	if err := conn.QueryRow(context.Background(), query, arguments...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

// column gives the rows of a query that has one column.
func column[T any](t testing.TB, conn *pgx.Conn, query string) []T {
	t.Helper()
	rows, err := conn.Query(context.Background(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return values
}

// arrivals are the letters and reports at all places.
func (h *hub) arrivals(t testing.TB) (arrivals []mailcheck.Arrival) {
	t.Helper()
	for _, host := range h.hosts {
		arrivals = append(arrivals, host.Arrivals()...)
		if _, unread := host.Failed(); len(unread) > 0 {
			t.Errorf("%d messages cannot be read, such as %s", len(unread), unread[0])
		}
	}
	files, err := filepath.Glob(filepath.Join(h.mailboxes, "*", "new", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		message, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		mailbox := filepath.Base(filepath.Dir(filepath.Dir(file)))
		message = bytes.ReplaceAll(message, []byte("\n"), []byte("\r\n")) // as it was on the way
		arrivals = append(arrivals, stored(t, "maildir", mailbox+"@shop.example", message))
	}
	conn := h.connect(t)
	defer conn.Close(context.Background())
	for _, raw := range column[string](t, conn, `select raw from public.arrived`) {
		arrivals = append(arrivals, stored(t, "table", "orders@shop.example", decoded(t, raw)))
	}
	for {
		bodies := column[[]byte](t, conn, `select message_body from parley.receive('desk', top => 1000)`)
		if len(bodies) == 0 {
			return arrivals
		}
		for _, body := range bodies {
			var payload struct{ Raw string }
			if err := json.Unmarshal(body, &payload); err != nil {
				t.Fatalf("%v: %.200q", err, body)
			}
			arrivals = append(arrivals, stored(t, "service", "desk@shop.example", decoded(t, payload.Raw)))
		}
	}
}

func decoded(t testing.TB, raw string) []byte {
	t.Helper()
	message, err := base64.StdEncoding.DecodeString(raw)
	if err != nil {
		t.Fatal(err)
	}
	return message
}

// stored reads a message of a place that has each once.
func stored(t testing.TB, place, recipient string, message []byte) mailcheck.Arrival {
	t.Helper()
	key, hash, report, err := mailcheck.Read(message)
	if err != nil {
		t.Errorf("%s: %v: %.200q", place, err, message)
	}
	return mailcheck.Arrival{Key: key, Recipient: recipient, Hash: hash, Report: report, Place: place, Ending: mailcheck.Stored}
}
