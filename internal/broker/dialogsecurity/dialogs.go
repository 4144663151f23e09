package dialogsecurity

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-broker/parley"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
	truststore "github.com/parley-broker/parley/internal/store/trust"
)

const (
	// belief is how long certificates and bindings that were read from a database are used without reading them again: so long does a
	// certificate live on that is revoked.
	belief = time.Second
	// agreementAge is how long an agreement is used before a new one is made (spec 7.3: every few hours).
	agreementAge = 4 * time.Hour
	// tidying is how often the rest of ended dialogs is removed.
	tidying        = 10 * time.Minute
	forgottenAtOne = 10_000

	dialogsKept      = 200_000
	agreementsKept   = 8192
	certificatesKept = 8192
)

// Config has the database for which a guard works, and its secrets.
type Config struct {
	// Keys open the secrets in the database. Without them no dialog is secured: what should be is held, what arrives is discarded.
	Keys *MasterKeys
	// IsLinkEncrypted: every link of the daemon is. Then a dialog that is to be encrypted may leave without a remote service
	// binding, for the broker at the other end of the link alone: it is marked, and forwarders do not pass it on.
	IsLinkEncrypted bool
	Logger          *slog.Logger
}

// Dialogs is the guard of one database.
type Dialogs struct {
	keys            *MasterKeys
	isLinkEncrypted bool
	log             *complaints
	clock           func() time.Time // of what is sealed
	counts          counts

	mu         sync.Mutex
	epoch      int64
	anonymous  map[uint32]dated[string] // secrets for new anonymous dialogs, by the role they are for
	lastTidied time.Time

	plans        *memory[int64, truststore.DialogPlan]
	bindings     *memory[side, binding]
	certificates *memory[holder, dated[heldCertificate]]
	judgements   *memory[judged, dated[truststore.JudgedCertificates]]
	made         *memory[pair, dated[*agreement]]
	sent, opened *memory[string, *agreement] // by what goes before the salt
	secrets      *memory[string, string]     // of anonymous dialogs, by their id
}

type (
	// side is one side of a conversation, the one that is here.
	side struct {
		conversation parley.UUID
		isInitiator  bool
	}
	// binding names the broker at the other side of it; the zero value for one that is in clear.
	binding struct {
		mode      truststore.SecurityMode
		principal uint32
		keyID     string
	}
	holder struct {
		principal uint32
		isOwn     bool
	}
	heldCertificate struct {
		certificate Certificate
		keys        keyPair
		status      string
	}
	judged struct{ signer, receiver, service string }
	pair   struct{ signer, receiver, keyID string }
)

// New makes the guard of a database.
func New(config Config) *Dialogs {
	return &Dialogs{
		keys:            config.Keys,
		isLinkEncrypted: config.IsLinkEncrypted,
		log:             newComplaints(config.Logger),
		clock:           time.Now,
		anonymous:       map[uint32]dated[string]{},
		lastTidied:      time.Now(),
		plans:           newMemory[int64, truststore.DialogPlan](dialogsKept),
		bindings:        newMemory[side, binding](dialogsKept),
		certificates:    newMemory[holder, dated[heldCertificate]](certificatesKept),
		judgements:      newMemory[judged, dated[truststore.JudgedCertificates]](certificatesKept),
		made:            newMemory[pair, dated[*agreement]](agreementsKept),
		sent:            newMemory[string, *agreement](agreementsKept),
		opened:          newMemory[string, *agreement](agreementsKept),
		secrets:         newMemory[string, string](agreementsKept),
	}
}

var _ Guard = (*Dialogs)(nil)

// Counts are the counts of a guard since it was made.
type Counts struct {
	Sealed, Opened int64 // runs
	Corrupted      int64 // runs and fragments that could not be opened
	Forged         int64 // results that nobody had signed
}

type counts struct{ sealed, opened, corrupted, forged atomic.Int64 }

// Counts implements [Guard].
func (d *Dialogs) Counts() Counts {
	return Counts{
		Sealed: d.counts.sealed.Load(), Opened: d.counts.opened.Load(),
		Corrupted: d.counts.corrupted.Load(), Forged: d.counts.forged.Load(),
	}
}

// notice forgets what was read from a history of the database that is over.
func (d *Dialogs) notice(speaker transportstore.Speaker) {
	d.mu.Lock()
	isNew := d.epoch != 0 && d.epoch != speaker.Epoch
	d.epoch = speaker.Epoch
	if isNew {
		clear(d.anonymous)
	}
	d.mu.Unlock()
	if isNew {
		d.plans.clear()
		d.bindings.clear()
	}
}

// certificateOf picks the certificate of a role, with its private keys when it is to sign.
func (d *Dialogs) certificateOf(ctx context.Context, db parley.DB, principal uint32, isOwn bool) (heldCertificate, error) {
	key := holder{principal: principal, isOwn: isOwn}
	if held, ok := d.certificates.get(key); ok && held.isYoungerThan(belief) {
		return held.value, nil
	}
	found, err := truststore.FindDialogCertificate(ctx, db, principal, isOwn)
	if err != nil {
		return heldCertificate{}, err
	}
	held := heldCertificate{status: found.Status}
	if held.status == "" {
		held.certificate, err = ParseCertificate(found.Certificate)
		if err == nil && isOwn {
			held.keys, err = openKeyPair(d.keys, held.certificate.Fingerprint, found.PrivateKey)
		}
		if err != nil {
			held.status = err.Error()
		}
		d.log.warnOfExpiry(held.certificate)
	}
	d.certificates.put(key, now(held))
	return held, nil
}

// secretOf gives the secret of an anonymous dialog.
func (d *Dialogs) secretOf(ctx context.Context, db parley.DB, keyID []byte) (string, error) {
	if secret, ok := d.secrets.get(string(keyID)); ok {
		return secret, nil
	}
	sealed, err := truststore.ReadSessionKey(ctx, db, keyID)
	if err != nil {
		return "", err
	}
	secret, err := d.keys.Open(sealed, sessionKeyPurpose(keyID))
	if err != nil {
		return "", err
	}
	d.secrets.put(string(keyID), string(secret))
	return string(secret), nil
}

// keepSecret stores the secret of anonymous dialogs, so that a restart does not end them.
func (d *Dialogs) keepSecret(ctx context.Context, db parley.DB, secret string) error {
	keyID := keyIDOf(secret)
	sealed, err := d.keys.Seal([]byte(secret), sessionKeyPurpose(keyID))
	if err != nil {
		return err
	}
	return truststore.KeepSessionKey(ctx, db, keyID, sealed)
}

func sessionKeyPurpose(keyID []byte) []byte { return append([]byte("parley session key "), keyID...) }

// isReason reports whether an obstacle has a text for transmission_status, or is a failure to read the database.
func isReason(err error) bool {
	for _, reason := range []error{ErrNoMasterKey, ErrOtherMasterKey, ErrSpoiled, truststore.ErrNoSessionKey} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

// tidy removes now and then what ended dialogs have left in the database.
func (d *Dialogs) tidy(ctx context.Context, db parley.DB) error {
	d.mu.Lock()
	isDue := time.Since(d.lastTidied) > tidying
	if isDue {
		d.lastTidied = time.Now()
	}
	d.mu.Unlock()
	if !isDue {
		return nil
	}
	_, err := truststore.ForgetDialogs(ctx, db, forgottenAtOne)
	return err
}
