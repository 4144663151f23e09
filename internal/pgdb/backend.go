package pgdb

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Backend asks for the process that serves a connection. A pooler gives its clients process ids of its own; through one, LISTEN succeeds
// and nothing ever comes, and nothing that belongs to a session can be relied on.
func Backend(ctx context.Context, conn *pgx.Conn) (pid uint32, isDirect bool, err error) {
	if err := conn.QueryRow(ctx, "select pg_catalog.pg_backend_pid()", pgx.QueryExecModeExec).Scan(&pid); err != nil {
		return 0, false, fmt.Errorf("ask for the backend: %w", err)
	}
	return pid, pid == conn.PgConn().PID(), nil
}

// SetName names a connection for readers of pg_stat_activity.
func SetName(config *pgx.ConnConfig, name string) {
	if config.RuntimeParams == nil {
		config.RuntimeParams = map[string]string{}
	}
	config.RuntimeParams["application_name"] = name
}
