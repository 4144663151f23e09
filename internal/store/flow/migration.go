package flow

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/parley-broker/parley/internal/pgdb"
)

// Migrating is an instance that goes on with another version than the newest.
type Migrating struct {
	InstanceID int64
	Version    int
	Newest     int
	State      *string // nil before its first step has succeeded
}

// InstancesToMigrate locks and gives the next instances that do not go on with the newest version.
func InstancesToMigrate(ctx context.Context, db pgdb.DB, orchestration string, top int, after int64) ([]Migrating, error) {
	return collect[Migrating](ctx, db, "read instances to migrate", `
		select instance_id, version, newest, state
		from parley_flow.instances_to_migrate(orchestration => $1::text, top => $2::integer, after => $3::bigint)
		order by instance_id`, orchestration, top, after)
}

// Migration is an instance as it stands in the newest version.
type Migration struct {
	Instance int64    `json:"instance"`
	Version  int      `json:"version"` // before
	Waits    any      `json:"waits"`   // as the program gives them
	Timers   any      `json:"timers"`  // the same
	StandsAt []string `json:"stands_at"`
	State    *string  `json:"-"`
}

// MigrateInstances has instances go on with the newest version, and gives how many.
func MigrateInstances(ctx context.Context, db pgdb.DB, orchestration string, steps []Migration) (int, error) {
	if len(steps) == 0 {
		return 0, nil
	}
	written, err := json.Marshal(steps)
	if err != nil {
		return 0, fmt.Errorf("write instances: %w", err)
	}
	states := make([]*string, len(steps))
	for n := range steps {
		states[n] = steps[n].State
	}
	return one[int](ctx, db, "migrate instances", `
		select parley_flow.migrate_instances(orchestration => $1::text, steps => $2::jsonb, states => $3::text[])`,
		orchestration, string(written), states)
}
