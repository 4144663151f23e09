package mail

import (
	"context"
	"encoding/json"

	"github.com/parley-broker/parley/internal/pgdb"
)

// Change is the effect of a change of the configuration on an object.
type Change struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Action is CREATE, ALTER or DROP.
	Action string `json:"action"`
	// Settings are the new values; null for those that go back to their default.
	Settings json.RawMessage `json:"settings"`
	// Warning says why the object does not work as it is, such as a service that does not exist.
	Warning string `json:"warning,omitempty"`
}

// Apply makes the configuration what a document says, and returns what that changes. With prune, objects that the document does not name
// are dropped; a dry run changes nothing.
func Apply(ctx context.Context, db pgdb.DB, configuration json.RawMessage, dryRun, prune bool) ([]Change, error) {
	return rows[Change](ctx, db, "apply a configuration of mail", `
		select kind, name, action, coalesce(settings, 'null') as settings, coalesce(warning, '') as warning
		from parley_mail.apply(configuration => $1::jsonb, dry_run => $2::boolean, prune => $3::boolean)`, configuration, dryRun, prune)
}

// Submission is a message to submit: with a text, or raw.
type Submission struct {
	Sender         string
	Recipients     []string
	Subject, Text  string
	Raw            []byte
	IdempotencyKey string
}

// Submit submits a message in the transaction of db, and returns its number.
func Submit(ctx context.Context, db pgdb.DB, s Submission) (id int64, err error) {
	const what = "submit a message"
	if s.Raw != nil {
		return value[int64](ctx, db, what, `
			select parley_mail.send(
				sender => $1::text, recipients => $2::text[], raw => $3::bytea, idempotency_key => nullif($4::text, '')
			)`, s.Sender, s.Recipients, s.Raw, s.IdempotencyKey)
	}
	return value[int64](ctx, db, what, `
		select parley_mail.send(
			sender => $1::text, recipients => $2::text[], subject => $3::text, text => $4::text,
			idempotency_key => nullif($5::text, '')
		)`, s.Sender, s.Recipients, s.Subject, s.Text, s.IdempotencyKey)
}
