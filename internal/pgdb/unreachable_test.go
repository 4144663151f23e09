package pgdb_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/pgdb"
)

// A server that shuts down while a node begins breaks its first statements off: that is no fault that somebody has to mend.
func TestAServerThatStopsIsOutOfReach(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"broken off": {io.ErrUnexpectedEOF, true}, "reset": {&net.OpError{Op: "read", Err: errors.New("connection reset by peer")}, true},
		"closed": {pgconn.ErrConnClosed, true}, "shutting down": {&pgconn.PgError{Code: "57P01"}, true}, "crashed": {&pgconn.PgError{Code: "57P02"}, true},
		"starting": {&pgconn.PgError{Code: "57P03"}, true}, "lost": {&pgconn.PgError{Code: "08006"}, true}, "late": {context.DeadlineExceeded, true},
		"not installed": {&pgconn.PgError{Code: "3F000"}, false}, "not permitted": {&pgconn.PgError{Code: "PF001"}, false},
		"cancelled by hand": {&pgconn.PgError{Code: "57014"}, false}, "another": {errors.New("no such host is defined"), false}, "none": {nil, false},
	} {
		err := c.err
		if err != nil {
			err = fmt.Errorf("prepare integration: %w", err)
		}
		if got := pgdb.IsUnreachable(t.Context(), err); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if pgdb.IsUnreachable(over, io.ErrUnexpectedEOF) {
		t.Error("a node that is stopped waits on")
	}
}
