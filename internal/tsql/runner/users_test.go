package runner_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// A user is one of its database, though the role that stands for it is one of the server: the same name may be a user of each.
func TestUsersAreThoseOfTheirDatabase(t *testing.T) {
	t.Parallel()
	first, second := parleytest.Database(t).Config().ConnConfig, parleytest.Database(t).Config().ConnConfig
	user := "Reader_" + first.Database
	named := func(text string) string { return strings.ReplaceAll(text, "@reader@", user) }
	for _, step := range []struct {
		rule   string
		isHere bool
		script string
		want   string
	}{
		{"a user without a login is a role", true, `CREATE USER [@reader@] WITHOUT LOGIN`, ``},
		{"it is made once", true, `CREATE USER [@reader@] WITHOUT LOGIN`, `Msg 15023, Level 16, State 1, Line 1
User, group, or role '@reader@' already exists in the current database.`},
		{"and once in another database", false, `CREATE USER [@reader@] WITHOUT LOGIN
CREATE QUEUE Orders
GRANT RECEIVE ON Orders TO [@reader@]`, ``},
		{"it leaves one database alone", true, `DROP USER [@reader@]
SET NOCOUNT ON
IF EXISTS (SELECT * FROM sys.database_principals WHERE name = '@reader@') PRINT 'its role is there'`, `its role is there`},
		{"and may come back", true, `CREATE USER [@reader@] WITHOUT LOGIN
DROP USER [@reader@]`, ``},
		{"the last one takes the role along", false, `REVOKE RECEIVE ON Orders FROM [@reader@]
DROP USER [@reader@]
DROP USER [@reader@]`, `Msg 15151, Level 16, State 1, Line 3
Cannot drop the user '@reader@', because it does not exist or you do not have permission.`},
	} {
		config := second
		if step.isHere {
			config = first
		}
		if got := script(t, config, named(step.script)); got != named(step.want) {
			t.Errorf("%s\n--- got\n%s\n--- want\n%s", step.rule, got, named(step.want))
		}
	}
}

// A user of another name than its login is a role of its own, whose rights the login has. Procedures of the system do what statements do.
func TestLoginsHaveTheRightsOfTheirUsers(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	config := pool.Config().ConnConfig
	named := func(text string) string {
		return strings.NewReplacer("@login@", config.Database+"_Login", "@user@", config.Database+"_User",
			"@staff@", config.Database+"_staff").Replace(text)
	}
	got := script(t, config, named(`EXEC sp_addlogin N'@login@', N'it''s $ecret'
EXEC master.dbo.sp_addrole '@staff@'
EXEC sp_adduser @loginame = '@login@', @name_in_db = '@user@', @grpname = '@staff@'
DECLARE @code int
EXEC @code = dbo.sp_addrolemember '@staff@', 'no such user'
PRINT @code
EXEC @code = sys.sp_addrolemember '@staff@', '@user@'
PRINT @code
EXEC sp_addrolemember '@staff@'
GO
CREATE LOGIN [@login@] FROM WINDOWS
ALTER LOGIN [@login@] WITH PASSWORD = 'another'
ALTER LOGIN [@login@] WITH DEFAULT_DATABASE = [master], CHECK_POLICY = OFF
GO
EXEC ('CREATE TABLE t (a int)')
GRANT SELECT ON t TO [@user@]
GRANT CONNECT ON ENDPOINT::e TO [@login@]`))
	want := named(`Msg 15151, Level 16, State 1, Line 1
Cannot find the user 'no such user', because it does not exist or you do not have permission.
1
0
Msg 201, Level 16, State 4, Procedure sp_addrolemember, Line 0
Procedure or function 'sp_addrolemember' expects parameter '@membername', which was not supplied.
Msg 15025, Level 16, State 1, Line 1
The server principal '@login@' already exists.
DEFAULT_DATABASE has no effect: its settings are those of a role of PostgreSQL.
CHECK_POLICY has no effect: its settings are those of a role of PostgreSQL.
GRANT ON ENDPOINT has no effect: a daemon lets in the peers that it is paired with, see parley pair.`)
	if got != want {
		t.Errorf("--- got\n%s\n--- want\n%s", got, want)
	}
	var may string
	err := pool.QueryRow(t.Context(), `select concat(has_table_privilege($1, 'dbo.t', 'select'), pg_has_role($1, $2, 'usage'), r.rolcanlogin)
from pg_roles as r where r.rolname = $1`, named("@login@"), named("@staff@")).Scan(&may)
	if err != nil || may != "ttt" {
		t.Errorf("privileges %q, %v", may, err)
	}
	after := script(t, config, named(`REVOKE SELECT ON t FROM [@user@]
EXEC sp_droprolemember '@staff@', '@user@'
EXEC sp_dropuser '@user@'
EXEC sp_droprole '@staff@'
EXEC sp_droplogin '@login@'
EXEC sp_droplogin '@login@'`))
	if want := named("Msg 15151, Level 16, State 1, Line 1\nCannot drop the login '@login@', because it does not exist or you do not have permission."); after != want {
		t.Errorf("--- got\n%s\n--- want\n%s", after, want)
	}
}

// USE in a text that is executed ends with the text, and so does one that fails behind it.
func TestUseInATextEndsWithIt(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	config := pool.Config().ConnConfig
	got := script(t, config, `DECLARE @text nvarchar(max) = N'USE master; PRINT DB_NAME()'
EXEC (@text)
PRINT DB_NAME()
EXEC sp_executesql N'USE master; SELECT 1/0 AS n; PRINT DB_NAME()'
PRINT DB_NAME()
EXEC (N'USE master; SELECT * FROM missing')
PRINT DB_NAME()
CREATE QUEUE q`)
	want := strings.ReplaceAll(`Changed database context to 'master'.
master
@
Changed database context to 'master'.
n
Msg 8134, Level 16, State 1, Line 1
Divide by zero error encountered.
master
@
Changed database context to 'master'.
Msg 208, Level 16, State 1, Line 1
Invalid object name 'missing'.
@`, "@", config.Database)
	if got != want {
		t.Errorf("--- got\n%s\n--- want\n%s", got, want)
	}
}
