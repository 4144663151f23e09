package cli

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// pinSearchPath keeps what this program asks from being answered by functions and operators of a schema that the role or the database
// has in its search path, whichever roles may create objects there. Behind a pooler nothing is set: the session belongs to others too. Each
// name in the statement is spelled in full, so that it does not need what it is there for.
func pinSearchPath(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `
		select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false)
		where pg_catalog.pg_backend_pid() operator(pg_catalog.=) $1::pg_catalog.int8`,
		pgx.QueryExecModeExec, int64(conn.PgConn().PID()))
	if err != nil {
		return fmt.Errorf("pin the search path: %w", err)
	}
	return nil
}
