package parleytest

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/postgres"
)

const (
	// versionVariable chooses the major version of PostgreSQL for a test run, such as 15 or 18.
	versionVariable = "PARLEY_TEST_POSTGRES"

	// folderVariable moves the test servers out of the cache folder, into memory for instance: each test makes and drops
	// a database of a thousand files, and ext4, which does not reuse their numbers for a while, slows down with that.
	folderVariable = "PARLEY_TEST_FOLDER"

	// linger bridges the time in which go test builds the next package.
	linger = 20 * time.Second

	// setupTimeout is for the slowest first run: a download and a new cluster.
	setupTimeout = 10 * time.Minute
)

// testProcess is this process's share of the test server.
type testProcess struct {
	server *postgres.Server
	// number is in the names of this run's databases. While the run lives it holds the advisory lock of that
	// number, so that later processes can distinguish its databases from those left behind.
	number int32
	guard  *pgx.Conn
	idle   connections
}

var joinOnce = sync.OnceValues(func() (*testProcess, error) {
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	return join(ctx)
})

// join gives the test its server, started if need be. It is never stopped by hand: when the process ends, so
// does its hold on the server, which then stops by itself.
func joinServer(t testing.TB) *testProcess {
	t.Helper()
	process, err := joinOnce()
	if err != nil {
		t.Fatalf("parleytest: %v", err)
	}
	return process
}

func join(ctx context.Context) (*testProcess, error) {
	version := os.Getenv(versionVariable)
	folder, err := serverFolder(os.Getenv(folderVariable))
	if err != nil {
		return nil, err
	}
	server, err := postgres.Start(ctx, postgres.Config{
		Data:       filepath.Join(folder, "test"+version),
		Version:    version,
		Disposable: true,
		Linger:     linger,
		Settings: map[string]string{
			// Only processes die, and the page cache outlives them.
			"fsync":            "off",
			"full_page_writes": "off",
			"wal_compression":  "off",
			// Compiling a query takes longer than what it does to a test's few rows.
			"jit":             "off",
			"shared_buffers":  "256MB",
			"max_wal_size":    "1GB",
			"max_connections": "500",
			"log_checkpoints": "off",
			// By default there are none, and what is stated of them would go untested.
			"max_prepared_transactions": "50",
		},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return nil, fmt.Errorf("start the test server: %w", err)
	}
	process := &testProcess{server: server}
	if process.guard, err = pgx.Connect(ctx, server.DSN("postgres")); err != nil {
		return nil, fmt.Errorf("connect to the test server: %w", err)
	}
	if err := process.takeNumber(ctx); err != nil {
		return nil, err
	}
	return process, process.sweep(ctx)
}

// serverFolder is where the test servers live. Tests of each package run in a folder of their own, so a relative path would be
// another one for each of them.
func serverFolder(named string) (string, error) {
	switch {
	case named == "":
		return postgres.CacheFolder()
	case !filepath.IsAbs(named):
		return "", fmt.Errorf("%s is %q, which is no full path: each package would have a server of its own; write it from the root on",
			folderVariable, named)
	}
	return named, nil
}

// lockClass is the first half of the keys of this package's advisory locks.
const lockClass = 0x7061726c

// Second halves below firstNumber have a meaning of their own, those above are runs.
const (
	sweepLock    = 1
	templateLock = 2
	firstNumber  = 1000
)

func (r *testProcess) takeNumber(ctx context.Context) error {
	for {
		r.number = firstNumber + rand.Int32N(1<<30)
		taken, err := tryLock(ctx, r.guard, r.number)
		if err != nil {
			return fmt.Errorf("number the test run: %w", err)
		}
		if taken {
			return nil
		}
	}
}

func tryLock(ctx context.Context, conn *pgx.Conn, key int32) (taken bool, err error) {
	err = conn.QueryRow(ctx, "select pg_try_advisory_lock($1, $2)", lockClass, key).Scan(&taken)
	return taken, err
}

// sweep drops the databases of runs that did not end well.
func (r *testProcess) sweep(ctx context.Context) error {
	alone, err := tryLock(ctx, r.guard, sweepLock)
	if err != nil || !alone {
		return err
	}
	rows, err := r.guard.Query(ctx, `
		select datname
		from pg_database
		where datname ~ '^parley_test_[0-9]+_'
			and not exists (
				select from pg_locks
				where locktype = 'advisory' and classid = $1 and objid = split_part(datname, '_', 3)::oid)`, lockClass)
	if err != nil {
		return fmt.Errorf("find databases left behind: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("find databases left behind: %w", err)
	}
	for _, name := range names {
		if err := r.dropWithPrepared(ctx, r.guard, name); err != nil {
			return err
		}
	}
	if _, err := r.guard.Exec(ctx, "select pg_advisory_unlock($1, $2)", lockClass, sweepLock); err != nil {
		return fmt.Errorf("end the sweep: %w", err)
	}
	return nil
}

// dropWithPrepared drops a database of a test. A transaction that the test prepared and did not finish outlives its session
// and the server, and FORCE does not end it: it is rolled back first, which only a session in its database can do.
func (r *testProcess) dropWithPrepared(ctx context.Context, conn *pgx.Conn, name string) error {
	rows, err := conn.Query(ctx, "select gid from pg_prepared_xacts where database = $1", name)
	if err != nil {
		return fmt.Errorf("find prepared transactions in %s: %w", name, err)
	}
	prepared, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("find prepared transactions in %s: %w", name, err)
	}
	if len(prepared) > 0 {
		if err := r.rollBackPrepared(ctx, name, prepared); err != nil {
			return err
		}
	}
	return dropDatabase(ctx, conn, name)
}

func (r *testProcess) rollBackPrepared(ctx context.Context, database string, prepared []string) error {
	conn, err := pgx.Connect(ctx, r.server.DSN(database))
	if err != nil {
		return fmt.Errorf("connect to %s, which has prepared transactions: %w", database, err)
	}
	defer conn.Close(ctx)
	for _, gid := range prepared {
		if _, err := conn.Exec(ctx, "rollback prepared '"+strings.ReplaceAll(gid, "'", "''")+"'"); err != nil {
			return fmt.Errorf("roll back prepared transaction %s: %w", gid, err)
		}
	}
	return nil
}

func dropDatabase(ctx context.Context, conn *pgx.Conn, name string) error {
	if _, err := conn.Exec(ctx, "drop database if exists "+pgx.Identifier{name}.Sanitize()+" with (force)"); err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	return nil
}
