package webhook

import (
	"context"
	"fmt"

	"github.com/parley-broker/parley"
)

// Secrets reports how the secrets of webhooks are kept.
type Secrets interface {
	// Seal seals those that stand in the database as they are, where that is wanted.
	Seal(ctx context.Context, db parley.DB) error
	// seals nobody else could open after a failover.
	Open(queueID int32, sealed []byte) (string, error)
}

// Keep has secrets sealed that were just defined.
func (s *Starter) Keep(ctx context.Context) error { return s.secrets.Seal(ctx, s.pool) }

// unseal opens the secret of a definition, when it is sealed.
func (s *Starter) unseal(queueID int, d *definition) error {
	if d.SealedSecret == nil {
		return nil
	}
	secret, err := s.secrets.Open(int32(queueID), d.SealedSecret)
	if err != nil {
		return fmt.Errorf("open the secret of the webhook: %w", err)
	}
	d.Secret = secret
	return nil
}
