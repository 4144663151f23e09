package schema_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/operate"
	"github.com/parley-broker/parley/parleytest"
	"github.com/parley-broker/parley/schema"
	"github.com/parley-broker/parley/sql"
)

func TestVerifyFindsNothingInAFreshInstallation(t *testing.T) {
	t.Parallel()
	requireNoDifferences(t, fixture.Connect(t, parleytest.Database(t)), schema.Verify)
}

// A trace enables triggers; that is no change by hand.
func TestVerifyFindsNothingWhileSomethingIsTraced(t *testing.T) {
	t.Parallel()
	conn := fixture.Connect(t, parleytest.Database(t))
	if err := operate.StartTrace(t.Context(), conn, operate.TraceSettings{}); err != nil {
		t.Fatal(err)
	}
	requireNoDifferences(t, conn, schema.Verify)
}

func TestVerifyFindsWhatWasChangedByHand(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change string
		want   schema.Difference
	}{
		{
			"source of a function",
			`create or replace function parley.sqlstate_of(error_number integer) returns text language sql immutable strict parallel safe
			 set search_path = pg_catalog, pg_temp as 'select null::text'`,
			schema.Difference{Kind: "function", Object: "parley.sqlstate_of(integer)", Problem: schema.Different, Property: "source"},
		},
		{
			"settings of a function",
			"alter function parley.sqlstate_of(integer) reset search_path",
			schema.Difference{Kind: "function", Object: "parley.sqlstate_of(integer)", Problem: schema.Different, Property: "settings"},
		},
		{
			"security of a function",
			"alter function parley.sqlstate_of(integer) security definer",
			schema.Difference{Kind: "function", Object: "parley.sqlstate_of(integer)", Problem: schema.Different, Property: "security"},
		},
		{
			"volatility of a function",
			"alter function parley.sqlstate_of(integer) volatile",
			schema.Difference{Kind: "function", Object: "parley.sqlstate_of(integer)", Problem: schema.Different, Property: "volatility"},
		},
		{
			"grants on a function",
			"grant execute on function parley.sqlstate_of(integer) to pg_monitor",
			schema.Difference{Kind: "function", Object: "parley.sqlstate_of(integer)", Problem: schema.Different, Property: "grants"},
		},
		{
			"owner of a function",
			"alter function parley.sqlstate_of(integer) owner to pg_monitor",
			schema.Difference{Kind: "function", Object: "parley.sqlstate_of(integer)", Problem: schema.Different, Property: "owner"},
		},
		{
			"comment on a function",
			"comment on function parley.sqlstate_of(integer) is 'x'",
			schema.Difference{Kind: "function", Object: "parley.sqlstate_of(integer)", Problem: schema.Different, Property: "comment"},
		},
		{
			"missing function",
			"drop function parley._p_role(text)",
			schema.Difference{Kind: "function", Object: "parley._p_role(text)", Problem: schema.Missing},
		},
		{
			"added function",
			"create function parley.sqlstate_of(text) returns text language sql as 'select null::text'",
			schema.Difference{Kind: "function", Object: "parley.sqlstate_of(text)", Problem: schema.Unexpected},
		},
		{
			"type of a column",
			"alter table parley._p_installation alter release type varchar(20)",
			schema.Difference{Kind: "column", Object: "parley._p_installation.release", Problem: schema.Different, Property: "type"},
		},
		{
			"default of a column",
			"alter table parley._p_installation alter installed_at drop default",
			schema.Difference{Kind: "column", Object: "parley._p_installation.installed_at", Problem: schema.Different, Property: "default"},
		},
		{
			"nullable column",
			"alter table parley._p_installation alter release drop not null",
			schema.Difference{Kind: "column", Object: "parley._p_installation.release", Problem: schema.Different, Property: "not null"},
		},
		{
			"comment on a column",
			"comment on column parley._p_installation.release is 'x'",
			schema.Difference{Kind: "column", Object: "parley._p_installation.release", Problem: schema.Different, Property: "comment"},
		},
		{
			"missing column",
			"alter table parley._p_broker drop tombstone_seconds",
			schema.Difference{Kind: "column", Object: "parley._p_broker.tombstone_seconds", Problem: schema.Missing},
		},
		{
			"added column",
			"alter table parley._p_installation add note text",
			schema.Difference{Kind: "column", Object: "parley._p_installation.note", Problem: schema.Unexpected},
		},
		{
			"missing constraint",
			"alter table parley._p_installation drop constraint _p_installation_installation_id_check",
			schema.Difference{Kind: "constraint", Object: "_p_installation_installation_id_check of parley._p_installation", Problem: schema.Missing},
		},
		{
			"added index",
			"create index extra on parley._p_installation (release)",
			schema.Difference{Kind: "index", Object: "parley.extra", Problem: schema.Unexpected},
		},
		{
			"options of a table",
			"alter table parley._p_installation set (fillfactor = 50)",
			schema.Difference{Kind: "table", Object: "parley._p_installation", Problem: schema.Different, Property: "options"},
		},
		{
			"unlogged table",
			"alter table parley._p_installation set unlogged",
			schema.Difference{Kind: "table", Object: "parley._p_installation", Problem: schema.Different, Property: "persistence"},
		},
		{
			"grants on a table",
			"grant select on parley._p_installation to pg_monitor",
			schema.Difference{Kind: "table", Object: "parley._p_installation", Problem: schema.Different, Property: "grants"},
		},
		{
			"added trigger",
			"create trigger extra before update on parley._p_installation for each row execute function suppress_redundant_updates_trigger()",
			schema.Difference{Kind: "trigger", Object: "extra of parley._p_installation", Problem: schema.Unexpected},
		},
		{
			"added view",
			"create view parley.added as select 1 as one",
			schema.Difference{Kind: "view", Object: "parley.added", Problem: schema.Unexpected},
		},
		{
			"range of a sequence",
			"alter sequence parley._p_object_id increment by 2",
			schema.Difference{Kind: "sequence", Object: "parley._p_object_id", Problem: schema.Different, Property: "range"},
		},
		{
			"grants on the schema",
			"grant create on schema parley to pg_monitor",
			schema.Difference{Kind: "schema", Object: "parley", Problem: schema.Different, Property: "grants"},
		},
		{
			"missing schema",
			"drop schema parley_queue cascade",
			schema.Difference{Kind: "schema", Object: "parley_queue", Problem: schema.Missing},
		},
	}
	// One database for all of them: what is changed in one place must not hide what is changed in another.
	conn := fixture.Connect(t, parleytest.Database(t))
	for _, test := range tests {
		fixture.Execute(t, conn, test.change)
	}
	differences, err := schema.Verify(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		if !slices.ContainsFunc(differences, func(d schema.Difference) bool {
			d.Installed, d.Defined = "", ""
			return d == test.want
		}) {
			t.Errorf("%s: %v is not among %v", test.name, test.want, differences)
		}
	}
}

func TestVerifyLeavesEverythingAsItWas(t *testing.T) {
	t.Parallel()
	conn := fixture.Connect(t, parleytest.Database(t))
	const objects = `
		select string_agg(format('%s %s %s', c.oid, c.relnamespace::regnamespace, c.relname), E'\n' order by c.oid)
		from pg_class as c
		where c.oid >= 16384`
	before := fixture.Value[string](t, conn, objects)
	requireNoDifferences(t, conn, schema.Verify)
	if after := fixture.Value[string](t, conn, objects); after != before {
		t.Errorf("objects before:\n%s\nand after:\n%s", before, after)
	}
}

// pg_dump writes a view as the server spells it. Where that does not spell the same again once it is restored, such as a
// BETWEEN beside an AND, verify would call a restored database different.
func TestViewsReadTheSameOnceTheyAreRestored(t *testing.T) {
	t.Parallel()
	conn := fixture.Connect(t, parleytest.Database(t))
	rows, err := conn.Query(t.Context(), `
		select c.oid::regclass::text as name, pg_get_viewdef(c.oid) as definition
		from pg_class as c
		where c.relkind = 'v' and c.relnamespace::regnamespace::text = any ($1)`, sql.Wings()[0].Schemas())
	if err != nil {
		t.Fatal(err)
	}
	type view struct{ Name, Definition string }
	views, err := pgx.CollectRows(rows, pgx.RowToStructByName[view])
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range views {
		fixture.Execute(t, conn, "create temporary view restored as "+v.Definition)
		restored := fixture.Value[string](t, conn, "select pg_get_viewdef('pg_temp.restored'::regclass)")
		fixture.Execute(t, conn, "drop view restored")
		if restored != v.Definition {
			t.Errorf("%s reads\n%s\nand, restored,\n%s", v.Name, v.Definition, restored)
		}
	}
}

func TestVerifyChecksOnlyItsOwnVersion(t *testing.T) {
	t.Parallel()
	conn := fixture.Connect(t, parleytest.Database(t))
	fixture.Execute(t, conn, "update parley._p_installation set schema_version = 0")
	_, err := schema.Verify(t.Context(), conn)
	fixture.RequireIs(t, err, parley.ErrUpgradeNeeded)
	fixture.Execute(t, conn, "update parley._p_installation set schema_version = 1000")
	_, err = schema.Verify(t.Context(), conn)
	fixture.RequireIs(t, err, parley.ErrReleaseTooOld)
}

func TestVerifyLeavesAutovacuumToTheAdministrator(t *testing.T) {
	t.Parallel()
	conn := fixture.Connect(t, parleytest.Database(t))
	fixture.Execute(t, conn, "alter table parley._p_message reset (autovacuum_vacuum_threshold), set (autovacuum_vacuum_scale_factor = 0.02)")
	requireNoDifferences(t, conn, schema.Verify)
}

func TestVerifyTakesQueuesOfUsersForTheirOwn(t *testing.T) {
	t.Parallel()
	conn := fixture.Connect(t, parleytest.Database(t))
	fixture.Execute(t, conn, "select parley.create_queue('orders')")
	requireNoDifferences(t, conn, schema.Verify)
}

func TestVerifyKnowsEveryKindOfObjectInTheSchema(t *testing.T) {
	t.Parallel()
	conn := fixture.Connect(t, parleytest.Database(t))
	rows, err := conn.Query(t.Context(), `
		select distinct d.classid::regclass::text
		from pg_depend as d
		where d.refclassid = 'pg_namespace'::regclass and d.refobjid::regnamespace::text = any ($1)`, sql.Schemas())
	if err != nil {
		t.Fatal(err)
	}
	catalogs, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	// A view that names the schema as a constant depends on it through its rule.
	known := []string{"pg_class", "pg_proc", "pg_type", "pg_statistic_ext", "pg_rewrite"}
	for _, catalog := range catalogs {
		if !slices.Contains(known, catalog) {
			t.Errorf("objects of %s are in the schema: describe them in describe.sql", catalog)
		}
	}
}
