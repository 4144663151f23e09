package broker_test

import (
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

func TestProceduresStayInTheDatabase(t *testing.T) {
	t.Parallel()
	pool := parleytest.EmptyDatabase(t)
	r := newRunner(t, pool)
	r.expect("a procedure is called with names, defaults and OUTPUT, and returns a number", `
CREATE PROCEDURE dbo.[Total] @a int, @b int = 2, @sum int OUTPUT AS
BEGIN
  SET NOCOUNT ON
  SET @sum = @a + @b
  RETURN @sum * 10
END
GO
DECLARE @s int, @r int
EXEC @r = [TOTAL] 1, DEFAULT, @s OUTPUT
PRINT CONCAT(@s, ' ', @r)
EXECUTE @r = Dbo.total @sum = @s OUTPUT, @b = 5, @a = 4
PRINT CONCAT(@s, ' ', @r)
DECLARE @name sysname = N'[dbo].[Total]'
EXEC @name 7, 1, @s OUT
PRINT @s`, "3 30\n9 90\n8")
	other := newRunner(t, pool)
	other.expect("another session has it", "DECLARE @s int EXEC Total 1, 1, @s OUTPUT PRINT @s", "2")
	other.expect("ALTER changes it for all", "ALTER PROC Total @a int AS PRINT 'new'", "")
	r.expect("at once, in the case of its own name", "EXEC Total 1\nEXEC Total 1, 2", "new\nMsg 8144, Level 16, State 2, Procedure Total, Line 0\nProcedure or function Total has too many arguments specified.")
	r.expect("CREATE refuses a name that is taken, ALTER one that is not", "CREATE PROC TOTAL AS PRINT 1\nGO\nALTER PROC none AS PRINT 1\nGO\nCREATE OR ALTER PROC none AS PRINT 'made'\nGO\nEXEC none", `
Msg 2714, Level 16, State 6, Line 1
There is already an object named 'TOTAL' in the database.
Msg 208, Level 16, State 1, Line 1
Invalid object name 'none'.
made`)
	r.expect("lines of errors count from the start of the batch", "-- first line\nCREATE PROC fails AS\nPRINT 'a'\nRAISERROR('no', 16, 1)\nGO\nEXEC fails", "a\nMsg 50000, Level 16, State 1, Procedure fails, Line 4\nno")
	r.expect("a rollback takes it back", "BEGIN TRAN\nGO\nCREATE PROC gone AS PRINT 1\nGO\nROLLBACK\nGO\nEXEC gone", "Msg 2812, Level 16, State 62, Line 1\nCould not find stored procedure 'gone'.")
	r.expect("a fault of its text refuses it", "CREATE PROC bad AS PRINT @missing\nGO\nEXEC bad", `
Msg 137, Level 15, State 2, Procedure bad, Line 1
Must declare the scalar variable "@missing".
Msg 2812, Level 16, State 62, Line 1
Could not find stored procedure 'bad'.`)
	r.expect("it may call itself 32 levels deep", "CREATE PROC deep AS IF @@NESTLEVEL > 40 RETURN\nEXEC deep\nGO\nEXEC deep", `
Msg 217, Level 16, State 1, Procedure deep, Line 2
Maximum stored procedure, function, trigger, or view nesting level exceeded (limit 32).`)
	r.expect("DROP removes it, of several the ones that are there", "DROP PROC IF EXISTS missing, Total\nDROP PROCEDURE fails, missing, none\nEXEC Total 1", `
Msg 3701, Level 11, State 5, Line 2
Cannot drop the procedure 'missing', because it does not exist or you do not have permission.
Msg 2812, Level 16, State 62, Line 3
Could not find stored procedure 'Total'.`)
	r.expect("quotes of the text stay as they were", "SET QUOTED_IDENTIFIER OFF\nGO\nCREATE PROC quotes AS PRINT \"it's $$ \\ ; -- \"\nGO\nSET QUOTED_IDENTIFIER ON\nGO\nEXEC quotes", "it's $$ \\ ; --")
}

// A procedure of another role is called only where its owner granted that, and runs with the rights of the caller.
func TestRightsOfProceduresAreThoseOfTheCaller(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	r := newRunner(t, pool)
	r.run(definitions)
	r.run("CREATE PROC reads AS RECEIVE * FROM OrderQueue\nGO\nCREATE PROC acts WITH EXECUTE AS OWNER AS PRINT 'as owner'")
	if _, err := pool.Exec(t.Context(), "create role \""+pool.Config().ConnConfig.Database+"_guest\""); err != nil {
		t.Fatal(err)
	}
	guest := pool.Config().ConnConfig.Database + "_guest"
	t.Cleanup(func() {
		_, _ = pool.Exec(t.Context(), "drop owned by \""+guest+"\"; drop role \""+guest+"\"")
	})
	if _, err := pool.Exec(t.Context(), "grant usage on schema dbo to \""+guest+"\""); err != nil {
		t.Fatal(err)
	}
	g := newRunnerAs(t, pool, guest)
	g.expect("it may not execute", "EXEC reads\nEXEC acts", `
Msg 229, Level 14, State 5, Line 1
The EXECUTE permission was denied on the object 'reads', database '', schema 'dbo'.
Msg 229, Level 14, State 5, Line 2
The EXECUTE permission was denied on the object 'acts', database '', schema 'dbo'.`)
	if _, err := pool.Exec(t.Context(), "grant execute on procedure dbo.reads(), dbo.acts() to \""+guest+"\""); err != nil {
		t.Fatal(err)
	}
	if got := g.run("EXEC reads"); got[:7] != "Msg 229" {
		t.Errorf("a queue is read with the rights of the owner: %s", got)
	}
	if got := g.run("EXEC acts"); got[:9] != "Msg 15517" {
		t.Errorf("a procedure runs as its owner: %s", got)
	}
	r.expect("the owner acts as the owner", "EXEC acts", "as owner")
}
