package mail

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

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
	err = db.QueryRow(ctx, `select coalesce(status, ''), coalesce(reason, ''), is_for_all
		from parley_mail._p_check_recipient(
			recipient => $1::text, sender => $2::text, is_internal => $3::boolean, size => $4::bigint
		)`, recipient, sender, isInternal, size).
		Scan(&c.Status, &c.Reason, &c.IsForAll)
	if err != nil {
		return RecipientCheck{}, pgdb.StatementError(err, "check a recipient")
	}
	return c, nil
}

// CheckSender gives the limits of a sender of ours, 0 where there is none.
func CheckSender(ctx context.Context, db pgdb.DB, sender string) (bytes int64, recipients int, err error) {
	err = db.QueryRow(ctx, `select coalesce(max_send_size, 0), coalesce(max_recipients, 0)
		from parley_mail._p_check_sender($1::text)`, sender).Scan(&bytes, &recipients)
	if err != nil {
		return 0, 0, pgdb.StatementError(err, "check a sender")
	}
	return bytes, recipients, nil
}

// MaySubmit reports whether a role of PostgreSQL may log in and submit messages.
func MaySubmit(ctx context.Context, db pgdb.DB, role string) (may bool, err error) {
	if err := db.QueryRow(ctx, "select parley_mail._p_may_submit($1::text)", role).Scan(&may); err != nil {
		return false, pgdb.StatementError(err, "check a role")
	}
	return may, nil
}

// RolePassword gives the verifier that PostgreSQL keeps of a role's password; "" where it has none, or we may not read it.
func RolePassword(ctx context.Context, db pgdb.DB, role string) (verifier string, err error) {
	var mayRead bool
	const readable = `select has_column_privilege('pg_catalog.pg_authid', 'rolname', 'select')
		and has_column_privilege('pg_catalog.pg_authid', 'rolpassword', 'select')`
	if err := db.QueryRow(ctx, readable).Scan(&mayRead); err != nil {
		return "", pgdb.StatementError(err, "ask whether passwords of roles can be read")
	}
	if !mayRead {
		return "", nil
	}
	err = db.QueryRow(ctx, "select coalesce(a.rolpassword, '') from pg_catalog.pg_authid as a where a.rolname = $1::text", role).
		Scan(&verifier)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", pgdb.StatementError(err, "read the password of a role")
	}
	return verifier, nil
}
