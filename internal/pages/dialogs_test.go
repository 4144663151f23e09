package pages

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/parleytest"
)

// The example of two databases runs as it stands, each block in the database that its first line names, while one daemon serves both.
func TestTheDialogBetweenTwoDatabasesRunsAsThePageShowsIt(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "dialogs.md"))
	if err != nil {
		t.Fatal(err)
	}
	example, _, found := strings.Cut(string(text), "## Two servers")
	if !found {
		t.Fatal("docs/guides/dialogs.md has no section on two servers, before which the example ends")
	}
	orders, stock := parleytest.Database(t), parleytest.Database(t)
	serve(t, "--dsn", parleytest.DSN(t, orders), "--dsn", parleytest.DSN(t, stock))
	for _, pool := range []*pgxpool.Pool{orders, stock} {
		parleytest.Until(t, "the daemon serves the databases", func() (leads bool) {
			err := pool.QueryRow(t.Context(), "select leader is not null from parley._p_leader").Scan(&leads)
			return err == nil && leads
		})
	}
	sessions := map[string]*session{"-- in orders": newSession(t, orders), "-- in stock": newSession(t, stock)}
	for _, b := range readBlocks(example) {
		where, _, _ := strings.Cut(b.sql, "\n")
		s, ok := sessions[where]
		if !ok {
			t.Fatalf("docs/guides/dialogs.md:%d: %q names neither database", b.line, where)
		}
		s.runBlock("docs/guides/dialogs.md", b)
	}
	var open int
	const query = "select count(*) from parley.conversation_endpoints where state <> 'CD' and service_name = '//example.com/orders' and state <> 'DO'"
	if err := orders.QueryRow(t.Context(), query).Scan(&open); err != nil || open > 0 {
		t.Errorf("the example leaves %d dialogs that nobody ends (%v)", open, err)
	}
}

// serve builds the daemon and runs it to the end of the test.
func serve(t *testing.T, arguments ...string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "parley")
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../cmd/parley").CombinedOutput(); err != nil {
		t.Fatalf("build the daemon: %v: %s", err, output)
	}
	var log bytes.Buffer
	daemon := exec.CommandContext(context.Background(), program, append([]string{"serve"}, arguments...)...)
	daemon.Stdout, daemon.Stderr = &log, &log
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = daemon.Process.Signal(syscall.SIGTERM)
		late := time.AfterFunc(parleytest.Patience, func() { _ = daemon.Process.Kill() })
		defer late.Stop()
		_ = daemon.Wait()
		if t.Failed() {
			t.Logf("the daemon's log:\n%s", &log)
		}
	})
}
