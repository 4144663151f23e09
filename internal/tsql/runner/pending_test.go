package runner_test

import (
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// SEND and END CONVERSATION wait for the next statement that has a result. Their errors come where they belong all the same: at their
// line, with @@ERROR, variables and cursors of that moment, in the TRY around them, before anything that comes behind is seen.
func TestAnErrorThatComesLateComesAtItsStatement(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	run := open(t, pool.Config().ConnConfig)
	expect(t, "there are two services", run(`CREATE QUEUE Source
CREATE QUEUE Target
CREATE SERVICE source ON QUEUE Source
CREATE SERVICE target ON QUEUE Target ([DEFAULT])`), "")
	const missing = "Msg 8426, Level 16, State 1, Line "
	const begin = "SET NOCOUNT ON\nDECLARE @h uniqueidentifier, @none uniqueidentifier = '00000000-0000-0000-0000-000000000001', @i int = 0\n" +
		"BEGIN TRAN\nBEGIN DIALOG @h FROM SERVICE source TO SERVICE 'target' WITH ENCRYPTION = OFF;\n"
	const count = "\nSELECT COUNT(*) AS n FROM Target\nROLLBACK"
	for _, c := range []struct{ rule, script, want string }{
		{"good ones arrive", "SEND ON CONVERSATION @h (N'a');\nSET @i += 1;\nSEND ON CONVERSATION @h (N'b')\nPRINT @i" + count, "1\nn\n2"},
		{
			"@@ERROR has it at once, and nothing runs twice",
			"SEND ON CONVERSATION @h (N'a');\nSEND ON CONVERSATION @none (N'b')\nIF @@ERROR = 8426 SET @i += 10\nSET @i += 1;\n" +
				"SEND ON CONVERSATION @h (N'c')\nSET @i += 1\nPRINT @i" + count,
			missing + "6\nThe conversation handle \"<guid>\" is not found.\n12\nn\n2",
		},
		{
			"the TRY around it catches it, with its line",
			"BEGIN TRY\nSEND ON CONVERSATION @none (N'b')\nSET @i = 1\nPRINT 'not reached'\nEND TRY\nBEGIN CATCH\nPRINT CONCAT(ERROR_NUMBER(), ' in line ', ERROR_LINE(), ', ', @i, ', ', XACT_STATE())\nEND CATCH;\n" +
				"SEND ON CONVERSATION @h (N'c')" + count,
			"8426 in line 6, 0, 1\nn\n1",
		},
		{
			"a TRY that ends before the next statement catches it",
			"BEGIN TRY\nSEND ON CONVERSATION @none (N'b')\nEND TRY\nBEGIN CATCH\nPRINT 'caught'\nEND CATCH\nPRINT 'behind'" + count, "caught\nbehind\nn\n0",
		},
		{
			"a COMMIT behind it commits what is left",
			"SEND ON CONVERSATION @none (N'b');\nSEND ON CONVERSATION @h (N'a')\nCOMMIT\nPRINT @@TRANCOUNT\nBEGIN TRAN" + count,
			missing + "5\nThe conversation handle \"<guid>\" is not found.\n0\nn\n1",
		},
		{
			"XACT_ABORT rolls back and ends the batch", "SET XACT_ABORT ON;\nSEND ON CONVERSATION @none (N'b')\nSET @i = 1\nCOMMIT\nPRINT 'not reached'",
			missing + "6\nThe conversation handle \"<guid>\" is not found.",
		},
		{
			"an error behind it comes behind it", "SEND ON CONVERSATION @none (N'b')\nSET @i = 1 / 0\nPRINT 'goes on'\nROLLBACK",
			missing + "5\nThe conversation handle \"<guid>\" is not found.\nMsg 8134, Level 16, State 1, Line 6\nDivide by zero error encountered.\ngoes on",
		},
		{
			"the end of the batch does not lose it", "SEND ON CONVERSATION @none (N'b')\nSET @i = 1\nGO\nSET NOCOUNT ON\nSELECT @@TRANCOUNT AS n FROM (VALUES (1)) AS t (a)\nROLLBACK",
			missing + "5\nThe conversation handle \"<guid>\" is not found.\nn\n1",
		},
		{
			"a cursor stands where it stood",
			"DECLARE c CURSOR LOCAL FOR SELECT a FROM (VALUES (1), (2), (3)) AS t (a) ORDER BY a\nDECLARE @a int, @to uniqueidentifier, @s varchar(9) = ''\nOPEN c\nFETCH NEXT FROM c INTO @a\n" +
				"WHILE @@FETCH_STATUS = 0\nBEGIN\nSET @to = CASE @a WHEN 2 THEN @none ELSE @h END;\nSEND ON CONVERSATION @to (N'b')\nSET @s = CONCAT(@s, @a)\nFETCH NEXT FROM c INTO @a\nEND\nPRINT @s" + count,
			missing + "12\nThe conversation handle \"<guid>\" is not found.\n123\nn\n2",
		},
		{
			"ROLLBACK sees it before", "SEND ON CONVERSATION @none (N'b')\nROLLBACK\nPRINT @@TRANCOUNT",
			missing + "5\nThe conversation handle \"<guid>\" is not found.\n0",
		},
	} {
		expect(t, c.rule, run(begin+c.script), c.want)
		run("IF @@TRANCOUNT > 0 ROLLBACK\nSET XACT_ABORT OFF\nDECLARE @t TABLE (b varbinary(max));\nRECEIVE message_body FROM Target INTO @t")
	}
}

// A statement that waited before a COMMIT that failed is gone with it. So the error of a SEND right behind it, which begins the next
// transaction by itself, is not taken for that of a SEND before the COMMIT.
func TestAnErrorBehindACommitThatFailedHasItsOwnLine(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	run := open(t, pool.Config().ConnConfig)
	expect(t, "there are queues and a table", run(`CREATE QUEUE Source
CREATE QUEUE Target
CREATE SERVICE source ON QUEUE Source
CREATE SERVICE target ON QUEUE Target ([DEFAULT])
CREATE TABLE once (a int)
SET NOCOUNT ON
INSERT once VALUES (1)`), "")
	if _, err := pool.Exec(t.Context(), "alter table dbo.once add constraint k unique (a) deferrable initially deferred"); err != nil {
		t.Fatal(err)
	}
	expect(t, "each error has its line, once", run(`SET NOCOUNT ON
DECLARE @h uniqueidentifier, @to uniqueidentifier, @i int = 0
SET IMPLICIT_TRANSACTIONS ON;
BEGIN DIALOG @h FROM SERVICE source TO SERVICE 'target' WITH ENCRYPTION = OFF
COMMIT
WHILE @i < 2
BEGIN
SET @i += 1
SET @to = CASE @i WHEN 2 THEN '00000000-0000-0000-0000-000000000001' ELSE @h END
IF @i = 2 INSERT once VALUES (1);
SEND ON CONVERSATION @h (N'a')
COMMIT;
SEND ON CONVERSATION @to (N'b')
COMMIT
END
SET IMPLICIT_TRANSACTIONS OFF
SELECT COUNT(*) AS n FROM Target`), `Msg 2627, Level 14, State 1, Line 12
Violation of UNIQUE KEY constraint 'k'. Cannot insert duplicate key in object 'dbo.once'. The duplicate key value is (1).
Msg 8426, Level 16, State 1, Line 13
The conversation handle "<guid>" is not found.
n
2`)
}

// Transactions that nobody sees begin with IMPLICIT_TRANSACTIONS, before BEGIN TRANSACTION too; message 3621 follows a failed change of rows
// alone, and no error behind it.
func TestCountsAndMessagesOfTransactions(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	run := open(t, pool.Config().ConnConfig)
	for _, c := range []struct{ rule, script, want string }{
		{"BEGIN TRANSACTION is the second one", "SET IMPLICIT_TRANSACTIONS ON\nBEGIN TRAN\nPRINT @@TRANCOUNT\nCOMMIT\nPRINT @@TRANCOUNT\nROLLBACK\nSET IMPLICIT_TRANSACTIONS OFF", "2\n1"},
		{"a key twice", "CREATE TABLE t (a int CONSTRAINT k PRIMARY KEY)\nSET NOCOUNT ON\nINSERT t VALUES (1)\nINSERT t VALUES (1)", `Msg 2627, Level 14, State 1, Line 4
Violation of PRIMARY KEY constraint 'k'. Cannot insert duplicate key in object 'dbo.t'. The duplicate key value is (1).
The statement has been terminated.`},
		{"a definition is not a change of rows", "DROP TABLE missing", `Msg 3701, Level 11, State 5, Line 1
Cannot drop the table 'missing', because it does not exist or you do not have permission.`},
		{"an error behind one that was caught", "BEGIN TRY INSERT t VALUES (1) END TRY BEGIN CATCH RAISERROR('again', 16, 1) END CATCH", "Msg 50000, Level 16, State 1, Line 1\nagain"},
		{
			"RAISERROR in a trigger leaves the change",
			"CREATE TRIGGER g ON t AFTER INSERT AS RAISERROR('seen', 16, 1)\nGO\nINSERT t VALUES (2)\nDROP TRIGGER g\nSELECT COUNT(*) AS n FROM t",
			"Msg 50000, Level 16, State 1, Procedure g, Line 1\nseen\nn\n2",
		},
		{"a batch behind one that ended early", "SET XACT_ABORT ON\nINSERT t VALUES (1)\nGO\nSET XACT_ABORT OFF\nRAISERROR('then', 16, 1)", `Msg 2627, Level 14, State 1, Line 2
Violation of PRIMARY KEY constraint 'k'. Cannot insert duplicate key in object 'dbo.t'. The duplicate key value is (1).
Msg 50000, Level 16, State 1, Line 2
then`},
	} {
		expect(t, c.rule, run(c.script), c.want)
	}
}
