package schema_test

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/parleytest"
	"github.com/parley-broker/parley/schema"
)

const clientChecks = "select current_setting('client_connection_check_interval')"

func TestInstallLetsTheServerCheckWhetherClientsAreStillThere(t *testing.T) {
	t.Parallel()
	owner := fixture.OrdinaryOwner(t)
	if err := schema.Install(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	later := reconnect(t, owner)
	if got := fixture.Value[string](t, later, clientChecks); got != "100ms" {
		t.Errorf("a new session checks every %s, want 100ms", got)
	}
	if err := schema.Uninstall(t.Context(), owner, false); err != nil {
		t.Fatal(err)
	}
	if got := fixture.Value[string](t, reconnect(t, owner), clientChecks); got != "0" {
		t.Errorf("after uninstalling a new session checks every %s, want 0", got)
	}
}

func TestInstallLeavesWhatIsSetForTheDatabase(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"0", "9s"} {
		pool := parleytest.EmptyDatabase(t)
		fixture.Execute(t, pool, "do $$ begin execute format('alter database %I set client_connection_check_interval = ''"+setting+"''', current_database()); end $$")
		if err := schema.Install(t.Context(), fixture.Connect(t, pool)); err != nil {
			t.Fatal(err)
		}
		if got := fixture.Value[string](t, fixture.Connect(t, pool), clientChecks); got != setting {
			t.Errorf("what was set to %s is %s", setting, got)
		}
		if err := schema.Uninstall(t.Context(), fixture.Connect(t, pool), false); err != nil {
			t.Fatal(err)
		}
		if got := fixture.Value[string](t, fixture.Connect(t, pool), clientChecks); got != setting {
			t.Errorf("after uninstalling, what was set to %s is %s", setting, got)
		}
	}
}

// A role that may create schemas and does not own the database cannot set anything for it; that does not keep it from installing.
func TestInstallBySomebodyWhoDoesNotOwnTheDatabaseSetsNothing(t *testing.T) {
	t.Parallel()
	admin := parleytest.EmptyDatabase(t)
	role := "guest_" + strings.ToLower(rand.Text())
	fixture.Execute(t, admin, "create role "+role+" login")
	t.Cleanup(func() { fixture.Execute(t, admin, "drop role "+role) })
	pool := parleytest.EmptyDatabase(t)
	fixture.Execute(t, pool, "do $$ begin execute format('grant create on database %I to "+role+"', current_database()); end $$")
	config := pool.Config().ConnConfig
	config.User = role
	guest, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = guest.Close(context.Background()) })
	if err := schema.Install(t.Context(), guest); err != nil {
		t.Fatal(err)
	}
	if got := fixture.Value[string](t, fixture.Connect(t, pool), clientChecks); got != "0" {
		t.Errorf("a new session checks every %s, want 0", got)
	}
}

// reconnect opens a session beside another, as the same role.
func reconnect(t *testing.T, conn *pgx.Conn) *pgx.Conn {
	t.Helper()
	another, err := pgx.ConnectConfig(t.Context(), conn.Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = another.Close(context.Background()) })
	return another
}
