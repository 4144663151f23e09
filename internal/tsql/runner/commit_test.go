package runner_test

import (
	"context"
	"strings"
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// later has what COMMIT itself checks: a key of table later, and a row of table fatal, which ends the connection.
const later = `alter table dbo.later add constraint once unique (a) deferrable initially deferred;
create function dbo.ends() returns trigger language plpgsql as $$
begin
  perform pg_terminate_backend(pg_backend_pid());
  perform pg_sleep(10);
  return null;
end
$$;
create constraint trigger ends after insert on dbo.fatal deferrable initially deferred for each row execute function dbo.ends()`

// COMMIT waits for the next statement where that is the first of the next transaction. Its error, and that of a SEND before it, come at
// their own statements all the same, and nothing that came behind has run.
func TestACommitThatWaitsFailsAtItsStatement(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	run := open(t, pool.Config().ConnConfig)
	expect(t, "there are queues and tables", run(`CREATE QUEUE Source
CREATE QUEUE Target
CREATE SERVICE source ON QUEUE Source
CREATE SERVICE target ON QUEUE Target ([DEFAULT])
CREATE TABLE later (a int)
CREATE TABLE fatal (a int)
SET NOCOUNT ON
INSERT later VALUES (1)`), "")
	if _, err := pool.Exec(t.Context(), later); err != nil {
		t.Fatal(err)
	}
	const twice = "Violation of UNIQUE KEY constraint 'once'. Cannot insert duplicate key in object 'dbo.later'. The duplicate key value is (1)."
	const begin = "SET NOCOUNT ON\nDECLARE @h uniqueidentifier, @to uniqueidentifier, @far uniqueidentifier, @i int = 0, @e int = 0, @body varbinary(max)\n" +
		"DECLARE @none uniqueidentifier = '00000000-0000-0000-0000-000000000001'\n" +
		"BEGIN TRAN\nBEGIN DIALOG @h FROM SERVICE source TO SERVICE 'target' WITH ENCRYPTION = OFF;\n" +
		"SEND ON CONVERSATION @h (N'a');\nSEND ON CONVERSATION @h (N'b')\nCOMMIT\nSELECT TOP (1) @far = conversation_handle FROM Target\n"
	// The first turn compiles RECEIVE; from the second on statements wait for it. Line 10 begins the loop.
	const loop = "WHILE @i < 3\nBEGIN\nSET @i += 1\n"
	const receive = "RECEIVE TOP (1) @body = message_body FROM Target"
	const end = "\nEND\nPRINT CONCAT(@i, ' ', @e, ' ', @@TRANCOUNT)\nSELECT COUNT(*) AS n FROM Target"
	const missing = "\nThe conversation handle \"<guid>\" is not found."
	const toNone = "SET @to = CASE @i WHEN 2 THEN @none ELSE @far END\n"
	const orNone = "SET @to = CASE @i WHEN 2 THEN @none ELSE @h END;\n"
	for _, c := range []struct{ rule, script, want string }{
		{
			"a SEND before it fails in one turn of a loop",
			loop + "BEGIN TRAN;\n" + receive + "\n" + orNone + "SEND ON CONVERSATION @to (@body)\nCOMMIT" + end,
			"Msg 8426, Level 16, State 1, Line 16" + missing + "\n3 0 0\nn\n1",
		},
		{
			"XACT_ABORT rolls back the transaction of that SEND, and no other began",
			"SET XACT_ABORT ON\n" + loop + "BEGIN TRAN;\n" + receive + "\n" + orNone + "SEND ON CONVERSATION @to (@body)\nCOMMIT" + end +
				"\nGO\nSET NOCOUNT ON\nPRINT @@TRANCOUNT\nSELECT COUNT(*) AS n FROM Target",
			"Msg 8426, Level 16, State 1, Line 17" + missing + "\n0\nn\n2",
		},
		{
			"its own error has its line, and the transaction is over",
			loop + "BEGIN TRAN;\n" + receive + "\nIF @i = 2 INSERT later VALUES (1)\nCOMMIT\nSET @e += @@ERROR" + end,
			"Msg 2627, Level 14, State 1, Line 16\n" + twice + "\n3 2627 0\nn\n0",
		},
		{
			"the TRY around it catches it",
			loop + "BEGIN TRY\nBEGIN TRAN;\n" + receive + "\nIF @i = 2 INSERT later VALUES (1)\nCOMMIT\nEND TRY\n" +
				"BEGIN CATCH\nSET @e = ERROR_LINE() * 10 + XACT_STATE()\nEND CATCH" + end,
			"3 170 0\nn\n0",
		},
		{
			"what was sent before it is gone with it",
			loop + "BEGIN TRAN;\n" + receive + "\nIF @i = 2 INSERT later VALUES (1)\nIF @i = 2 SEND ON CONVERSATION @h (N'c')\nCOMMIT" + end,
			"Msg 2627, Level 14, State 1, Line 17\n" + twice + "\n3 0 0\nn\n0",
		},
		{
			"the error of the next statement is its own, and the commit stays",
			loop + toNone + "BEGIN TRAN;\n" + receive + " WHERE conversation_handle = @to;\nSEND ON CONVERSATION @h (N'c')\nCOMMIT" + end,
			"Msg 8426, Level 16, State 1, Line 15" + missing + "\n3 0 0\nn\n3",
		},
		{
			"a SEND stays where the RECEIVE that took it along fails",
			"BEGIN TRAN\n" + loop + toNone + ";SEND ON CONVERSATION @h (N'c');\n" + receive + " WHERE conversation_handle = @to" + end + "\nCOMMIT",
			"Msg 8426, Level 16, State 1, Line 16" + missing + "\n3 0 1\nn\n3",
		},
		{
			"a SEND stays where the RECEIVE behind it fails before it goes out",
			"BEGIN TRAN\n" + loop + ";SEND ON CONVERSATION @h (N'c');\nRECEIVE TOP (1 / ABS(2 - @i)) @body = message_body FROM Target" + end + "\nCOMMIT",
			"Msg 8134, Level 16, State 1, Line 15\nDivide by zero error encountered.\n3 0 1\nn\n3",
		},
		{
			"a SEND that fails before the RECEIVE does not undo it",
			"BEGIN TRAN\n" + loop + orNone + "SEND ON CONVERSATION @to (N'c');\n" + receive + end + "\nCOMMIT",
			"Msg 8426, Level 16, State 1, Line 15" + missing + "\n3 0 1\nn\n1",
		},
	} {
		expect(t, c.rule, run(begin+c.script), c.want)
		run("IF @@TRANCOUNT > 0 ROLLBACK\nSET XACT_ABORT OFF\nDECLARE @t TABLE (b varbinary(max));\n" +
			"WHILE 1 = 1\nBEGIN\nRECEIVE message_body FROM Target INTO @t\nIF @@ROWCOUNT = 0 BREAK\nEND")
	}
	got := run(begin + loop + "BEGIN TRAN;\n" + receive + "\nIF @i = 2 INSERT fatal VALUES (1)\nCOMMIT" + end)
	if !strings.HasPrefix(got, "Msg 10054, Level 20, State 1, Line 16\n") || strings.Contains(got, "3 0") {
		t.Errorf("a connection that is lost in a COMMIT is lost there, and the batch goes no further; got\n%s", got)
	}
}

// Others wait for the locks of a transaction, and for what it commits: so a COMMIT does not wait for a batch that computes.
func TestACommitDoesNotWaitForABatchThatComputes(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	computing := talking(t, pool.Config().ConnConfig)
	computing.says("CREATE TABLE seen (a int)", "")
	ctx, end := context.WithCancel(t.Context())
	defer end()
	ended := make(chan error, 1)
	go func() {
		ended <- computing.session.Run(ctx, "SET NOCOUNT ON\nDECLARE @i int\nBEGIN TRAN\nINSERT seen VALUES (1)\nCOMMIT\n"+
			"WHILE @@TRANCOUNT = 0 SET @i = 1", computing.sink)
	}()
	parleytest.Until(t, "the row is seen while the batch goes on", func() bool {
		var n int
		if err := pool.QueryRow(t.Context(), "select count(*) from dbo.seen").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == 1
	})
	select {
	case err := <-ended:
		t.Errorf("the row came with the end of the batch: %v", err)
	default:
		end()
		if err := parleytest.Receive(t, ended, "the end of the batch that is cancelled"); err == nil {
			t.Error("a batch that never ends has ended")
		}
	}
}

// The first statement of a transaction has no savepoint: where it fails the transaction begins again, as it was.
func TestTheFirstStatementOfATransactionFailsAlone(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	run := open(t, pool.Config().ConnConfig)
	expect(t, "there are tables", run("SET NOCOUNT ON\nCREATE TABLE item (a int CONSTRAINT once PRIMARY KEY)\nCREATE TABLE locked (a int)\nINSERT item VALUES (1)"), "")
	const twice = `Msg 2627, Level 14, State 1, Line 4
Violation of PRIMARY KEY constraint 'once'. Cannot insert duplicate key in object 'dbo.item'. The duplicate key value is (1).
The statement has been terminated.`
	const seen = "\nSELECT COUNT(*) AS n FROM item"
	for _, c := range []struct{ rule, script, want string }{
		{"the next one is of the same transaction", "BEGIN TRAN\nINSERT item VALUES (1)\nINSERT item VALUES (2)\nPRINT @@TRANCOUNT\nROLLBACK" + seen, twice + "\n1\nn\n1"},
		{"one that fails again", "BEGIN TRAN\nINSERT item VALUES (1)\nBEGIN TRY INSERT item VALUES (1) END TRY BEGIN CATCH PRINT XACT_STATE() END CATCH\nINSERT item VALUES (2)\nCOMMIT" + seen, twice + "\n1\nn\n2"},
		{"a savepoint behind it", "BEGIN TRAN\nINSERT item VALUES (1)\nSAVE TRAN s\nINSERT item VALUES (3)\nROLLBACK TRAN s\nCOMMIT" + seen, twice + "\nn\n2"},
		{"a savepoint before it stays", "BEGIN TRAN SAVE TRAN s\nINSERT item VALUES (1)\nINSERT item VALUES (3)\nROLLBACK TRAN s\nCOMMIT" + seen, twice + "\nn\n2"},
	} {
		expect(t, c.rule, run("-- "+c.rule+"\nSET NOCOUNT ON\n"+c.script), c.want)
	}

	expect(t, "a snapshot stays", run("SET NOCOUNT ON\nSET TRANSACTION ISOLATION LEVEL REPEATABLE READ\nBEGIN TRAN\nINSERT item VALUES (1)"), twice)
	if _, err := pool.Exec(t.Context(), "insert into dbo.item values (9)"); err != nil {
		t.Fatal(err)
	}
	expect(t, "and sees no row that came later", run("SET NOCOUNT ON"+seen+"\nROLLBACK\nSET TRANSACTION ISOLATION LEVEL READ COMMITTED"), "n\n2")

	blocker, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer blocker.Release()
	for _, begin := range []string{"BEGIN TRAN", "-- alone"} {
		// The lock ends by itself, so that a session that waits for it in vain goes on with another result.
		if _, err := blocker.Exec(t.Context(), "set idle_in_transaction_session_timeout = '20s'; begin; lock table dbo.locked"); err != nil {
			t.Fatal(err)
		}
		expect(t, "the time for locks holds behind it: "+begin,
			run("SET NOCOUNT ON\nSET LOCK_TIMEOUT 50\n"+begin+"\nINSERT item VALUES (1)\nSELECT a FROM locked\nIF @@TRANCOUNT > 0 ROLLBACK\nSET LOCK_TIMEOUT -1"),
			twice+"\na\nMsg 1222, Level 16, State 56, Line 5\nLock request time out period exceeded.")
		if _, err := blocker.Exec(t.Context(), "rollback"); err != nil {
			t.Fatal(err)
		}
		run("SELECT a FROM locked") // the time of the session is told again
	}
}
