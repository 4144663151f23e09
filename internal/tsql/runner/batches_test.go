package runner_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/tsql/runner"
	"github.com/parley-broker/parley/parleytest"
)

// The first statement with tables makes the collation of text, beside an open transaction where that can be. A session on the connection
// of another has no connection beside it: it makes the collation in its transaction, and leaves the connection open.
func TestASessionOnAGivenConnectionLeavesItOpen(t *testing.T) {
	t.Parallel()
	pool := parleytest.EmptyDatabase(t)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	batches := []string{"BEGIN TRAN\nDECLARE @n int = (SELECT COUNT(*) FROM sys.tables)\nCOMMIT", "CREATE TABLE item (name varchar(9))"}
	if err := runner.RunOn(t.Context(), conn.Conn(), batches); err != nil {
		t.Error(err)
	}
	if err := conn.Ping(t.Context()); err != nil {
		t.Error("the connection is closed:", err)
	}
}
