package runner_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/parleytest"
)

// injected holds a statement of a thief; it stands in names and values of every kind.
const injected = `x"']; DROP TABLE dbo.sentinel; -- $$ $parley$ \`

// No name and no value of a script becomes a part of another statement.
func TestNamesAndValuesNeverBecomeSQL(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	run := open(t, pool.Config().ConnConfig)
	expect(t, "the sentinel is there", run("CREATE TABLE dbo.sentinel (a int)\nINSERT INTO dbo.sentinel VALUES (7)"), "(1 rows affected)")
	replaced := strings.NewReplacer(
		"@name@", "["+strings.ReplaceAll(injected, "]", "]]")+"]", "@text@", "N'"+strings.ReplaceAll(injected, "'", "''")+"'",
		"@quoted@", strings.ReplaceAll("N'"+strings.ReplaceAll(injected, "'", "''")+"'", "'", "''"),
	)
	for _, attack := range []string{
		"CREATE TABLE @name@ (@name@ nvarchar(90) DEFAULT @text@ CHECK (@name@ <> N'y'), b int)\nINSERT INTO @name@ (b) VALUES (1)\n" +
			"UPDATE @name@ SET @name@ = @text@ WHERE @name@ = @text@\nSELECT @name@ AS @name@ FROM @name@ AS @name@ ORDER BY @name@",
		"CREATE TABLE #@name@ (a int)", "CREATE TABLE [#x\"; DROP TABLE dbo.sentinel; --] (a int)\nDROP TABLE [#x\"; DROP TABLE dbo.sentinel; --]",
		"DECLARE @name@ CURSOR FOR SELECT 1 AS a\nOPEN @name@\nFETCH NEXT FROM @name@\nCLOSE @name@\nDEALLOCATE @name@",
		"EXEC sp_executesql N'SELECT @x AS a', N'@x nvarchar(90)', @x = @text@",
		"EXEC ('SELECT @quoted@ AS a')",
		"DECLARE @v nvarchar(90) = @text@\nEXEC @v\nSELECT @v WHERE @v LIKE @text@ AND @v IN (SELECT a FROM (VALUES (@text@)) AS t (a))",
		"BEGIN TRAN @name@\nSAVE TRAN @name@\nROLLBACK TRAN @name@\nIF @@TRANCOUNT > 0 ROLLBACK",
		"CREATE QUEUE @name@\nCREATE SERVICE @name@ ON QUEUE @name@ ([DEFAULT])\nSELECT * FROM @name@;\nRECEIVE * FROM @name@\nDROP SERVICE @name@\nDROP QUEUE @name@",
		"CREATE PROCEDURE @name@ @p nvarchar(90) = @text@ AS SELECT @p AS a /* $$ $parley$ */ -- \\",
		"EXEC @name@\nDROP PROCEDURE @name@",
		"CREATE FUNCTION dbo.@name@ (@p nvarchar(90)) RETURNS nvarchar(90) AS BEGIN RETURN @p + @text@ END",
		"PRINT dbo.@name@(@text@)",
		"CREATE VIEW v@name@ AS SELECT @text@ AS @name@",
		"CREATE TRIGGER tr ON dbo.sentinel AFTER DELETE AS PRINT @text@ /* $$ $parley$ $guard$ */",
		"EXECUTE AS USER = @text@", "USE @name@", "CREATE ROLE @name@", "DROP ROLE @name@",
		"SELECT OBJECT_ID(@text@), DB_ID(@text@), TYPE_ID(@text@), SCHEMA_ID(@text@)",
		"SELECT (SELECT @text@ AS @name@ FOR XML PATH(N'r'), TYPE)", "SELECT @text@ AS a FOR JSON PATH",
		"GRANT SELECT ON dbo.sentinel TO @name@", "DROP TABLE IF EXISTS dbo.[" + strings.ReplaceAll(injected, "]", "]]") + "2]",
	} {
		out := run(replaced.Replace(attack))
		if strings.Contains(out, "closed:") {
			t.Fatalf("%s closed the session: %s", attack, out)
		}
		if left := run("SELECT a FROM dbo.sentinel"); left != "a\n7\n(1 rows affected)" {
			t.Fatalf("%s took the table away: %s", attack, left)
		}
	}
}

// A function that another role has put beside those of PostgreSQL does not run with the rights of a session of T-SQL.
func TestFunctionsOfOthersDoNotStandInForThoseOfTheServer(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	execute(t, pool, `create table public.stolen (what text);
create function public.lower(name) returns text language plpgsql as $$ begin
  insert into public.stolen values ('lower'); return pg_catalog.lower($1::text); end $$;
create function public.is_same(name, text) returns boolean language plpgsql as $$ begin
  insert into public.stolen values ('='); return $1::text operator(pg_catalog.=) $2; end $$;
create operator public.= (leftarg = name, rightarg = text, function = public.is_same);
create function public.concat(oid, text, "char") returns text language plpgsql as $$ begin
  insert into public.stolen values ('concat'); return ''; end $$`)
	got := script(t, pool.Config().ConnConfig, `CREATE TABLE t (a int)
CREATE QUEUE q
INSERT INTO t VALUES (1)
GO
CREATE PROCEDURE p AS SELECT a FROM t
GO
EXEC p
SELECT COUNT(*) AS n FROM sys.tables WHERE name = 't'`)
	expect(t, "the script runs", got, "(1 rows affected)\na\n1\n(1 rows affected)\nn\n1\n(1 rows affected)")
	var stolen int
	if err := pool.QueryRow(t.Context(), "select count(*) from public.stolen").Scan(&stolen); err != nil || stolen != 0 {
		t.Errorf("%d calls of functions of others, %v", stolen, err)
	}
}

// Other databases are reached as the login alone, and a name with another database is refused.
func TestOtherDatabasesAreNotReadByTheWay(t *testing.T) {
	t.Parallel()
	pool, elsewhere := parleytest.Database(t), parleytest.EmptyDatabase(t)
	named, config := roles(t, pool, "thief")
	execute(t, elsewhere, "create schema dbo; create table dbo.secrets (a int)")
	other := elsewhere.Config().ConnConfig.Database
	got := script(t, config("thief"), "USE ["+other+"]\nGO\nSELECT * FROM secrets\nGO\nSELECT * FROM ["+other+"].dbo.secrets\nGO\nEXEC ["+other+"].dbo.p\nGO\n"+
		"EXECUTE AS USER = 'dbo'\nGO\nALTER DATABASE ["+other+"] SET NEW_BROKER\nGO\nDROP DATABASE ["+other+"]")
	got += "\n" + script(t, pool.Config().ConnConfig, named("EXECUTE AS USER = '@thief@'\nGO\nALTER DATABASE ["+other+"] SET NEW_BROKER\nGO\nDROP DATABASE ["+other+"]\nGO\n"+
		"USE ["+other+"]\nGO\nSELECT * FROM secrets"))
	if strings.Count(got, "Msg ") < 9 {
		t.Errorf("a statement passes: %s", got)
	}
	for line := range strings.SplitSeq(got, "\n") {
		if strings.HasPrefix(line, "(") {
			t.Errorf("%s reads or changes %s: %s", named("@thief@"), other, got)
		}
	}
	var there bool
	if err := elsewhere.QueryRow(t.Context(), "select to_regclass('dbo.secrets') is not null").Scan(&there); err != nil || !there {
		t.Errorf("the table is gone: %v", err)
	}
	t.Log(got)
}

// A role that may make procedures of PostgreSQL may write in one what those of T-SQL keep there. That ends no session, and hides no object
// from the catalog of others.
func TestATextThatSomebodyForgedHarmsNobodyElse(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	execute(t, pool, `create schema dbo;
create procedure dbo.empty() language plpgsql as e'-- T-SQL {"schema":"dbo","name":"Empty","quoted_identifier":true}\nbegin null; end\n-- its text:\n--';
create procedure dbo.garbage() language plpgsql as e'-- T-SQL {no JSON\nbegin null; end\n-- its text:\n--print 1';
create procedure dbo.zero() language plpgsql as e'-- T-SQL {"schema":"dbo","name":"\\u0000","quoted_identifier":true}\nbegin null; end\n-- its text:\n--';
create procedure dbo.half() language plpgsql as e'-- T-SQL {"schema":"dbo","name":"\\ud800","quoted_identifier":true}\nbegin null; end\n-- its text:\n--'`)
	got := script(t, pool.Config().ConnConfig, `CREATE PROCEDURE [its "own" <name> é] AS PRINT 'run'
GO
EXEC empty
EXEC garbage
EXEC [its "own" <name> é]
SELECT name FROM sys.procedures ORDER BY name`)
	expect(t, "the session goes on", got, `Msg 2812, Level 16, State 62, Line 1
Could not find stored procedure 'Empty'.
Msg 2812, Level 16, State 62, Line 2
Could not find stored procedure 'garbage'.
run
name
Empty
garbage
half
its "own" <name> é
zero
(5 rows affected)`)
}

// A text or a document that is nested without end is an error, and no end of the process that reads it.
func TestNestingWithoutEndIsRefused(t *testing.T) {
	t.Parallel()
	pool := parleytest.EmptyDatabase(t)
	got := script(t, pool.Config().ConnConfig, `DECLARE @s nvarchar(max) = N'PRINT 1' + REPLICATE(CAST(N'+1' AS nvarchar(max)), 30000)
EXEC (@s)
GO
DECLARE @x xml = REPLICATE(CAST(N'<a>' AS nvarchar(max)), 128) + REPLICATE(CAST(N'</a>' AS nvarchar(max)), 128)
PRINT LEN(CAST(@x AS nvarchar(max)))
SET @x = REPLICATE(CAST(N'<a>' AS nvarchar(max)), 129) + REPLICATE(CAST(N'</a>' AS nvarchar(max)), 129)
GO
CREATE PROCEDURE #p WITH EXECUTE AS OWNER AS PRINT 1`)
	expect(t, "what is refused", got, `Msg 191, Level 15, State 1, Line 1
Some part of your SQL statement is nested too deeply. Rewrite the query or break it up into smaller queries.
893
Msg 6335, Level 16, State 101, Line 3
XML datatype instance has too many levels of nested nodes. Maximum allowed depth is 128 levels.
Msg 40517, Level 16, State 1, Line 1
'EXECUTE AS of a temporary procedure' is not supported by Parley.`)
}

// The function that PostgreSQL runs for a trigger of T-SQL is none of a role that could not have made the trigger, whatever its name. So
// nobody who may create functions in schema dbo runs code as those who change tables.
func TestATriggerCallsNoFunctionOfAnotherRole(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	named, config := roles(t, pool, "thief", "owner")
	execute(t, pool, "create schema dbo; grant usage, create on schema dbo to public; create table public.stolen (who text); grant insert on public.stolen to public")
	conn, err := pgx.ConnectConfig(t.Context(), config("thief"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	const planted = "() returns trigger language plpgsql as $$ begin insert into public.stolen values (current_user); return null; end $$"
	if _, err := conn.Exec(t.Context(), "create function dbo._p_tsql_trigger"+planted); err != nil {
		t.Fatal(err)
	}
	for _, role := range []*pgx.ConnConfig{config("owner"), pool.Config().ConnConfig} {
		got := script(t, role, `CREATE TABLE t (a int)
GO
CREATE TRIGGER [it's %s $parley$ \] ON t AFTER INSERT AS PRINT 'seen'
GO
INSERT INTO t VALUES (1)
GO
ALTER TRIGGER [it's %s $parley$ \] ON t AFTER INSERT AS PRINT 'changed'
GO
INSERT INTO t VALUES (1)
GO
DROP TABLE t`)
		expect(t, "the trigger runs for "+role.User, got, "seen\n(1 rows affected)\nchanged\n(1 rows affected)")
	}
	// The owner of a function may replace it at any time: also what the thief has got for a trigger of his own serves nobody else.
	expect(t, "the thief has a trigger", script(t, config("thief"), "CREATE TABLE bait (a int)\nGO\nCREATE TRIGGER b ON bait AFTER INSERT AS PRINT 'bait'"), "")
	expect(t, "another role has one", script(t, config("owner"), "CREATE TABLE t (a int)\nGO\nCREATE TRIGGER own ON t AFTER INSERT AS PRINT 'own'"), "")
	var shared int
	const used = `select count(*) from pg_trigger as g join pg_class as c on c.oid = g.tgrelid join pg_proc as p on p.oid = g.tgfoid
where c.relowner <> p.proowner and p.proowner::regrole::text = $1`
	if err := pool.QueryRow(t.Context(), used, named("@thief@")).Scan(&shared); err != nil || shared > 0 {
		t.Errorf("%d triggers of others call a function of the thief, %v", shared, err)
	}
	var stolen []string
	if err := pool.QueryRow(t.Context(), "select coalesce(array_agg(who), '{}') from public.stolen").Scan(&stolen); err != nil || len(stolen) > 0 {
		t.Errorf("code of the thief ran as %q, %v", stolen, err)
	}
}
