package rights_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/sqlrules"
	"github.com/parley-broker/parley/parleytest"
	"github.com/parley-broker/parley/sql"
)

// The server's own word about the installed schema: the interface is everybody's, and each function of it checks rights itself. So nothing
// behind it may be within reach.
func TestPublicReachesTheInterfaceOnly(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, query string }{
		{
			"no private function runs with its owner's rights for everybody", `
			select p.oid::regprocedure::text
			from pg_proc as p
			where p.pronamespace::regnamespace::text = any ($1)
				and p.proname like '\_p\_%'
				and p.prosecdef
				and has_function_privilege('public', p.oid, 'execute')`,
		},
		{
			"no private table or sequence is open to everybody", `
			select c.oid::regclass::text || ': ' || a.privilege_type
			from pg_class as c
			cross join lateral aclexplode(c.relacl) as a
			where c.relnamespace::regnamespace::text = any ($1)
				and c.relname like '\_p\_%'
				and a.grantee = 0`,
		},
		{
			"no column of a private table is open to everybody", `
			select c.oid::regclass::text || '.' || a.attname || ': ' || x.privilege_type
			from pg_class as c
			join pg_attribute as a on a.attrelid = c.oid
			cross join lateral aclexplode(a.attacl) as x
			where c.relnamespace::regnamespace::text = any ($1)
				and x.grantee = 0`,
		},
		{
			"nobody but the owner may create in the schemas", `
			select n.nspname::text
			from pg_namespace as n
			where n.nspname = any ($1) and has_schema_privilege('public', n.oid, 'create')`,
		},
		{
			"views of the interface can only be read", `
			select c.oid::regclass::text || ': ' || a.privilege_type
			from pg_class as c
			cross join lateral aclexplode(c.relacl) as a
			where c.relnamespace::regnamespace::text = any ($1)
				and a.grantee = 0
				and a.privilege_type <> 'SELECT'`,
		},
	}
	pool := parleytest.Database(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rows, err := pool.Query(t.Context(), c.query, sql.Schemas())
			if err != nil {
				t.Fatal(err)
			}
			open, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range open {
				if !sqlrules.MayBeWithinReach(name) {
					t.Error(name)
				}
			}
		})
	}
}

// A private function that runs with its owner's rights for everybody asks for the caller, or takes no argument and returns the same to
// every role.
func TestWhatIsWithinReachAsksTheCallerOrTakesNoArgument(t *testing.T) {
	t.Parallel()
	rows, err := parleytest.Database(t).Query(t.Context(), `
		select p.oid::regprocedure::text as name, p.pronargs::int as arguments,
			coalesce(p.proargtypes[p.pronargs - 1] = 'parley.caller'::regtype, false)
				and p.prosrc ~ 'parley\.(_p_\w+|caller_role)\([^;]*\mcaller\)' as asks
		from pg_proc as p
		where p.pronamespace::regnamespace::text = any ($1)
			and p.proname like '\_p\_%'
			and p.prosecdef
			and exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) as a where a.grantee = 0)`, sql.Schemas())
	if err != nil {
		t.Fatal(err)
	}
	type function struct {
		Name      string
		Arguments int
		Asks      bool
	}
	functions, err := pgx.CollectRows(rows, pgx.RowToStructByPos[function])
	if err != nil {
		t.Fatal(err)
	}
	if len(functions) < 5 {
		t.Errorf("only %d functions were found", len(functions))
	}
	for _, f := range functions {
		switch {
		case sqlrules.AsksTheCaller(f.Name) && !f.Asks:
			t.Errorf("%s does not ask who calls", f.Name)
		case !sqlrules.AsksTheCaller(f.Name) && f.Arguments > 0:
			t.Errorf("%s believes its arguments, and everybody may call it", f.Name)
		}
	}
}
