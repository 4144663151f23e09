package runner_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/runner"
	"github.com/parley-broker/parley/internal/tsql/session"
	"github.com/parley-broker/parley/parleytest"
)

// A session makes databases, goes from one to another, and drops them. Each name is one of this test.
func TestDatabasesAreThoseOfTheServer(t *testing.T) {
	t.Parallel()
	pool := parleytest.EmptyDatabase(t)
	config := pool.Config().ConnConfig
	dial := func(ctx context.Context, database string) (*pgx.Conn, error) {
		chosen := config.Copy()
		if database != "" {
			chosen.Database = database
		}
		return pgx.ConnectConfig(ctx, chosen)
	}
	s := runner.New(interpreter.Identity{User: "dbo"}, connection.New(dial))
	t.Cleanup(func() { _ = s.Close(context.WithoutCancel(t.Context())) })
	name := "Shop_" + config.Database
	run := func(script string) string {
		var out strings.Builder
		sink := session.NewTextSink(&out)
		for batch := range strings.SplitSeq(strings.ReplaceAll(script, "@shop@", name), "\nGO\n") {
			if err := s.Run(t.Context(), batch, sink); err != nil {
				t.Fatal(err)
			}
		}
		return strings.ReplaceAll(out.String(), name, "@shop@")
	}
	t.Cleanup(func() {
		_, _ = pool.Exec(context.WithoutCancel(t.Context()), "drop database if exists "+pgx.Identifier{strings.ToLower(name)}.Sanitize()+" with (force)")
	})
	for _, c := range []struct{ rule, script, want string }{
		{"a new database has a broker", `CREATE DATABASE [@shop@] ON (NAME = a, FILENAME = 'C:\\a.mdf')
GO
USE [@shop@]
PRINT DB_NAME()
GO
CREATE QUEUE q
CREATE SERVICE s ON QUEUE q ([DEFAULT])
DECLARE @h uniqueidentifier, @n int
BEGIN DIALOG @h FROM SERVICE s TO SERVICE 's', 'current database' WITH ENCRYPTION = OFF;
SEND ON CONVERSATION @h (N'x')
RECEIVE @n = message_type_id FROM q
PRINT @n`, `
CREATE DATABASE ON files has no effect: PostgreSQL keeps databases where it keeps all.
Changed database context to '@shop@'.
@shop@
14`},
		{"its broker is switched, here and from elsewhere", `ALTER DATABASE [@shop@] SET DISABLE_BROKER WITH ROLLBACK IMMEDIATE
GO
USE master
SET NOCOUNT ON
DECLARE @on bit
SELECT @on = is_broker_enabled FROM sys.databases WHERE name = '@shop@'
PRINT @on
ALTER DATABASE [@shop@] SET ENABLE_BROKER, TRUSTWORTHY ON
SELECT @on = is_broker_enabled FROM sys.databases WHERE name = '@shop@'
PRINT @on
ALTER DATABASE [@shop@] SET NEW_BROKER WITH ROLLBACK IMMEDIATE
ALTER DATABASE missing SET ENABLE_BROKER`, `
Changed database context to 'master'.
0
ALTER DATABASE SET TRUSTWORTHY has no effect: PostgreSQL has its own settings for that.
1
Msg 5011, Level 14, State 7, Line 10
User does not have permission to alter database 'missing', the database does not exist, or the database is not in a state that allows access checks.`},
		{"the options that scripts of databases are written with inform", `USE master
CREATE DATABASE [@shop@2] CONTAINMENT = NONE WITH CATALOG_COLLATION = DATABASE_DEFAULT, LEDGER = OFF, TRUSTWORTHY ON
DROP DATABASE [@shop@2]
USE [@shop@]`, `
Changed database context to 'master'.
WITH CATALOG_COLLATION has no effect: a setting of the storage of SQL Server.
WITH LEDGER has no effect: a setting of the storage of SQL Server.
WITH TRUSTWORTHY has no effect: rights between databases are those of PostgreSQL.
Changed database context to '@shop@'.`},
		{"a transaction does not reach over two, and may name its own", `BEGIN TRAN
CREATE DATABASE other
USE master
CREATE TABLE kept (n int)
USE [@shop@]
ROLLBACK
PRINT CONCAT('kept: ', OBJECT_ID('kept'))`, `
Msg 226, Level 16, State 6, Line 2
CREATE DATABASE statement not allowed within multi-statement transaction.
Msg 226, Level 16, State 6, Line 3
USE statement not allowed within multi-statement transaction.
Changed database context to '@shop@'.
kept: `},
		{"it is dropped from elsewhere", `CREATE DATABASE [@shop@]
USE [@shop@]
DROP DATABASE [@shop@]
USE master
DROP DATABASE [@shop@]
DROP DATABASE IF EXISTS [@shop@]
DROP DATABASE [@shop@]`, `
Msg 1801, Level 16, State 3, Line 1
Database '@shop@' already exists. Choose a different database name.
Changed database context to '@shop@'.
Msg 3702, Level 16, State 3, Line 3
Cannot drop database "@shop@" because it is currently in use.
Changed database context to 'master'.
Msg 3701, Level 11, State 5, Line 7
Cannot drop the database '@shop@', because it does not exist or you do not have permission.`},
	} {
		if got := run(c.script); strings.TrimSpace(got) != strings.TrimSpace(c.want) {
			t.Errorf("%s\n--- got\n%s\n--- want\n%s", c.rule, got, c.want)
		}
	}
}
