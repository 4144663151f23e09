package setup_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/record"
	"github.com/parley-broker/parley/internal/measure/setup"
	"github.com/parley-broker/parley/parleytest"
)

func check(t *testing.T, checks []record.Check, name string) record.Check {
	t.Helper()
	i := slices.IndexFunc(checks, func(c record.Check) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("there is no check %s among %v", name, checks)
	}
	return checks[i]
}

func TestSetupIsCheckedAndLeavesTheSessionAsItWas(t *testing.T) {
	t.Parallel()
	pool := parleytest.EmptyDatabase(t)
	conn, err := pgx.Connect(t.Context(), parleytest.DSN(t, pool))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	checks, err := setup.Checks(t.Context(), conn, 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if v := check(t, checks, setup.Versions); !strings.Contains(v.Text, "PostgreSQL ") || v.State != record.OK {
		t.Errorf("versions: %+v", v)
	}
	if s := check(t, checks, setup.Storage); s.Value < 1 || setup.Sync(checks) != s.Value || !strings.Contains(s.Text, "microseconds") {
		t.Errorf("storage: %+v", s)
	}
	if w := check(t, checks, setup.Way); w.State != record.OK {
		t.Errorf("pooler: %+v", w)
	}
	if r := check(t, checks, setup.Room); r.State == record.Unknown || r.Value <= 0 {
		t.Errorf("free disk: %+v", r)
	}
	check(t, checks, setup.Neighbours)
	var asked, objects string
	err = conn.QueryRow(t.Context(), `
		select current_setting('synchronous_commit'), (select count(*) from pg_class as c where c.relnamespace = 'public'::regnamespace)::text`).
		Scan(&asked, &objects)
	if err != nil || asked != "on" && asked != "off" || objects != "0" {
		t.Errorf("synchronous_commit is %s, %s objects were made, %v", asked, objects, err)
	}
}

func TestWhatIsNotDurableIsAWarning(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), parleytest.DSN(t, parleytest.EmptyDatabase(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "set synchronous_commit to off"); err != nil {
		t.Fatal(err)
	}
	checks, err := setup.Checks(t.Context(), conn, 0)
	if err != nil {
		t.Fatal(err)
	}
	if d := check(t, checks, setup.Durability); d.State != record.Warning || !strings.Contains(d.Text, "synchronous_commit off") ||
		d.Hint == "" {
		t.Errorf("durability: %+v", d)
	}
}

func TestPoolerIsFound(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), parleytest.PgBouncer(t, parleytest.EmptyDatabase(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	checks, err := setup.Checks(t.Context(), conn, 0)
	if err != nil {
		t.Fatal(err)
	}
	if w := check(t, checks, setup.Way); w.State != record.Warning || w.Hint == "" {
		t.Errorf("the pooler is not found: %+v", w)
	}
}
