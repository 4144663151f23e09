package runner_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/runner"
	"github.com/parley-broker/parley/internal/tsql/session"
	"github.com/parley-broker/parley/parleytest"
)

// A SEND travels with the RECEIVE behind it, under one savepoint. Where the RECEIVE is cut, it alone is undone: the SEND came before, and
// stays in the transaction.
func TestAReceiveThatIsCutDoesNotUndoTheSendBeforeIt(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	config := pool.Config().ConnConfig.Copy()
	config.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: parleytest.Patience}
	}
	config.RuntimeParams["application_name"] = "cut"
	dial := func(ctx context.Context, _ string) (*pgx.Conn, error) { return pgx.ConnectConfig(ctx, config) }
	s := runner.New(interpreter.Identity{User: "dbo", Database: config.Database}, connection.New(dial))
	t.Cleanup(func() { _ = s.Close(context.WithoutCancel(t.Context())) })
	run := func(ctx context.Context, text string) string {
		var out strings.Builder
		sink := session.NewTextSink(&out)
		for batch := range strings.SplitSeq(text, "\nGO\n") {
			if err := s.Run(ctx, batch, sink); err != nil {
				t.Error(batch, err)
			}
		}
		return plain(out.String())
	}
	const sides = `DECLARE @free uniqueidentifier, @held uniqueidentifier
SELECT TOP (1) @free = conversation_handle FROM Source ORDER BY queuing_order
SELECT @held = conversation_handle FROM Source WHERE conversation_handle <> @free
`
	run(t.Context(), `CREATE QUEUE Source
CREATE QUEUE Target
CREATE SERVICE source ON QUEUE Source ([DEFAULT])
CREATE SERVICE target ON QUEUE Target ([DEFAULT])
GO
DECLARE @h uniqueidentifier, @i int = 0
WHILE @i < 2
BEGIN
  SET @i += 1
  BEGIN DIALOG @h FROM SERVICE target TO SERVICE 'source' WITH ENCRYPTION = OFF;
  SEND ON CONVERSATION @h (N'work')
END`)
	other := talking(t, config)
	other.says(sides+"SET NOCOUNT ON\nBEGIN TRAN;\nRECEIVE CAST(message_body AS nvarchar(9)) AS b FROM Source WHERE conversation_handle = @held", "b\nwork")
	ctx, cut := context.WithCancelCause(t.Context())
	ended := make(chan string, 1)
	go func() {
		// The first turn compiles RECEIVE and finds a message; in the second one the SEND travels with it, and it waits for the group.
		ended <- run(ctx, sides+`DECLARE @h uniqueidentifier, @from uniqueidentifier = @free, @b varbinary(max), @i int = 0
BEGIN TRAN
BEGIN DIALOG @h FROM SERVICE source TO SERVICE 'target' WITH ENCRYPTION = OFF
WHILE @i < 2
BEGIN
  SET @i += 1;
  SEND ON CONVERSATION @h (N'sent');
  RECEIVE TOP (1) @b = message_body FROM Source WHERE conversation_handle = @from
  SET @from = @held
  PRINT @i
END`)
	}()
	parleytest.Until(t, "the second RECEIVE waits", func() bool {
		var waits bool
		err := pool.QueryRow(t.Context(), `select exists (select from pg_stat_activity
where datname = current_database() and application_name = 'cut' and wait_event_type = 'Lock')`).Scan(&waits)
		return err == nil && waits
	})
	cut(session.ErrAttention)
	expect(t, "the batch is cut in the second turn", <-ended, "1")
	expect(t, "its transaction has both messages", run(t.Context(), "PRINT @@TRANCOUNT\nCOMMIT\nSET NOCOUNT ON\nSELECT COUNT(*) AS n FROM Target"), "1\nn\n2")
}
