package parleytest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// requireVariable makes a missing pgbouncer a failure, for CI.
	requireVariable = "PARLEY_TEST_REQUIRE_PGBOUNCER"

	// pgbouncerPort names the pooler's socket; it listens on no network.
	pgbouncerPort = 6432

	pgbouncerPoll = 20 * time.Millisecond
)

// In transaction mode each transaction may run on another of the few server sessions.
const pgbouncerConfig = `[databases]
* = host=%[1]s port=%[2]d user=postgres

[pgbouncer]
pool_mode = transaction
default_pool_size = 8
max_client_conn = 1000
auth_type = any
listen_addr =
listen_port = %[3]d
unix_socket_dir = %[4]s
logfile = %[4]s/log
ignore_startup_parameters = extra_float_digits
%[5]s
`

// The shell's input ends with this process, however that ends; then the shell ends the pooler and clears up.
const pgbouncerScript = `"$0" -q "$1" <&- & pooler=$!; read -r _; kill "$pooler"; wait "$pooler"; rm -r "${1%/*}"`

// PgBouncer starts a PgBouncer in transaction mode before a pool's database and returns the DSN that leads
// through it. The DSN is for pgx, which it keeps from preparing statements. The pooler ends with the test.
// Settings are further lines of the pooler's configuration, such as "pool_mode = session".
//
// Where PgBouncer is not installed the test is skipped, or fails if PARLEY_TEST_REQUIRE_PGBOUNCER is set.
func PgBouncer(t testing.TB, pool *pgxpool.Pool, settings ...string) string {
	t.Helper()
	program := findPgBouncer()
	if program == "" {
		if os.Getenv(requireVariable) != "" {
			t.Fatalf("parleytest: pgbouncer is not installed and %s is set", requireVariable)
		}
		t.Skip("pgbouncer is not installed")
	}
	process := joinServer(t)
	dsn, stop, err := process.startPgBouncer(t.Context(), program, pool.Config().ConnConfig.Database, settings)
	if err != nil {
		t.Fatalf("parleytest: %v", err)
	}
	t.Cleanup(stop)
	return dsn
}

// findPgBouncer searches the PATH and where Debian puts it, which is on the PATH of root only.
func findPgBouncer() string {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if program, err := exec.LookPath(name); err == nil {
			return program
		}
	}
	return ""
}

func (r *testProcess) startPgBouncer(
	ctx context.Context, program, database string, settings []string,
) (dsn string, stop func(), err error) {
	// Not the test's own folder: its path may be too long for a socket, and closed to the server's user.
	folder, err := os.MkdirTemp("", "parley-pgbouncer-")
	if err != nil {
		return "", nil, fmt.Errorf("make a folder for pgbouncer: %w", err)
	}
	stop = func() { _ = os.RemoveAll(folder) }
	defer func() {
		if err != nil {
			stop()
		}
	}()
	config := filepath.Join(folder, "pgbouncer.ini")
	text := fmt.Sprintf(pgbouncerConfig, r.server.SocketFolder(), r.server.Port(), pgbouncerPort, folder, strings.Join(settings, "\n"))
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return "", nil, fmt.Errorf("write the configuration of pgbouncer: %w", err)
	}
	if err := r.server.Own(folder); err != nil {
		return "", nil, err
	}

	cmd := r.server.Command("/bin/sh", "-c", pgbouncerScript, program, config)
	input, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, fmt.Errorf("start pgbouncer: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("start pgbouncer: %w", err)
	}
	stop = func() {
		_ = input.Close()
		_ = cmd.Wait()
	}
	dsn = (&url.URL{
		Scheme: "postgres",
		User:   url.User("postgres"),
		Path:   "/" + database,
		RawQuery: url.Values{
			"host":                    {folder},
			"port":                    {fmt.Sprint(pgbouncerPort)},
			"default_query_exec_mode": {"exec"},
		}.Encode(),
	}).String()
	return dsn, stop, awaitPgBouncer(ctx, dsn, filepath.Join(folder, "log"))
}

// awaitPgBouncer waits until the pooler lets a client through.
func awaitPgBouncer(ctx context.Context, dsn, log string) error {
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, dsn)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			text, _ := os.ReadFile(log)
			return fmt.Errorf("pgbouncer lets nobody through: %w; its log: %s", err, text)
		case <-time.After(pgbouncerPoll):
		}
	}
}
