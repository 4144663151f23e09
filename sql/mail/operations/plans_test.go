package operations_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// Where a server compiles statements, as it does by default, each call of the categorizer would take seconds.
func TestFunctionsOfMailAreNotCompiled(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	sqltest.Equal(b.Session, "", `
		select coalesce(string_agg(p.oid::regprocedure::text, ', '), '')
		from pg_proc as p
		where p.pronamespace = 'parley_mail'::regnamespace and p.prosecdef and 'jit=off' <> all (p.proconfig)`)
	sqltest.Equal(b.Session, true, `
		select exists (select from pg_proc as p where p.oid = 'parley_mail._p_categorize'::regproc and 'jit=off' = any (p.proconfig))`)
}
