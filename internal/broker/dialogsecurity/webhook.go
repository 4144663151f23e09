package dialogsecurity

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"

	"github.com/parley-broker/parley"
	activationstore "github.com/parley-broker/parley/internal/store/activation"
)

const webhookPurpose = "parley webhook secret "

// A secret belongs to one queue: copied to another one it does not open.
func webhookPurposeOf(queueID int32) []byte {
	return binary.BigEndian.AppendUint32([]byte(webhookPurpose), uint32(queueID))
}

// SealWebhookSecrets seals the secrets of webhooks that stand in a database as they are, and gives their number.
//
// Errors: [ErrNoMasterKey].
func SealWebhookSecrets(ctx context.Context, db parley.DB, keys *MasterKeys) (int, error) {
	if keys == nil {
		return 0, ErrNoMasterKey
	}
	plain, err := activationstore.ReadPlainSecrets(ctx, db)
	if err != nil {
		return 0, err
	}
	count := 0
	var failures []error
	for _, one := range plain {
		sealed, err := keys.Seal([]byte(one.Secret), webhookPurposeOf(one.QueueID))
		if err != nil {
			return count, err
		}
		isSealed, err := activationstore.SealWebhookSecret(ctx, db, one, sealed)
		if isSealed {
			count++
		}
		failures = append(failures, err)
	}
	return count, errors.Join(failures...)
}

// WebhookSecrets keeps the secrets of the webhooks of a database.
type WebhookSecrets struct {
	Keys *MasterKeys // nil without a master key: secrets that are sealed cannot be opened
	// SealsPlain is for a key that was chosen for all daemons of the database. One that a daemon has made for itself is not, and what it
	// seals nobody else could open after a failover.
	SealsPlain bool
	Logger     *slog.Logger
}

// Seal seals the secrets that stand in the database as they are: those just defined, and those of before there was a master key.
func (s WebhookSecrets) Seal(ctx context.Context, db parley.DB) error {
	if s.Keys == nil || !s.SealsPlain {
		return nil
	}
	sealed, err := SealWebhookSecrets(ctx, db, s.Keys)
	if sealed > 0 {
		s.Logger.Info("secrets of webhooks are sealed", "secrets", sealed, "master_key", s.Keys.Current().String())
	}
	return err
}

// Open opens the secret of the webhook of a queue. Errors: those of [OpenWebhookSecret], with what to do about them.
func (s WebhookSecrets) Open(queueID int32, sealed []byte) (string, error) {
	secret, err := OpenWebhookSecret(s.Keys, queueID, sealed)
	if errors.Is(err, ErrSpoiled) {
		err = fmt.Errorf("%w; give it another secret with alter_webhook_activation", err)
	}
	return secret, err
}

// OpenWebhookSecret opens the secret of the webhook of a queue.
//
// Errors: [ErrNoMasterKey], [ErrOtherMasterKey], [ErrSpoiled].
func OpenWebhookSecret(keys *MasterKeys, queueID int32, sealed []byte) (string, error) {
	secret, err := keys.Open(sealed, webhookPurposeOf(queueID))
	return string(secret), err
}
