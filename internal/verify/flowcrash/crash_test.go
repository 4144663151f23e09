//go:build unix

package flowcrash_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/postgres"
	"github.com/parley-broker/parley/internal/postgres/postgrestest"
	"github.com/parley-broker/parley/parleytest"
	"github.com/parley-broker/parley/schema"
)

// definitions are those of the engine. $DIR is a folder, $WEB and $WIRE are addresses, $ROLE is the owner.
const definitions = `{
	"application": {"Crash": {}},
	"host": {"Doors": {"role": "$ROLE"}, "Work": {"role": "$ROLE"}},
	"retry policy": {"soon": {"count": 1000, "interval": "1 second", "factor": 1, "jitter": 0.5}},
	"receive port": {"In": {"application": "Crash"}, "Web in": {"application": "Crash"}, "Wire in": {"application": "Crash"}, "Service in": {"application": "Crash"}},
	"receive location": {
		"Files": {"receive_port": "In", "host": "Work", "adapter": "FILE", "address": "$DIR/in/*.txt",
			"settings": {"poll_interval": "50 milliseconds", "stable_for": "50 milliseconds"}},
		"Rows": {"receive_port": "In", "host": "Work", "adapter": "PostgreSQL", "address": "local", "settings": {"poll_interval": "50 milliseconds", "body_column": "body",
			"batch_size": 10, "statement": "delete from public.orders where ctid = any (array(select o.ctid from public.orders as o limit $1 for update skip locked)) returning body"}},
		"Web": {"receive_port": "Web in", "host": "Doors", "adapter": "HTTP", "address": "http://$WEB/orders", "settings": {"authentication": "none"}},
		"Wire": {"receive_port": "Wire in", "host": "Doors", "adapter": "TCP", "address": "$WIRE"},
		"Service": {"receive_port": "Service in", "host": "Work", "adapter": "Service", "address": "//crash/Orders", "settings": {"poll_interval": "50 milliseconds"}}
	},
	"send port": {
		"File": {"application": "Crash", "host": "Work", "adapter": "FILE", "address": "$DIR/out/%MessageID%.txt", "retry_policy": "soon", "filter": [[$IN]]},
		"Web": {"application": "Crash", "host": "Work", "adapter": "HTTP", "address": "http://$WEB/orders", "retry_policy": "soon", "filter": [[$IN]]},
		"Wire": {"application": "Crash", "host": "Work", "adapter": "TCP", "address": "$WIRE", "retry_policy": "soon", "filter": [[$IN]]},
		"Service": {"application": "Crash", "host": "Work", "adapter": "Service", "address": "//crash/Orders", "retry_policy": "soon", "filter": [[$IN]],
			"settings": {"from_service": "//crash/Sender"}},
		"Table": $TABLE
	}
}`

// table is the port that writes a row for each message, with the receive port by which it came.
const table = `{"application": "Crash", "host": "Work", "adapter": "PostgreSQL", "address": "local", "retry_policy": "soon",
	"filter": [[{"property": "ReceivePortName", "operator": "exists"}]],
	"settings": {"table": "public.taken", "columns": {"came_by": {"property": "ReceivePortName"}, "body": {"body": "text"}}}}`

type world struct {
	*testing.T
	server *postgres.Server
	folder string
	nodes  []*node
	random *rand.Rand
	killed map[string]int
	placed int
}

// Nodes are killed with signal 9, and the server is shut down at once, while orders come in and go out by all adapters. Each order comes
// out by each of them, once, and nothing is left. Then nodes are killed at the persistence points of orchestrations.
func TestOrdersComeOutOnceWhileNodesAndTheServerAreKilled(t *testing.T) {
	t.Parallel()
	seed, faults := uint64(1), []string{"Doors", "server", "Work"}
	if os.Getenv("PARLEY_TEST_LONG") != "" {
		seed = uint64(time.Now().UnixNano())
		for range 60 {
			faults = append(faults, []string{"Doors", "Work", "Work", "server"}[len(faults)*7%4])
		}
	}
	t.Logf("seed %d", seed)
	w := newWorld(t, seed)
	for _, fault := range faults {
		w.place(5)
		w.pause(500 * time.Millisecond)
		w.place(5)
		w.fail(fault)
		w.pause(500 * time.Millisecond)
	}
	w.place(5)
	w.judge()
	t.Logf("%d orders, killed %v", w.placed, w.killed)
	w.crashAtEachPoint()
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{T: t, folder: t.TempDir(), random: rand.New(rand.NewPCG(seed, seed)), killed: map[string]int{}}
	for _, folder := range []string{"in", "out", "made"} {
		if err := os.Mkdir(filepath.Join(w.folder, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.server = postgrestest.Supervised(t, map[string]string{"shared_buffers": "64MB", "max_connections": "150", "max_wal_size": "512MB"})
	if err := w.server.EnsureDatabase(t.Context(), "flow"); err != nil {
		t.Fatal(err)
	}
	conn := w.connect()
	defer conn.Close(context.Background())
	if err := schema.Install(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	web, wire := freeAddress(t), freeAddress(t)
	var role string
	if err := conn.QueryRow(t.Context(), "select current_user").Scan(&role); err != nil {
		t.Fatal(err)
	}
	document := strings.NewReplacer("$DIR", w.folder, "$WEB", web, "$WIRE", wire, "$ROLE", role, "$TABLE", table,
		"$IN", `{"property": "ReceivePortName", "operator": "=", "value": "In"}`).Replace(definitions)
	for _, statement := range []string{
		"create table public.orders (body text)", "create table public.taken (came_by text, body text)",
		"select parley.create_queue('crash_orders'), parley.create_queue('crash_sender')",
		`select parley.create_service('//crash/Orders', 'crash_orders', array['DEFAULT']), parley.create_service('//crash/Sender', 'crash_sender', array['DEFAULT'])`,
	} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	w.apply(conn, document)
	for name, host := range map[string]string{"door": "Doors", "one": "Work", "two": "Work"} {
		n := newNode(t, name, "--dsn", w.server.DSN("flow"), "--host", host, "--allow-folder", w.folder,
			"--allow-listen", web, "--allow-listen", wire, "--allow-connect", web, "--allow-connect", wire)
		n.start(t)
		w.nodes = append(w.nodes, n)
	}
	slices.SortFunc(w.nodes, func(a, b *node) int { return strings.Compare(a.name, b.name) })
	return w
}

// apply makes the engine know definitions.
func (w *world) apply(conn *pgx.Conn, document string) {
	w.Helper()
	if _, err := conn.Exec(w.Context(), "select parley_flow.apply($1::jsonb)", document); err != nil {
		if refusal, is := errors.AsType[*pgconn.PgError](err); is {
			err = fmt.Errorf("%w: %s", err, refusal.Detail)
		}
		w.Fatal(err)
	}
}

// freeAddress is one on loopback that nobody listens on.
func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// pause lets time pass as the distance of two faults, up to so long.
func (w *world) pause(most time.Duration) { <-time.After(time.Duration(w.random.Int64N(int64(most)))) }

// connect opens a session, waiting for the server while it is away.
func (w *world) connect() *pgx.Conn {
	w.Helper()
	for deadline := time.Now().Add(parleytest.Patience); ; {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		conn, err := pgx.Connect(ctx, w.server.DSN("flow"))
		cancel()
		if err == nil {
			return conn
		}
		if time.Now().After(deadline) {
			w.Fatalf("the database is not there: %v", err)
		}
		w.pause(50 * time.Millisecond)
	}
}

// place places so many orders as files, and as many as rows. A row whose commit is in doubt is asked for.
func (w *world) place(orders int) {
	w.Helper()
	for range orders {
		w.placed++
		name := strconv.Itoa(w.placed) + ".txt"
		made := filepath.Join(w.folder, "made", name)
		if err := os.WriteFile(made, []byte(fmt.Sprintf("order %d", w.placed)), 0o600); err != nil {
			w.Fatal(err)
		}
		if err := os.Rename(made, filepath.Join(w.folder, "in", name)); err != nil {
			w.Fatal(err)
		}
	}
	conn := w.connect()
	defer conn.Close(context.Background())
	for range orders {
		w.placed++
		if _, err := conn.Exec(w.Context(), "insert into public.orders values ($1)", fmt.Sprintf("order %d", w.placed)); err != nil {
			w.Fatal(err)
		}
	}
}

// fail kills a node of a host, which is started again, or shuts the server down at once, which its supervisor starts again.
func (w *world) fail(what string) {
	w.Helper()
	w.killed[what]++
	if what == "server" {
		text, err := os.ReadFile(filepath.Join(w.server.Folder(), "cluster", "postmaster.pid"))
		if err != nil {
			w.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.SplitN(string(text), "\n", 2)[0])
		if err != nil {
			w.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGQUIT); err != nil {
			w.Fatal(err)
		}
		return
	}
	of := slices.DeleteFunc(slices.Clone(w.nodes), func(n *node) bool { return (n.name == "door") != (what == "Doors") })
	n := of[w.random.IntN(len(of))]
	n.kill()
	w.pause(300 * time.Millisecond)
	n.start(w)
}

// came gives how often each order came out, by what it came out.
func (w *world) came(conn *pgx.Conn) (map[string]map[string]int, error) {
	came := map[string]map[string]int{"File": {}, "In": {}, "Web in": {}, "Wire in": {}, "Service in": {}}
	rows, err := conn.Query(w.Context(), "select came_by, body from public.taken")
	if err != nil {
		return nil, err
	}
	var by, body string
	if _, err := pgx.ForEachRow(rows, []any{&by, &body}, func() error {
		came[by][body]++
		return nil
	}); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(w.folder, "out", "*.txt"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		came["File"][string(content)]++
	}
	return came, nil
}

// judge waits until every order has come out by every adapter and nothing is left, and holds how often.
func (w *world) judge() {
	w.Helper()
	var came map[string]map[string]int
	var left int
	isDone := func() bool {
		conn := w.connect()
		defer conn.Close(context.Background())
		// Nodes may have died three times of one and the same message, by chance.
		if _, err := conn.Exec(w.Context(), "select parley_flow.resume_suspended('{\"code\": \"send.killed\"}')"); err != nil {
			return false
		}
		var err error
		if came, err = w.came(conn); err != nil {
			return false
		}
		err = conn.QueryRow(w.Context(), "select (select count(*) from parley_flow._p_message) + (select count(*) from public.orders)").Scan(&left)
		return err == nil && left == 0 && !slices.ContainsFunc(slices.Collect(maps.Values(came)), func(of map[string]int) bool { return len(of) < w.placed })
	}
	for deadline := time.Now().Add(parleytest.Patience); !isDone() && time.Now().Before(deadline); {
		<-time.After(100 * time.Millisecond)
	}
	if left > 0 {
		w.Errorf("%d messages are left", left)
	}
	for _, by := range slices.Sorted(maps.Keys(came)) {
		for n := range w.placed {
			if order := fmt.Sprintf("order %d", n+1); came[by][order] != 1 {
				w.Errorf("%s came %d times by %s", order, came[by][order], by)
			}
		}
	}
	if files, err := os.ReadDir(filepath.Join(w.folder, "in")); err != nil || len(files) > 0 {
		w.Errorf("%d files were not removed: %v", len(files), err)
	}
}
