package webhook

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-broker/parley/internal/dialogsecurity"
)

// Keep seals the secrets that stand in the database as they are: those just defined, and those of before there was a master key.
func (s *Starter) Keep(ctx context.Context) error {
	if s.keys == nil {
		return nil
	}
	sealed, err := dialogsecurity.SealWebhookSecrets(ctx, s.pool, s.keys)
	if sealed > 0 {
		s.logger.Info("secrets of webhooks are sealed", "secrets", sealed, "master_key", s.keys.Current().String())
	}
	return err
}

// unseal opens the secret of a definition, when it is sealed.
func (s *Starter) unseal(queueID int, d *definition) error {
	if d.SealedSecret == nil {
		return nil
	}
	secret, err := dialogsecurity.OpenWebhookSecret(s.keys, int32(queueID), d.SealedSecret)
	if errors.Is(err, dialogsecurity.ErrSpoiled) {
		err = fmt.Errorf("%w; give it another secret with alter_webhook_activation", err)
	}
	if err != nil {
		return fmt.Errorf("open the secret of the webhook: %w", err)
	}
	d.Secret = secret
	return nil
}
