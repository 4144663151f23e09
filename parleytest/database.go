// Package parleytest gives tests a real PostgreSQL: one private server for a whole test run, shared by all
// packages, and a fresh database for each test.
//
// Nothing has to be set up. The environment variable PARLEY_TEST_POSTGRES chooses the major version ("15",
// "18"); it is fetched if it is not installed. The server stops by itself soon after the last test process.
package parleytest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/operate"
)

const (
	// poolConnections lets a test have many sessions at once.
	poolConnections = 32
	// releaseTimeout is how long a test's connections may stay in use after the test.
	releaseTimeout = 2 * time.Minute
)

var databases atomic.Int64

// Database creates a database with the schema parley installed and returns a pool of connections to it, as
// superuser. The database is dropped when the test ends.
func Database(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool := newDatabase(t, func(ctx context.Context, process *testProcess, conn *pgx.Conn, name string) error {
		template := templateName()
		for {
			if err := process.ensureTemplate(ctx, conn, template); err != nil {
				return err
			}
			err := createDatabase(ctx, conn, name, template)
			// A run with another schema may have pruned the template just now.
			var pgErr *pgconn.PgError
			if errors.As(err, &pgErr) && pgErr.Code == "3D000" {
				continue
			}
			return err
		}
	})
	// A copy of the template is a broker of its own.
	if _, err := operate.NewBroker(t.Context(), pool); err != nil {
		t.Fatalf("parleytest: %v", err)
	}
	return pool
}

// EmptyDatabase is [Database] without the schema.
func EmptyDatabase(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return newDatabase(t, func(ctx context.Context, _ *testProcess, conn *pgx.Conn, name string) error {
		return createDatabase(ctx, conn, name, "template0")
	})
}

// DSN returns the connection string of a pool's database, for programs that connect by themselves.
func DSN(t testing.TB, pool *pgxpool.Pool) string {
	t.Helper()
	return pool.Config().ConnString()
}

func newDatabase(t testing.TB, create func(context.Context, *testProcess, *pgx.Conn, string) error) *pgxpool.Pool {
	t.Helper()
	process := joinServer(t)
	name := fmt.Sprintf("parley_test_%d_%d", process.number, databases.Add(1))
	err := process.administer(t.Context(), func(ctx context.Context, conn *pgx.Conn) error {
		if err := create(ctx, process, conn, name); err != nil {
			return err
		}
		return changeWanted(ctx, conn, name)
	})
	if err != nil {
		t.Fatalf("parleytest: %v", err)
	}
	t.Cleanup(func() {
		err := process.administer(context.Background(), func(ctx context.Context, conn *pgx.Conn) error {
			return process.dropWithPrepared(ctx, conn, name)
		})
		if err != nil {
			t.Errorf("parleytest: %v", err)
		}
	})

	// The test's name identifies its sessions, in pg_stat_activity and in the server's log.
	config, err := pgxpool.ParseConfig(process.server.DSN(name) + "&application_name=" + url.QueryEscape(clip(t.Name(), 60)))
	if err != nil {
		t.Fatalf("parleytest: %v", err)
	}
	config.MaxConns = poolConnections
	// Not in the connection string: the programs that get it wait as they do for users.
	config.ConnConfig.RuntimeParams["statement_timeout"] = strconv.FormatInt(Patience.Milliseconds(), 10)
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatalf("parleytest: %v", err)
	}
	t.Cleanup(func() { closePool(t, pool) })
	return pool
}

// closePool closes a pool, which waits for connections in use: a test that forgot one must fail, not hang.
func closePool(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	closed := make(chan struct{})
	go func() {
		pool.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(releaseTimeout):
		t.Errorf("parleytest: %d connections of the pool are still in use after the test", pool.Stat().AcquiredConns())
	}
}

// administer runs work on a connection to the maintenance database. Connections are kept for the tests that come: to open them takes a
// tenth of what a database costs.
func (r *testProcess) administer(ctx context.Context, work func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	conn := r.idle.take()
	if conn == nil || conn.Ping(ctx) != nil {
		var err error
		if conn, err = pgx.Connect(ctx, r.server.DSN("postgres")); err != nil {
			return fmt.Errorf("connect to the test server: %w", err)
		}
	}
	defer r.idle.keep(conn)
	return work(ctx, conn)
}

// connections are those that nobody uses.
type connections struct {
	mu   sync.Mutex
	open []*pgx.Conn
}

func (c *connections) take() *pgx.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) == 0 {
		return nil
	}
	last := len(c.open) - 1
	conn := c.open[last]
	c.open = c.open[:last]
	return conn
}

// keep keeps a connection, unless it was closed because its work was cut short.
func (c *connections) keep(conn *pgx.Conn) {
	if conn.IsClosed() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = append(c.open, conn)
}

// clip cuts a text to a number of bytes, as PostgreSQL would do with a warning.
func clip(text string, bytesMax int) string {
	return text[:min(len(text), bytesMax)]
}
