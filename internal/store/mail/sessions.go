package mail

import (
	"context"

	"github.com/parley-broker/parley/internal/pgdb"
)

// RecipientCheck is whether a recipient is taken.
type RecipientCheck struct {
	// Status is "", or the status of RFC 3463 for the reason.
	Status, Reason string
	// IsForAll is whether that depends on neither sender nor size.
	IsForAll bool
}

// CheckRecipient asks the directory whether it would refuse a recipient in our domains. A size of 0 is not known.
func CheckRecipient(ctx context.Context, db pgdb.DB, recipient, sender string, isInternal bool, size int64) (c RecipientCheck, err error) {
	return row[RecipientCheck](ctx, db, "check a recipient", `
		select coalesce(status, '') as status, coalesce(reason, '') as reason, is_for_all
		from parley_mail._p_check_recipient(
			recipient => $1::text, sender => $2::text, is_internal => $3::boolean, size => $4::bigint
		)`, recipient, sender, isInternal, size)
}

// CheckSender gives the limits of a sender of ours, 0 where there is none.
func CheckSender(ctx context.Context, db pgdb.DB, sender string) (bytes int64, recipients int, err error) {
	limits, err := row[struct {
		Bytes      int64
		Recipients int
	}](ctx, db, "check a sender", `
		select coalesce(max_send_size, 0) as bytes, coalesce(max_recipients, 0) as recipients
		from parley_mail._p_check_sender(sender => $1::text)`, sender)
	return limits.Bytes, limits.Recipients, err
}

// MaySubmit reports whether a role of PostgreSQL may log in and submit messages.
func MaySubmit(ctx context.Context, db pgdb.DB, role string) (may bool, err error) {
	return value[bool](ctx, db, "check a role", "select parley_mail._p_may_submit(role => $1::text)", role)
}

// RolePassword gives the verifier that PostgreSQL keeps of a role's password; "" where it has none, or we may not read it.
func RolePassword(ctx context.Context, db pgdb.DB, role string) (verifier string, err error) {
	mayRead, err := value[bool](ctx, db, "ask whether passwords of roles can be read", `
		select has_column_privilege('pg_catalog.pg_authid', 'rolname', 'select')
			and has_column_privilege('pg_catalog.pg_authid', 'rolpassword', 'select')`)
	if err != nil || !mayRead {
		return "", err
	}
	return value[string](ctx, db, "read the password of a role", `
		select coalesce((select a.rolpassword from pg_catalog.pg_authid as a where a.rolname = $1::text), '')`, role)
}
