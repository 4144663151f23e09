package runner_test

import (
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// CREATE SCHEMA makes its tables and views and gives its rights, all of it or nothing.
func TestASchemaIsMadeWithItsObjects(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	named, config := roles(t, pool, "anna")
	got := script(t, pool.Config().ConnConfig, named(`CREATE SCHEMA Sprockets
  CREATE TABLE NineProngs (source int, cost int)
  CREATE VIEW Costs AS SELECT cost FROM Sprockets.NineProngs
  GRANT SELECT ON NineProngs TO [@anna@]
  DENY INSERT ON SCHEMA::Sprockets TO [@anna@]
GO
INSERT Sprockets.NineProngs VALUES (1, 2)
SELECT cost FROM Sprockets.Costs
GO
CREATE SCHEMA Broken
  CREATE TABLE a (n int)
  CREATE TABLE b (n nothing)
GO
IF SCHEMA_ID('Broken') IS NULL PRINT 'nothing was made'
GO
CREATE SCHEMA AUTHORIZATION dbo CREATE TABLE alone (n int)
GO
SELECT COUNT(*) FROM dbo.alone`))
	expect(t, "what the script prints", got, `DENY acts as REVOKE: the right was taken back; one that a role gets later, by itself or by a role that it joins, is not denied.
(1 rows affected)
cost
2
(1 rows affected)
Msg 2715, Level 16, State 3, Line 3
Column, parameter, or variable #1: Cannot find data type nothing.
nothing was made
0
(1 rows affected)`)
	expect(t, "what anna may", script(t, config("anna"), "SELECT source FROM Sprockets.NineProngs"), "source\n1\n(1 rows affected)")
}

// ALTER AUTHORIZATION gives a schema to another role, which may make tables in it then.
func TestASchemaIsGivenToAnotherRole(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	named, config := roles(t, pool, "anna")
	play := open(t, pool.Config().ConnConfig)
	expect(t, "the schema", play(named("CREATE SCHEMA Sales\nGO\nALTER AUTHORIZATION ON SCHEMA::sales TO [@anna@]\nSELECT USER_NAME(principal_id) AS o FROM sys.schemas WHERE name = 'Sales'")), named("o\n@anna@\n(1 rows affected)"))
	expect(t, "what its owner may", script(t, config("anna"), "CREATE TABLE Sales.item (n int)\nPRINT 'made'"), "made")
	expect(t, "it comes back", play("ALTER AUTHORIZATION ON SCHEMA::Sales TO dbo"), "")
	expect(t, "there is none", play("ALTER AUTHORIZATION ON SCHEMA::Nothing TO dbo"), "Msg 15151, Level 16, State 1, Line 1\nCannot find the schema 'Nothing', because it does not exist or you do not have permission.")
}
