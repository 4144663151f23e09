package runner_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// Customs of SQL Server on which scripts of its administrators rest.
func TestScriptsMayRestOnTheCustomsOfSQLServer(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	config := pool.Config().ConnConfig
	for _, c := range []struct{ rule, script, want string }{
		{
			"sp_executesql returns the @@ERROR of the end of its text",
			"DECLARE @r int\nEXEC @r = sp_executesql N'SELECT 1/0 AS a'\nPRINT @r\nEXEC @r = sp_executesql N'SELECT 1/0 AS a PRINT 1'\nPRINT @r",
			"a\nMsg 8134, Level 16, State 1, Line 1\nDivide by zero error encountered.\n8134\na\nMsg 8134, Level 16, State 1, Line 1\nDivide by zero error encountered.\n1\n0",
		},
		{
			"rows without a key come as they were inserted, also after a change",
			"SET NOCOUNT ON\nDECLARE @t TABLE (id int IDENTITY, a int)\nINSERT @t VALUES (1), (2), (3)\nUPDATE @t SET a = 9 WHERE a = 1\nSELECT a FROM @t\nSELECT TOP (1) a AS one FROM @t",
			"a\n9\n2\n3\none\n9",
		},
		{
			"TOP of DELETE and UPDATE takes the first rows of the key",
			"SET NOCOUNT ON\nCREATE TABLE #t (id int PRIMARY KEY, a int)\nINSERT #t VALUES (3, 3), (1, 1), (2, 2)\nDELETE TOP (1) FROM #t\nUPDATE TOP (1) #t SET a = 7\nSELECT id, a FROM #t",
			"id a\n2 7\n3 3",
		},
		{
			"the broker's own queues are shipped with it",
			"CREATE QUEUE mine\nSELECT name FROM sys.objects WHERE type = 'SQ' AND is_ms_shipped = 0",
			"name\nmine\n(1 rows affected)",
		},
		{
			"a broker instance is shown in capitals",
			"CREATE ROUTE r WITH SERVICE_NAME = 's', BROKER_INSTANCE = 'd8d4d268-00a3-4c62-8f91-634b89c1e315', ADDRESS = 'LOCAL'\nSELECT broker_instance AS b FROM sys.routes WHERE name = 'r'",
			"b\n<guid>\n(1 rows affected)",
		},
		{
			"names in functions of the catalog may have brackets, and what is no name gives NULL",
			"CREATE TABLE [my t] (id int IDENTITY(5, 1), a varchar(7))\nCREATE TYPE [my type] FROM int\n" +
				"PRINT CONCAT(COL_LENGTH('[dbo].[my t]', 'a'), ' ', IDENT_CURRENT(N'dbo.[my t]'), ' ', IDENT_SEED('[my t]'), ' ', TYPE_ID('[int]'))\n" +
				"IF TYPE_ID('[dbo].[my type]') IS NOT NULL AND TYPE_ID('a''b\"c') IS NULL AND COL_LENGTH('\"', 'a') IS NULL AND IDENT_INCR('a b') IS NULL PRINT 'yes'",
			"7 5 5 56\nyes",
		},
		{
			"statements of rights need no semicolon between them",
			"CREATE TABLE t (a int)\nGRANT SELECT ON t TO public\nGRANT SELECT ON SCHEMA::dbo TO public",
			"",
		},
	} {
		expect(t, c.rule, script(t, config, c.script), c.want)
	}
	own := "Spelled_" + config.Database
	got := script(t, config, strings.ReplaceAll(`CREATE DATABASE [@]
GO
USE [@]
GO
CREATE TABLE t (a int CONSTRAINT positive CHECK (a > 0), s varchar(3))
SELECT TABLE_CATALOG AS c FROM INFORMATION_SCHEMA.TABLES WHERE DB_NAME() = '@'
INSERT t (a) VALUES (0)
INSERT t (s) VALUES ('long')
GO
USE master
DROP DATABASE [@]`, "@", own))
	expect(t, "messages spell a database as it was created", strings.ReplaceAll(got, own, "Own"), `Changed database context to 'Own'.
c
Own
(1 rows affected)
Msg 547, Level 16, State 0, Line 3
The INSERT statement conflicted with the CHECK constraint "positive". The conflict occurred in database "Own", table "dbo.t", column 'a'.
The statement has been terminated.
Msg 2628, Level 16, State 1, Line 4
String or binary data would be truncated in table 'Own.dbo.t', column 's'. Truncated value: 'lon'.
The statement has been terminated.
Changed database context to 'master'.`)
}
