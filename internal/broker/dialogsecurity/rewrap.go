package dialogsecurity

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	truststore "github.com/parley-broker/parley/internal/store/trust"
)

// SealAnew seals every secret of a database under the current master key that is sealed under another one, in one transaction, and
// gives their number. Daemons may run meanwhile.
func SealAnew(ctx context.Context, db Beginner, keys *MasterKeys) (int, error) {
	changed := 0
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		secrets, err := truststore.ReadSealedSecrets(ctx, tx)
		if err != nil {
			return err
		}
		current := keys.Current()
		for _, secret := range secrets {
			if len(secret.Sealed) > masterKeyIDSize && MasterKeyID(secret.Sealed[1:1+masterKeyIDSize]) == current {
				continue
			}
			purpose := purposeOf(secret)
			opened, err := keys.Open(secret.Sealed, purpose)
			if err != nil {
				return fmt.Errorf("%s %x: %w", secret.Kind, secret.ID[:min(len(secret.ID), 8)], err)
			}
			sealed, err := keys.Seal(opened, purpose)
			if err != nil {
				return err
			}
			isReplaced, err := truststore.ReplaceSealedSecret(ctx, tx, secret, sealed)
			if err != nil {
				return err
			}
			if isReplaced {
				changed++
			}
		}
		return nil
	})
	return changed, err
}

// purposeOf returns what a secret was sealed for.
func purposeOf(secret truststore.SealedSecret) []byte {
	switch secret.Kind {
	case "certificate":
		return append([]byte(keyPurpose), secret.ID...)
	case "webhook":
		return append([]byte(webhookPurpose), secret.ID...)
	default:
		return sessionKeyPurpose(secret.ID)
	}
}
