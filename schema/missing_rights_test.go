package schema_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/parleytest"
	"github.com/parley-broker/parley/schema"
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
	_, err := schema.ReadStatus(t.Context(), conn)
	if !errors.Is(err, schema.ErrNotOwner) || !strings.Contains(err.Error(), `"postgres"`) {
		t.Errorf("status gives %v", err)
	}
	if _, err := schema.Verify(t.Context(), conn); !errors.Is(err, schema.ErrNotOwner) {
		t.Errorf("verify gives %v", err)
	}
}

func TestInstallWithoutCreateNamesTheGrant(t *testing.T) {
	t.Parallel()
	pool := parleytest.EmptyDatabase(t)
	err := schema.Install(t.Context(), asRole(t, pool.Config().ConnConfig, "pg_monitor"))
	if !errors.Is(err, schema.ErrMayNotCreate) || !strings.Contains(err.Error(), "grant create on database ") {
		t.Errorf("install gives %v", err)
	}
}
