package runner_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/runner"
	"github.com/parley-broker/parley/internal/tsql/session"
	"github.com/parley-broker/parley/parleytest"
)

var (
	guids  = regexp.MustCompile(`[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}`)
	blanks = regexp.MustCompile(` {2,}`)
)

// script runs a script in a session of its own and gives what sqlcmd would print, blanks and dashes apart.
func script(t *testing.T, config *pgx.ConnConfig, text string) string {
	t.Helper()
	run, closes := connected(t, config)
	defer closes()
	return run(text)
}

// open opens a session until the test ends, and gives what runs scripts in it.
func open(t *testing.T, config *pgx.ConnConfig) func(text string) string {
	t.Helper()
	run, closes := connected(t, config)
	t.Cleanup(closes)
	return run
}

func connected(t *testing.T, config *pgx.ConnConfig) (run func(text string) string, closes func()) {
	t.Helper()
	dial := func(ctx context.Context, database string) (*pgx.Conn, error) {
		chosen := config.Copy()
		if database != "" {
			chosen.Database = database
		}
		return pgx.ConnectConfig(ctx, chosen)
	}
	user := "dbo"
	if config.Password != "" {
		user = config.User // a role of the test
	}
	s := runner.New(interpreter.Identity{User: user, Login: config.User, Database: config.Database}, connection.New(dial))
	return func(text string) string {
		t.Helper()
		var out strings.Builder
		sink := session.NewTextSink(&out)
		for batch := range strings.SplitSeq(text, "\nGO\n") {
			if err := s.Run(t.Context(), batch, sink); err != nil {
				out.WriteString("closed: " + err.Error() + "\n")
			}
		}
		return plain(out.String())
	}, func() { _ = s.Close(context.WithoutCancel(t.Context())) }
}

// plain leaves blanks, dashes and handles out.
func plain(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(blanks.ReplaceAllString(line, " "))
		if line != "" && strings.Trim(line, "- ") != "" {
			lines = append(lines, guids.ReplaceAllString(line, "<guid>"))
		}
	}
	return strings.Join(lines, "\n")
}

// Queues are read as tables, the catalog has SQL Server's names, and RECEIVE fills a table variable.
func TestTheBrokerIsSeenByQueries(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	got := script(t, pool.Config().ConnConfig, `
CREATE QUEUE Source
CREATE QUEUE Target
CREATE SERVICE source ON QUEUE Source
CREATE SERVICE target ON QUEUE Target ([DEFAULT])
GO
SET NOCOUNT ON
IF EXISTS (SELECT * FROM sys.service_queues WHERE name = N'TARGET') PRINT 'there is a queue'
IF NOT EXISTS (SELECT * FROM sys.services WHERE name = 'missing') PRINT 'and no such service'
IF OBJECT_ID(N'dbo.Target', N'SQ') IS NOT NULL PRINT 'it is an object'
DECLARE @h uniqueidentifier, @id uniqueidentifier
BEGIN TRAN
BEGIN DIALOG @h FROM SERVICE source TO SERVICE 'target' WITH ENCRYPTION = OFF;
SELECT @id = conversation_id FROM sys.conversation_endpoints WHERE conversation_handle = @h
IF @id IS NOT NULL PRINT 'a conversation'
COMMIT;
SEND ON CONVERSATION @h (N'one');
SEND ON CONVERSATION @h (N'two')
SELECT CAST(message_body AS nvarchar(20)) AS body, message_type_name, status FROM Target WITH (NOLOCK) ORDER BY queuing_order
SELECT COUNT(*) AS n FROM [dbo].[target]
DECLARE @t TABLE (h uniqueidentifier, body varbinary(max), kind sysname)
WAITFOR (RECEIVE TOP (10) conversation_handle, message_body, message_type_name FROM Target INTO @t), TIMEOUT 1000
PRINT @@ROWCOUNT
SELECT CAST(body AS nvarchar(10)) AS b, kind FROM @t
SELECT is_broker_enabled, CASE WHEN service_broker_guid IS NULL THEN 'none' ELSE 'has one' END AS g FROM sys.databases WHERE name = DB_NAME()
SELECT state, far_service FROM sys.conversation_endpoints WHERE is_initiator = 1
SELECT COUNT(*) AS waiting FROM sys.transmission_queue
SELECT COUNT(*) AS r FROM sys.routes WHERE name = 'AutoCreatedLocal'
SELECT m.name FROM sys.service_contract_message_usages u JOIN sys.service_message_types m ON m.message_type_id = u.message_type_id
  JOIN sys.service_contracts c ON c.service_contract_id = u.service_contract_id WHERE c.name = 'DEFAULT'
SELECT COUNT(*) AS monitors FROM sys.dm_broker_queue_monitors
SELECT COUNT(*) AS tables FROM sys.tables
IF DB_ID() = (SELECT database_id FROM sys.databases WHERE name = DB_NAME()) AND DB_ID('no such') IS NULL PRINT 'a number'
PRINT '[' + GET_TRANSMISSION_STATUS(@h) + ']'
GO
CREATE PROCEDURE Reader AS PRINT 1
GO
IF EXISTS (SELECT * FROM sys.procedures WHERE name = 'reader') DROP PROCEDURE reader
SELECT name FROM sys.procedures`)
	want := `there is a queue
and no such service
it is an object
a conversation
body message_type_name status
one DEFAULT 1
two DEFAULT 1
n
2
2
b kind
one DEFAULT
two DEFAULT
is_broker_enabled g
1 has one
state far_service
CO target
waiting
0
r
1
name
DEFAULT
monitors
0
tables
0
a number
[]
name`
	if got != want {
		t.Errorf("--- got\n%s\n--- want\n%s", got, want)
	}
}
