package mail

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
	governorstore "github.com/parley-broker/parley/internal/store/governor"
)

// Pressure is where mail keeps the policy of its governor and the history.
type Pressure struct{ DB pgdb.DB }

var _ governorstore.Store = Pressure{}

// Policy reads thresholds and actions.
func (p Pressure) Policy(ctx context.Context) ([]governorstore.Threshold, []governorstore.Action, error) {
	rows, err := p.DB.Query(ctx, `
		select t.resource, t.unit, t.medium_at, t.high_at, t.medium_below, t.normal_below, coalesce(t.floor_at, 0),
			coalesce(t.reserve_bytes, 0), t.history_polls
		from parley_mail.thresholds as t where t.is_watched`)
	if err != nil {
		return nil, nil, pgdb.StatementError(err, "read the thresholds of pressure")
	}
	thresholds, err := pgx.CollectRows(rows, pgx.RowToStructByPos[governorstore.Threshold])
	if err != nil {
		return nil, nil, pgdb.StatementError(err, "read the thresholds of pressure")
	}
	rows, err = p.DB.Query(ctx, `
		select a.resource, a.action, array_position('{MEDIUM,HIGH,FLOOR}'::text[], a.from_level), a.after_history
		from parley_mail.pressure_actions as a`)
	if err != nil {
		return nil, nil, pgdb.StatementError(err, "read the actions under pressure")
	}
	actions, err := pgx.CollectRows(rows, pgx.RowToStructByPos[governorstore.Action])
	if err != nil {
		return nil, nil, pgdb.StatementError(err, "read the actions under pressure")
	}
	return thresholds, actions, nil
}

// Record records a change of a level.
func (p Pressure) Record(ctx context.Context, e governorstore.Event) error {
	_, err := p.DB.Exec(ctx, `select parley_mail._p_record_pressure(
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
	rows, err := p.DB.Query(ctx, "select m.resource, m.value from parley_mail._p_measure() as m")
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

// Daemon is a daemon's report about itself.
type Daemon struct {
	IsStart              bool       `json:"is_start,omitempty"`
	IsStopped            bool       `json:"is_stopped,omitempty"`
	Host                 string     `json:"host"`
	ProcessID            int        `json:"process_id"`
	Version              string     `json:"version,omitempty"`
	ConfigurationVersion int64      `json:"configuration_version,omitempty"`
	Level                string     `json:"level"`
	Actions              []string   `json:"actions"`
	Resources            []Resource `json:"resources"`
	Problems             []Problem  `json:"problems"`
	Counters             []Counter  `json:"counters"`
	// Listeners are where it receives mail, with the addresses of its machine for all.
	Listeners []netip.AddrPort `json:"listeners"`
}

// Resource is a resource as it was measured; a value of nil was not.
type Resource struct {
	Resource string   `json:"resource"`
	Value    *float64 `json:"value"`
	Unit     string   `json:"unit"`
	Level    string   `json:"level"`
	MediumAt float64  `json:"medium_at"`
	HighAt   float64  `json:"high_at"`
}

// Problem is something that a daemon cannot do, for diagnosis.
type Problem struct {
	Code   string `json:"code"`
	Kind   string `json:"kind"`
	Object string `json:"object"`
	Cause  string `json:"cause"`
	// Cure is the remedy; "" leaves it to the code.
	Cure string `json:"cure,omitempty"`
}

// Counter is a count of a daemon since it began.
type Counter struct {
	Object   string  `json:"object"`
	Counter  string  `json:"counter"`
	Instance string  `json:"instance"`
	Value    float64 `json:"value"`
	// IsTotal is whether it only grows, as long as the daemon runs.
	IsTotal bool `json:"is_total,omitempty"`
	// Histogram has how values are spread, of which Value is then the count; it is not reported to the database.
	Histogram *Histogram `json:"-"`
}

// Histogram is how many values were at most each of some bounds, and their sum.
type Histogram struct {
	Buckets map[float64]uint64
	Sum     float64
}

// Counters reads what the database itself knows: queues.
func Counters(ctx context.Context, db pgdb.DB) ([]Counter, error) {
	rows, err := db.Query(ctx, "select c.object, c.counter, c.instance, c.value, c.is_total from parley_mail.queue_counters as c")
	if err != nil {
		return nil, pgdb.StatementError(err, "read the counters of queues")
	}
	counters, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c Counter, err error) {
		return c, row.Scan(&c.Object, &c.Counter, &c.Instance, &c.Value, &c.IsTotal)
	})
	if err != nil {
		return nil, pgdb.StatementError(err, "read the counters of queues")
	}
	return counters, nil
}

// DataFolder gives the folder of the server's data, or "" where the role may not know it.
func DataFolder(ctx context.Context, db pgdb.DB) string {
	var folder string
	if err := db.QueryRow(ctx, `select case when pg_has_role('pg_read_all_settings', 'usage') then current_setting('data_directory')
		else '' end`).Scan(&folder); err != nil {
		return ""
	}
	return folder
}

// ReportDaemon records how a daemon is doing.
func ReportDaemon(ctx context.Context, db pgdb.DB, name string, d Daemon) error {
	written, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("report how the daemon is doing: %w", err)
	}
	if _, err := db.Exec(ctx, "select parley_mail._p_report_daemon($1::text, $2::jsonb)", name, json.RawMessage(written)); err != nil {
		return pgdb.StatementError(err, "report how the daemon is doing")
	}
	return nil
}
