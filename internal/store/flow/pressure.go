package flow

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
	governorstore "github.com/parley-broker/parley/internal/store/governor"
)

// Pressure is where the engine keeps the policy of its governor and the history.
type Pressure struct{ DB pgdb.DB }

var _ governorstore.Store = Pressure{}

// Policy reads thresholds and actions.
func (p Pressure) Policy(ctx context.Context) ([]governorstore.Threshold, []governorstore.Action, error) {
	thresholds, err := collect[governorstore.Threshold](ctx, p.DB, "read the thresholds of pressure", `
		select t.resource, t.unit, t.medium_at, t.high_at, t.medium_below, t.normal_below, 0::float8, 0::bigint, t.history_polls
		from parley_flow.thresholds as t where t.is_watched`)
	if err != nil {
		return nil, nil, err
	}
	actions, err := collect[governorstore.Action](ctx, p.DB, "read the actions under pressure", `
		select a.resource, a.action, array_position('{MEDIUM,HIGH,FLOOR}'::text[], a.from_level), a.after_history
		from parley_flow.pressure_actions as a`)
	return thresholds, actions, err
}

// Record records a change of a level.
func (p Pressure) Record(ctx context.Context, e governorstore.Event) error {
	_, err := p.DB.Exec(ctx, `select parley_flow._p_record_pressure(
		node => $1::text, resource => $2::text, event_id => $3::integer, from_level => $4::text, to_level => $5::text,
		measured => $6::float8, actions => $7::text[], message => $8::text
	)`, e.Node, e.Resource, e.ID, e.From.Column(), e.To.Column(), e.Value, e.Actions, e.Message)
	if err != nil {
		return pgdb.StatementError(err, "record the history of pressure")
	}
	return nil
}

// Measure measures what the database itself knows.
func (p Pressure) Measure(ctx context.Context) (map[string]float64, error) {
	rows, err := p.DB.Query(ctx, "select m.resource, m.value from parley_flow._p_measure() as m")
	if err != nil {
		return nil, pgdb.StatementError(err, "measure the database")
	}
	values := map[string]float64{}
	var resource string
	var value float64
	if _, err := pgx.ForEachRow(rows, []any{&resource, &value}, func() error { values[resource] = value; return nil }); err != nil {
		return nil, pgdb.StatementError(err, "measure the database")
	}
	return values, nil
}

// Ports gives the send ports for which more messages wait than resume_at, and whether as many do as pause_at.
func (p Pressure) Ports(ctx context.Context) (isOver map[int64]bool, err error) {
	rows, err := p.DB.Query(ctx, "select m.send_port, m.is_over from parley_flow._p_measure_ports() as m")
	if err != nil {
		return nil, pgdb.StatementError(err, "measure the send ports")
	}
	isOver = map[int64]bool{}
	var port int64
	var over bool
	if _, err := pgx.ForEachRow(rows, []any{&port, &over}, func() error { isOver[port] = over; return nil }); err != nil {
		return nil, pgdb.StatementError(err, "measure the send ports")
	}
	return isOver, nil
}
