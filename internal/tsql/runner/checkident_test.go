package runner_test

import (
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// DBCC CHECKIDENT tells how far the numbers of IDENTITY have come, and sets them; IDENTITY_INSERT moves them on too.
func TestCheckIdentTellsAndSetsTheCurrentIdentity(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	named, config := roles(t, pool, "anna")
	const done = "\nDBCC execution completed. If DBCC printed error messages, contact your system administrator."
	play := open(t, pool.Config().ConnConfig)
	expect(t, "the tables", play(named("SET NOCOUNT ON\nCREATE TABLE t (id int IDENTITY, n int)\nCREATE TABLE down (id bigint IDENTITY(10, -2), n int)\nCREATE TABLE plain (n int)\nGRANT SELECT, INSERT ON t TO [@anna@]")), "")
	for _, c := range []struct{ rule, script, want string }{
		{"nothing was inserted yet", "DBCC CHECKIDENT ('t', NORESEED)", "Checking identity information: current identity value 'NULL', current column value 'NULL'." + done},
		{"the first row after it gets the value itself", "DBCC CHECKIDENT ('dbo.t', RESEED, 0)\nINSERT t VALUES (1)\nSELECT id FROM t", "Checking identity information: current identity value 'NULL'." + done + "\nid\n0"},
		{"a later row gets the value behind it", "DECLARE @n int = 40\nDBCC CHECKIDENT (t, RESEED, @n) WITH NO_INFOMSGS\nINSERT t VALUES (1)\nSELECT MAX(id) AS id FROM t", "id\n41"},
		{"a number from IDENTITY_INSERT that is further is the current one", "SET IDENTITY_INSERT t ON\nINSERT t (id, n) VALUES (50, 1), (45, 1)\nSET IDENTITY_INSERT t OFF\nINSERT t VALUES (1)\nSELECT MAX(id) AS id FROM t", "id\n51"},
		{"one that is not so far changes nothing", "SET IDENTITY_INSERT t ON\nINSERT t (id, n) VALUES (7, 1)\nSET IDENTITY_INSERT t OFF\nDBCC CHECKIDENT (t, NORESEED)", "Checking identity information: current identity value '51', current column value '51'." + done},
		{"without a value it goes on behind the furthest row", "DBCC CHECKIDENT (t, RESEED, 3) WITH NO_INFOMSGS\nDBCC CHECKIDENT (t)\nINSERT t VALUES (1)\nSELECT MAX(id) AS id FROM t", "Checking identity information: current identity value '3', current column value '51'." + done + "\nid\n52"},
		{"one that is ahead of all rows stays", "DBCC CHECKIDENT (t, RESEED, 90) WITH NO_INFOMSGS\nDBCC CHECKIDENT (t) WITH NO_INFOMSGS\nINSERT t VALUES (1)\nSELECT MAX(id) AS id FROM t", "id\n91"},
		{"NORESEED sets nothing", "DBCC CHECKIDENT (t, RESEED, 3) WITH NO_INFOMSGS\nDBCC CHECKIDENT (t, NORESEED) WITH NO_INFOMSGS\nINSERT t VALUES (1)\nSELECT COUNT(*) AS n FROM t WHERE id = 4", "n\n1"},
		{"numbers that go down", "INSERT down VALUES (1), (1)\nSET IDENTITY_INSERT down ON\nINSERT down (id, n) VALUES (12, 1), (2, 1)\nSET IDENTITY_INSERT down OFF\nINSERT down VALUES (1)\nSELECT MIN(id) AS id FROM down\nDBCC CHECKIDENT (down, RESEED, 30) WITH NO_INFOMSGS\nINSERT down VALUES (1)\nSELECT MAX(id) AS id FROM down", "id\n0\nid\n28"},
		{"TRUNCATE TABLE begins anew", "TRUNCATE TABLE t\nDBCC CHECKIDENT (t, RESEED, 5) WITH NO_INFOMSGS\nINSERT t VALUES (1)\nSELECT id FROM t", "id\n5"},
		{"a table without IDENTITY", "DBCC CHECKIDENT (plain)", "Msg 7997, Level 16, State 1, Line 1\n'plain' does not contain an identity column."},
		{"no table", "DBCC CHECKIDENT ('nothing')", "Msg 2501, Level 16, State 45, Line 1\nCannot find a table or object with the name \"nothing\". Check the system catalog."},
		{"a temporary table", "CREATE TABLE #t (id int IDENTITY, n int)\nDBCC CHECKIDENT ('#t', RESEED, 8) WITH NO_INFOMSGS\nINSERT #t VALUES (1)\nSELECT id FROM #t", "id\n8"},
		{"other statements of DBCC are refused", "DBCC CHECKDB", "Msg 40510, Level 16, State 1, Line 1\nStatement 'DBCC' is not supported by Parley: checks and traces of SQL Server are not there."},
	} {
		expect(t, c.rule, play(c.script), c.want)
	}
	expect(t, "of a table that is another's", script(t, config("anna"), "DBCC CHECKIDENT (t, RESEED, 1)"),
		named("Msg 2557, Level 14, State 5, Line 1\nUser '@anna@' does not have permission to run DBCC CHECKIDENT for object 't'."))
}
