package mail

import (
	"context"
	"encoding/json"
	"time"

	"github.com/parley-broker/parley/internal/pgdb"
)

// Permit takes tokens for claimed messages of a lane that are to be sent now, by the rates of their connector, and gives the items that got
// theirs; the others are put off. Host, source and remote are the ends of the connection, "" where there is none yet: the name of the
// host, the address from which we connect and the address of the host.
func Permit(
	ctx context.Context, db pgdb.DB, lane string, lease int64, items, messages []int64, host, source, remote string,
) (permitted []int64, err error) {
	return value[[]int64](ctx, db, "take tokens for messages", `
		select parley_mail._p_permit(
			lane => $1::text, lease_id => $2::bigint, items => $3::bigint[], message_ids => $4::bigint[],
			host => nullif($5::text, ''), source => nullif($6::text, ''), remote => nullif($7::text, '')
		)`, lane, lease, items, messages, host, source, remote)
}

// KeptPolicy is the MTA-STS policy of a domain that is kept, or nil.
func KeptPolicy(ctx context.Context, db pgdb.DB, domain string) (policy json.RawMessage, err error) {
	return value[json.RawMessage](ctx, db, "read a kept policy", "select parley_mail._p_kept_policy(domain => $1::text)", domain)
}

// KeepPolicy keeps the MTA-STS policy of a domain.
func KeepPolicy(ctx context.Context, db pgdb.DB, domain string, policy json.RawMessage, until time.Time) error {
	return run(ctx, db, "keep a policy", `
		select parley_mail._p_keep_policy(
			domain => $1::text, policy => $2::jsonb, until => $3::timestamptz
		)`, domain, policy, until)
}

// CreateObject makes an object of the configuration.
func CreateObject(ctx context.Context, db pgdb.DB, kind, name string, settings json.RawMessage) error {
	return run(ctx, db, "create "+kind+" "+name, `
		select parley_mail.create_object(
			kind => $1::text, name => $2::text, settings => $3::jsonb
		)`, kind, name, settings)
}

// AlterObject changes settings of an object of the configuration.
func AlterObject(ctx context.Context, db pgdb.DB, kind, name string, settings json.RawMessage) error {
	return run(ctx, db, "alter "+kind+" "+name, `
		select parley_mail.alter_object(
			kind => $1::text, name => $2::text, settings => $3::jsonb
		)`, kind, name, settings)
}

// Objects are the objects of a kind with their settings, defaults included and secrets not, by name.
func Objects(ctx context.Context, db pgdb.DB, kind string) (map[string]json.RawMessage, error) {
	type object struct {
		Name     string
		Settings json.RawMessage
	}
	found, err := rows[object](ctx, db, "read the configuration of mail", `
		select name, effective_settings as settings from parley_mail.objects where kind = $1::text`, kind)
	if err != nil {
		return nil, err
	}
	objects := make(map[string]json.RawMessage, len(found))
	for _, o := range found {
		objects[o.Name] = o.Settings
	}
	return objects, nil
}
