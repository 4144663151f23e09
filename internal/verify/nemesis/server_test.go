//go:build unix

package nemesis_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/postgres"
	"github.com/parley-broker/parley/internal/postgres/postgrestest"
	"github.com/parley-broker/parley/internal/verify/ledger"
	"github.com/parley-broker/parley/schema"
)

// server is a private PostgreSQL that a test may stop, crash, copy and promote: nobody else's.
type server struct {
	*postgres.Server
	name   string
	config postgres.Config

	supervised chan error
	cancel     context.CancelFunc
}

// newServer starts an empty server.
func newServer(t testing.TB, name string) *server {
	t.Helper()
	return startServer(t, name, postgrestest.Folder(t))
}

// startServer starts the server of a folder, a new one or a copy.
func startServer(t testing.TB, name, folder string) *server {
	t.Helper()
	s := &server{name: name, config: postgres.Config{
		Data: folder,
		Settings: map[string]string{
			"shared_buffers":   "32MB",
			"max_connections":  "100",
			"fsync":            "off", // only processes die, and the page cache outlives them
			"wal_level":        "replica",
			"wal_keep_size":    "256MB",
			"max_wal_size":     "256MB",
			"min_wal_size":     "32MB",
			"log_statement":    "none",
			"wal_log_hints":    "on",
			"wal_compression":  "off",
			"hot_standby":      "on",
			"log_min_messages": "warning",
		},
	}}
	s.Server = postgrestest.Start(t, s.config)
	s.supervise()
	t.Cleanup(func() {
		if err := s.unsupervise(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			keepLog(t, name, filepath.Join(folder, "server.log"))
		}
	})
	return s
}

// supervise keeps the server running from now on: whenever it is gone it is started again.
func (s *server) supervise() {
	if s.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel, s.supervised = cancel, make(chan error, 1)
	go func() { s.supervised <- s.Supervise(ctx) }()
}

func (s *server) unsupervise() error {
	if s.cancel == nil {
		return nil
	}
	s.cancel()
	s.cancel = nil
	return <-s.supervised
}

// postmaster gives the number of the server's first process, 0 when there is none.
func (s *server) postmaster() int {
	text, err := os.ReadFile(filepath.Join(s.Folder(), "cluster", "postmaster.pid"))
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.SplitN(string(text), "\n", 2)[0])
	return pid
}

// stopImmediately stops the server on the spot, without a checkpoint, and leaves it so.
func (s *server) stopImmediately(t testing.TB) {
	t.Helper()
	if err := s.unsupervise(); err != nil {
		t.Error(err)
	}
	pid := s.postmaster()
	if pid == 0 {
		return
	}
	_ = syscall.Kill(pid, syscall.SIGQUIT)
	await(t, s.name+" is down", func() bool { return s.postmaster() == 0 || syscall.Kill(pid, 0) != nil })
}

// startAgain starts a server that was stopped, and waits until it takes connections.
func (s *server) startAgain(t testing.TB) {
	t.Helper()
	s.supervise()
	await(t, s.name+" is up", func() bool {
		conn, err := pgx.Connect(context.Background(), s.DSN("postgres"))
		if err == nil {
			_ = conn.Close(context.Background())
		}
		return err == nil
	})
}

// administer runs statements in the database postgres, each by itself.
func (s *server) administer(t testing.TB, statements ...string) {
	t.Helper()
	conn := connect(t, s.DSN("postgres"))
	defer conn.Close(context.Background())
	for _, statement := range statements {
		must(t, conn, statement)
	}
}

// promote makes a standby a primary.
func (s *server) promote(t testing.TB) {
	t.Helper()
	s.administer(t, "select pg_promote()")
	await(t, s.name+" is promoted", func() bool {
		conn := connect(t, s.DSN("postgres"))
		defer conn.Close(context.Background())
		return !ask[bool](t, conn, "select pg_is_in_recovery()")
	})
}

// createDatabase creates a database with the schema, the ledger and two queues.
func (s *server) createDatabase(t testing.TB, name string) {
	t.Helper()
	s.administer(t, "create database "+name)
	conn := connect(t, s.DSN(name))
	defer conn.Close(context.Background())
	if err := schema.Install(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	prepare(t, conn)
}

// prepare creates two queues and the ledger in a database that has the schema.
func prepare(t testing.TB, conn *pgx.Conn) {
	t.Helper()
	for _, queue := range []string{"initiator_queue", "target_queue"} {
		must(t, conn, "select parley.create_queue($1, poison_message_handling => false)", queue)
	}
	if err := ledger.Install(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
}

func connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := tryConnect(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func tryConnect(dsn string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["statement_timeout"] = fmt.Sprint(patience.Milliseconds())
	config.RuntimeParams["jit"] = "off" // it would cost more than the statements themselves
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return pgx.ConnectConfig(ctx, config)
}

func must(t testing.TB, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(context.Background(), sql, args...); err != nil {
		t.Fatalf("%s %v: %v", sql, args, err)
	}
}

// ask returns the one value of a query.
func ask[T any](t testing.TB, conn *pgx.Conn, sql string, args ...any) T {
	t.Helper()
	value, err := tryAsk[T](conn, sql, args...)
	if err != nil {
		t.Fatalf("%s %v: %v", sql, args, err)
	}
	return value
}

func tryAsk[T any](conn *pgx.Conn, sql string, args ...any) (value T, err error) {
	err = conn.QueryRow(context.Background(), sql, args...).Scan(&value)
	return value, err
}

// await waits for a state.
func await(t testing.TB, what string, reached func() bool) {
	t.Helper()
	if !awaitFor(patience, reached) {
		t.Fatalf("waited in vain: %s", what)
	}
}

// awaitFor reports whether a state is reached in time. It asks less often the longer it waits, as what it waits for needs the processor.
func awaitFor(limit time.Duration, reached func() bool) bool {
	for began := time.Now(); !reached(); {
		waited := time.Since(began)
		if waited > limit {
			return false
		}
		pause(min(max(20*time.Millisecond, waited/10), 200*time.Millisecond))
	}
	return true
}

// pause lets time pass between two polls, or as the length of a fault.
func pause(d time.Duration) { <-time.After(d) }
