package flow

import (
	"context"
	"encoding/json"

	"github.com/parley-broker/parley/internal/pgdb"
)

// Fault is something wrong with definitions. Path is where: keys and numbers of elements from the root.
type Fault struct {
	Path      []string
	Situation string
	Message   string
	Cause     *string
	Remedy    string
}

// Check gives everything that is wrong with definitions; nothing, and [Apply] takes them.
func Check(ctx context.Context, db pgdb.DB, definitions json.RawMessage, prune bool) ([]Fault, error) {
	return collect[Fault](ctx, db, "check definitions", `
		select path, situation, message, nullif(cause, ''), remedy
		from parley_flow.check_definitions(definitions => $1::jsonb, prune => $2::boolean)`, definitions, prune)
}

// Change is one that applying definitions makes to an object, or to one of its settings.
type Change struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Action is create, alter or drop.
	Action string `json:"action"`
	// Setting is the one that is altered; nil of an object as a whole.
	Setting *string         `json:"setting"`
	Old     json.RawMessage `json:"old_value"`
	New     json.RawMessage `json:"new_value"`
}

// Apply makes the definitions what a document says, and returns what that changes. With prune, objects that it does not name are dropped,
// of the applications that it names; a dry run changes nothing.
func Apply(ctx context.Context, db pgdb.DB, definitions json.RawMessage, dryRun, prune bool) ([]Change, error) {
	return collect[Change](ctx, db, "apply definitions", `
		select kind, name, action, setting, coalesce(old_value, 'null'), coalesce(new_value, 'null')
		from parley_flow.apply(definitions => $1::jsonb, dry_run => $2::boolean, prune => $3::boolean)`, definitions, dryRun, prune)
}

// Export gives the definitions of an application, or all for an empty name, as [Apply] takes them.
func Export(ctx context.Context, db pgdb.DB, application string) (json.RawMessage, error) {
	return one[json.RawMessage](ctx, db, "export definitions", "select parley_flow.export(nullif($1::text, ''))", application)
}

// Setting is a setting that a kind of object has.
type Setting struct {
	Kind        string
	Name        string
	Type        string
	IsRequired  bool
	Default     json.RawMessage
	Lowest      *string
	Highest     *string
	Choices     []string
	RefersTo    *string
	Description string
}

// Settings gives all settings of all kinds.
func Settings(ctx context.Context, db pgdb.DB) ([]Setting, error) {
	return collect[Setting](ctx, db, "read the settings that there are", `
		select kind, setting, type, is_required, default_value, lowest, highest, choices, refers_to, description
		from parley_flow.setting_definitions`)
}
