package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/logtest"
	"github.com/parley-broker/parley/internal/mail/mailtest"
	"github.com/parley-broker/parley/internal/mail/server"
)

// measured are values that a test gives in the place of what the machine has.
type measured struct {
	mu     sync.Mutex
	values map[string]float64
}

func (m *measured) source(context.Context) (map[string]float64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.values), nil
}

func (m *measured) set(resource string, value float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[resource] = value
}

// governed is a hub whose resources a test decides about, served by a role that has the right SERVE and no other.
type governed struct {
	*hub
	measured measured
	server   *server.Server
	stop     func()
	line     *bufio.ReadWriter
	log      logtest.Log
	zone     *zone
	// pickup and replay are folders of files, and http is where messages are submitted over HTTP.
	pickup, replay, http string
}

func newGoverned(t *testing.T, configuration ...string) *governed {
	t.Helper()
	g := &governed{hub: newHub(t), measured: measured{values: map[string]float64{}}, pickup: t.TempDir(), replay: t.TempDir(), http: mailtest.FreeAddress(t)}
	g.zone = g.byDNS(`{"mta_sts": false}`)
	g.exec(`select parley_mail.apply($1::jsonb)`, fmt.Sprintf(`{
		"pickup folder": {"here": {"path": %q, "poll": 1}},
		"replay folder": {"here": {"path": %q, "poll": 1, "enabled": true}},
		"http listener": {"here": {"bindings": [%q], "authentication_without_tls": true}},
		"credential": {"ann": {"password": "secret"}},
		"send connector": {"own": {"address_spaces": [{"pattern": "*.own.example"}], "routing": "DNS", "port": %s, "tls": "OFF", "mta_sts": false, "dns_servers": [%q]}}
	}`, g.pickup, g.replay, g.http, g.text(`select settings ->> 'port' from parley_mail.objects where kind = 'send connector' and name = 'outbound'`), g.zone.address))
	for _, more := range configuration {
		g.exec("select parley_mail.apply($1::jsonb)", more)
	}
	for resource := range strings.SplitSeq("uncommitted,batch points,submission queue,process memory,system memory,memory stalls,data volume,"+
		"log volume,temporary volume,commit latency,oldest transaction,connections,replica lag,retained log,vacuum debt", ",") {
		g.measured.values[resource] = 0
	}
	g.exec(`select parley_mail.set_threshold('uncommitted', 999, 1500, 1000, 800, history_polls => 3),
		parley_mail.set_threshold('data volume', 96, 99, 97, 94, floor_at => 99.9)`)
	role := g.text(`select 'daemon_of_' || current_database()`)
	quoted := pgx.Identifier{role}.Sanitize()
	g.exec("create role " + quoted)
	t.Cleanup(func() {
		_, _ = g.pool.Exec(context.WithoutCancel(t.Context()), "drop owned by "+quoted+"; drop role "+quoted)
	})
	g.exec("select parley_mail.grant_right('SERVE', $1)", role)
	config := g.pool.Config()
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "set role "+quoted)
		return err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	g.server, err = server.New(server.Config{
		Pool: pool, Name: "node1", SpoolFolder: t.TempDir(), NameServers: []string{g.zone.address}, Folders: g.folders, Logger: g.log.Logger(slog.LevelInfo),
		Version: "test",
	})
	if err != nil {
		t.Fatal(err)
	}
	g.server.ReadMachine(machine)
	g.server.Measure(5*time.Millisecond, 2*time.Millisecond, g.measured.source)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	if err := g.server.Prepare(ctx); err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- g.server.Run(ctx) }()
	g.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	t.Cleanup(g.stop)
	g.await("the daemon", func() bool {
		return g.text("select count(*)::text from parley_mail.pressure where value is not null") == "15"
	})
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", g.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	g.line = bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(conn))
	g.reply()
	g.say("HELO peer.example")
	return g
}

func (g *governed) reply() string {
	g.Helper()
	text, err := g.line.ReadString('\n')
	if err != nil {
		g.Fatal(err)
	}
	return strings.TrimSpace(text)
}

func (g *governed) say(command string) string {
	g.Helper()
	if _, err := g.line.WriteString(command + "\r\n"); err != nil {
		g.Fatal(err)
	}
	if err := g.line.Flush(); err != nil {
		g.Fatal(err)
	}
	return g.reply()
}

// from says MAIL FROM in a session that is open, and ends the message that it began.
func (g *governed) from(sender string) string {
	g.Helper()
	reply := g.say("MAIL FROM:<" + sender + ">")
	if strings.HasPrefix(reply, "250") {
		g.say("RSET")
	}
	return reply
}

// level sets a resource, and waits until the daemon has reported its level.
func (g *governed) level(resource string, value float64, level string) {
	g.Helper()
	g.measured.set(resource, value)
	g.await(fmt.Sprintf("%s at %s", resource, level), func() bool {
		return g.text(fmt.Sprintf("select coalesce(max(level), '') from parley_mail.pressure where resource = '%s' and value = %g", resource, value)) == level
	})
}

func (g *governed) taken(action string) bool {
	g.Helper()
	return g.text(fmt.Sprintf("select coalesce(bool_or('%s' = any (actions)), false)::text from parley_mail.daemons", action)) == "true"
}

func (g *governed) counter(object, counter, instance string) (value float64) {
	g.Helper()
	counters, err := g.server.Counters(g.Context())
	if err != nil {
		g.Fatal(err)
	}
	for _, c := range counters {
		if c.Object == object && c.Counter == counter && c.Instance == instance {
			return c.Value
		}
	}
	g.Fatalf("there is no counter %s %s %s", object, counter, instance)
	return 0
}

// submit submits by SQL, as the owner or as a role that is exempt from pressure, and gives the SQLSTATE of the refusal.
func (g *governed) submit(isExempt bool) string {
	g.Helper()
	g.exec("select parley_mail.set_quota($1, is_exempt_from_pressure => $2)", g.text("select current_user::text"), isExempt)
	_, err := g.pool.Exec(g.Context(), "select parley_mail.send('shop@example.org', array['ann@example.org'], 'Order', 'Thank you.')")
	if refusal, is := errors.AsType[*pgconn.PgError](err); is {
		return refusal.Code
	}
	if err != nil {
		g.Fatal(err)
	}
	return ""
}

// file puts a message into a folder.
func (g *governed) file(folder, subject string) {
	g.Helper()
	text := "From: ann@example.org\nTo: ann@example.org\nSubject: " + subject + "\n\nhello\n"
	if folder == g.replay {
		text = "X-Sender: <ann@example.org>\nX-Receiver: <ann@example.org>\nX-EndOfInjectedXHeaders: x\n" + text
	}
	if err := os.WriteFile(filepath.Join(folder, subject+".eml"), []byte(text), 0o600); err != nil {
		g.Fatal(err)
	}
}

// post submits a message over HTTP, to ann where nobody is named, and gives the status with what the answer says of another attempt.
func (g *governed) post(recipients ...string) string {
	g.Helper()
	to := strings.Join(append(recipients, "ann@example.org")[:max(len(recipients), 1)], `", "`)
	request, err := http.NewRequestWithContext(g.Context(), http.MethodPost, "http://"+g.http+"/messages",
		strings.NewReader(`{"from": "ann@example.org", "to": ["`+to+`"], "subject": "over HTTP", "text": "hello"}`))
	if err != nil {
		g.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.SetBasicAuth("ann", "secret")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		g.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	return strings.TrimSpace(answer.Status[:3] + " " + answer.Header.Get("Retry-After"))
}

// files are the names of what waits in the folders.
func (g *governed) files() (names string) {
	g.Helper()
	for _, folder := range []string{g.pickup, g.replay} {
		entries, err := os.ReadDir(folder)
		if err != nil {
			g.Fatal(err)
		}
		for _, entry := range entries {
			names += entry.Name() + " "
		}
	}
	return names
}

// arrived is whether so many messages with a subject are in the mailbox.
func (g *governed) arrived(subject string, count int) func() bool {
	return func() bool {
		return strings.Count(strings.Join(g.inbox(), ""), "\r\nSubject: "+subject+"\r\n") == count
	}
}

func requireBeginning(t *testing.T, what, got, want string) {
	t.Helper()
	if !strings.HasPrefix(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}
