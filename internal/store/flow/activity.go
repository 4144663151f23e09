package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/parley-broker/parley/internal/pgdb"
)

// NodeReport is the part of the report of a node that is shown to operators.
type NodeReport struct {
	InProcess         int     `json:"in_process"`
	Locations         int     `json:"receive_locations"`
	Received          int64   `json:"received"`
	Sent              int64   `json:"sent"`
	ReceivedPerSecond float64 `json:"received_per_second"`
	SentPerSecond     float64 `json:"sent_per_second"`
	// Correlation is the intake of messages that something waits for.
	Publishing, Correlation, Delivery Throttling
	IsStopping                        bool `json:"is_stopping"`
	Problems                          []struct{ Object, Cause string }
}

// Throttling is how a direction of a host is throttled.
type Throttling struct {
	State   int   `json:"state"`
	DelayMS int64 `json:"delay_ms"`
}

func (t Throttling) String() string {
	if t.State == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%d ms)", t.State, t.DelayMS)
}

// Read reads the report of the node.
func (n HostNode) Read() (report NodeReport) {
	_ = json.Unmarshal(n.Report, &report) // of another version: what it does not have is 0
	return report
}

// Status is Never served, Away, Stopped or Serving.
func (n HostNode) Status() string {
	switch {
	case n.Node == nil:
		return "Never served"
	case !n.IsThere:
		return "Away"
	case n.Read().IsStopping:
		return "Stopped"
	}
	return "Serving"
}

// Problem is the first thing that the node cannot do; empty: nothing.
func (r NodeReport) Problem() string {
	if len(r.Problems) == 0 {
		return ""
	}
	return r.Problems[0].Object + ": " + r.Problems[0].Cause
}

// PortActivity is the activity of a send port. Suspended messages and held keys are counted up to [CountedMost] each.
type PortActivity struct {
	Name          string     `json:"name"`
	Application   string     `json:"application"`
	Host          string     `json:"host"`
	State         string     `json:"state"`
	Waiting       int64      `json:"waiting"`
	Failing       int64      `json:"failing"`
	SentPerSecond float64    `json:"sent_per_second"`
	OldestSeconds *float64   `json:"oldest_seconds"`
	Suspended     int64      `json:"suspended"`
	HeldKeys      int64      `json:"held_keys"`
	NextAttemptAt *time.Time `json:"next_attempt_at"`
	LastError
	IsClosed bool `json:"is_closed"`
}

// CountedMost is how many suspended messages of a port are counted where the cost must not grow with them.
const CountedMost = 10_000

// PortActivities gives what goes on at send ports, at a cost that does not grow with what waits.
func PortActivities(ctx context.Context, db pgdb.DB) ([]PortActivity, error) {
	return collect[PortActivity](ctx, db, "read what goes on at send ports", `
		select name, application, host, state, waiting, failing, sent_per_second::float8,
			extract(epoch from clock_timestamp() - oldest)::float8, suspended, held_keys, next_attempt_at, last_error, last_error_at,
			recovered_at, is_closed
		from parley_flow.port_activity()
		order by name`)
}

// IsVisible reports whether the engine is installed, and whether the role may use its schema.
func IsVisible(ctx context.Context, db pgdb.DB) (bool, error) {
	return one[bool](ctx, db, "ask whether integration is there",
		"select coalesce(has_schema_privilege(to_regnamespace('parley_flow'), 'usage'), false)")
}
