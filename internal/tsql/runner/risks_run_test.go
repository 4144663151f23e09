package runner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/parleytest"
)

// Each of the thirty risks has its scenario, or a test of its own where it needs two sessions.
func TestRisks(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	config := pool.Config().ConnConfig
	shown := map[int]bool{12: true, 27: true} // TestRisk12..., TestRisk27...
	for _, of := range [][]risk{risksOfControl, risksOfTheBroker, risksOfValues} {
		for _, r := range of {
			shown[r.number] = true
			t.Run(fmt.Sprintf("%d %s", r.number, r.rule), func(t *testing.T) { expectRisk(t, config, r) })
		}
	}
	for n := 1; n <= 30; n++ {
		if !shown[n] {
			t.Errorf("risk %d has no scenario", n)
		}
	}
}

// expectRisk runs the scenario of a risk in a session of its own.
func expectRisk(t *testing.T, config *pgx.ConnConfig, r risk) {
	t.Helper()
	text := "SET NOCOUNT ON\nGO\n" + strings.TrimPrefix(r.script, "\n")
	got := strings.ReplaceAll(script(t, config, text), config.Database, "DB")
	if want := strings.TrimSpace(r.want); got != want {
		t.Errorf("risk %d, %s\n%s\n--- got\n%s\n--- want\n%s", r.number, r.rule, text, got, want)
	}
}

// A RECEIVE of several rows leaves the last in its variables, stays in one group, and keeps the group from others until its
// transaction ends.
func TestRisk12AGroupIsReceivedByOneSession(t *testing.T) {
	t.Parallel()
	config := parleytest.Database(t).Config().ConnConfig
	one, other := talking(t, config), talking(t, config)
	one.says(own("r12")+`
SEND ON CONVERSATION @h (N'one');
SEND ON CONVERSATION @h
BEGIN DIALOG @h FROM SERVICE r12 TO SERVICE 'r12' WITH ENCRYPTION = OFF;
SEND ON CONVERSATION @h (N'three')
BEGIN TRAN
DECLARE @body nvarchar(10)
RECEIVE TOP (10) @body = message_body FROM r12
PRINT CONCAT(@@ROWCOUNT, ' ', ISNULL(@body, 'no body'))`, "2 no body")
	const next = "DECLARE @body nvarchar(10)\nRECEIVE TOP (10) @body = message_body FROM r12\nPRINT CONCAT(@@ROWCOUNT, ' ', @body)"
	other.says("BEGIN TRAN\n"+next, "1 three")
	other.says(next, "0")
	one.says("ROLLBACK", "")
	other.says("COMMIT\n"+strings.Replace(next, "@body)", "ISNULL(@body, 'no body'))", 1), "2 no body")
}

// A RECEIVE that is cancelled leaves the message, no lock, and a session that can go on in its transaction.
func TestRisk27ACancelledReceiveLeavesTheMessage(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	config := pool.Config().ConnConfig
	one, other := talking(t, config), talking(t, config)
	one.says("CREATE QUEUE r27\nCREATE SERVICE r27 ON QUEUE r27 ([DEFAULT])", "")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- one.session.Run(ctx, "BEGIN TRAN\nWAITFOR (RECEIVE * FROM r27)", one.sink)
	}()
	parleytest.Until(t, "the session waits", func() bool {
		var waits bool
		err := pool.QueryRow(t.Context(), `select count(*) > 0 from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and query ~ 'receive'`).Scan(&waits)
		return err == nil && waits
	})
	cancel()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Logf("the cancelled batch gives %v", err)
	}
	other.says(`SET NOCOUNT ON
DECLARE @h uniqueidentifier
BEGIN DIALOG @h FROM SERVICE r27 TO SERVICE 'r27' WITH ENCRYPTION = OFF;
SEND ON CONVERSATION @h (N'kept')
DECLARE @body nvarchar(10)
RECEIVE @body = message_body FROM r27
PRINT @body`, "kept")
}
