package examples_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/postgres"
	"github.com/parley-broker/parley/parleytest"
)

// The programs of a README work on these queues. Their ledger has no unique constraint, so that work that is done twice shows.
const nemesisTables = `
	select parley.create_queue(queue, kind => 'SIMPLE', retry => '{"first": "50 ms", "longest": "200 ms", "attempts": 100}')
	from unnest(array['pictures', 'films']) as queue;
	select parley.alter_queue('warehouse_queue', retry => '{"first": "50 ms", "longest": "200 ms", "attempts": 100}');
	alter table parcels drop constraint parcels_pkey;
	create table resized (picture text);
	create table rendered (film text)`

// A round kills all programs, then the pooler and all sessions, then the server. The long form has more of them.
func rounds() int {
	if os.Getenv("PARLEY_TEST_LONG") != "" {
		return 15
	}
	return 1
}

// losesNothing runs the programs of the README, half of them through PgBouncer and after each kill the other half, while jobs come in and
// everything that can die does.
func (w *workspace) losesNothing(t *testing.T, c client, folder string) {
	if _, err := w.db.Exec(t.Context(), nemesisTables); err != nil {
		t.Fatal(err)
	}
	server, err := start()
	if err != nil {
		t.Fatal(err)
	}
	pooler := startPooler(t, server)
	var running []*worker
	names := c.programs
	if names == nil {
		names = programs(t, filepath.Join(folder, "README.md"), folder)
	}
	for number, name := range names {
		if name == withoutServer {
			continue
		}
		one := &worker{
			command: c.program(w.cache, folder, name), folder: folder, environment: w.environment,
			other: pooler.environment(w.environment, c.pooled),
		}
		if number%2 == 1 {
			one.goTheOtherWay()
		}
		one.start(t)
		running = append(running, one)
	}
	if len(running) < 3 {
		t.Fatalf("there are %d programs", len(running))
	}
	t.Cleanup(func() {
		for _, one := range running {
			one.kill()
		}
	})
	load := startLoad(t, w.environment)
	for range rounds() {
		load.goOn(t)
		for _, one := range running {
			one.kill()
			one.goTheOtherWay()
			one.start(t)
		}
		load.goOn(t)
		pooler.restart(t)
		load.mayFail(t, "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()")
		load.goOn(t)
		crash(t, load)
		load.goOn(t)
	}
	jobs := load.end(t)
	t.Logf("%d jobs of each kind in %d rounds", jobs, rounds())
	for _, ledger := range []string{"resized", "parcels", "rendered"} {
		column := map[string]string{"resized": "picture", "parcels": "order_id", "rendered": "film"}[ledger]
		parleytest.Until(t, fmt.Sprintf("all of %d jobs are in %s", jobs, ledger), func() bool {
			return load.count(t, "select count(distinct "+column+") from "+ledger) == jobs
		})
	}
	for _, one := range running {
		one.stop(t)
	}
	for _, ledger := range []string{"resized", "parcels", "rendered"} {
		if done := load.count(t, "select count(*) from "+ledger); done != jobs {
			t.Errorf("%d rows in %s for %d jobs: something was done twice", done, ledger, jobs)
		}
	}
	if answers := load.count(t, "select count(*) from parley_queue.shop_queue where message_type_name = 'DEFAULT'"); answers != jobs {
		t.Errorf("%d answers to %d orders", answers, jobs)
	}
}

// worker is a program that runs until it is stopped or killed.
type worker struct {
	command     []string
	folder      string
	environment []string
	other       []string // by which it reaches the database after it was killed
	cmd         *exec.Cmd
	output      *strings.Builder
}

func (w *worker) goTheOtherWay() { w.environment, w.other = w.other, w.environment }

func (w *worker) start(t *testing.T) {
	t.Helper()
	w.output = &strings.Builder{}
	w.cmd = exec.Command(w.command[0], w.command[1:]...)
	w.cmd.Dir, w.cmd.Env = w.folder, append(os.Environ(), w.environment...)
	w.cmd.Stdout, w.cmd.Stderr = w.output, w.output
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

func (w *worker) kill() {
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
}

// stop asks the program to end, which it does by itself and without an error.
func (w *worker) stop(t *testing.T) {
	t.Helper()
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("%v: %v\n%s", w.command, err, w.output)
	}
	asked := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- w.cmd.Wait() }()
	// A JVM reports the signal though its program has ended by itself.
	const ofSIGTERM = 128 + int(syscall.SIGTERM)
	if err := parleytest.Receive(t, ended, "the end of the program"); err != nil && w.cmd.ProcessState.ExitCode() != ofSIGTERM {
		t.Errorf("%v ends with %v:\n%s", w.command, err, w.output)
	}
	// Its handlers have nothing to do.
	const graceTime = 30 * time.Second
	if took := time.Since(asked); took >= graceTime {
		t.Errorf("%v takes %s to end, as long as handlers have that do not finish", w.command, took)
	}
}

// load puts jobs with deduplication keys, so that each is there once however often it had to be tried.
type load struct {
	pool  *pgxpool.Pool
	stop  context.CancelFunc
	ended sync.WaitGroup
	mu    sync.Mutex
	jobs  int
}

func startLoad(t *testing.T, environment []string) *load {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), strings.TrimPrefix(environment[0], "DATABASE_URL="))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	ctx, stop := context.WithCancel(t.Context())
	l := &load{pool: pool, stop: stop}
	l.ended.Go(func() {
		pace := time.NewTicker(20 * time.Millisecond)
		defer pace.Stop()
		for job := 1; ctx.Err() == nil; job++ {
			for l.put(job) != nil {
				<-pace.C
			}
			l.mu.Lock()
			l.jobs = job
			l.mu.Unlock()
			<-pace.C
		}
	})
	t.Cleanup(func() { stop(); l.ended.Wait() })
	return l
}

func (l *load) put(job int) error {
	ctx, cancel := context.WithTimeout(context.Background(), parleytest.Patience)
	defer cancel()
	_, err := l.pool.Exec(ctx, `
		select parley.put('pictures', $1::text, deduplication_key => $1), parley.put('films', $1::text, deduplication_key => $1),
			parley.begin_and_send('shop', 'warehouse', 'DEFAULT', $1::text, deduplication_key => $1)`, fmt.Sprint(job))
	return err
}

func (l *load) done() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.jobs
}

// goOn waits until jobs have come in and some of each kind were done since.
func (l *load) goOn(t *testing.T) {
	t.Helper()
	const ledger = "select least((select count(*) from resized), (select count(*) from parcels), (select count(*) from rendered))"
	jobs, done := l.done(), l.count(t, ledger)
	parleytest.Until(t, "jobs are put and done", func() bool { return l.done() > jobs+5 && l.count(t, ledger) > done+5 })
}

func (l *load) end(t *testing.T) int {
	t.Helper()
	l.stop()
	l.ended.Wait()
	return l.done()
}

// count asks, again where the server is away.
func (l *load) count(t *testing.T, query string) (n int) {
	t.Helper()
	parleytest.Until(t, query, func() bool { return l.pool.QueryRow(t.Context(), query).Scan(&n) == nil })
	return n
}

func (l *load) mayFail(t *testing.T, statement string) {
	t.Helper()
	_, _ = l.pool.Exec(t.Context(), statement)
}

// crash kills a session of the server, so that the server ends all of them and recovers.
func crash(t *testing.T, l *load) {
	t.Helper()
	parleytest.Until(t, "a session is killed", func() bool {
		var pid int
		if l.pool.QueryRow(t.Context(), "select pg_backend_pid()").Scan(&pid) != nil {
			return false
		}
		return syscall.Kill(pid, syscall.SIGKILL) == nil
	})
}

// pooler is a PgBouncer in transaction mode that listens on TCP.
type pooler struct {
	server  *postgres.Server
	folder  string
	port    int
	cmd     *exec.Cmd
	program string
}

const poolerConfig = `[databases]
* = host=%[1]s port=%[2]d user=postgres

[pgbouncer]
pool_mode = transaction
auth_type = any
listen_addr = 127.0.0.1
listen_port = %[3]d
unix_socket_dir =
logfile = %[4]s/log
ignore_startup_parameters = extra_float_digits
server_login_retry = 1
`

func startPooler(t *testing.T, server *postgres.Server) *pooler {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/pgbouncer")
	}
	if err != nil {
		t.Fatal(errors.Join(errors.New("install PgBouncer"), err))
	}
	p := &pooler{server: server, folder: t.TempDir(), port: freePort(t), program: program}
	text := fmt.Sprintf(poolerConfig, server.SocketFolder(), server.Port(), p.port, p.folder)
	if err := os.WriteFile(filepath.Join(p.folder, "pgbouncer.ini"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	openTo(t, p.folder)
	if err := server.Own(p.folder); err != nil {
		t.Fatal(err)
	}
	p.start(t)
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	return p
}

func (p *pooler) start(t *testing.T) {
	t.Helper()
	p.cmd = p.server.Command(p.program, "-q", filepath.Join(p.folder, "pgbouncer.ini"))
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	parleytest.Until(t, "PgBouncer lets clients through", func() bool {
		conn, err := pgx.Connect(t.Context(), fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?default_query_exec_mode=exec", p.port))
		if err != nil {
			return false
		}
		return conn.Close(t.Context()) == nil
	})
}

func (p *pooler) restart(t *testing.T) {
	t.Helper()
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	p.start(t)
}

// environment is that of a program whose database is behind the pooler, with something added to its DSN.
func (p *pooler) environment(direct []string, added string) []string {
	parsed, err := url.Parse(strings.TrimPrefix(direct[0], "DATABASE_URL="))
	if err != nil {
		panic(err)
	}
	parsed.Host = fmt.Sprintf("127.0.0.1:%d", p.port)
	password, _ := parsed.User.Password()
	query := url.Values{"user": {parsed.User.Username()}, "password": {password}}
	if added != "" {
		parsed.RawQuery = added
	}
	return []string{"DATABASE_URL=" + parsed.String(), "JDBC_URL=jdbc:postgresql://" + parsed.Host + parsed.Path + "?" + query.Encode()}
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// openTo lets PostgreSQL's user into a folder of a test and into those that it is in.
func openTo(t *testing.T, folder string) {
	t.Helper()
	for ; strings.HasPrefix(folder, os.TempDir()+"/"); folder = filepath.Dir(folder) {
		if err := os.Chmod(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
