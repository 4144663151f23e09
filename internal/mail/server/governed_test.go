package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

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
}

func newGoverned(t *testing.T, configuration ...string) *governed {
	t.Helper()
	g := &governed{hub: newHub(t), measured: measured{values: map[string]float64{}}}
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
		Pool: pool, Name: "node1", SpoolFolder: t.TempDir(), NameServers: []string{"127.0.0.1:1"}, Logger: slog.New(slog.DiscardHandler), Version: "test",
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

func requireBeginning(t *testing.T, what, got, want string) {
	t.Helper()
	if !strings.HasPrefix(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

const refusal = "452 4.3.1"

func TestPressureActsStepByStepAndIsUndone(t *testing.T) {
	t.Parallel()
	g := newGoverned(t)
	if g.taken("tarpit") || g.submit(false) != "" {
		t.Error("without pressure something is refused")
	}
	requireBeginning(t, "a sender without pressure", g.from("bob@b.example"), "250")

	g.level("uncommitted", 1200, "MEDIUM")
	g.await("the tarpit", func() bool { return g.taken("tarpit") })
	g.from("bob@example.org")
	if g.counter("SMTP Receive", "Tarpitted", "") == 0 {
		t.Error("no sender was delayed at Medium")
	}
	g.await("the end of the history", func() bool { return g.taken("refuse anonymous senders") })
	requireBeginning(t, "a sender of elsewhere at Medium", g.from("bob@b.example"), refusal)
	requireBeginning(t, "a sender of ours at Medium", g.from("bob@example.org"), "250")
	if !g.taken("refuse folders and HTTP") || g.taken("stop sending") || g.submit(false) != "" {
		t.Error("at Medium the wrong things are refused")
	}

	g.level("uncommitted", 1600, "HIGH")
	g.await("all actions", func() bool { return g.taken("stop sending") })
	requireBeginning(t, "a sender of ours at High", g.from("bob@example.org"), refusal)
	if got := g.submit(false); got != "PM014" {
		t.Errorf("submission by SQL at High gives %q", got)
	}
	if got := g.submit(true); got != "" {
		t.Errorf("submission by a role that is exempt gives %q", got)
	}
	if g.counter("SMTP Receive", "Refused", "pressure, anonymous") < 2 {
		t.Error("senders that were refused are not counted")
	}
	g.level("uncommitted", 900, "MEDIUM")
	requireBeginning(t, "a sender of ours at Medium again", g.from("bob@example.org"), "250")
	g.level("uncommitted", 10, "NORMAL")
	g.await("the end of pressure", func() bool { return !g.taken("tarpit") })
	requireBeginning(t, "a sender after pressure", g.from("bob@b.example"), "250")
	if got := g.submit(false); got != "" {
		t.Errorf("submission by SQL after pressure gives %q", got)
	}
	g.await("the end of the tarpit", func() bool { return g.counter("SMTP Receive", "Tarpit Delay Seconds", "") == 0 })
	g.await("the mail", func() bool { return len(g.inbox()) == 3+1 })
	if got, want := g.text(`select string_agg(concat_ws(' ', event_id, from_level, to_level), ', ' order by change_id)
		from parley_mail.pressure_changes where resource = 'uncommitted'`),
		"15004 NORMAL MEDIUM, 15004 MEDIUM HIGH, 15005 HIGH MEDIUM, 15005 MEDIUM NORMAL"; got != want {
		t.Errorf("the history is %s, want %s", got, want)
	}
	if got := g.text(`select message from parley_mail.pressure_changes where to_level = 'HIGH'`); !strings.Contains(got,
		"uncommitted = 1600 units [High] [Normal=800 Medium=999 High=1500]") || !strings.Contains(got, "stop sending") || !strings.Contains(got, "data volume = 0") {
		t.Errorf("the event says %s", got)
	}
	if g.counter("Back Pressure", "Transitions", "uncommitted") != 4 || g.counter("Back Pressure", "Seconds In High", "uncommitted") <= 0 {
		t.Error("levels are not counted")
	}
	if got := g.text(`select concat_ws(' ', name, status, version, configuration_version = (select version from parley_mail._p_configuration_version))
		from parley_mail.daemons`); got != "node1 SERVING test t" {
		t.Errorf("the daemon is %s", got)
	}
	g.stop()
	if got := g.text(`select concat_ws(' ', name, status, cardinality(actions)) from parley_mail.daemons`); got != "node1 STOPPED 0" {
		t.Errorf("the daemon that has stopped is %s", got)
	}
}

// Volumes and memory are refused for with events of their own; at the floor of a volume nobody is exempt.
func TestVolumesAndMemoryRefuseWithTheirOwnEvents(t *testing.T) {
	t.Parallel()
	g := newGoverned(t)
	g.level("data volume", 98, "MEDIUM")
	requireBeginning(t, "a sender of elsewhere on a full volume", g.from("bob@b.example"), refusal)
	requireBeginning(t, "a sender of ours on a full volume", g.from("bob@example.org"), "250")
	g.level("data volume", 99.5, "HIGH")
	if got := g.submit(false) + g.submit(true); got != "PM014" {
		t.Errorf("submission at High gives %q", got)
	}
	g.level("data volume", 99.95, "FLOOR")
	if got := g.submit(true); got != "PM014" {
		t.Errorf("submission by a role that is exempt gives %q at the floor", got)
	}
	g.level("data volume", 50, "NORMAL")
	if got := g.submit(false); got != "" {
		t.Errorf("submission after it gives %q", got)
	}

	limit := g.counter("Database", "Body Cache Limit Bytes", "")
	g.level("process memory", 80, "HIGH")
	requireBeginning(t, "a sender without memory", g.from("bob@example.org"), refusal)
	if got := g.counter("Database", "Body Cache Limit Bytes", ""); got >= limit {
		t.Errorf("without memory the body cache may hold %g bytes, and %g with it", got, limit)
	}
	g.level("process memory", 10, "NORMAL")
	g.await("the body cache", func() bool { return g.counter("Database", "Body Cache Limit Bytes", "") == limit })
	if got := g.text(`select string_agg(concat_ws(' ', event_id, resource), ', ' order by change_id)
		from parley_mail.pressure_changes where event_id in (15006, 15007)`); got != "15006 data volume, 15006 data volume, 15007 process memory" {
		t.Errorf("the events are %s", got)
	}
}
