package parley_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/parleytest"
)

// asRole opens a connection that acts as another role.
func asRole(t *testing.T, config *pgx.ConnConfig, role string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	if _, err := conn.Exec(t.Context(), "set session authorization "+role); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestWhoIsNotTheOwnerLearnsWhoIs(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	conn := asRole(t, pool.Config().ConnConfig, "pg_monitor")
	_, err := parley.ReadStatus(t.Context(), conn)
	if !errors.Is(err, parley.ErrNotOwner) || !strings.Contains(err.Error(), `"postgres"`) {
		t.Errorf("status gives %v", err)
	}
	if _, err := parley.Verify(t.Context(), conn); !errors.Is(err, parley.ErrNotOwner) {
		t.Errorf("verify gives %v", err)
	}
}

func TestInstallWithoutCreateNamesTheGrant(t *testing.T) {
	t.Parallel()
	pool := parleytest.EmptyDatabase(t)
	err := parley.Install(t.Context(), asRole(t, pool.Config().ConnConfig, "pg_monitor"))
	if !errors.Is(err, parley.ErrMayNotCreate) || !strings.Contains(err.Error(), "grant create on database ") {
		t.Errorf("install gives %v", err)
	}
}
