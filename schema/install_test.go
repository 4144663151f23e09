package schema_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/parleytest"
	"github.com/parley-broker/parley/schema"
)

func requireNoDifferences(t *testing.T, conn *pgx.Conn, verify func(context.Context, *pgx.Conn) ([]schema.Difference, error)) {
	t.Helper()
	differences, err := verify(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	for _, difference := range differences {
		t.Errorf("%v\n  installed: %s\n  defined:   %s", difference, difference.Installed, difference.Defined)
	}
}

func TestInstallNeedsNoMoreThanOwningTheDatabase(t *testing.T) {
	t.Parallel()
	conn := fixture.OrdinaryOwner(t)
	if err := schema.Install(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	status, err := schema.ReadStatus(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	if !status.Installed || status.SchemaVersion != parley.SchemaVersion || status.Release != parley.Release {
		t.Errorf("status is %+v", status)
	}
	if status.Owner != conn.Config().User {
		t.Errorf("the schema belongs to %q, want %q", status.Owner, conn.Config().User)
	}
	requireNoDifferences(t, conn, schema.Verify)
}

func TestInstallAgainChangesNothing(t *testing.T) {
	t.Parallel()
	conn := fixture.Connect(t, parleytest.Database(t))
	const query = "select installed_at::text || xmin::text from parley._p_installation"
	before := fixture.Value[string](t, conn, query)
	if err := schema.Install(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	if after := fixture.Value[string](t, conn, query); after != before {
		t.Errorf("the row of the installation was %s and is %s", before, after)
	}
}

func TestInstallFromManyConnectionsAtOnceInstallsOnce(t *testing.T) {
	t.Parallel()
	pool := parleytest.EmptyDatabase(t)
	var installing sync.WaitGroup
	for range 10 {
		conn := fixture.Connect(t, pool)
		installing.Go(func() {
			if err := schema.Install(t.Context(), conn); err != nil {
				t.Error(err)
			}
		})
	}
	installing.Wait()
	if n := fixture.Value[int](t, pool, "select count(*) from parley._p_installation"); n != 1 {
		t.Errorf("%d installations are recorded", n)
	}
}

func TestInstallRefusesASchemaThatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	conn := fixture.Connect(t, parleytest.EmptyDatabase(t))
	fixture.Execute(t, conn, "create schema parley")
	for name, change := range map[string]func() error{
		"install":   func() error { return schema.Install(t.Context(), conn) },
		"upgrade":   func() error { return schema.Upgrade(t.Context(), conn) },
		"uninstall": func() error { return schema.Uninstall(t.Context(), conn, true) },
		"verify":    func() error { _, err := schema.Verify(t.Context(), conn); return err },
		"status":    func() error { _, err := schema.ReadStatus(t.Context(), conn); return err },
	} {
		if err := change(); !errors.Is(err, schema.ErrForeign) {
			t.Errorf("%s: got %v, want %v", name, err, schema.ErrForeign)
		}
	}
}

func TestInstallNeverChangesTheVersion(t *testing.T) {
	t.Parallel()
	conn := fixture.Connect(t, parleytest.Database(t))
	newer := schema.CurrentDefinition().WithVersion(parley.SchemaVersion + 1)
	if err := newer.Install(t.Context(), conn); !errors.Is(err, parley.ErrUpgradeNeeded) {
		t.Errorf("over an older schema: got %v, want %v", err, parley.ErrUpgradeNeeded)
	}
	fixture.Execute(t, conn, "update parley._p_installation set schema_version = schema_version + 1")
	if err := schema.Install(t.Context(), conn); !errors.Is(err, parley.ErrReleaseTooOld) {
		t.Errorf("over a newer schema: got %v, want %v", err, parley.ErrReleaseTooOld)
	}
}

func TestInstallInsideATransactionIsRefused(t *testing.T) {
	t.Parallel()
	conn := fixture.Connect(t, parleytest.EmptyDatabase(t))
	fixture.Execute(t, conn, "begin")
	if err := schema.Install(t.Context(), conn); err == nil || !strings.Contains(err.Error(), "inside a transaction") {
		t.Errorf("got error %v", err)
	}
}

func TestInstallThatFailsLeavesNothingAndNamesTheLine(t *testing.T) {
	t.Parallel()
	conn := fixture.Connect(t, parleytest.EmptyDatabase(t))
	broken := schema.CurrentDefinition().Next("broken", map[string]string{"sql/zzz.sql": "-- ü\nselect 1;\nselect nothing;\n"}, "")
	err := broken.Install(t.Context(), conn)
	if err == nil || !strings.Contains(err.Error(), "sql/zzz.sql:3: ") {
		t.Errorf("got error %v, want one that names line 3 of sql/zzz.sql", err)
	}
	if fixture.Value[bool](t, conn, "select to_regnamespace('parley') is not null") {
		t.Error("the schema is there")
	}
}

func TestScriptInstallsWhatInstallDoes(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(t *testing.T, conn *pgx.Conn) error{
		"over the simple protocol": func(t *testing.T, conn *pgx.Conn) error {
			_, err := conn.PgConn().Exec(t.Context(), schema.Script()).ReadAll()
			return err
		},
		"by psql": func(t *testing.T, conn *pgx.Conn) error {
			psql, err := exec.LookPath("psql")
			if err != nil {
				t.Skip("no psql")
			}
			command := exec.CommandContext(t.Context(), psql, "--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", conn.Config().ConnString())
			command.Stdin = strings.NewReader(schema.Script())
			if output, err := command.CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s", err, output)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := fixture.Connect(t, parleytest.EmptyDatabase(t))
			if err := run(t, conn); err != nil {
				t.Fatal(err)
			}
			requireNoDifferences(t, conn, schema.Verify)
			if err := run(t, conn); err == nil {
				t.Error("the script ran twice")
			}
		})
	}
}

// Any role can take the advisory lock of an installation. It holds it up for a while, and is named then.
func TestInstallationNamesWhoHoldsItUp(t *testing.T) {
	t.Parallel()
	pool := parleytest.EmptyDatabase(t)
	holder, conn := fixture.Connect(t, pool), fixture.Connect(t, pool)
	role := "holder_" + strings.ToLower(rand.Text())
	fixture.Execute(t, pool, "create role "+role)
	t.Cleanup(func() { fixture.Execute(t, pool, "drop role "+role) })
	fixture.Execute(t, holder, "set role "+role, "select pg_advisory_lock(x'7061726c6579'::bigint)")
	fixture.Execute(t, conn, "set lock_timeout = '300ms'")
	err := schema.Install(t.Context(), conn)
	if !errors.Is(err, schema.ErrHeld) || !strings.Contains(err.Error(), fmt.Sprintf("process %d, role ", holder.PgConn().PID())) {
		t.Fatalf("got %v", err)
	}
	fixture.Execute(t, holder, "select pg_advisory_unlock_all()")
	if err := schema.Install(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
}
