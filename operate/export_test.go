package operate

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// DiagnoseConnectionAt is DiagnoseConnection on a machine whose clock shows something else.
func DiagnoseConnectionAt(ctx context.Context, conn *pgx.Conn, now func() time.Time) ([]Finding, bool, error) {
	return diagnoseConnection(ctx, conn, now)
}
