package trust

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// The questions of a daemon to a database about the security of dialogs. The daemon holds the secrets; the database knows who is who.

// SecurityMode reports how a dialog is secured.
type SecurityMode string

// The modes.
const (
	Unsecured         SecurityMode = "none"
	AnonymousSecurity SecurityMode = "anonymous" // only the target proves who it is
	FullSecurity      SecurityMode = "full"      // both sides do
)

// DialogPlan reports how messages of an endpoint are to be sealed.
type DialogPlan struct {
	EndpointID int64
	// Mode is empty when the messages must not leave now, for the reason in Status.
	Mode SecurityMode
	// OwnPrincipal is the oid of the role whose certificate signs, FarPrincipal of the one for whose certificate it is sealed; 0 for
	// an initiator that stays unknown.
	OwnPrincipal, FarPrincipal uint32
	// KeyID names the session key of an anonymous dialog; nil when it has none yet.
	KeyID []byte
	// IsRecorded is false for a dialog that [SecureDialog] has to record first.
	IsRecorded bool
	Status     string
}

// PlanDialogs reports how messages of endpoints are to be sealed. An endpoint that is gone is left out. When the link to the next
// broker is encrypted, a dialog that is to be encrypted needs no binding.
func PlanDialogs(ctx context.Context, db pgdb.DB, endpointIDs []int64, isLinkEncrypted bool) ([]DialogPlan, error) {
	rows, err := db.Query(ctx, `
		select endpoint_id, coalesce(mode, ''), coalesce(own_principal, 0), coalesce(far_principal, 0), key_id, is_recorded,
			coalesce(status, '')
		from parley._p_plan_dialogs($1::bigint[], $2::boolean)`, endpointIDs, isLinkEncrypted)
	if err != nil {
		return nil, pgdb.StatementError(err, "plan the security of dialogs")
	}
	plans, err := pgx.CollectRows(rows, pgx.RowToStructByPos[DialogPlan])
	if err != nil {
		return nil, pgdb.StatementError(err, "plan the security of dialogs")
	}
	return plans, nil
}

// SecureDialog records a plan for good, before the first message leaves, and returns what is recorded, which may be what another
// daemon recorded before. It is false when the endpoint is gone.
func SecureDialog(ctx context.Context, db pgdb.DB, plan DialogPlan) (DialogPlan, bool, error) {
	var endpointID *int64
	var far *uint32
	if plan.FarPrincipal != 0 {
		far = &plan.FarPrincipal
	}
	err := db.QueryRow(ctx, `
		select endpoint_id, mode, far_principal, key_id
		from parley._p_secure_dialog(endpoint_id => $1::bigint, mode => $2::text, far_principal => $3::oid, key_id => $4::bytea)`,
		plan.EndpointID, string(plan.Mode), far, plan.KeyID).Scan(&endpointID, &plan.Mode, &far, &plan.KeyID)
	if err != nil {
		return plan, false, pgdb.StatementError(err, "secure a dialog")
	}
	plan.FarPrincipal = 0
	if far != nil {
		plan.FarPrincipal = *far
	}
	plan.IsRecorded = true
	return plan, endpointID != nil, nil
}

// DialogCertificate is a certificate that is good to sign with or to seal for.
type DialogCertificate struct {
	Fingerprint, Certificate []byte
	PrivateKey               []byte // sealed under the master key; nil for somebody else's
	// Status reports what is wrong when there is none.
	Status string
}

// FindDialogCertificate picks the certificate of a role: active, valid now, the latest to expire; isOwn for one with its private key.
func FindDialogCertificate(ctx context.Context, db pgdb.DB, principal uint32, isOwn bool) (DialogCertificate, error) {
	var c DialogCertificate
	err := db.QueryRow(ctx, `
		select fingerprint, certificate, private_key, coalesce(status, '')
		from parley._p_find_dialog_certificate($1::oid, $2::boolean)`, principal, isOwn).Scan(
		&c.Fingerprint, &c.Certificate, &c.PrivateKey, &c.Status)
	if err != nil {
		return c, pgdb.StatementError(err, "find a certificate")
	}
	return c, nil
}

// JudgedCertificates is the judgement of a database on the certificates that a sealed message names.
type JudgedCertificates struct {
	// SignerPrincipal is the oid of the role in whose name the message was signed; 0 in an anonymous dialog.
	SignerPrincipal   uint32
	SignerCertificate []byte
	// PrivateKey opens it, and is sealed under the master key.
	PrivateKey []byte
	// Status reports why the message must not be opened.
	Status string
}

// JudgeCertificates looks up certificates by their fingerprints; signer is nil in an anonymous dialog, service is where the
// message goes.
func JudgeCertificates(ctx context.Context, db pgdb.DB, signer, receiver []byte, service string) (JudgedCertificates, error) {
	var j JudgedCertificates
	err := db.QueryRow(ctx, `
		select coalesce(signer_principal, 0), signer_certificate, private_key, coalesce(status, '')
		from parley._p_judge_certificates(signer => $1::bytea, receiver => $2::bytea, service => $3::text)`, signer, receiver, service).Scan(
		&j.SignerPrincipal, &j.SignerCertificate, &j.PrivateKey, &j.Status)
	if err != nil {
		return j, pgdb.StatementError(err, "look up the certificates of a message")
	}
	return j, nil
}

// DialogBinding reports who is at the other side of a dialog, as an opened message proves it.
type DialogBinding struct {
	ConversationID pgdb.UUID
	IsInitiator    bool // of the side here
	Mode           SecurityMode
	FarPrincipal   uint32
	KeyID          []byte
}

// BindDialogs reports for each binding whether it is that of its dialog. It belongs in the transaction that accepts the messages.
func BindDialogs(ctx context.Context, tx pgx.Tx, bindings []DialogBinding) ([]bool, error) {
	answers := make([]bool, len(bindings))
	batch := &pgx.Batch{}
	for i, b := range bindings {
		var far *uint32
		if b.FarPrincipal != 0 {
			far = &b.FarPrincipal
		}
		batch.Queue(`
			select parley._p_bind_dialog(
				conversation_id => $1::uuid, is_initiator => $2::boolean, mode => $3::text, far_principal => $4::oid,
				key_id => $5::bytea
			)`,
			b.ConversationID, b.IsInitiator, string(b.Mode), far, b.KeyID).QueryRow(func(row pgx.Row) error { return row.Scan(&answers[i]) })
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, pgdb.StatementError(err, "bind dialogs")
	}
	return answers, nil
}

// FindDowngraded reports for each message that came in clear whether its dialog is secured, so that it is not of the other side.
func FindDowngraded(ctx context.Context, db pgdb.DB, conversationIDs []pgdb.UUID, isInitiators []bool) ([]bool, error) {
	rows, err := db.Query(ctx, "select parley._p_find_downgraded($1::uuid[], $2::boolean[])", pgdb.UUIDTexts(conversationIDs), isInitiators)
	if err != nil {
		return nil, pgdb.StatementError(err, "find secured dialogs")
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, pgdb.StatementError(err, "find secured dialogs")
	}
	answers := make([]bool, len(conversationIDs))
	for _, ordinal := range found {
		answers[ordinal-1] = true
	}
	return answers, nil
}

// ErrNoSessionKey means that the key of an anonymous dialog is not, or no longer, in the database.
var ErrNoSessionKey = errors.New("the session key of the dialog is not here")

// KeepSessionKey stores the session key of anonymous dialogs, sealed under the master key. Storing it again does nothing.
func KeepSessionKey(ctx context.Context, db pgdb.DB, keyID, sealedKey []byte) error {
	_, err := db.Exec(ctx, "select parley._p_keep_session_key($1::bytea, $2::bytea)", keyID, sealedKey)
	if err != nil {
		return pgdb.StatementError(err, "store a session key")
	}
	return nil
}

// ReadSessionKey gives a session key as [KeepSessionKey] has stored it.
//
// Errors: [ErrNoSessionKey].
func ReadSessionKey(ctx context.Context, db pgdb.DB, keyID []byte) ([]byte, error) {
	var sealedKey []byte
	if err := db.QueryRow(ctx, "select parley._p_read_session_key($1::bytea)", keyID).Scan(&sealedKey); err != nil {
		return nil, pgdb.StatementError(err, "read a session key")
	}
	if sealedKey == nil {
		return nil, ErrNoSessionKey
	}
	return sealedKey, nil
}

// ForgetDialogs removes what is recorded of secured dialogs that have ended, at most so many, and gives their number.
func ForgetDialogs(ctx context.Context, db pgdb.DB, dialogsMax int) (int, error) {
	var forgotten int
	if err := db.QueryRow(ctx, "select parley._p_forget_dialogs($1::integer)", dialogsMax).Scan(&forgotten); err != nil {
		return 0, pgdb.StatementError(err, "forget ended dialogs")
	}
	return forgotten, nil
}

// CertificateIdentity is the identity of an arrival for the signer of a secured dialog.
func CertificateIdentity(fingerprint []byte) string {
	return fmt.Sprintf("certificate:%x", fingerprint)
}

// DigestBody gives the SHA-256 of a large body in transit, nil when it has been acknowledged.
func DigestBody(ctx context.Context, db pgdb.DB, endpointID, sequence int64) ([]byte, error) {
	var digest []byte
	err := db.QueryRow(ctx, "select parley._p_digest_body($1::bigint, $2::bigint)", endpointID, sequence).Scan(&digest)
	if err != nil {
		return nil, pgdb.StatementError(err, "digest a body")
	}
	return digest, nil
}

// VerifyFragments reports whether the stored fragments of a message are those of the body with a digest. When they are complete and of
// another body they are deleted; as long as they are not complete they may still be good.
func VerifyFragments(
	ctx context.Context, db pgdb.DB, conversationID pgdb.UUID, fromInitiator bool, sequence, size int64, digest []byte,
) (bool, error) {
	var isGood bool
	err := db.QueryRow(ctx, `
		select parley._p_verify_fragments(
			conversation_id => $1::uuid, from_initiator => $2::boolean, sequence => $3::bigint, size => $4::bigint,
			digest => $5::bytea
		)`,
		conversationID, fromInitiator, sequence, size, digest).Scan(&isGood)
	if err != nil {
		return false, pgdb.StatementError(err, "verify the parts of a message")
	}
	return isGood, nil
}
