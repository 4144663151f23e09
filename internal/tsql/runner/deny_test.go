package runner_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// DENY takes a right back. Where the principal would have it all the same, it is refused and nothing is taken.
func TestDenyTakesARightBackOrIsRefused(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	named, config := roles(t, pool, "anna", "berta", "staff")
	execute(t, pool, named(`grant "@staff@" to "@berta@"`))
	play := open(t, pool.Config().ConnConfig)
	setUp := play(named(`SET NOCOUNT ON
GO
CREATE TABLE t (a int, b int)
CREATE TABLE u (a int)
CREATE QUEUE q
CREATE SERVICE s ON QUEUE q ([DEFAULT])
GO
CREATE PROCEDURE p AS PRINT 'p'
GO
CREATE SCHEMA Sales
GO
CREATE TABLE Sales.item (a int)
GRANT SELECT, INSERT ON t TO [@anna@], [@staff@]
GRANT SELECT (a) ON u TO [@anna@]
GRANT EXECUTE ON p TO [@anna@], [@staff@]
GRANT SEND ON SERVICE::s TO [@anna@], [@staff@]
GRANT RECEIVE ON q TO [@anna@]
GRANT SELECT ON SCHEMA::Sales TO [@anna@]
GRANT CREATE QUEUE TO [@anna@]`))
	expect(t, "the rights", setUp, "")
	const done = "DENY acts as REVOKE: the right was taken back; one that a role gets later, by itself or by a role that it joins, is not denied."
	refused := func(right, why string) string {
		return named("Msg 40517, Level 16, State 1, Line 1\n'DENY " + right + "' is not supported by Parley: " + why + ".")
	}
	const still = " still has the right, by a role that it is a member of, as all roles do, or by the grant of another role; revoke it there"
	for _, c := range []struct{ rule, script, want string }{
		{"of a table", "DENY SELECT ON t TO [@anna@]", done},
		{"a member would have it by its role", "DENY SELECT ON t TO [@berta@]", refused("SELECT", `"@berta@"`+still)},
		{"of a role, whose member has none of its own", "DENY INSERT ON OBJECT::t TO [@staff@]", done},
		{"of a procedure, of the role and then of its members", "GRANT EXECUTE ON p TO [@berta@]\nDENY EXECUTE ON p TO [@staff@]", strings.Replace(refused("EXECUTE", `"@berta@", a member of "@staff@", has the right; revoke it first`), "Line 1", "Line 2", 1)},
		{"what was refused took nothing back", "REVOKE EXECUTE ON p FROM [@berta@]\nEXECUTE AS USER = '@berta@'\nEXEC p\nREVERT", "p"},
		{"of columns", "DENY SELECT (a) ON u TO [@anna@]", done},
		{"of a column where the whole table is granted", "GRANT SELECT ON u TO [@anna@]\nDENY SELECT (a) ON u TO [@anna@]", strings.Replace(refused("SELECT", `"@anna@"`+still), "Line 1", "Line 2", 1)},
		{"of all roles while one has it", "DENY SELECT ON u TO public", refused("SELECT", `"@anna@" has the right; revoke it first`)},
		{"of a schema", "DENY SELECT ON SCHEMA::Sales TO [@anna@]", done},
		{"to send to a service", "DENY SEND ON SERVICE::s TO [@anna@]\nDENY SEND ON SERVICE::s TO [@berta@]", done + "\n" + strings.Replace(refused("SEND", `"@berta@"`+still), "Line 1", "Line 2", 1)},
		{"to receive", "DENY RECEIVE ON q TO [@anna@]", done},
		{"to create queues", "DENY CREATE QUEUE TO [@anna@]", done},
		{"to send while all roles may", "GRANT SEND ON SERVICE::s TO public\nDENY SEND ON SERVICE::s TO [@anna@]", strings.Replace(refused("SEND", `"@anna@"`+still), "Line 1", "Line 2", 1)},
		{"what PostgreSQL cannot keep back", "DENY VIEW DEFINITION ON t TO [@anna@]\nGO\nDENY CONNECT TO [@anna@]\nGO\nDENY CONTROL ON t TO [@anna@]\nGO\nDENY CREATE TABLE TO [@anna@]", strings.Join([]string{
			refused("VIEW DEFINITION", "the catalog of PostgreSQL is open to every role"),
			refused("CONNECT", "pg_hba.conf says which roles may connect, and a daemon lets in the peers that it is paired with"),
			refused("CONTROL", "deny the rights one by one"),
			refused("CREATE TABLE", "a role may create it in a schema on which it has ALTER; deny that"),
		}, "\n")},
	} {
		expect(t, c.rule, play(named(c.script)), c.want)
	}
	got := script(t, config("anna"), "SELECT COUNT(*) FROM t\nGO\nINSERT t VALUES (1, 2)\nGO\nSELECT a FROM Sales.item\nGO\nRECEIVE * FROM q")
	for _, want := range []string{"Msg 229, Level 14, State 5, Line 1\nThe SELECT permission was denied", "(1 rows affected)", "Msg 229"} {
		if !strings.Contains(got, want) {
			t.Errorf("anna has\n%s\nwithout %q", got, want)
		}
	}
}

// A right that its holder may grant is taken back with CASCADE alone, by REVOKE and DENY.
func TestAGrantableRightIsTakenBackByCascade(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	named, _ := roles(t, pool, "anna")
	play := open(t, pool.Config().ConnConfig)
	expect(t, "the rights", play(named(`SET NOCOUNT ON
CREATE TABLE t (a int, b int)
CREATE QUEUE q
GO
CREATE PROCEDURE p AS PRINT 'p'
GO
GRANT SELECT ON t TO [@anna@]
GRANT UPDATE, DELETE ON t TO [@anna@] WITH GRANT OPTION
GRANT REFERENCES (b) ON t TO [@anna@] WITH GRANT OPTION
GRANT EXECUTE ON p TO [@anna@] WITH GRANT OPTION
GRANT RECEIVE ON q TO [@anna@] WITH GRANT OPTION`)), "")
	const refused = "Msg 4611, Level 16, State 1, Line 1\nTo revoke or deny grantable privileges, specify the CASCADE option."
	for _, c := range []struct{ rule, script, want string }{
		{"a right without the option needs none", "REVOKE SELECT ON t FROM [@anna@]", ""},
		{"of a table", "REVOKE UPDATE ON t FROM [@anna@]\nGO\nREVOKE GRANT OPTION FOR UPDATE ON t FROM [@anna@]\nGO\nDENY DELETE ON t TO [@anna@]", refused + "\n" + refused + "\n" + refused},
		{"of a column", "REVOKE REFERENCES (b) ON t FROM [@anna@]", refused},
		{"of a procedure and of a queue", "REVOKE EXECUTE ON p FROM [@anna@]\nGO\nREVOKE RECEIVE ON q FROM [@anna@]", refused + "\n" + refused},
		{"the option alone, then the right", "REVOKE GRANT OPTION FOR UPDATE ON t FROM [@anna@] CASCADE\nREVOKE UPDATE ON t FROM [@anna@]", ""},
		{"all of it", "REVOKE REFERENCES (b) ON t FROM [@anna@] CASCADE\nREVOKE EXECUTE ON p FROM [@anna@] CASCADE\nREVOKE RECEIVE ON q FROM [@anna@] CASCADE\nREVOKE EXECUTE ON p FROM [@anna@]", ""},
	} {
		expect(t, c.rule, play(named(c.script)), c.want)
	}
}
