package pgdb

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// IsUnreachable reports whether an attempt to use a database has failed because it could not be connected to, or did not answer in the time
// of the attempt, while ctx goes on. It may be there later; what else goes wrong needs somebody to mend it.
func IsUnreachable(ctx context.Context, err error) bool {
	_, isRefused := errors.AsType[*pgconn.ConnectError](err)
	return ctx.Err() == nil && (isRefused || errors.Is(err, context.DeadlineExceeded))
}
