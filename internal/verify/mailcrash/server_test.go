//go:build unix

package mailcrash_test

import (
	"context"
	"net/url"
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
	"github.com/parley-broker/parley/schema"
)

// database is that of the test, on a server that may be crashed: nobody else's.
type database struct {
	*postgres.Server
}

const databaseName = "mail"

// newDatabase starts a server that is started again whenever it is gone, and installs the schema in a database of it.
func newDatabase(t testing.TB) *database {
	t.Helper()
	server := postgrestest.Supervised(t, map[string]string{
		"shared_buffers": "64MB", "max_connections": "100", "max_wal_size": "512MB",
	})
	t.Cleanup(func() {
		if text, err := os.ReadFile(filepath.Join(server.Folder(), "server.log")); err == nil && t.Failed() {
			keep(t, "server.log", text)
		}
	})
	if err := server.EnsureDatabase(t.Context(), databaseName); err != nil {
		t.Fatal(err)
	}
	d := &database{Server: server}
	conn := d.connect(t)
	defer conn.Close(context.Background())
	if err := schema.Install(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	return d
}

// dsn is the connection string for a role; "" is the owner.
func (d *database) dsn(role string) string {
	at, err := url.Parse(d.DSN(databaseName))
	if err != nil {
		panic(err)
	}
	if role != "" {
		at.User = url.User(role)
	}
	return at.String()
}

// connect opens a session as the owner, waiting for the server while it is away.
func (d *database) connect(t testing.TB) *pgx.Conn {
	t.Helper()
	var conn *pgx.Conn
	await(t, "the database", func() bool {
		var err error
		conn, err = d.tryConnect("")
		return err == nil
	})
	return conn
}

func (d *database) tryConnect(role string) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return pgx.Connect(ctx, d.dsn(role))
}

// postmaster gives the number of the server's first process, 0 when there is none.
func (d *database) postmaster() int {
	text, err := os.ReadFile(filepath.Join(d.Folder(), "cluster", "postmaster.pid"))
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.SplitN(string(text), "\n", 2)[0])
	return pid
}

// crash stops the whole server on the spot, without a checkpoint. It is started again by who supervises it.
func (d *database) crash() bool {
	pid := d.postmaster()
	return pid != 0 && syscall.Kill(pid, syscall.SIGQUIT) == nil
}

// backends are the processes of some sessions of the daemons.
func (d *database) backends() (pids []int) {
	conn, err := d.tryConnect("")
	if err != nil {
		return nil
	}
	defer conn.Close(context.Background())
	rows, err := conn.Query(context.Background(), `
		select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid() order by pid`)
	if err != nil {
		return nil
	}
	pids, _ = pgx.CollectRows(rows, pgx.RowTo[int])
	return pids
}

// answers is whether the database takes a commit.
func (d *database) answers() bool {
	conn, err := d.tryConnect("")
	if err != nil {
		return false
	}
	defer conn.Close(context.Background())
	_, err = conn.Exec(context.Background(), "select pg_current_xact_id()")
	return err == nil
}
