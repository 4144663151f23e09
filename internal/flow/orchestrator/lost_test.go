package orchestrator

import (
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// A server that restarts breaks the connections of a pool one by one: no step has failed because of that.
func TestALostConnectionIsNoFailureOfAStep(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		&net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET},
		io.ErrUnexpectedEOF, pgconn.ErrConnClosed, &pgconn.PgError{Code: "57P01"}, &pgconn.PgError{Code: "08006"},
	} {
		if isOfOne(fmt.Errorf("begin a transaction: %w", err)) {
			t.Errorf("%v counts as a failure of the step", err)
		}
	}
	if !isOfOne(&pgconn.PgError{Code: "23505"}) {
		t.Error("a violated constraint does not count as a failure of the step")
	}
}
