package trust

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// PairingOffer is a broker's statement about itself to one that it pairs with; its JSON travels.
type PairingOffer struct {
	// Name is the name that it gives itself.
	Name string `json:"name"`
	// Address is where it listens, tcp://host:port; "" when it does not say.
	Address string `json:"address,omitempty"`
	// DialogCertificates are the fingerprints of the certificates in Databases, in hexadecimal digits: what people see before they
	// confirm, while the certificates themselves come last.
	DialogCertificates []string `json:"dialog_certificates,omitempty"`
	// Databases are those that the pairing is for.
	Databases []OfferedDatabase `json:"databases,omitempty"`
}

// OfferedDatabase is a broker instance with its services.
type OfferedDatabase struct {
	Instance pgdb.UUID `json:"instance"`
	Database string    `json:"database"`
	Services []string  `json:"services"`
	// Certificates are those of the dialogs of its services, as [CreateCertificate] takes them.
	Certificates [][]byte `json:"certificates,omitempty"`
}

// WithoutDialogCertificates gives the offer of a broker that is not to be known by them.
func (o PairingOffer) WithoutDialogCertificates() PairingOffer {
	o.DialogCertificates = nil
	o.Databases = slices.Clone(o.Databases)
	for i := range o.Databases {
		o.Databases[i].Certificates = nil
	}
	return o
}

// OwnPairingOffer reads what a database says about itself.
func OwnPairingOffer(ctx context.Context, db pgdb.DB) (offer PairingOffer, err error) {
	var text []byte
	if err := db.QueryRow(ctx, "select parley._p_own_offer()").Scan(&text); err != nil {
		return offer, pgdb.StatementError(err, "read what the broker offers")
	}
	if err := json.Unmarshal(text, &offer); err != nil {
		return offer, fmt.Errorf("read what the broker offers: %w", err)
	}
	return offer, nil
}

// PairingChoice is an operator's decision about a new peer.
type PairingChoice struct {
	Role   string // whose grants count for what it sends; "" for none
	Name   string // of the peer; "" for what it calls itself
	Routes bool   // make routes to its services
	// IsWithoutCertificates leaves out its dialog certificate, which otherwise stands for Role.
	IsWithoutCertificates bool
}

// InvitePeer makes an invitation and gives its token, which is a secret.
//
// Errors: a [pgdb.Error] with number 15151 for others than administrators or an unknown role, 8402 and 9609 for what cannot be.
func InvitePeer(ctx context.Context, db pgdb.DB, validFor time.Duration, c PairingChoice) (token string, err error) {
	err = db.QueryRow(ctx, `
		select parley.invite_peer(
			valid_seconds => $1, role => nullif($2::text, ''), name => nullif($3::text, ''), with_routes => $4, with_certificates => $5
		)`, int32(validFor/time.Second), c.Role, c.Name, c.Routes, !c.IsWithoutCertificates).Scan(&token)
	if err != nil {
		return "", pgdb.StatementError(err, "invite a peer")
	}
	return token, nil
}

// OpenPairing lets brokers elsewhere ask to be trusted, and gives the id of the pairing.
//
// Errors: a [pgdb.Error] with number 15151 for others than administrators, 8402 for a time that cannot be.
func OpenPairing(ctx context.Context, db pgdb.DB, validFor time.Duration) (pairing pgdb.UUID, err error) {
	err = db.QueryRow(ctx, "select parley.open_pairing(valid_seconds => $1)", int32(validFor/time.Second)).Scan(&pairing)
	if err != nil {
		return pairing, pgdb.StatementError(err, "open a pairing")
	}
	return pairing, nil
}

// ClosePairing ends a pairing before its time.
func ClosePairing(ctx context.Context, db pgdb.DB, pairing pgdb.UUID) error {
	if _, err := db.Exec(ctx, "select parley.close_pairing(pairing => $1)", pairing); err != nil {
		return pgdb.StatementError(err, "close a pairing")
	}
	return nil
}

// PairingRequest is a broker that has asked to be trusted.
type PairingRequest struct {
	ID          pgdb.UUID
	Fingerprint string
	Code        string // that both sides have to show
	Offer       PairingOffer
	Remote      string // host:port from where it has called
	State       string // one of the constants below
}

// The states of a [PairingRequest].
const (
	PairingWaiting   = "WAITING"
	PairingConfirmed = "CONFIRMED" // here; not yet at the other side
	PairingRefused   = "REFUSED"
	PairingGone      = "GONE"
	PairingDone      = "DONE" // it is trusted
)

// ReadPairingRequests reads who has asked while a pairing was open, in the order of coming.
func ReadPairingRequests(ctx context.Context, db pgdb.DB, pairing pgdb.UUID) ([]PairingRequest, error) {
	rows, err := db.Query(ctx, `
		select r.request_id, r.fingerprint, r.code, r.offer, r.remote, r.state
		from parley.pairing_requests(pairing => $1) as r`, pairing)
	if err != nil {
		return nil, pgdb.StatementError(err, "read who asks to be paired")
	}
	requests, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r PairingRequest, err error) {
		var offer []byte
		if err := row.Scan(&r.ID, &r.Fingerprint, &r.Code, &offer, &r.Remote, &r.State); err != nil {
			return r, err
		}
		return r, json.Unmarshal(offer, &r.Offer)
	})
	if err != nil {
		return nil, pgdb.StatementError(err, "read who asks to be paired")
	}
	return requests, nil
}

// ConfirmPairing reports that the code of a request is the one that the other side shows.
//
// Errors: a [pgdb.Error] with number 15151 when the request is over, for others than administrators, or for an unknown role.
func ConfirmPairing(ctx context.Context, db pgdb.DB, request pgdb.UUID, c PairingChoice) error {
	_, err := db.Exec(ctx, `
		select parley.confirm_pairing(
			request => $1, role => nullif($2::text, ''), name => nullif($3::text, ''), with_routes => $4, with_certificates => $5
		)`, request, c.Role, c.Name, c.Routes, !c.IsWithoutCertificates)
	if err != nil {
		return pgdb.StatementError(err, "confirm a pairing")
	}
	return nil
}

// RefusePairing sends a broker away that has asked.
func RefusePairing(ctx context.Context, db pgdb.DB, request pgdb.UUID) error {
	if _, err := db.Exec(ctx, "select parley.refuse_pairing(request => $1)", request); err != nil {
		return pgdb.StatementError(err, "refuse a pairing")
	}
	return nil
}

// ErrPairingOver reports that an invitation or a request cannot be used, or not any more.
var ErrPairingOver = errors.New("the pairing is over")

// PairedKey is the key of a broker that has been paired with, and what it has offered.
type PairedKey struct {
	Fingerprint         string
	Certificate         []byte // X.509 in DER
	NotBefore, NotAfter time.Time
	Offer               PairingOffer
}

// PairPeer trusts a broker that people have confirmed on this side, and gives the name of the peer. One that is known is brought
// up to date.
//
// Errors: a [pgdb.Error] with number 15151 for others than administrators or an unknown role; 2714 when it says that it is the broker of
// another peer, 28034 when it was revoked, 28055 when its key has expired, or its dialog certificates are not those that were shown.
func PairPeer(ctx context.Context, db pgdb.DB, k PairedKey, c PairingChoice) (name string, err error) {
	offer, err := json.Marshal(k.Offer)
	if err != nil {
		return "", fmt.Errorf("write the offer of a peer: %w", err)
	}
	err = db.QueryRow(ctx, `
		select parley.pair_peer(
			fingerprint => $1, certificate => $2, not_before => $3, not_after => $4, offer => $5::jsonb,
			role => nullif($6::text, ''), name => nullif($7::text, ''), with_routes => $8, with_certificates => $9
		)`, k.Fingerprint, k.Certificate, k.NotBefore, k.NotAfter, string(offer), c.Role, c.Name, c.Routes,
		!c.IsWithoutCertificates).Scan(&name)
	if err != nil {
		return "", pgdb.StatementError(err, "trust the peer")
	}
	return name, nil
}

// ReadPeerDialogCertificates reads the fingerprints of the dialog certificates that came with a peer and stand for its role, and,
// where those that it has offered are not among them, why.
func ReadPeerDialogCertificates(
	ctx context.Context, db pgdb.DB, peer string, offered []string,
) (taken []string, obstacle string, err error) {
	if offered == nil {
		offered = []string{}
	}
	err = db.QueryRow(ctx, `
		select
			array(select c.fingerprint from parley.peer_dialog_certificates as c where c.peer_name = $1 and c.state = 'VALID' order by 1),
			coalesce(parley._p_dialog_certificate_obstacle(peer => $1, fingerprints => $2), '')`, peer, offered).Scan(&taken, &obstacle)
	if err != nil {
		return nil, "", pgdb.StatementError(err, "read the dialog certificates of a peer")
	}
	return taken, obstacle, nil
}

// IsPairingWindowOpen reports whether unknown peers without an invitation may ask to be trusted.
func IsPairingWindowOpen(ctx context.Context, db pgdb.DB) (isOpen bool, err error) {
	if err := db.QueryRow(ctx, "select parley._p_is_pairing_window_open()").Scan(&isOpen); err != nil {
		return false, pgdb.StatementError(err, "find open pairings")
	}
	return isOpen, nil
}

// IsPairingOpen reports whether unknown peers may ask to be trusted.
func IsPairingOpen(ctx context.Context, db pgdb.DB) (isOpen bool, err error) {
	if err := db.QueryRow(ctx, "select parley._p_is_pairing_open()").Scan(&isOpen); err != nil {
		return false, pgdb.StatementError(err, "find open pairings")
	}
	return isOpen, nil
}

// FindInvitation gives the secret of an invitation that can still be used.
//
// Errors: [ErrPairingOver].
func FindInvitation(ctx context.Context, db pgdb.DB, invitation pgdb.UUID) (secret []byte, err error) {
	if err := db.QueryRow(ctx, "select parley._p_find_invitation(invitation => $1)", invitation).Scan(&secret); err != nil {
		return nil, pgdb.StatementError(err, "find an invitation")
	}
	if secret == nil {
		return nil, ErrPairingOver
	}
	return secret, nil
}

// RecordPairingFailure counts a wrong proof of an invitation.
func RecordPairingFailure(ctx context.Context, db pgdb.DB, invitation pgdb.UUID) error {
	if _, err := db.Exec(ctx, "select parley._p_record_pairing_failure(invitation => $1)", invitation); err != nil {
		return pgdb.StatementError(err, "count a wrong proof")
	}
	return nil
}

// RedeemInvitation trusts who has proven to have an invitation, once, and gives the name of the peer.
//
// Errors: [ErrPairingOver], and those of [PairPeer].
func RedeemInvitation(ctx context.Context, db pgdb.DB, invitation pgdb.UUID, k PairedKey) (name string, err error) {
	return completePairing(ctx, db, k, `
		select parley._p_redeem_invitation(
			invitation => $1, not_before => $2, not_after => $3, offer => $4::jsonb, fingerprint => $5, certificate => $6
		)`, invitation, k.Fingerprint, k.Certificate)
}

// RequestPairing records that a broker asks to be trusted.
//
// Errors: [ErrPairingOver] when nobody may ask just now.
func RequestPairing(ctx context.Context, db pgdb.DB, k PairedKey, code, remote string) (request pgdb.UUID, err error) {
	offer, err := json.Marshal(k.Offer)
	if err != nil {
		return request, fmt.Errorf("write the offer of a peer: %w", err)
	}
	err = db.QueryRow(ctx, `
		select parley._p_request_pairing(fingerprint => $1, certificate => $2, offer => $3::jsonb, code => $4, remote => $5)`,
		k.Fingerprint, k.Certificate, string(offer), code, remote).Scan(&request)
	if err != nil {
		return request, pgdb.StatementError(err, "record a request for pairing")
	}
	if request.IsZero() {
		return request, ErrPairingOver
	}
	return request, nil
}

// PairingRequestState gives the state of a request, [PairingGone] for one that there is not.
func PairingRequestState(ctx context.Context, db pgdb.DB, request pgdb.UUID) (string, error) {
	var state *string
	if err := db.QueryRow(ctx, "select parley._p_pairing_request_state(request => $1)", request).Scan(&state); err != nil {
		return "", pgdb.StatementError(err, "read the state of a pairing")
	}
	if state == nil {
		return PairingGone, nil
	}
	return *state, nil
}

// LeavePairing records that a broker that has asked does not wait any more.
func LeavePairing(ctx context.Context, db pgdb.DB, request pgdb.UUID) error {
	if _, err := db.Exec(ctx, "select parley._p_leave_pairing(request => $1)", request); err != nil {
		return pgdb.StatementError(err, "leave a pairing")
	}
	return nil
}

// CompletePairing trusts a broker that has asked, once both sides have confirmed, and gives the name of the peer.
//
// Errors: [ErrPairingOver], and those of [PairPeer].
func CompletePairing(ctx context.Context, db pgdb.DB, request pgdb.UUID, k PairedKey) (name string, err error) {
	return completePairing(ctx, db, k, `
		select parley._p_complete_pairing(request => $1, not_before => $2, not_after => $3, offer => $4::jsonb)`, request)
}

func completePairing(ctx context.Context, db pgdb.DB, k PairedKey, statement string, id pgdb.UUID, more ...any) (string, error) {
	offer, err := json.Marshal(k.Offer)
	if err != nil {
		return "", fmt.Errorf("write the offer of a peer: %w", err)
	}
	var name *string
	arguments := append([]any{id, k.NotBefore, k.NotAfter, string(offer)}, more...)
	if err := db.QueryRow(ctx, statement, arguments...).Scan(&name); err != nil {
		return "", pgdb.StatementError(err, "trust the peer")
	}
	if name == nil {
		return "", ErrPairingOver
	}
	return *name, nil
}
