package runner_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// Rights on schemas, types, columns and the database become those of PostgreSQL, and a role uses what it was granted.
func TestRightsOnSchemasTypesAndColumns(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	named, config := roles(t, pool, "anna", "berta")
	setUp := script(t, pool.Config().ConnConfig, named(`SET NOCOUNT ON
GO
CREATE SCHEMA Sales
GO
CREATE TYPE Sales.Code FROM varchar(10)
CREATE TABLE Sales.item (id int, Name varchar(10), price int)
CREATE TABLE own (a int, B int)
INSERT own VALUES (1, 2)
CREATE SEQUENCE numbers AS int START WITH 5
GO
CREATE FUNCTION twice (@n int) RETURNS int AS BEGIN RETURN 2 * @n END
GO
CREATE PROCEDURE Sales.put @id int AS INSERT Sales.item VALUES (@id, 'x', 3)
GO
GRANT SELECT, INSERT, EXECUTE ON SCHEMA::sales TO [@anna@]
GRANT SELECT ON dbo.own (a) TO [@anna@]
GRANT UPDATE (b) ON OBJECT::dbo.own TO [@anna@] WITH GRANT OPTION
GRANT EXECUTE ON dbo.twice TO [@anna@]
GRANT UPDATE ON numbers TO [@anna@]
GRANT EXECUTE ON TYPE::sales.code TO [@anna@]
GRANT ALTER ON SCHEMA::sales TO [@berta@]
GRANT CREATE TABLE TO [@berta@]
GRANT VIEW DEFINITION ON SCHEMA::sales TO [@berta@]
GO
CREATE TABLE Sales.later (n int)
GO
GRANT SELECT ON own (missing) TO [@anna@]
GO
GRANT INSERT (a) ON own TO [@anna@]
GO
GRANT SELECT ON SCHEMA::parley TO [@anna@]
GO
GRANT CONTROL ON SCHEMA::sales TO [@anna@]
GO
GRANT EXECUTE ON TYPE::nothing TO [@anna@]
GO
GRANT SELECT ON DATABASE::nowhere TO [@anna@]`))
	expect(t, "the owner grants", setUp, named(`GRANT CREATE TABLE has no effect: a role may create it in a schema on which it has ALTER.
GRANT VIEW DEFINITION has no effect: the catalog of PostgreSQL is open to every role.
Msg 1911, Level 16, State 1, Line 1
Column name 'missing' does not exist in the target table or view.
Msg 1020, Level 15, State 1, Line 1
Sub-entity lists (such as column or security expressions) cannot be specified for entity-level permissions.
Msg 15151, Level 16, State 1, Line 1
Cannot find the schema 'parley', because it does not exist or you do not have permission.
Msg 40517, Level 16, State 1, Line 1
'GRANT CONTROL ON SCHEMA::' is not supported by Parley: PostgreSQL has no such right on a schema.
Msg 15151, Level 16, State 1, Line 1
Cannot find the type 'nothing', because it does not exist or you do not have permission.
Msg 15151, Level 16, State 1, Line 1
Cannot find the database 'nowhere', because it does not exist or you do not have permission.`))
	use := `SET NOCOUNT ON
EXEC Sales.put 1
SELECT id, name FROM sales.item
SELECT n FROM sales.later
UPDATE own SET b = dbo.twice(4) WHERE a = 1
SELECT NEXT VALUE FOR numbers AS n
GO
SELECT b FROM own
GO
DELETE Sales.item`
	expect(t, "a role uses its rights and no others", script(t, config("anna"), use), `id name
1 x
n
n
5
b
Msg 229, Level 14, State 5, Line 1
The SELECT permission was denied on the object 'own', database '', schema ''.
Msg 229, Level 14, State 5, Line 1
The DELETE permission was denied on the object 'item', database '', schema ''.
The statement has been terminated.`)
	expect(t, "who has ALTER on a schema makes tables in it", script(t, config("berta"), "CREATE TABLE Sales.hers (a int) INSERT Sales.hers VALUES (1)"), "(1 rows affected)")
	again := script(t, pool.Config().ConnConfig, named(`REVOKE SELECT, INSERT, EXECUTE ON SCHEMA::Sales FROM [@anna@]
REVOKE SELECT ON own (a) FROM [@anna@]
REVOKE GRANT OPTION FOR UPDATE ON own (B) FROM [@anna@] CASCADE
GO
CREATE TABLE Sales.last (n int)
GRANT SELECT TO [@berta@]`))
	expect(t, "rights are taken back", again, "")
	got := script(t, config("anna"), "SELECT id FROM Sales.item\nGO\nEXEC Sales.put 1\nGO\nSELECT n FROM Sales.last\nGO\nSELECT a FROM own")
	if strings.Count(got, "Msg 229") != 4 {
		t.Errorf("after REVOKE\n%s", got)
	}
	expect(t, "a right on the database is one on all schemas", script(t, config("berta"), "SET NOCOUNT ON SELECT a FROM own SELECT n FROM Sales.last"), "a\n1\nn")
	expect(t, "the rights of a user go with it", script(t, pool.Config().ConnConfig, named("DROP USER [@anna@]\nDROP LOGIN [@anna@]")), "")
}
