package runner_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// A schema whose name differs from dbo by its letters alone may be anybody's. A name without a schema is of dbo.
func TestANameWithoutASchemaIsOfDboAlone(t *testing.T) {
	t.Parallel()
	pool := parleytest.EmptyDatabase(t)
	config := pool.Config().ConnConfig
	made := script(t, config, `
CREATE TABLE t (id int IDENTITY)
CREATE SEQUENCE s START WITH 1
CREATE TYPE n FROM varchar(9)
GO
CREATE TRIGGER g ON t AFTER INSERT AS PRINT 'of dbo'`)
	expect(t, "what the definitions print", made, "")
	for _, statement := range []string{
		`create schema "DBO"`, `create table "DBO".t (id integer generated always as identity (start with 50))`,
		`create sequence "DBO".s start 100`, `comment on sequence "DBO".s is 'int'`,
		`create domain "DBO".n as varchar(1)`, `comment on domain "DBO".n is 'CREATE TYPE n FROM varchar(1)'`,
		`create function public.nothing() returns trigger language plpgsql as 'begin return null; end'`,
		`create trigger g before insert on "DBO".t for each statement execute function public.nothing()`,
	} {
		execute(t, pool, statement)
	}
	got := script(t, config, `
SELECT NEXT VALUE FOR s
DECLARE @n n = 'nine long'
PRINT @n
GRANT SELECT ON t TO public
GO
CREATE PROCEDURE p AS PRINT 'p'
GO
DROP TRIGGER g
GO
INSERT t DEFAULT VALUES
PRINT IDENT_CURRENT('t')`)
	expect(t, "what scripts print", got, "1\n(1 rows affected)\nnine long\n(1 rows affected)\n1")
	var granted, kept, triggers string
	if err := pool.QueryRow(t.Context(), `
		select
			(select string_agg(n.nspname, ' ') from pg_class as c join pg_namespace as n on n.oid = c.relnamespace, aclexplode(c.relacl) as a
				where c.relname = 't' and a.grantee = 0),
			(select string_agg(n.nspname, ' ') from pg_proc as p join pg_namespace as n on n.oid = p.pronamespace where p.proname = 'p'),
			(select string_agg(n.nspname, ' ') from pg_trigger as g join pg_class as c on c.oid = g.tgrelid
				join pg_namespace as n on n.oid = c.relnamespace where g.tgname = 'g')`).Scan(&granted, &kept, &triggers); err != nil {
		t.Fatal(err)
	}
	expect(t, "granted on the table of, kept in, and left is the trigger of", granted+", "+kept+", "+triggers, "dbo, dbo, DBO")
}

// A name of dbo never means an object of a schema "DBO": such an object is neither read nor in the way of a new one.
func TestObjectsOfAStrangersSchemaAreNotThoseOfDbo(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	config := pool.Config().ConnConfig
	expect(t, "dbo is there", script(t, config, "CREATE TABLE other (a int)"), "")
	for _, statement := range []string{
		`create schema "DBO"`, `create table "DBO".t (a integer)`, `insert into "DBO".t values (42)`, `create sequence "DBO".s`,
		`create function "DBO".f() returns text language sql as 'select null::text'`,
		`comment on function "DBO".f() is 'CREATE FUNCTION f () RETURNS int AS BEGIN RETURN 42 END'`,
		`create domain "DBO".n as varchar(1)`, `comment on domain "DBO".n is 'CREATE TYPE n FROM varchar(1)'`,
		`create schema "Sales"`, `create table "Sales".t (a integer)`, `insert into "Sales".t values (1)`,
		`create schema "SALES"`, `create table "SALES".t (a integer)`, `create table "SALES".u (a integer)`,
	} {
		execute(t, pool, statement)
	}
	got := script(t, config, `
IF OBJECT_ID('t') IS NULL AND OBJECT_ID('dbo.t', 'U') IS NULL AND OBJECT_ID('[DBO].t') IS NULL PRINT 'no table'
IF OBJECT_ID('f') IS NULL AND TYPE_ID('n') IS NULL AND COL_LENGTH('t', 'a') IS NULL PRINT 'nothing else'
IF SCHEMA_ID('DBO') = SCHEMA_ID('dbo') PRINT 'one schema'
GO
SELECT * FROM t
GO
GRANT SELECT ON t TO public
GO
PRINT dbo.f()
GO
CREATE TABLE t (b varchar(5))
CREATE SEQUENCE s START WITH 7
CREATE TYPE n FROM varchar(9)
GO
INSERT t VALUES ('mine')
DECLARE @n n = 'nine long'
SELECT b, NEXT VALUE FOR s, @n FROM [DBO].[T]
EXEC sp_rename 't', 'renamed'
SELECT a FROM sales.t
SELECT a FROM sales.u`)
	expect(t, "what scripts print", got, `no table
nothing else
one schema
Msg 208, Level 16, State 1, Line 1
Invalid object name 't'.
Msg 15151, Level 16, State 1, Line 1
Cannot find the object 't', because it does not exist or you do not have permission.
Msg 4121, Level 16, State 1, Line 1
Cannot find either column "dbo" or the user-defined function or aggregate "dbo.f", or the name is ambiguous.
(1 rows affected)
b
mine 7 nine long
(1 rows affected)
Caution: Changing any part of an object name could break scripts and stored procedures.
a
1
(1 rows affected)
Msg 208, Level 16, State 1, Line 6
Invalid object name 'sales.u'.`)
}

// A role that may make schemas chooses their letters. A schema of an outsider stands in for no other, also where that has no such object,
// or where a script writes the outsider's letters.
func TestTheSchemaOfAnOutsiderStandsInForNoOther(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	named, config := roles(t, pool, "mallory")
	execute(t, pool, named(`create schema mine authorization "@mallory@"; create schema ours authorization "@mallory@";
create schema dbo; grant usage on schema dbo to public`))
	expect(t, "the owner makes schemas first", script(t, pool.Config().ConnConfig, `CREATE TABLE kept (a int)
INSERT kept VALUES (1)
GO
CREATE SCHEMA Sales
GO
CREATE TABLE Sales.orders (a int)
INSERT Sales.orders VALUES (2)`), "(1 rows affected)\n(1 rows affected)")
	for _, schema := range []string{"mine", "ours"} {
		expect(t, "an outsider makes objects", script(t, config("mallory"), strings.ReplaceAll(`SET NOCOUNT ON
CREATE TABLE @.kept (a int)
INSERT @.kept VALUES (666)
CREATE TABLE @.orders (a int)
CREATE TABLE @.absent (a int)
CREATE SEQUENCE @.numbers AS int START WITH 666
CREATE TYPE @.alias FROM int
CREATE SYNONYM @.other FOR @.kept
GRANT SELECT, INSERT ON SCHEMA::@ TO public
GO
CREATE VIEW @.seen AS SELECT 666 AS a
GO
CREATE FUNCTION @.answer() RETURNS int AS BEGIN RETURN 666 END
GO
CREATE PROCEDURE @.work AS PRINT 'of an outsider'
GO
GRANT EXECUTE ON @.answer TO public
GRANT EXECUTE ON @.work TO public
GRANT SELECT ON @.seen TO public
GRANT UPDATE ON @.numbers TO public`, "@", schema)), "")
	}
	execute(t, pool, `alter schema mine rename to "DBO"; alter schema ours rename to "SALES"`)
	got := script(t, pool.Config().ConnConfig, `SET NOCOUNT ON
SELECT a FROM DBO.kept
SELECT a FROM SALES.orders
SELECT OBJECT_ID('absent') AS a, OBJECT_ID('DBO.work') AS b, OBJECT_ID('SALES.absent') AS c, TYPE_ID('alias') AS d, COL_LENGTH('DBO.absent', 'a') AS e
GO
INSERT absent VALUES (1)
GO
INSERT SALES.absent VALUES (1)
GO
SELECT a FROM seen
GO
SELECT a FROM other
GO
SELECT NEXT VALUE FOR numbers
GO
DECLARE @a alias
GO
PRINT dbo.answer()
GO
PRINT SALES.answer()
GO
EXEC work
EXEC DBO.work
EXEC SALES.work
GRANT EXECUTE ON work TO public
GRANT SELECT ON SCHEMA::DBO TO public
DROP TABLE DBO.absent`)
	expect(t, "a script of the owner", got, `a
1
a
2
a b c d e
NULL NULL NULL NULL NULL
Msg 208, Level 16, State 1, Line 1
Invalid object name 'absent'.
Msg 208, Level 16, State 1, Line 1
Invalid object name 'SALES.absent'.
Msg 208, Level 16, State 1, Line 1
Invalid object name 'seen'.
Msg 208, Level 16, State 1, Line 1
Invalid object name 'other'.
Msg 208, Level 16, State 1, Line 1
Invalid object name 'numbers'.
Msg 2715, Level 16, State 3, Line 1
Column, parameter, or variable #1: Cannot find data type alias.
Msg 4121, Level 16, State 1, Line 1
Cannot find either column "dbo" or the user-defined function or aggregate "dbo.answer", or the name is ambiguous.
Msg 4121, Level 16, State 1, Line 1
Cannot find either column "SALES" or the user-defined function or aggregate "SALES.answer", or the name is ambiguous.
Msg 2812, Level 16, State 62, Line 1
Could not find stored procedure 'work'.
Msg 2812, Level 16, State 62, Line 2
Could not find stored procedure 'DBO.work'.
Msg 2812, Level 16, State 62, Line 3
Could not find stored procedure 'SALES.work'.
Msg 15151, Level 16, State 1, Line 4
Cannot find the object 'work', because it does not exist or you do not have permission.
Msg 3701, Level 11, State 5, Line 6
Cannot drop the table 'DBO.absent', because it does not exist or you do not have permission.`)
	var open bool
	err := pool.QueryRow(t.Context(), "select has_table_privilege('public', 'dbo.kept', 'select')").Scan(&open)
	if err != nil || !open {
		t.Errorf("the right on SCHEMA::DBO is not on dbo: %v", err)
	}
}
