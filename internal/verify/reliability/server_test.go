//go:build unix

package reliability_test

import (
	"context"
	"fmt"
	"maps"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/postgres"
	"github.com/parley-broker/parley/internal/postgres/postgrestest"
	"github.com/parley-broker/parley/operate"
	"github.com/parley-broker/parley/schema"
)

// ownServer is a server that a test may crash: nobody else's.
type ownServer struct {
	*postgres.Server
	databases int
}

// newOwnServer starts a server, with settings besides the usual ones, that is started again whenever it is gone.
func newOwnServer(t *testing.T, settings ...map[string]string) *ownServer {
	t.Helper()
	all := map[string]string{"max_prepared_transactions": "10"}
	for _, some := range settings {
		maps.Copy(all, some)
	}
	return &ownServer{Server: postgrestest.Supervised(t, all)}
}

// fixture creates a database with the schema on the server. Only the first is installed; the others are copies of it as it was then.
func (o *ownServer) fixture(t testing.TB) *fixture {
	t.Helper()
	const installed = "broker_template"
	maintenance, err := connect(t, o.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer maintenance.close()
	if o.databases == 0 {
		maintenance.exec("create database " + installed)
		o.in(t, installed, schema.Install)
	}
	o.databases++
	name := fmt.Sprint("broker_", o.databases)
	maintenance.exec("create database " + name + " template " + installed)
	// A copy is a broker of its own.
	o.in(t, name, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := operate.NewBroker(ctx, conn)
		return err
	})
	return prepareFixture(t, o.DSN(name))
}

// in runs work on a connection to a database of the server.
func (o *ownServer) in(t testing.TB, database string, work func(context.Context, *pgx.Conn) error) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), o.DSN(database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := work(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
}

// killBackend kills a session's process as the kernel would when memory runs out. The server restarts itself.
func (o *ownServer) killBackend(t testing.TB, b *fixture, s *session) {
	t.Helper()
	if err := syscall.Kill(int(s.pid), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	o.comeBack(t, b)
}

// killServer stops the whole server on the spot, without a checkpoint, and waits until it is started again.
func (o *ownServer) killServer(t testing.TB, b *fixture) {
	t.Helper()
	pid := ask[int](b.admin, "select split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::int")
	if err := syscall.Kill(pid, syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	o.comeBack(t, b)
}

// comeBack waits until the server has lost all its sessions and accepts new ones.
func (*ownServer) comeBack(t testing.TB, b *fixture) {
	t.Helper()
	b.await(t, func() bool { return b.admin.try("select 1") != nil })
	b.await(t, func() bool {
		s, err := connect(t, b.dsn)
		if err == nil {
			b.admin = s
		}
		return err == nil
	})
}
