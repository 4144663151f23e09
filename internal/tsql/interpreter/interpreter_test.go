package interpreter

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/tsql/session"
)

// ran gives what sqlcmd would print for batches that GO separates, blanks at line ends cut off, result sets without their lines of
// dashes.
func ran(t *testing.T, script string) string {
	t.Helper()
	var out strings.Builder
	s := New(Identity{Login: "parley", User: "dbo", Database: "shop", Process: 51}, nil, nil)
	sink := session.NewTextSink(&out)
	for batch := range strings.SplitSeq(script, "\nGO\n") {
		if err := s.Run(t.Context(), batch, sink); err != nil {
			out.WriteString("closed: " + err.Error() + "\n")
		}
	}
	var lines []string
	for line := range strings.SplitSeq(out.String(), "\n") {
		line = strings.TrimSpace(line)
		if line != "" && strings.Trim(line, "- ") != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// A scenario is a rule with a script that shows it and what the script prints.
type scenario struct{ rule, script, want string }

func play(t *testing.T, scenarios []scenario) {
	t.Helper()
	for _, c := range scenarios {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			if got, want := ran(t, c.script), strings.TrimSpace(c.want); got != want {
				t.Errorf("%s\n--- got\n%s\n--- want\n%s", c.script, got, want)
			}
		})
	}
}

func TestVariablesAndControlFlow(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{"a loop counts", "DECLARE @i int = 0; WHILE @i < 3 BEGIN SET @i += 1; IF @i = 2 CONTINUE; PRINT @i END", "1\n3"},
		{"BREAK leaves the inner loop", "DECLARE @i int = 0 WHILE 1 = 1 BEGIN WHILE 1 = 1 BREAK SET @i = @i + 1 IF @i > 2 BREAK END PRINT @i", "3"},
		{"GOTO jumps forward and back", "DECLARE @i int = 0\nagain:\nSET @i = @i + 1\nIF @i < 3 GOTO again\nGOTO done\nPRINT 'no'\ndone:\nPRINT @i", "3"},
		{"RETURN ends the batch", "PRINT 'a' RETURN PRINT 'b'", "a"},
		{"DECLARE in a loop keeps the value", "DECLARE @i int = 0 WHILE @i < 2 BEGIN DECLARE @x int SET @x = ISNULL(@x, 0) + 1 SET @i += 1 END PRINT @x", "2"},
		{"DECLARE with a value in a loop assigns", "DECLARE @i int = 0 WHILE @i < 2 BEGIN DECLARE @x int = 0 SET @x += 1 SET @i += 1 END PRINT @x", "1"},
		{"variables end with the batch", "DECLARE @i int = 1\nGO\nPRINT @i", "Msg 137, Level 15, State 2, Line 1\nMust declare the scalar variable \"@i\"."},
		{"an assignment to a short variable cuts", "DECLARE @s varchar(2) = 'abcdef' PRINT @s + '|'", "ab|"},
		{"SELECT assigns in order", "DECLARE @a int, @b int SELECT @a = 1, @b = @a + 1 PRINT @b", "2"},
		{"SELECT without a row assigns nothing", "DECLARE @a int = 5 SELECT @a = 1 WHERE 1 = 0 PRINT @a PRINT @@ROWCOUNT", "5\n0"},
		{"assignment and results do not mix", "DECLARE @a int SELECT @a = 1, 2", "Msg 141, Level 15, State 1, Line 1\nA SELECT statement that assigns a value to a variable must not be combined with data-retrieval operations."},
		{"a variable is declared once", "DECLARE @a int\nDECLARE @A int", "Msg 134, Level 15, State 2, Line 2\nThe variable name '@A' has already been declared. Variable names must be unique within a query batch or stored procedure."},
		{"a label must exist", "PRINT 'a'\nGOTO nowhere", "Msg 133, Level 15, State 1, Line 2\nA GOTO statement references the label 'nowhere' but the label has not been declared."},
		{"GOTO does not enter TRY", "GOTO inside BEGIN TRY inside: PRINT 1 END TRY BEGIN CATCH END CATCH", "Msg 1026, Level 15, State 1, Line 1\nGOTO cannot be used to jump into a TRY or CATCH scope."},
		{"a batch with an error does not begin", "PRINT 'a'\nSELECT 1 +", "Msg 102, Level 15, State 1, Line 2\nIncorrect syntax near '+'."},
		{"results have headings", "SELECT 1 AS n, 'abc' AS word, NULL AS nothing", "n           word nothing\n1 abc         NULL\n(1 rows affected)"},
		{"NOCOUNT leaves the count out", "SET NOCOUNT ON SELECT 1 AS n", "n\n1"},
	})
}

func TestRowCountAndErrorFollowEachStatement(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{"SET gives 1 and PRINT 0", "DECLARE @i int SET @i = 5 PRINT @@ROWCOUNT PRINT @@ROWCOUNT", "1\n0"},
		{"IF resets it", "DECLARE @i int SET @i = 5 IF @@ROWCOUNT = 1 PRINT @@ROWCOUNT", "0"},
		{"an error sets @@ERROR, the next statement resets it", "SET NOCOUNT ON SELECT 1/0 AS x\nPRINT @@ERROR\nPRINT @@ERROR", "x\nMsg 8134, Level 16, State 1, Line 1\nDivide by zero error encountered.\n8134\n0"},
		{"RAISERROR to 10 leaves @@ERROR", "RAISERROR('note', 10, 1) PRINT @@ERROR", "note\n0"},
		{"SETERROR sets it", "RAISERROR('note', 5, 1) WITH SETERROR PRINT @@ERROR", "note\n50000"},
	})
}

func TestErrorsEndWhatTheirClassSays(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{
			"an error of a statement ends the statement", "BEGIN TRAN\nDECLARE @i int = 1/0\nPRINT @@TRANCOUNT",
			"Msg 8134, Level 16, State 1, Line 2\nDivide by zero error encountered.\n1",
		},
		{
			"a conversion error ends the batch and the transaction", "BEGIN TRAN\nDECLARE @i int = 'x'\nPRINT 'not reached'\nGO\nPRINT @@TRANCOUNT",
			"Msg 245, Level 16, State 1, Line 2\nConversion failed when converting the varchar value 'x' to data type int.\n0",
		},
		{
			"XACT_ABORT ends the batch and the transaction", "SET XACT_ABORT ON\nBEGIN TRAN\nDECLARE @i int = 1/0\nPRINT 'not reached'\nGO\nPRINT @@TRANCOUNT",
			"Msg 8134, Level 16, State 1, Line 3\nDivide by zero error encountered.\n0",
		},
		{
			"RAISERROR does not obey XACT_ABORT", "SET XACT_ABORT ON BEGIN TRAN RAISERROR('a', 16, 1) PRINT @@TRANCOUNT",
			"Msg 50000, Level 16, State 1, Line 1\na\n1",
		},
		{
			"THROW ends the batch and keeps the transaction", "BEGIN TRAN;\nTHROW 50001, 'a', 7;\nPRINT 'not reached'\nGO\nPRINT @@TRANCOUNT",
			"Msg 50001, Level 16, State 7, Line 2\na\n1",
		},
		{
			"THROW obeys XACT_ABORT", "SET XACT_ABORT ON BEGIN TRAN;THROW 50001, 'a', 7;\nGO\nPRINT @@TRANCOUNT",
			"Msg 50001, Level 16, State 7, Line 1\na\n0",
		},
		{"severity 20 closes the session", "RAISERROR('bad', 20, 1) WITH LOG PRINT 'not reached'", "Msg 50000, Level 20, State 1, Line 1\nbad\nclosed: the session was closed by an error of severity 20 or more"},
		{"severity 19 needs LOG", "RAISERROR('bad', 19, 1)", "Msg 2754, Level 16, State 1, Line 1\nError severity levels greater than 18 can only be specified by members of the sysadmin role, using the WITH LOG option."},
		{"RAISERROR fills its text", "RAISERROR('%s has %d', 16, 3, 'shelf', 7)", "Msg 50000, Level 16, State 3, Line 1\nshelf has 7"},
		{"an unknown message is 18054", "RAISERROR(50001, 16, 1)", "Msg 18054, Level 16, State 1, Line 1\nError 50001, severity 16, state 1 was raised, but no message with that error number was found in sys.messages. If error is larger than 50000, make sure the user-defined message is added using sp_addmessage."},
		{"THROW needs 50000 and more", "THROW 49999, 'a', 1", "Msg 35100, Level 16, State 10, Line 1\nError number 49999 in the THROW statement is outside the valid range. Specify an error number in the valid range of 50000 to 2147483647."},
		{"THROW alone stands in CATCH", "THROW", "Msg 10704, Level 15, State 1, Line 1\nTo rethrow an error, a THROW statement must be used inside a CATCH block. Insert the THROW statement inside a CATCH block, or add error parameters to the THROW statement."},
	})
}

func TestTryCatch(t *testing.T) {
	t.Parallel()
	const report = "PRINT CONCAT(ERROR_NUMBER(), ' ', ERROR_SEVERITY(), ' ', ERROR_STATE(), ' ', ERROR_LINE(), ' ', ISNULL(ERROR_PROCEDURE(), '-'), ' ', ERROR_MESSAGE())"
	play(t, []scenario{
		{"CATCH sees the error", "BEGIN TRY\nPRINT 'a'\nRAISERROR('b', 16, 5)\nPRINT 'not reached'\nEND TRY BEGIN CATCH " + report + " END CATCH PRINT ISNULL(ERROR_MESSAGE(), 'none')", "a\n50000 16 5 3 - b\nnone"},
		{"severities to 10 are not caught", "BEGIN TRY RAISERROR('a', 10, 1) PRINT 'b' END TRY BEGIN CATCH PRINT 'c' END CATCH", "a\nb"},
		{"a conversion error is caught and dooms", "BEGIN TRAN BEGIN TRY DECLARE @i int = 'x' END TRY BEGIN CATCH PRINT XACT_STATE() END CATCH ROLLBACK PRINT XACT_STATE()", "-1\n0"},
		{"an error of a statement does not doom", "BEGIN TRAN BEGIN TRY DECLARE @i int = 1/0 END TRY BEGIN CATCH PRINT XACT_STATE() END CATCH COMMIT PRINT XACT_STATE()", "1\n0"},
		{"with XACT_ABORT it does", "SET XACT_ABORT ON BEGIN TRAN BEGIN TRY DECLARE @i int = 1/0 END TRY BEGIN CATCH PRINT XACT_STATE() END CATCH ROLLBACK", "-1"},
		{"without a transaction nothing is doomed", "BEGIN TRY DECLARE @i int = 'x' END TRY BEGIN CATCH PRINT XACT_STATE() END CATCH", "0"},
		{"THROW raises again", "BEGIN TRY\nRAISERROR('b', 12, 5)\nEND TRY BEGIN CATCH\nPRINT 'c';\nTHROW\nEND CATCH PRINT 'not reached'", "c\nMsg 50000, Level 12, State 5, Line 2\nb"},
		{"an error in CATCH goes to the outer CATCH", "BEGIN TRY BEGIN TRY RAISERROR('a', 16, 1) END TRY BEGIN CATCH PRINT ERROR_MESSAGE() RAISERROR('b', 16, 1) END CATCH END TRY BEGIN CATCH PRINT ERROR_MESSAGE() END CATCH", "a\nb"},
		{"the outer error is back after an inner CATCH", "BEGIN TRY RAISERROR('a', 16, 1) END TRY BEGIN CATCH BEGIN TRY RAISERROR('b', 16, 1) END TRY BEGIN CATCH PRINT ERROR_MESSAGE() END CATCH PRINT ERROR_MESSAGE() END CATCH", "b\na"},
		{"GOTO leaves TRY and CATCH", "BEGIN TRY RAISERROR('a', 16, 1) END TRY BEGIN CATCH GOTO out END CATCH\nout:\nPRINT ISNULL(ERROR_MESSAGE(), 'none')", "none"},
		{"a syntax error in EXEC is caught around it", "BEGIN TRY EXEC('SELECT 1 +') END TRY BEGIN CATCH PRINT ERROR_NUMBER() END CATCH", "102"},
		{"a called error is caught by the caller", "EXEC('CREATE PROCEDURE #p AS\nDECLARE @i int = 1/0\nPRINT ''not reached''')\nBEGIN TRY EXEC #p END TRY BEGIN CATCH " + report + " END CATCH", "8134 16 1 2 #p Divide by zero error encountered."},
		{"an empty CATCH swallows", "BEGIN TRY RAISERROR('a', 16, 1) END TRY BEGIN CATCH END CATCH PRINT 'b'", "b"},
	})
}

func TestTransactions(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{"they are counted", "BEGIN TRAN BEGIN TRAN PRINT @@TRANCOUNT COMMIT PRINT @@TRANCOUNT COMMIT PRINT @@TRANCOUNT", "2\n1\n0"},
		{"ROLLBACK ends them all", "BEGIN TRAN BEGIN TRAN ROLLBACK PRINT @@TRANCOUNT", "0"},
		{"they outlive the batch", "BEGIN TRAN\nGO\nPRINT @@TRANCOUNT COMMIT", "1"},
		{"COMMIT without one is 3902", "COMMIT", "Msg 3902, Level 16, State 1, Line 1\nThe COMMIT TRANSACTION request has no corresponding BEGIN TRANSACTION."},
		{"ROLLBACK without one is 3903", "ROLLBACK", "Msg 3903, Level 16, State 1, Line 1\nThe ROLLBACK TRANSACTION request has no corresponding BEGIN TRANSACTION."},
		{"SAVE without one is 628", "SAVE TRAN a", "Msg 628, Level 16, State 0, Line 1\nCannot issue SAVE TRANSACTION when there is no active transaction."},
		{"a savepoint keeps the count", "BEGIN TRAN SAVE TRAN a ROLLBACK TRAN a PRINT @@TRANCOUNT ROLLBACK TRAN a PRINT @@TRANCOUNT ROLLBACK", "1\n1"},
		{"an unknown savepoint is 6401", "BEGIN TRAN a ROLLBACK TRAN b PRINT @@TRANCOUNT ROLLBACK TRAN a PRINT @@TRANCOUNT", "Msg 6401, Level 16, State 1, Line 1\nCannot roll back b. No transaction or savepoint of that name was found.\n1\n0"},
		{"the inner name is no savepoint", "BEGIN TRAN a BEGIN TRAN b ROLLBACK TRAN b PRINT @@TRANCOUNT ROLLBACK", "Msg 6401, Level 16, State 1, Line 1\nCannot roll back b. No transaction or savepoint of that name was found.\n2"},
		{"a doomed transaction refuses COMMIT", "BEGIN TRAN BEGIN TRY DECLARE @i int = 'x' END TRY BEGIN CATCH COMMIT END CATCH PRINT 'not reached'\nGO\nPRINT @@TRANCOUNT", "Msg 3930, Level 16, State 1, Line 1\nThe current transaction cannot be committed and cannot support operations that write to the log file. Roll back the transaction.\n0"},
		{"and ROLLBACK to a savepoint", "BEGIN TRAN SAVE TRAN a BEGIN TRY DECLARE @i int = 'x' END TRY BEGIN CATCH ROLLBACK TRAN a END CATCH\nGO\nPRINT @@TRANCOUNT", "Msg 3931, Level 16, State 1, Line 1\nThe current transaction cannot be committed and cannot be rolled back to a savepoint. Roll back the entire transaction.\n0"},
		{"a doomed transaction ends with its batch", "BEGIN TRAN BEGIN TRY DECLARE @i int = 'x' END TRY BEGIN CATCH PRINT XACT_STATE() END CATCH\nGO\nPRINT @@TRANCOUNT", "-1\nMsg 3998, Level 16, State 1, Line 1\nUncommittable transaction is detected at the end of the batch. The transaction is rolled back.\n0"},
	})
}

func TestProcedures(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{
			"parameters have names, defaults and OUTPUT", "CREATE PROCEDURE #p @a int, @b int = 5, @c int OUTPUT AS SET @c = @a * @b RETURN 3\nGO\nDECLARE @r int, @o int EXEC @r = #p @a = 2, @c = @o OUTPUT PRINT CONCAT(@r, ' ', @o) EXEC #p 2, DEFAULT, @o OUT PRINT @o EXEC #p 2, 2, @o PRINT @o",
			"3 10\n10\n10",
		},
		{
			"under NOEXEC a batch is compiled and does not run",
			"IF 1 = 1 BEGIN PRINT 'stops' SET NOEXEC ON END\nPRINT 'not reached'\nGO\nPRINT 'nor this' RAISERROR('no', 16, 1)\nGO\nPRINT @missing\nGO\nSET NOEXEC OFF PRINT 'goes on'",
			"stops\nMsg 137, Level 15, State 2, Line 1\nMust declare the scalar variable \"@missing\".\ngoes on",
		},
		{"the version is a number too", "PRINT @@MICROSOFTVERSION / POWER(2, 24)", "16"},
		{
			"a bare word and a name in quotes are strings as arguments",
			"CREATE PROCEDURE #p @a nvarchar(20), @b nvarchar(20) = '' AS PRINT @a + @b\nGO\nEXEC #p Pending, [in words] EXEC #p @a = \"in quotes\" EXEC #p false",
			"Pendingin words\nin quotes\nfalse",
		},
		{"a missing argument is 201", "CREATE PROCEDURE #p @a int AS PRINT @a\nGO\nEXEC #p\nPRINT 'next'", "Msg 201, Level 16, State 4, Procedure #p, Line 0\nProcedure or function '#p' expects parameter '@a', which was not supplied.\nnext"},
		{"too many are 8144", "CREATE PROCEDURE #p @a int AS PRINT @a\nGO\nEXEC #p 1, 2", "Msg 8144, Level 16, State 2, Procedure #p, Line 0\nProcedure or function #p has too many arguments specified."},
		{"an unknown name is 8145", "CREATE PROCEDURE #p @a int AS PRINT @a\nGO\nEXEC #p @b = 1", "Msg 8145, Level 16, State 1, Procedure #p, Line 0\n@b is not a parameter for procedure #p."},
		{"an unknown procedure is 2812", "EXEC #none PRINT 'next'", "Msg 2812, Level 16, State 62, Line 1\nCould not find stored procedure '#none'.\nnext"},
		{
			"ROLLBACK inside is 266 after it, and the batch goes on", "CREATE PROCEDURE #p AS ROLLBACK\nGO\nBEGIN TRAN EXEC #p PRINT @@TRANCOUNT",
			"Msg 266, Level 16, State 2, Procedure #p, Line 0\nTransaction count after EXECUTE indicates a mismatching number of BEGIN and COMMIT statements. Previous count = 1, current count = 0.\n0",
		},
		{"BEGIN inside is 266 too", "CREATE PROCEDURE #p AS BEGIN TRAN\nGO\nEXEC #p PRINT @@TRANCOUNT", "Msg 266, Level 16, State 2, Procedure #p, Line 0\nTransaction count after EXECUTE indicates a mismatching number of BEGIN and COMMIT statements. Previous count = 0, current count = 1.\n1"},
		{"the nesting has a limit", "CREATE PROCEDURE #p AS EXEC #p\nGO\nEXEC #p\nPRINT 'not reached'", "Msg 217, Level 16, State 1, Procedure #p, Line 1\nMaximum stored procedure, function, trigger, or view nesting level exceeded (limit 32)."},
		{"SET inside ends with it", "CREATE PROCEDURE #p AS SET XACT_ABORT ON PRINT @@OPTIONS & 16384\nGO\nEXEC #p PRINT @@OPTIONS & 16384", "16384\n0"},
		{"EXEC of text has variables of its own", "DECLARE @i int = 1 EXEC('PRINT @i')", "Msg 137, Level 15, State 2, Line 1\nMust declare the scalar variable \"@i\"."},
		{"sp_executesql has parameters", "DECLARE @o int EXEC sp_executesql N'SET @b = @a + 1', N'@a int, @b int OUTPUT', 4, @o OUTPUT PRINT @o", "5"},
		{"sp_executesql wants Unicode", "EXEC sp_executesql 'PRINT 1'", "Msg 214, Level 16, State 2, Procedure sp_executesql, Line 1\nProcedure expects parameter '@statement' of type 'ntext/nchar/nvarchar'."},
		{"the level is counted", "PRINT @@NESTLEVEL EXEC('PRINT @@NESTLEVEL')", "0\n1"},
		{"an error outside TRY goes on in the procedure", "CREATE PROCEDURE #p AS\nDECLARE @i int = 1/0\nPRINT 'next'\nGO\nDECLARE @r int EXEC @r = #p PRINT @r", "Msg 8134, Level 16, State 1, Procedure #p, Line 2\nDivide by zero error encountered.\nnext\n-6"},
	})
}

func TestWhatIsNotThereIsNamedWithItsLine(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{"a statement with tables", "PRINT 'a'\nINSERT INTO t VALUES (1)\nPRINT 'b'", "a\nMsg 40510, Level 16, State 1, Line 2\nStatement 'INSERT' is not supported by Parley."},
		{"a subquery", "PRINT 'a'\nIF EXISTS (SELECT * FROM t) PRINT 'b'", "Msg 40517, Level 16, State 1, Line 2\n'EXISTS (subquery)' is not supported by Parley."},
		{"a function", "PRINT nothing('a')", "Msg 195, Level 15, State 10, Line 1\n'nothing' is not a recognized built-in function name."},
		{"a setting", "SET LANGUAGE Deutsch", "Msg 40517, Level 16, State 1, Line 1\n'SET LANGUAGE deutsch' is not supported by Parley."},
	})
}

func TestInsertExecuteKeepsItsTransaction(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{"ROLLBACK inside is 3915", "CREATE PROCEDURE #p AS ROLLBACK\nGO\nBEGIN TRAN INSERT t EXEC #p\nPRINT 'not reached'\nGO\nPRINT @@TRANCOUNT", "Msg 3915, Level 16, State 0, Procedure #p, Line 1\nCannot use the ROLLBACK statement within an INSERT-EXEC statement.\n0"},
		{"COMMIT inside needs a BEGIN inside", "CREATE PROCEDURE #p AS COMMIT\nGO\nBEGIN TRAN INSERT t EXEC #p", "Msg 3916, Level 16, State 0, Procedure #p, Line 1\nCannot use the COMMIT statement within an INSERT-EXEC statement unless BEGIN TRANSACTION is used first.\nMsg 40510, Level 16, State 1, Line 1\nStatement 'INSERT' is not supported by Parley."},
	})
}
