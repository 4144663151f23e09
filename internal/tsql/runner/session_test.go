package runner_test

import (
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// The number of a session is that of sys.dm_exec_sessions, and functions give names of numbers outside of tables too.
func TestASessionKnowsItsNumberAndNames(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	named, config := roles(t, pool, "anna")
	play := open(t, pool.Config().ConnConfig)
	for _, c := range []struct{ rule, script, want string }{
		{"@@SPID is the session of the view", "SELECT COUNT(*) FROM sys.dm_exec_sessions WHERE session_id = @@SPID AND database_id = DB_ID()\nDECLARE @s smallint = @@SPID\nIF @s = @@SPID PRINT 'one number'", "1\n(1 rows affected)\none number"},
		{"names of databases", "IF DB_NAME(DB_ID()) = DB_NAME() PRINT 'this one'\nPRINT DB_NAME(1)\nIF DB_NAME(-7) IS NULL AND DB_NAME(NULL) IS NULL PRINT 'none'\nSELECT name FROM sys.databases WHERE DB_NAME(database_id) <> name", "this one\nmaster\nnone\nname\n(0 rows affected)"},
		{"names of users and logins", named("IF USER_NAME(USER_ID('@anna@')) = '@anna@' AND SUSER_NAME(SUSER_ID('@anna@')) = '@anna@' AND SUSER_SNAME(SUSER_SID('@anna@')) = '@anna@' PRINT 'anna'\nPRINT USER_NAME(1)\nPRINT SUSER_SNAME(0x01)\nIF USER_NAME(99) IS NULL PRINT 'none'"), "anna\ndbo\nsa\nnone"},
		{"options of the session", "SELECT SESSIONPROPERTY('ANSI_NULLS'), SESSIONPROPERTY('numeric_roundabort'), SESSIONPROPERTY('nothing')\nSET NUMERIC_ROUNDABORT ON\nIF SESSIONPROPERTY('NUMERIC_ROUNDABORT') = 1 PRINT 'on'\nSET NUMERIC_ROUNDABORT OFF", "1 0 NULL\n(1 rows affected)\non"},
		{"settings of the planner have no effect", "ALTER DATABASE SCOPED CONFIGURATION SET MAXDOP = 4\nALTER DATABASE SCOPED CONFIGURATION CLEAR PROCEDURE_CACHE", "ALTER DATABASE SCOPED CONFIGURATION has no effect: PostgreSQL plans in its own way.\nALTER DATABASE SCOPED CONFIGURATION has no effect: PostgreSQL plans in its own way."},
		{"a word of an argument has one part", "CREATE PROCEDURE #p @n sysname AS PRINT @n\nGO\nEXEC #p word\nGO\nEXEC #p dbo.word", "word\nMsg 102, Level 15, State 1, Line 1\nIncorrect syntax near '.'."},
		{"its request and its connection are seen", "SELECT r.status, r.command, c.protocol_type FROM sys.dm_exec_requests r JOIN sys.dm_exec_connections c ON c.session_id = r.session_id WHERE r.session_id = @@SPID AND r.blocking_session_id = 0", "status command protocol_type\nrunning SELECT TSQL\n(1 rows affected)"},
		{"scripts that ask for assemblies find none", "IF EXISTS (SELECT * FROM sys.assemblies WHERE name = 'a') PRINT 'there'\nSELECT COUNT(*) FROM sys.assembly_files f JOIN sys.xml_schema_collections c ON c.name = f.name", "0\n(1 rows affected)"},
		{"counters of the broker", "SELECT RTRIM(object_name) AS o, RTRIM(counter_name) AS c, cntr_value AS v FROM sys.dm_os_performance_counters WHERE object_name = 'SQLServer:Broker Statistics' AND counter_name = 'SQL SENDs/sec'\nPRINT PROGRAM_NAME() + '.'", "o c v\nSQLServer:Broker Statistics SQL SENDs/sec 0\n(1 rows affected)\n."},
	} {
		expect(t, c.rule, play(c.script), c.want)
	}
	execute(t, pool, "grant usage on schema dbo to public")
	expect(t, "another role has a number too", script(t, config("anna"), "IF EXISTS (SELECT * FROM sys.dm_exec_sessions WHERE session_id = @@SPID) PRINT 'seen'"), "seen")
}
