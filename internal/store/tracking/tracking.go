// Package tracking appends what has happened to messages to the store of a database.
package tracking

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/parley-broker/parley/internal/pgdb"
)

// Event is something that has happened to a message.
type Event struct {
	At         time.Time // zero for now
	Event      string    // such as RECEIVE
	Source     string    // what of the system saw it, such as SMTP
	MessageID  string
	Recipients []string
	Fields     map[string]any
}

// Append appends events in one statement. Nobody waits for it, and a caller that can lose the last ones with the server sets
// synchronous_commit off in its transaction.
func Append(ctx context.Context, db pgdb.DB, system string, events []Event) error {
	names, sources, messages := make([]string, len(events)), make([]string, len(events)), make([]string, len(events))
	times := make([]*time.Time, len(events))
	recipients, fields := make([][]string, len(events)), make([]map[string]any, len(events))
	for i, e := range events {
		names[i], sources[i], messages[i], recipients[i], fields[i] = e.Event, e.Source, e.MessageID, e.Recipients, e.Fields
		if !e.At.IsZero() {
			times[i] = &e.At
		}
		if fields[i] == nil {
			fields[i] = map[string]any{}
		}
	}
	recipientLists, err := json.Marshal(recipients)
	if err != nil {
		return fmt.Errorf("write the recipients of events: %w", err)
	}
	fieldObjects, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("write the fields of events: %w", err)
	}
	_, err = db.Exec(ctx, "select parley_store.track($1::text, $2::text[], $3::text[], $4::jsonb, $5::jsonb, $6::text[], $7::timestamptz[])",
		system, names, messages, string(recipientLists), string(fieldObjects), sources, times)
	if err != nil {
		return pgdb.StatementError(err, "track events")
	}
	return nil
}
