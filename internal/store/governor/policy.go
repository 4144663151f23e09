package governor

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

func readThresholds(ctx context.Context, db pgdb.DB, system string) ([]Threshold, error) {
	rows, err := db.Query(ctx, `
		select t.resource, t.unit, t.medium_at, t.high_at, t.medium_below, t.normal_below, t.history_polls
		from parley_store.thresholds as t
		where t.system = $1 and t.is_watched`, system)
	if err != nil {
		return nil, pgdb.StatementError(err, "read the thresholds of pressure")
	}
	thresholds, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Threshold])
	if err != nil {
		return nil, pgdb.StatementError(err, "read the thresholds of pressure")
	}
	return thresholds, nil
}

func readActions(ctx context.Context, db pgdb.DB, system string) ([]Action, error) {
	rows, err := db.Query(ctx, `
		select a.resource, a.action, case a.from_level when 'HIGH' then 2 else 1 end, a.after_history
		from parley_store.pressure_actions as a
		where a.system = $1`, system)
	if err != nil {
		return nil, pgdb.StatementError(err, "read the actions under pressure")
	}
	actions, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Action])
	if err != nil {
		return nil, pgdb.StatementError(err, "read the actions under pressure")
	}
	return actions, nil
}
