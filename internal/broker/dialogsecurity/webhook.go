package dialogsecurity

import (
	"context"
	"encoding/binary"
	"errors"

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

// OpenWebhookSecret opens the secret of the webhook of a queue.
//
// Errors: [ErrNoMasterKey], [ErrOtherMasterKey], [ErrSpoiled].
func OpenWebhookSecret(keys *MasterKeys, queueID int32, sealed []byte) (string, error) {
	secret, err := keys.Open(sealed, webhookPurposeOf(queueID))
	return string(secret), err
}
