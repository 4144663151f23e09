package trust

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// Certificate is a certificate of a role, for dialogs; as JSON it is a stable format.
type Certificate struct {
	Name       string     `json:"name"`
	Owner      string     `json:"owner"`
	Subject    string     `json:"subject"`
	State      string     `json:"state"`       // VALID, NOT ACTIVE, NOT YET VALID, EXPIRED or REVOKED
	PrivateKey bool       `json:"private_key"` // it is ours
	MasterKey  *string    `json:"master_key"`  // under which the private key is sealed
	Start      time.Time  `json:"start_date"`
	Expiry     time.Time  `json:"expiry_date"`
	Revoked    *time.Time `json:"revoked_at"`
	// Fingerprint is the SHA-256 of Bytes in hexadecimal digits; Bytes is the certificate itself.
	Fingerprint string `json:"fingerprint"`
	Bytes       []byte `json:"certificate"`
}

// ReadCertificates reads the certificates of a database, or those of one name.
func ReadCertificates(ctx context.Context, db pgdb.DB, name string) ([]Certificate, error) {
	rows, err := db.Query(ctx, `
		select name, pg_get_userbyid(principal_id)::text, subject, state, pvt_key_encryption_type = 'MK', master_key, start_date, expiry_date,
			revoked_at, encode(thumbprint, 'hex'), certificate
		from parley.certificates
		where $1 in ('', name)
		order by pg_get_userbyid(principal_id), expiry_date, name`, name)
	if err != nil {
		return nil, pgdb.StatementError(err, "read certificates")
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Certificate])
	if err != nil {
		return nil, pgdb.StatementError(err, "read certificates")
	}
	return found, nil
}

// ExportQuery reads what the export of the certificate of a name needs, in one text with blanks between: the certificate in hexadecimal
// digits, the broker instance of the database, and the private keys as they are sealed, where they are ours. It is for sessions that run
// statements of their own.
const ExportQuery = `
	select concat_ws(' ', encode(c.certificate, 'hex'), b.service_broker_guid,
		case when c.pvt_key_encryption_type = 'MK' then (
			select encode(j.private_key, 'hex')
			from parley._p_judge_certificates(signer => null, receiver => c.thumbprint, service => '') as j
		) end)
	from parley.certificates as c cross join parley.databases as b where c.name = $1`

// NewCertificate is a certificate to install.
type NewCertificate struct {
	Name, Owner string // an empty owner is the caller
	Bytes       []byte
	PrivateKey  []byte // sealed under the master key; nil for somebody else's
	IsActive    bool   // new messages are signed with it, or sealed for it
}

// CreateQuery, AlterQuery and DropQuery are the statements of [CreateCertificate], [AlterCertificate] and [DropCertificate], with
// parameters in the order of their arguments. They are for sessions that run statements of their own.
const (
	CreateQuery = `
		select parley.create_certificate(
			name => $1::text, certificate => $2::bytea, "authorization" => nullif($3::text, ''), private_key => $4::bytea,
			active_for_begin_dialog => $5::boolean
		)`
	AlterQuery = `
		select parley.alter_certificate(
			name => $1::text, active_for_begin_dialog => $2::boolean, revoked => $3::boolean
		)`
	DropQuery = "select parley.drop_certificate($1::text)"
)

// CreateCertificate installs a certificate.
//
// Errors: a [pgdb.Error] with number parley.PermissionDenied, 2714 when it exists, 9609 for a bad name, 15151 for an unknown owner,
// 15297 when it is malformed.
func CreateCertificate(ctx context.Context, db pgdb.DB, c NewCertificate) error {
	if _, err := db.Exec(ctx, CreateQuery, c.Name, c.Bytes, c.Owner, c.PrivateKey, c.IsActive); err != nil {
		return pgdb.StatementError(err, "create certificate")
	}
	return nil
}

// AlterCertificate changes what is not nil.
func AlterCertificate(ctx context.Context, db pgdb.DB, name string, isActive, isRevoked *bool) error {
	if _, err := db.Exec(ctx, AlterQuery, name, isActive, isRevoked); err != nil {
		return pgdb.StatementError(err, "alter certificate")
	}
	return nil
}

// DropCertificate drops a certificate with its private key.
func DropCertificate(ctx context.Context, db pgdb.DB, name string) error {
	if _, err := db.Exec(ctx, DropQuery, name); err != nil {
		return pgdb.StatementError(err, "drop certificate")
	}
	return nil
}

// SealedSecret is a secret of a database that is sealed under a master key.
type SealedSecret struct {
	Kind       string // certificate, session key or webhook
	ID, Sealed []byte
}

// ReadSealedSecrets reads them all.
func ReadSealedSecrets(ctx context.Context, db pgdb.DB) ([]SealedSecret, error) {
	rows, err := db.Query(ctx, "select kind, id, sealed from parley._p_sealed_secrets()")
	if err != nil {
		return nil, pgdb.StatementError(err, "read sealed secrets")
	}
	secrets, err := pgx.CollectRows(rows, pgx.RowToStructByPos[SealedSecret])
	if err != nil {
		return nil, pgdb.StatementError(err, "read sealed secrets")
	}
	return secrets, nil
}

// ReplaceSealedSecret replaces a secret by itself, sealed under another master key; it is false when it was changed meanwhile.
func ReplaceSealedSecret(ctx context.Context, db pgdb.DB, secret SealedSecret, sealedAnew []byte) (bool, error) {
	var isReplaced bool
	err := db.QueryRow(ctx, `
		select parley._p_replace_sealed_secret(
			kind => $1::text, id => $2::bytea, sealed => $3::bytea, sealed_anew => $4::bytea
		)`,
		secret.Kind, secret.ID, secret.Sealed, sealedAnew).Scan(&isReplaced)
	if err != nil {
		return false, pgdb.StatementError(err, "replace a sealed secret")
	}
	return isReplaced, nil
}
