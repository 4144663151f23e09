package sqlrules_test

import (
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/sqlrules"
	"github.com/parley-broker/parley/parleytest"
	"github.com/parley-broker/parley/sql"
)

// requireVariable makes a missing extension a failure, so that a run that promises the check cannot skip it.
const requireVariable = "PARLEY_TEST_REQUIRE_PLPGSQL_CHECK"

// A finding is what plpgsql_check says about one place of a function.
type finding struct {
	Function string // with its argument types
	Name     string // without them
	Line     int
	Level    string
	Message  string
	Context  string
	Query    string
}

// Every function is read as the server would run it: unknown columns, wrong types, variables never read, dead
// code, results that are lost, SQL that can be injected. Hints on speed are left out: they guess.
func TestPlpgsqlCheckFindsNothing(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	createChecker(t, pool)
	for _, f := range findings(t, pool) {
		if sqlrules.Tolerates(f.Name, f.Message) {
			continue
		}
		t.Errorf("%s, line %d of its body: %s: %s%s%s", f.Function, f.Line, f.Level, f.Message, labelled("context", f.Context), labelled("query", f.Query))
	}
}

func labelled(what, text string) string {
	if text == "" {
		return ""
	}
	first, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if rest != "" {
		first += " ..."
	}
	return "\n  " + what + ": " + first
}

func createChecker(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	var available bool
	err := pool.QueryRow(t.Context(), "select exists (select from pg_available_extensions where name = 'plpgsql_check')").Scan(&available)
	if err != nil {
		t.Fatal(err)
	}
	if !available {
		refuse := t.Skip
		if os.Getenv(requireVariable) != "" {
			refuse = t.Fatal
		}
		refuse("this PostgreSQL does not offer the extension plpgsql_check; " +
			"install postgresql-15-plpgsql-check and set PARLEY_TEST_POSTGRES=15 to run the check")
	}
	if _, err := pool.Exec(t.Context(), "create extension plpgsql_check schema public"); err != nil {
		t.Fatal(err)
	}
}

func findings(t *testing.T, pool *pgxpool.Pool) []finding {
	t.Helper()
	// A trigger function is read once for each table that it serves.
	rows, err := pool.Query(t.Context(), `
		select
			p.oid::regprocedure::text as function,
			p.oid::regproc::text as name,
			coalesce(c.lineno, 0) as line,
			coalesce(c.level, '') as level,
			coalesce(c.message, '') as message,
			coalesce(c.context, '') as context,
			coalesce(c.query, '') as query
		from pg_proc as p
		left join (select distinct tgfoid, tgrelid from pg_trigger) as g on g.tgfoid = p.oid
		cross join lateral public.plpgsql_check_function_tb(
			p.oid,
			coalesce(g.tgrelid, 0),
			fatal_errors => false,
			other_warnings => true,
			extra_warnings => true,
			performance_warnings => false,
			security_warnings => true
		) as c
		where p.pronamespace::regnamespace::text = any ($1)
			and p.prolang = (select oid from pg_language where lanname = 'plpgsql')
		order by p.oid, c.lineno`, sql.Schemas())
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[finding])
	if err != nil {
		t.Fatal(err)
	}
	return found
}
