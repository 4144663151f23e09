package runner_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/parleytest"
)

// roles makes login roles of this test by what follows CREATE ROLE, and gives how they are named in texts: @anna@ for anna.
func roles(t *testing.T, pool *pgxpool.Pool, names ...string) (named func(string) string, config func(string) *pgx.ConnConfig) {
	t.Helper()
	database := pool.Config().ConnConfig.Database
	var pairs []string
	for _, name := range names {
		role := strings.ToLower(database + "_" + name)
		pairs = append(pairs, "@"+name+"@", role)
		quoted := pgx.Identifier{role}.Sanitize()
		if _, err := pool.Exec(t.Context(), "create role "+quoted+" login password 'of a test'"); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for i := 1; i < len(pairs); i += 2 {
			quoted := pgx.Identifier{pairs[i]}.Sanitize()
			_, _ = pool.Exec(t.Context(), "drop owned by "+quoted+"; drop role "+quoted)
		}
	})
	replaced := strings.NewReplacer(pairs...)
	return replaced.Replace, func(name string) *pgx.ConnConfig {
		config := pool.Config().ConnConfig.Copy()
		config.User, config.Password = replaced.Replace("@"+name+"@"), "of a test"
		return config
	}
}

func execute(t *testing.T, pool *pgxpool.Pool, statement string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func expect(t *testing.T, rule, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s\n--- got\n%s\n--- want\n%s", rule, got, want)
	}
}

// EXECUTE AS acts as a role where its author may act as it, and the login too; REVERT and the end of the module take it back, and so
// does a rollback not.
func TestExecuteAsActsAsARole(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	named, config := roles(t, pool, "anna", "berta", "carl")
	execute(t, pool, "create schema dbo; grant usage, create on schema dbo to public")
	execute(t, pool, named(`grant "@berta@" to "@anna@"`))
	expect(t, "berta makes what belongs to her", script(t, config("berta"), named(`CREATE TABLE secrets (a int)
INSERT INTO secrets VALUES (42)
GO
CREATE PROCEDURE OfBerta WITH EXECUTE AS OWNER AS
BEGIN
  DECLARE @who sysname
  SELECT @who = USER_NAME()
  PRINT CONCAT('owner ', @who)
  SELECT a FROM secrets
END
GO
CREATE PROCEDURE OfCaller AS SELECT a FROM secrets
GO
CREATE PROCEDURE OfCarl WITH EXECUTE AS '@carl@' AS PRINT 'as carl'
GO
GRANT EXECUTE ON OfBerta TO [@anna@]
GRANT EXECUTE ON OfBerta TO [@carl@]
GRANT EXECUTE ON OfCaller TO [@carl@]`)), `(1 rows affected)
Msg 15517, Level 16, State 1, Procedure OfCarl, Line 1
Cannot execute as the database principal because the principal "`+named("@carl@")+`" does not exist, this type of principal cannot be impersonated, or you do not have permission.`)
	denied := "\nCannot execute as the database principal because the principal \"" + named("@berta@") +
		"\" does not exist, this type of principal cannot be impersonated, or you do not have permission."
	expect(t, "a login without membership cannot act as the owner", script(t, config("carl"), named(`EXEC OfBerta
EXECUTE AS USER = '@berta@'
PRINT USER_NAME()`)), "Msg 15517, Level 16, State 1, Line 1"+denied+"\nMsg 15517, Level 16, State 1, Line 2"+denied+"\n"+named("@carl@"))
	expect(t, "a caller needs the rights of a procedure without EXECUTE AS", script(t, config("carl"), "EXEC OfCaller"),
		"a\nMsg 229, Level 14, State 5, Procedure OfCaller, Line 1\nThe SELECT permission was denied on the object 'secrets', database '', schema ''.")
	expect(t, "a member acts as the owner, and as himself behind it, also when a transaction is rolled back",
		script(t, config("anna"), named(`BEGIN TRANSACTION
EXEC OfBerta
ROLLBACK
SELECT USER_NAME() AS who FROM (VALUES (1)) AS v (a)
EXECUTE AS USER = '@berta@'
BEGIN TRANSACTION
SELECT USER_NAME() AS who FROM (VALUES (1)) AS v (a)
ROLLBACK
SELECT USER_NAME() AS who FROM (VALUES (1)) AS v (a)
EXEC ('EXECUTE AS LOGIN = ''@berta@''; REVERT; REVERT; PRINT USER_NAME()')
REVERT
REVERT
SELECT USER_NAME() AS who FROM (VALUES (1)) AS v (a)`)), named(`owner @berta@
a
42
(1 rows affected)
who
@anna@
(1 rows affected)
who
@berta@
(1 rows affected)
who
@berta@
(1 rows affected)
@berta@
who
@anna@
(1 rows affected)`))
}

// A role without CREATE works in a database that others have set up, and gets an error where it defines something.
func TestARoleWithoutCreateWorks(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	named, config := roles(t, pool, "plain")
	setUp := script(t, pool.Config().ConnConfig, named(`CREATE TABLE items (id int IDENTITY PRIMARY KEY, name nvarchar(20))
CREATE QUEUE Inbox
CREATE SERVICE inbox ON QUEUE Inbox ([DEFAULT])
GO
CREATE PROCEDURE AddItem @name nvarchar(20) AS INSERT INTO items (name) VALUES (@name)
GO
CREATE FUNCTION dbo.Twice (@n int) RETURNS int AS BEGIN RETURN 2 * @n END
GO
CREATE TRIGGER counts ON items AFTER INSERT AS PRINT 'inserted ' + CAST(@@ROWCOUNT AS varchar(9))
GO
GRANT SELECT, INSERT ON items TO [@plain@]
GRANT EXECUTE ON AddItem TO [@plain@]`))
	expect(t, "the owner sets it up", setUp, "")
	execute(t, pool, named(`grant usage on schema dbo to "@plain@"`))
	got := script(t, config("plain"), `DECLARE @t TABLE (a int)
INSERT INTO @t VALUES (1)
CREATE TABLE #t (b nvarchar(10))
INSERT INTO #t VALUES (N'x')
EXEC AddItem N'one'
SELECT id, name FROM items
SELECT * FROM #t
GO
CREATE TABLE more (a int)
GO
CREATE PROCEDURE p AS PRINT 1
GO
CREATE TRIGGER t2 ON items AFTER DELETE AS PRINT 1
GO
DROP TRIGGER counts
GO
DELETE FROM items
GO
PRINT dbo.Twice(2)
GO
RECEIVE * FROM Inbox`)
	want := `(1 rows affected)
(1 rows affected)
inserted 1
(1 rows affected)
id name
1 one
(1 rows affected)
b
x
(1 rows affected)`
	if !strings.HasPrefix(got, want+"\n") {
		t.Errorf("--- got\n%s\n--- want\n%s", got, want)
	}
	t.Log(got)
}

// A client of PostgreSQL cannot write a table with a trigger of T-SQL by accident; members of the owner may leave the trigger out.
func TestATriggerStopsClientsThatDoNotRunIt(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	named, config := roles(t, pool, "owner", "writer")
	execute(t, pool, "create schema dbo; grant usage, create on schema dbo to public")
	expect(t, "two owners have triggers", script(t, pool.Config().ConnConfig, `CREATE TABLE other (a int)
GO
CREATE TRIGGER ofother ON other AFTER INSERT AS PRINT 'other'`)+script(t, config("owner"), named(`CREATE TABLE watched (a int)
GRANT INSERT, SELECT ON watched TO [@writer@]
GO
CREATE TRIGGER watches ON watched AFTER INSERT AS PRINT 'seen'`)), "")
	for role, mayskip := range map[string]bool{"owner": true, "writer": false} {
		conn, err := pgx.ConnectConfig(t.Context(), config(role))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), "insert into dbo.watched values (1)"); err == nil || !strings.Contains(err.Error(), "dbo.watched has the T-SQL trigger watches") {
			t.Errorf("%s writes past the trigger: %v", role, err)
		}
		_, err = conn.Exec(t.Context(), "set parley.tsql = 'skip'; insert into dbo.watched values (2)", pgx.QueryExecModeSimpleProtocol)
		if mayskip != (err == nil) {
			t.Errorf("%s leaves the trigger out: %v", role, err)
		}
		_ = conn.Close(t.Context())
	}
	expect(t, "the runner runs it", script(t, config("writer"), "INSERT INTO watched VALUES (3)"), "seen\n(1 rows affected)")
}

// A session that has read a table sees triggers that another session makes, changes, turns off and drops since.
func TestTriggersOfOtherSessionsCountAtOnce(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	config := pool.Config().ConnConfig
	play := open(t, config)
	other := open(t, config)
	expect(t, "there is no trigger yet", play("CREATE TABLE t (a int)\nGO\nINSERT INTO t VALUES (1)"), "(1 rows affected)")
	for _, step := range []struct{ change, want string }{
		{"CREATE TRIGGER g ON t AFTER INSERT AS PRINT 'first'", "first\n(1 rows affected)"},
		{"ALTER TRIGGER g ON t AFTER INSERT AS PRINT 'second'", "second\n(1 rows affected)"},
		{"DISABLE TRIGGER g ON t", "(1 rows affected)"},
		{"ENABLE TRIGGER g ON t", "second\n(1 rows affected)"},
		{"DROP TRIGGER g", "(1 rows affected)"},
		{"CREATE TRIGGER h ON t AFTER INSERT AS PRINT 'third'", "third\n(1 rows affected)"},
	} {
		expect(t, step.change, other(step.change), "")
		expect(t, "after "+step.change, play("INSERT INTO t VALUES (1)"), step.want)
	}
	expect(t, "it counts in a transaction too", other("ALTER TRIGGER h ON t AFTER INSERT AS PRINT 'fourth'"), "")
	expect(t, "in a transaction", play("BEGIN TRAN\nINSERT INTO t VALUES (1)\nPRINT @@TRANCOUNT\nCOMMIT"), "fourth\n(1 rows affected)\n1")
}
