package runner_test

import (
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// Schema dbo and the collation of text are made by the first statement that needs them. Where its transaction goes on, no other session waits
// for its end.
func TestTheFirstStatementOfADatabaseHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rule, first, second string }{
		{"tables", "CREATE TABLE a (x nvarchar(9))", "CREATE TABLE b (x nvarchar(9))"},
		{"procedures", "GO\nCREATE PROCEDURE a AS PRINT 'a'", "GO\nCREATE PROCEDURE b AS PRINT 'b'"},
	} {
		pool := parleytest.EmptyDatabase(t)
		first, second := open(t, pool.Config().ConnConfig), open(t, pool.Config().ConnConfig)
		expect(t, c.rule+": the first", first("BEGIN TRAN\n"+c.first), "")
		expect(t, c.rule+": the second", second("SET LOCK_TIMEOUT 3000\n"+c.second), "")
		expect(t, c.rule+": the first rolls back", first("ROLLBACK\nPRINT @@TRANCOUNT"), "0")
	}
}
