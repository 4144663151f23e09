package webhook

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-broker/parley/internal/broker/dialogsecurity"
)

// Secrets says how the secrets of webhooks are kept.
type Secrets struct {
	Keys *dialogsecurity.MasterKeys // nil without a master key: those that are sealed cannot be opened
	// SealsPlain is for a key that was chosen for all daemons of the database. One that a daemon has made for itself is not, and what it
	// seals nobody else could open after a failover.
	SealsPlain bool
}

// Keep seals the secrets that stand in the database as they are: those just defined, and those of before there was a master key.
func (s *Starter) Keep(ctx context.Context) error {
	if s.secrets.Keys == nil || !s.secrets.SealsPlain {
		return nil
	}
	sealed, err := dialogsecurity.SealWebhookSecrets(ctx, s.pool, s.secrets.Keys)
	if sealed > 0 {
		s.logger.Info("secrets of webhooks are sealed", "secrets", sealed, "master_key", s.secrets.Keys.Current().String())
	}
	return err
}

// unseal opens the secret of a definition, when it is sealed.
func (s *Starter) unseal(queueID int, d *definition) error {
	if d.SealedSecret == nil {
		return nil
	}
	secret, err := dialogsecurity.OpenWebhookSecret(s.secrets.Keys, int32(queueID), d.SealedSecret)
	if errors.Is(err, dialogsecurity.ErrSpoiled) {
		err = fmt.Errorf("%w; give it another secret with alter_webhook_activation", err)
	}
	if err != nil {
		return fmt.Errorf("open the secret of the webhook: %w", err)
	}
	d.Secret = secret
	return nil
}
