package schema_test

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/parleytest"
	"github.com/parley-broker/parley/schema"
	"github.com/parley-broker/parley/sql"
)

// Default privileges of the installing role do not apply to the broker: a role that reads its secret, or makes a function in its
// schema, takes it over.
func TestDefaultPrivilegesGiveNothingOfTheBrokerAway(t *testing.T) {
	t.Parallel()
	const grants = `
		select coalesce(string_agg(o.object || ' ' || x.grantee::regrole || ' ' || x.privilege_type, e'\n' order by 1), '')
		from (
			select n.nspname as object, n.nspacl as acl, n.nspowner as owner
			from pg_namespace as n
			where n.nspname = any ($1)
			union all
			select c.oid::regclass::text, c.relacl, c.relowner
			from pg_class as c
			where c.relnamespace::regnamespace::text = any ($1)
			union all
			select c.oid::regclass || '.' || a.attname, a.attacl, c.relowner
			from pg_class as c join pg_attribute as a on a.attrelid = c.oid
			where c.relnamespace::regnamespace::text = any ($1)
			union all
			select p.oid::regprocedure::text, coalesce(p.proacl, acldefault('f', p.proowner)), p.proowner
			from pg_proc as p where p.pronamespace::regnamespace::text = any ($1)
		) as o
		cross join aclexplode(o.acl) as x
		where x.grantee <> o.owner`
	role := "reader_" + strings.ToLower(rand.Text())
	plain, generous := parleytest.EmptyDatabase(t), parleytest.EmptyDatabase(t)
	fixture.Execute(t, generous, "create role "+role)
	t.Cleanup(func() { fixture.Execute(t, generous, "drop owned by "+role+" cascade", "drop role "+role) })
	for _, kind := range []string{"tables", "sequences", "functions", "schemas"} {
		fixture.Execute(t, generous, "alter default privileges grant all on "+kind+" to "+role+", public")
	}
	for _, pool := range []*pgxpool.Pool{plain, generous} {
		if err := schema.Install(t.Context(), fixture.Connect(t, pool)); err != nil {
			t.Fatal(err)
		}
		fixture.Execute(t, pool, "select parley.create_queue('Later')", "select parley_store.maintain_tracking()")
	}
	want := strings.Split(fixture.Value[string](t, plain, grants, sql.Schemas()), "\n")
	got := strings.Split(fixture.Value[string](t, generous, grants, sql.Schemas()), "\n")
	known := map[string]bool{}
	for _, grant := range want {
		known[grant] = true
	}
	for _, grant := range got {
		if !known[grant] {
			t.Errorf("given away: %s", grant)
		}
	}
	if len(want) < 100 || len(got) != len(want) {
		t.Errorf("%d rights are granted with default privileges, %d without", len(got), len(want))
	}
}
