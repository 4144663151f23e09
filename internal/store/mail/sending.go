package mail

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// Permit takes tokens for claimed messages of a lane that are to be sent now, by the rates of their connector, and gives the items that got
// theirs; the others are put off. Host, source and remote are the ends of the connection, "" where there is none yet: the name of the
// host, the address from which we connect and the address of the host.
func Permit(
	ctx context.Context, db pgdb.DB, lane string, lease int64, items, messages []int64, host, source, remote string,
) (permitted []int64, err error) {
	err = db.QueryRow(ctx, `select parley_mail._p_permit(
		lane => $1::text, lease_id => $2::bigint, items => $3::bigint[], message_ids => $4::bigint[],
		host => nullif($5::text, ''), source => nullif($6::text, ''), remote => nullif($7::text, '')
	)`, lane, lease, items, messages, host, source, remote).Scan(&permitted)
	if err != nil {
		return nil, pgdb.StatementError(err, "take tokens for messages")
	}
	return permitted, nil
}

// KeptPolicy is the MTA-STS policy of a domain that is kept, or nil.
func KeptPolicy(ctx context.Context, db pgdb.DB, domain string) (policy json.RawMessage, err error) {
	if err := db.QueryRow(ctx, "select parley_mail._p_kept_policy($1::text)", domain).Scan(&policy); err != nil {
		return nil, pgdb.StatementError(err, "read a kept policy")
	}
	return policy, nil
}

// KeepPolicy keeps the MTA-STS policy of a domain.
func KeepPolicy(ctx context.Context, db pgdb.DB, domain string, policy json.RawMessage, until time.Time) error {
	if _, err := db.Exec(ctx, `
		select parley_mail._p_keep_policy(
			domain => $1::text, policy => $2::jsonb, until => $3::timestamptz
		)`, domain, policy, until); err != nil {
		return pgdb.StatementError(err, "keep a policy")
	}
	return nil
}

// CreateObject makes an object of the configuration.
func CreateObject(ctx context.Context, db pgdb.DB, kind, name string, settings json.RawMessage) error {
	if _, err := db.Exec(ctx, `
		select parley_mail.create_object(
			kind => $1::text, name => $2::text, settings => $3::jsonb
		)`, kind, name, settings); err != nil {
		return pgdb.StatementError(err, "create "+kind+" "+name)
	}
	return nil
}

// AlterObject changes settings of an object of the configuration.
func AlterObject(ctx context.Context, db pgdb.DB, kind, name string, settings json.RawMessage) error {
	if _, err := db.Exec(ctx, `
		select parley_mail.alter_object(
			kind => $1::text, name => $2::text, settings => $3::jsonb
		)`, kind, name, settings); err != nil {
		return pgdb.StatementError(err, "alter "+kind+" "+name)
	}
	return nil
}

// Objects are the objects of a kind with their settings, defaults included and secrets not, by name.
func Objects(ctx context.Context, db pgdb.DB, kind string) (map[string]json.RawMessage, error) {
	rows, err := db.Query(ctx, "select name, effective_settings from parley_mail.objects where kind = $1::text", kind)
	if err != nil {
		return nil, pgdb.StatementError(err, "read the configuration of mail")
	}
	objects := make(map[string]json.RawMessage)
	var name string
	var settings json.RawMessage
	_, err = pgx.ForEachRow(rows, []any{&name, &settings}, func() error {
		objects[name] = slices.Clone(settings)
		return nil
	})
	if err != nil {
		return nil, pgdb.StatementError(err, "read the configuration of mail")
	}
	return objects, nil
}
