package flow

import (
	"context"
	"encoding/json"
	"time"

	"github.com/parley-broker/parley/internal/pgdb"
)

// KindOrchestration is the kind of orchestrations in definitions, and for states.
const KindOrchestration = "orchestration"

// Instance is an instance of an orchestration that is not over.
type Instance struct {
	InstanceID    int64           `json:"instance_id"`
	Orchestration string          `json:"orchestration"`
	Version       int             `json:"version"`
	Application   string          `json:"application"`
	Host          string          `json:"host"`
	Status        string          `json:"status"`
	BeganAt       time.Time       `json:"began_at"`
	ChangedAt     time.Time       `json:"changed_at"`
	Steps         int64           `json:"steps"`
	Attempts      int             `json:"attempts"`
	MessageID     *int64          `json:"message_id"`
	ConvoyKey     *string         `json:"convoy_key"`
	StateBytes    *int            `json:"state_bytes"`
	Unread        int64           `json:"unread"`
	WaitsFor      json.RawMessage `json:"waits_for"`
	Passed        json.RawMessage `json:"passed"`
	StandsAt      []string        `json:"stands_at"`
	Code          *string         `json:"code"`
	Path          *string         `json:"path"`
	Error         *string         `json:"error"`
	Remedy        *string         `json:"remedy"`
}

const instanceColumns = `instance_id, orchestration, version, application, host, status, began_at, changed_at, steps, attempts, message_id,
	convoy_key, state_bytes, unread, waits_for, passed, stands_at, code, path, error, remedy`

// Instances gives the next instances that a filter matches, behind a number.
func Instances(ctx context.Context, db pgdb.DB, filter Filter, top int, after int64) ([]Instance, error) {
	written, err := json.Marshal(filter)
	if err != nil {
		return nil, err
	}
	return collect[Instance](ctx, db, "read instances", "select "+instanceColumns+`
		from parley_flow.instances_matching(filter => $1::jsonb, top => $2::integer, after => $3::bigint)
		order by instance_id`, string(written), top, after)
}

// Orchestration is an orchestration and how many instances it has.
type Orchestration struct {
	Name        string          `json:"name"`
	Application string          `json:"application"`
	Host        string          `json:"host"`
	State       string          `json:"state"`
	Version     int             `json:"version"`
	Waiting     int64           `json:"waiting"`
	New         int64           `json:"new"`
	Instances   int64           `json:"instances"`
	Retrying    int64           `json:"retrying"`
	Suspended   int64           `json:"suspended"`
	Versions    json.RawMessage `json:"versions"`
	Oldest      *time.Time      `json:"oldest"`
}

// Orchestrations gives orchestrations by their names.
func Orchestrations(ctx context.Context, db pgdb.DB, scope Scope) ([]Orchestration, error) {
	return collect[Orchestration](ctx, db, "read orchestrations", `
		select name, application, host, state, version, waiting, new, instances, retrying, suspended, versions, oldest
		from parley_flow.orchestrations
		where ($1::text = '' or application = $1::text) and ($2::text = '' or host = $2::text)
			and ($3::text = '' or lower(state) = lower($3::text))
		order by name`, scope.Application, scope.Host, scope.State)
}

// InstanceEvent is something that was tracked of an instance.
type InstanceEvent struct {
	At            time.Time       `json:"at"`
	Event         string          `json:"event"`
	Host          *string         `json:"host"`
	Orchestration *string         `json:"orchestration"`
	Fields        json.RawMessage `json:"fields"`
}

// TrackInstance gives what was tracked of an instance.
func TrackInstance(ctx context.Context, db pgdb.DB, instance int64) ([]InstanceEvent, error) {
	return collect[InstanceEvent](ctx, db, "track an instance", `
		select at, event, host, orchestration, fields from parley_flow.track_instance(instance_id => $1::bigint) order by at`, instance)
}

// ReadDefinition gives what an orchestration does in a version; null where there is none.
func ReadDefinition(ctx context.Context, db pgdb.DB, orchestration string, version int) (json.RawMessage, error) {
	return one[json.RawMessage](ctx, db, "read a version of "+orchestration, `
		select coalesce(parley_flow.read_definition(orchestration => $1::text, version => $2::integer), 'null')`, orchestration, version)
}

// ResumeInstances has instances that are suspended or wait for another attempt go on, at most so many; it gives how many.
func ResumeInstances(ctx context.Context, db pgdb.DB, filter Filter, top int, dryRun bool) (int, error) {
	written, err := json.Marshal(filter)
	if err != nil {
		return 0, err
	}
	return one[int](ctx, db, "resume instances", `
		select parley_flow.resume_instances(filter => $1::jsonb, top => $2::integer, dry_run => $3::boolean)`, string(written), top, dryRun)
}

// TerminateInstances ends instances where they stand, at most so many; it gives how many.
func TerminateInstances(ctx context.Context, db pgdb.DB, filter Filter, top int, dryRun bool) (int, error) {
	written, err := json.Marshal(filter)
	if err != nil {
		return 0, err
	}
	return one[int](ctx, db, "terminate instances", `
		select parley_flow.terminate_instances(filter => $1::jsonb, top => $2::integer, dry_run => $3::boolean)`, string(written), top, dryRun)
}

// StartOrchestration begins an instance, and gives its number.
func StartOrchestration(ctx context.Context, db pgdb.DB, name string, parameters json.RawMessage) (int64, error) {
	return one[int64](ctx, db, "start "+name, `
		select parley_flow.start_orchestration(name => $1::text, parameters => $2::jsonb)`, name, parameters)
}
