package flow

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
	"github.com/parley-broker/parley/internal/telemetry/counters"
)

// Counter is a count of the engine.
type Counter = counters.Counter

// BoxCounters gives the counts that the message box itself has; a role that may not see them gets none.
func BoxCounters(ctx context.Context, db pgdb.DB) ([]Counter, error) {
	rows, err := db.Query(ctx, `
		select c.object, c.instance, c.counter, c.value::float8 from parley_flow.counters as c
		where c.object like 'Message Box%' or c.object = 'Orchestrations'`)
	if err != nil {
		return nil, pgdb.StatementError(err, "read the counters of the message box")
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c Counter, err error) {
		return c, row.Scan(&c.Object, &c.Instance, &c.Counter, &c.Value)
	})
	if err != nil {
		return nil, pgdb.StatementError(err, "read the counters of the message box")
	}
	return found, nil
}
