package runner_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/broker/activation"
	"github.com/parley-broker/parley/internal/daemon"
	"github.com/parley-broker/parley/internal/daemon/timers"
	"github.com/parley-broker/parley/internal/logtest"
	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/runner"
	"github.com/parley-broker/parley/internal/tsql/session"
	"github.com/parley-broker/parley/parleytest"
)

const activated = `
CREATE QUEUE Source
CREATE SERVICE source ON QUEUE Source
GO
CREATE SCHEMA Sales
GO
CREATE PROCEDURE sales.AnswerOrders AS
BEGIN
  DECLARE @h uniqueidentifier, @type sysname, @body nvarchar(max)
  WHILE 1 = 1
  BEGIN
    BEGIN TRANSACTION
    WAITFOR (RECEIVE TOP (1) @h = conversation_handle, @type = message_type_name, @body = message_body FROM Target), TIMEOUT 100
    IF @@ROWCOUNT = 0 BEGIN COMMIT BREAK END
    IF @body = N'poison' BEGIN ROLLBACK RAISERROR('cannot work', 16, 1) RETURN END
    IF @type = N'DEFAULT'
    BEGIN
      PRINT 'got ' + @body + ' as ' + USER_NAME();
      SET @body = UPPER(@body);
      SEND ON CONVERSATION @h (@body)
    END
    END CONVERSATION @h
    COMMIT
  END
END
GO
CREATE QUEUE Target WITH ACTIVATION (STATUS = ON, PROCEDURE_NAME = [SALES].[answerORDERS], MAX_QUEUE_READERS = 1, EXECUTE AS OWNER)
CREATE SERVICE target ON QUEUE Target ([DEFAULT])
GO
`

// A procedure of T-SQL is activated by the daemon; five rollbacks switch its queue off.
func TestTheDaemonActivatesAProcedureOfTSQL(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	config := pool.Config().ConnConfig
	dial := func(ctx context.Context, _ string) (*pgx.Conn, error) { return pgx.ConnectConfig(ctx, config) }
	c := connection.New(dial)
	s := runner.New(interpreter.Identity{User: "dbo"}, c)
	t.Cleanup(func() { _ = s.Close(context.WithoutCancel(t.Context())) })
	run := func(script string) string {
		var out strings.Builder
		sink := session.NewTextSink(&out)
		for batch := range strings.SplitSeq(script, "\nGO\n") {
			if err := s.Run(t.Context(), batch, sink); err != nil {
				t.Fatal(err)
			}
		}
		return out.String()
	}
	if out := run(activated); out != "" {
		t.Fatal(out)
	}
	log := serve(t, pool)
	answer := run(`DECLARE @h uniqueidentifier, @answer nvarchar(max)
BEGIN DIALOG @h FROM SERVICE source TO SERVICE 'target' WITH ENCRYPTION = OFF;
SEND ON CONVERSATION @h (N'order');
WAITFOR (RECEIVE TOP (1) @answer = message_body FROM Source), TIMEOUT 60000
PRINT @answer`)
	if answer != "ORDER\n" {
		t.Errorf("the answer is %q\n%s", answer, log)
	}
	log.Await(t, "got order as "+config.User)
	run(`DECLARE @h uniqueidentifier
BEGIN DIALOG @h FROM SERVICE source TO SERVICE 'target' WITH ENCRYPTION = OFF;
SEND ON CONVERSATION @h (N'poison')`)
	parleytest.Until(t, "the queue is switched off", func() bool {
		var off bool
		err := pool.QueryRow(t.Context(), "select not is_receive_enabled from parley.service_queues where name = 'Target'").Scan(&off)
		return err == nil && off
	})
	log.Await(t, "cannot work")
}

// serve runs a daemon for the database until the test ends: it activates procedures and fires timers.
func serve(t *testing.T, pool *pgxpool.Pool) *logtest.Log {
	t.Helper()
	log := &logtest.Log{}
	engine, err := activation.New(activation.Config{Pool: pool, Interpret: runner.Activated, Logger: log.Logger(slog.LevelInfo)})
	if err != nil {
		t.Fatal(err)
	}
	clock := timers.New(pool, log.Logger(slog.LevelInfo))
	leader, err := daemon.NewLeader(daemon.LeaderConfig{Pool: pool, Parts: []daemon.LedPart{engine, clock}, Logger: log.Logger(slog.LevelInfo)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- leader.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return log
}
