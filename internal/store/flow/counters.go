package flow

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// Counter is a count of the engine.
type Counter struct {
	Object   string  `json:"object"`
	Instance string  `json:"instance"`
	Counter  string  `json:"counter"`
	Value    float64 `json:"value"`
	// IsTotal is whether it only grows, as long as the node runs.
	IsTotal bool `json:"is_total,omitempty"`
	// Histogram has how values are spread, of which Value is then the count.
	Histogram *Histogram `json:"-"`
}

// Histogram is how many values were at most each of some bounds, and their sum.
type Histogram struct {
	Buckets map[float64]uint64
	Sum     float64
}

// BoxCounters gives the counts that the message box itself has; a role that may not see them gets none.
func BoxCounters(ctx context.Context, db pgdb.DB) ([]Counter, error) {
	rows, err := db.Query(ctx, `
		select c.object, c.instance, c.counter, c.value::float8 from parley_flow.counters as c where c.object like 'Message Box%'`)
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
