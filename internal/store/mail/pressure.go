package mail

import (
	"context"
	"net/netip"

	"github.com/parley-broker/parley/internal/pgdb"
	governorstore "github.com/parley-broker/parley/internal/store/governor"
	"github.com/parley-broker/parley/internal/telemetry/counters"
)

// Pressure is where mail keeps the policy of its governor and the history.
type Pressure struct{ DB pgdb.DB }

var _ governorstore.Store = Pressure{}

// Policy reads thresholds and actions.
func (p Pressure) Policy(ctx context.Context) ([]governorstore.Threshold, []governorstore.Action, error) {
	thresholds, err := rows[governorstore.Threshold](ctx, p.DB, "read the thresholds of pressure", `
		select t.resource, t.unit, t.medium_at, t.high_at, t.medium_below, t.normal_below, coalesce(t.floor_at, 0) as floor_at,
			coalesce(t.reserve_bytes, 0) as reserve_bytes, t.history_polls
		from parley_mail.thresholds as t where t.is_watched`)
	if err != nil {
		return nil, nil, err
	}
	actions, err := rows[governorstore.Action](ctx, p.DB, "read the actions under pressure", `
		select a.resource, a.action as name, array_position('{MEDIUM,HIGH,FLOOR}'::text[], a.from_level) as "from", a.after_history
		from parley_mail.pressure_actions as a`)
	return thresholds, actions, err
}

// Record records a change of a level.
func (p Pressure) Record(ctx context.Context, e governorstore.Event) error {
	return run(ctx, p.DB, "record the history of pressure", `
		select parley_mail._p_record_pressure(
			node => $1::text, resource => $2::text, event_id => $3::integer, from_level => $4::text, to_level => $5::text,
			measured => $6::float8, actions => $7::text[], message => $8::text
		)`, e.Node, e.Resource, e.ID, e.From.Column(), e.To.Column(), e.Value, e.Actions, e.Message)
}

// Measure measures what the database itself knows.
func (p Pressure) Measure(ctx context.Context) (map[string]float64, error) {
	type measured struct {
		Resource string
		Value    float64
	}
	found, err := rows[measured](ctx, p.DB, "measure the database", "select m.resource, m.value from parley_mail._p_measure() as m")
	if err != nil {
		return nil, err
	}
	values := make(map[string]float64, len(found))
	for _, m := range found {
		values[m.Resource] = m.Value
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

// Counter is a count of mail.
type Counter = counters.Counter

// Counters reads what the database itself knows: queues.
func Counters(ctx context.Context, db pgdb.DB) ([]Counter, error) {
	return rows[Counter](ctx, db, "read the counters of queues", `
		select c.object, c.counter, c.instance, c.value, c.is_total from parley_mail.queue_counters as c`)
}

// DataFolder gives the folder of the server's data, or "" where the role may not know it.
func DataFolder(ctx context.Context, db pgdb.DB) string {
	folder, _ := value[string](ctx, db, "read the folder of the data", `
		select case when pg_has_role('pg_read_all_settings', 'usage') then current_setting('data_directory') else '' end`)
	return folder
}

// ReportDaemon records how a daemon is doing.
func ReportDaemon(ctx context.Context, db pgdb.DB, name string, d Daemon) error {
	return run(ctx, db, "report how the daemon is doing", `
		select parley_mail._p_report_daemon(name => $1::text, report => $2::jsonb)`, name, document{d})
}
