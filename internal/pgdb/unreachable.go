package pgdb

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// IsUnreachable reports whether an attempt to use a database has failed because it could not be connected to, did not answer in the time of
// the attempt, or broke the connection off, as a server does that shuts down, while ctx goes on. It may be there later; what else goes
// wrong needs somebody to mend it.
func IsUnreachable(ctx context.Context, err error) bool {
	_, isRefused := errors.AsType[*pgconn.ConnectError](err)
	return ctx.Err() == nil && (isRefused || errors.Is(err, context.DeadlineExceeded) || isBrokenOff(err))
}

// isBrokenOff reports whether the connection of a statement was lost: by the network, or by a server that stops, crashes or begins.
func isBrokenOff(err error) bool {
	state := SQLState(err)
	_, isOfNetwork := errors.AsType[*net.OpError](err)
	return isOfNetwork || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, pgconn.ErrConnClosed) || state == "57P01" || state == "57P02" || state == "57P03" || strings.HasPrefix(state, "08")
}
