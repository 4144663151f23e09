package bench

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/bottleneck"
)

// observatory opens a connection to sample from. Where the role may create the extensions that show buffers and statements, it is to a
// database of ours that has them, which is dropped with the others: no database of the user gets an extension. Else it is to the database
// of the DSN, which may have some.
func (c *cluster) observatory(ctx context.Context) (*pgx.Conn, error) {
	var wanted []string
	err := c.admin.QueryRow(ctx, `
		select coalesce(array_agg(e.name::text order by e.name), '{}')
		from pg_available_extensions as e
		where e.name = any($1) and (select r.rolsuper from pg_roles as r where r.rolname = current_user)
			and (e.name <> 'pg_stat_statements' or exists (
				select from pg_settings as s where s.name = 'pg_stat_statements.max'
			))`, bottleneck.Extensions()).Scan(&wanted)
	if err != nil {
		return nil, fmt.Errorf("find the extensions of the server: %w", err)
	}
	config := c.config
	if len(wanted) > 0 {
		d, err := c.create(ctx, database{})
		if err != nil {
			return nil, err
		}
		config = d.config
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to sample what sessions wait for: %w", err)
	}
	for _, name := range wanted {
		if _, err := conn.Exec(ctx, "create extension if not exists "+pgx.Identifier{name}.Sanitize()); err != nil {
			_ = conn.Close(ctx)
			return nil, fmt.Errorf("create the extension %s in a database of the benchmark: %w", name, err)
		}
	}
	return conn, nil
}
