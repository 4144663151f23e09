package runner_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// Users are roles of the server, so each name is one of this test; rights are given to them and taken away.
func TestUsersAndRightsAreThoseOfTheServer(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	config := pool.Config().ConnConfig
	named := func(text string) string {
		return strings.NewReplacer("@anna@", config.Database+"_Anna", "@staff@", config.Database+"_staff").Replace(text)
	}
	got := script(t, config, named(`CREATE QUEUE Orders
CREATE SERVICE orders ON QUEUE Orders ([DEFAULT])
CREATE LOGIN [@anna@] WITH PASSWORD = N'it''s $ecret'
CREATE USER [@anna@] FOR LOGIN [@anna@]
CREATE USER nobody FOR LOGIN no_such_login
CREATE ROLE [@staff@]
ALTER ROLE [@staff@] ADD MEMBER [@anna@]
CREATE LOGIN [@anna@] WITH PASSWORD = 'x'
CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'x'
GRANT RECEIVE ON dbo.ORDERS TO [@anna@]
GRANT SEND ON SERVICE::orders TO [@staff@], public
REVOKE SEND ON SERVICE::orders FROM public
DENY SEND ON SERVICE::orders TO public
GO
CREATE PROCEDURE p AS PRINT 1
GO
CREATE TABLE t (a int)
GRANT EXECUTE ON dbo.p TO [@anna@]
GRANT SELECT, INSERT ON OBJECT::t TO [@anna@]
GRANT SELECT ON missing TO [@anna@] GRANT SEND ON SERVICE::none TO [@anna@]
ALTER AUTHORIZATION ON SERVICE::orders TO dbo
ALTER AUTHORIZATION ON DATABASE::x TO sa`))
	want := named(`Msg 15007, Level 16, State 1, Line 5
'no_such_login' is not a valid login or you do not have permission.
Msg 15025, Level 16, State 1, Line 8
The server principal '@anna@' already exists.
CREATE MASTER KEY has no effect: the master key is a file of the daemon.
Msg 40517, Level 16, State 1, Line 13
'DENY SEND' is not supported by Parley: "@anna@" has the right; revoke it first.
Msg 15151, Level 16, State 1, Line 4
Cannot find the object 'missing', because it does not exist or you do not have permission.
Msg 15151, Level 16, State 1, Line 4
Cannot find the service 'none', because it does not exist or you do not have permission.
ALTER AUTHORIZATION ON DATABASE has no effect: the owner of the database stays.`)
	if got != want {
		t.Errorf("--- got\n%s\n--- want\n%s", got, want)
	}
	var rights string
	err := pool.QueryRow(t.Context(), `select string_agg(concat(object_name, ' ', permission, ' ', grantee), ', ' order by object_name, grantee)
from parley.permissions`).Scan(&rights)
	if wanted := named("Orders RECEIVE @anna@, orders SEND @staff@"); err != nil || rights != wanted {
		t.Errorf("the rights are %q, %v, want %q", rights, err, wanted)
	}
	var may string
	err = pool.QueryRow(t.Context(), `select concat(has_function_privilege($1, 'dbo.p()', 'execute'), has_table_privilege($1, 'dbo.t', 'insert'),
  has_table_privilege($1, 'dbo.t', 'delete'), pg_has_role($1, $2, 'member'))`, named("@anna@"), named("@staff@")).Scan(&may)
	if err != nil || may != "ttft" {
		t.Errorf("privileges %q, %v", may, err)
	}
	after := script(t, config, named(`REVOKE RECEIVE ON Orders FROM [@anna@]
REVOKE SEND ON SERVICE::orders FROM [@staff@]
REVOKE EXECUTE ON p FROM [@anna@]
REVOKE SELECT, INSERT ON t FROM [@anna@]
DROP USER [@anna@]
DROP LOGIN [@anna@]
DROP ROLE [@staff@]
DROP ROLE IF EXISTS [@staff@]
DROP ROLE [@staff@]`))
	if want := named("Msg 15151, Level 16, State 1, Line 9\nCannot drop the role '@staff@', because it does not exist or you do not have permission."); after != want {
		t.Errorf("--- got\n%s\n--- want\n%s", after, want)
	}
}

// ALTER VIEW keeps the rights on the view, also where its columns change, and the views over it where its columns stay.
func TestAlterViewKeepsItsRights(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	run := open(t, pool.Config().ConnConfig)
	expect(t, "there are two views", run(`CREATE VIEW v AS SELECT 1 AS a, N'x' AS b
GO
CREATE VIEW over_v AS SELECT a FROM v
GO
GRANT SELECT ON v TO public
GRANT UPDATE (b) ON v TO public`), "")
	rights := func() (list string) {
		t.Helper()
		if err := pool.QueryRow(t.Context(), `select concat_ws(' ', array_agg(x.privilege_type), a.attacl::text)
from pg_class as c cross join aclexplode(c.relacl) as x join pg_attribute as a on a.attrelid = c.oid and a.attname = 'b'
where c.oid = 'dbo.v'::regclass and x.grantee = 0 group by a.attacl`).Scan(&list); err != nil {
			t.Error(err)
		}
		return list
	}
	before := rights()
	expect(t, "columns behind those that stay", run("ALTER VIEW v AS SELECT 2 AS a, N'y' AS b, 3 AS c\nGO\nSELECT a FROM over_v\nSELECT * FROM v"), "a\n2\n(1 rows affected)\na b c\n2 y 3\n(1 rows affected)")
	expect(t, "the rights stay", rights(), before)
	expect(t, "other columns", run("DROP VIEW over_v\nGO\nALTER VIEW v AS SELECT N'z' AS b, 4 AS d\nGO\nSELECT * FROM v"), "b d\nz 4\n(1 rows affected)")
	expect(t, "the rights stay, but those on a column that is gone", rights(), before)
}
