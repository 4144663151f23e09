package trust

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// Peer is a broker elsewhere that a database trusts, or trusted; as JSON it is a stable format.
type Peer struct {
	Name  string `json:"name"`
	State string `json:"state"` // TRUSTED, EXPIRED, REVOKED or WITHOUT KEY
	// Role is the role whose grants count for its messages; nil: only grants to PUBLIC.
	Role *string `json:"role"`
	// Fingerprints are those of its keys, 64 hexadecimal digits each, the newest first.
	Fingerprints []string `json:"fingerprints"`
	// NotAfter is when the last of its keys expires; nil when that is not limited.
	NotAfter *time.Time `json:"not_after"`
	// Address is tcp://host:port, nil when it is not known.
	Address         *string     `json:"address"`
	BrokerInstances []pgdb.UUID `json:"broker_instances"`
	IsForwarder     bool        `json:"is_forwarder"`
	CreateDate      time.Time   `json:"create_date"`
	RevokedAt       *time.Time  `json:"revoked_at"`
}

// ReadPeers reads all peers, sorted by name.
func ReadPeers(ctx context.Context, db pgdb.DB) ([]Peer, error) {
	rows, err := db.Query(ctx, `
		select p.name, p.state, p.role_name, p.fingerprints, p.not_after, p.address, p.broker_instances,
			p.is_forwarder, p.create_date, p.revoked_at
		from parley.peers as p
		order by p.name`)
	if err != nil {
		return nil, pgdb.StatementError(err, "read the peers")
	}
	peers, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Peer])
	if err != nil {
		return nil, pgdb.StatementError(err, "read the peers")
	}
	return peers, nil
}

// PeerKey is a key of a peer, for whoever decides on links.
type PeerKey struct {
	Fingerprint string // 64 hexadecimal digits
	Peer        string // name of the peer
	IsRevoked   bool
	// NotBefore and NotAfter bound the trust in the key, beside what its certificate says; nil: they do not.
	NotBefore, NotAfter *time.Time
	// Address is where the peer listens, tcp://host:port; nil when it is not known.
	Address *string
}

// ReadPeerKeys reads the keys of all peers.
func ReadPeerKeys(ctx context.Context, db pgdb.DB) ([]PeerKey, error) {
	rows, err := db.Query(ctx, `
		select c.fingerprint, c.peer_name, c.state = 'REVOKED', c.not_before, c.not_after, p.address
		from parley.peer_certificates as c
		join parley.peers as p using (peer_id)`)
	if err != nil {
		return nil, pgdb.StatementError(err, "read the keys of peers")
	}
	keys, err := pgx.CollectRows(rows, pgx.RowToStructByPos[PeerKey])
	if err != nil {
		return nil, pgdb.StatementError(err, "read the keys of peers")
	}
	return keys, nil
}

// NewPeer is a broker elsewhere that is to be trusted. Fields that are empty are left to the database.
type NewPeer struct {
	Fingerprint string // the SHA-256 of its public key, in hexadecimal digits
	Name        string
	Role        string // "" for none
	Certificate []byte // X.509 in DER
	NotBefore   time.Time
	NotAfter    time.Time
	Address     string // tcp://host:port
	// BrokerInstances are those in whose name it alone may speak.
	BrokerInstances []pgdb.UUID
}

// TrustPeer trusts a broker elsewhere.
//
// Errors: a [pgdb.Error] with number 15151 for others than administrators and for an unknown role, 2714 when the name or the key is
// that of another peer, 8402 for what is malformed, 28055 when the key has expired.
func TrustPeer(ctx context.Context, db pgdb.DB, p NewPeer) error { //nolint:revive // named as the function of the schema, trust_peer
	_, err := db.Exec(ctx, `
		select parley.trust_peer(
			fingerprint => $1, name => $2, role => nullif($3::text, ''), certificate => $4, not_before => $5, not_after => $6,
			address => nullif($7::text, ''), broker_instances => $8::uuid[]
		)`, p.Fingerprint, p.Name, p.Role, p.Certificate, orNull(p.NotBefore), orNull(p.NotAfter), p.Address, pgdb.UUIDTexts(p.BrokerInstances))
	if err != nil {
		return pgdb.StatementError(err, "trust peer "+p.Name)
	}
	return nil
}

// orNull gives nil for the time that is none.
func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// SetPeerRole maps a peer to another role, "" or PUBLIC for none.
//
// Errors: a [pgdb.Error] with number 15151 when there is no such peer or role, or for others than administrators; 28034 when it is
// revoked.
func SetPeerRole(ctx context.Context, db pgdb.DB, name, role string) error {
	if role == "" {
		role = "public"
	}
	if _, err := db.Exec(ctx, "select parley.alter_peer(name => $1, role => $2)", name, role); err != nil {
		return pgdb.StatementError(err, "alter peer "+name)
	}
	return nil
}

// RevokePeer trusts a peer no more. It stays in the list as revoked.
//
// Errors: a [pgdb.Error] with number 15151 when there is none, or for others than administrators.
func RevokePeer(ctx context.Context, db pgdb.DB, name string) error {
	if _, err := db.Exec(ctx, "select parley.revoke_peer(name => $1)", name); err != nil {
		return pgdb.StatementError(err, "revoke peer "+name)
	}
	return nil
}

// DropPeer forgets a peer.
//
// Errors: as [RevokePeer].
func DropPeer(ctx context.Context, db pgdb.DB, name string) error {
	if _, err := db.Exec(ctx, "select parley.drop_peer(name => $1)", name); err != nil {
		return pgdb.StatementError(err, "drop peer "+name)
	}
	return nil
}

// PeerSuccessor is a new key of a peer, signed by one that it had before.
type PeerSuccessor struct {
	Predecessor, Fingerprint string
	Certificate              []byte // X.509 in DER
	NotBefore, NotAfter      time.Time
}

// ErrNoPredecessor reports that the key which has signed another is not trusted in a database, or that the new key is another peer's.
var ErrNoPredecessor = errors.New("the key before it is not trusted")

// SucceedPeerKey adds a new key to a peer whose trusted key has signed it, which the caller has checked.
//
// Errors: [ErrNoPredecessor].
func SucceedPeerKey(ctx context.Context, db pgdb.DB, s PeerSuccessor) error {
	var done bool
	err := db.QueryRow(ctx, `
		select parley._p_succeed_peer_key(predecessor => $1, fingerprint => $2, certificate => $3, not_before => $4, not_after => $5)`,
		s.Predecessor, s.Fingerprint, s.Certificate, s.NotBefore, s.NotAfter).Scan(&done)
	if err != nil {
		return pgdb.StatementError(err, "add the new key of a peer")
	}
	if !done {
		return ErrNoPredecessor
	}
	return nil
}

// ReportedCertificate is a daemon's report to its databases about itself.
type ReportedCertificate struct {
	Daemon              string // its name
	Fingerprint         string // of its key
	NotBefore, NotAfter time.Time
	// Address is where others reach it, tcp://host:port; "" when its operator has not said.
	Address string
}

// ReportCertificate reports to a database which certificate a daemon uses, so that it can warn of its end.
func ReportCertificate(ctx context.Context, db pgdb.DB, c ReportedCertificate) error {
	_, err := db.Exec(ctx, `
		select parley._p_report_certificate(
			daemon => $1, fingerprint => $2, not_before => $3, not_after => $4, address => nullif($5::text, '')
		)`, c.Daemon, c.Fingerprint, c.NotBefore, c.NotAfter, c.Address)
	if err != nil {
		return pgdb.StatementError(err, "report the certificate")
	}
	return nil
}

// AdvertisedAddress gives the address, tcp://host:port, under which the daemon with a key says that others reach it; any daemon of the
// database when no key is given. "" when none says so, or they say different things.
func AdvertisedAddress(ctx context.Context, db pgdb.DB, fingerprint string) (address string, err error) {
	err = db.QueryRow(ctx, `
		select coalesce(parley._p_advertised_address(fingerprint => nullif($1::text, '')), '')`, fingerprint).Scan(&address)
	if err != nil {
		return "", pgdb.StatementError(err, "read where the daemon is reached")
	}
	return address, nil
}
