package parleytest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/parleytest"
)

// More clients than server sessions, all inside the test at once, can only mean that they share.
func TestPgBouncerSharesServerSessionsBetweenClients(t *testing.T) {
	t.Parallel()
	dsn := parleytest.PgBouncer(t, parleytest.EmptyDatabase(t))
	backends := map[uint32]bool{}
	const clients = 30
	for range clients {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		var backend uint32
		if err := conn.QueryRow(t.Context(), "select pg_backend_pid() + $1::int", 0).Scan(&backend); err != nil {
			t.Fatal(err)
		}
		backends[backend] = true
	}
	if len(backends) >= clients {
		t.Errorf("%d clients use %d server sessions", clients, len(backends))
	}
}
