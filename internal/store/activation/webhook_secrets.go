package activation

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// PlainSecret is the secret of a webhook that stands in the database as it is.
type PlainSecret struct {
	QueueID int32
	Secret  string
}

// ReadPlainSecrets reads those that no daemon has sealed yet.
func ReadPlainSecrets(ctx context.Context, db pgdb.DB) ([]PlainSecret, error) {
	rows, err := db.Query(ctx, "select queue_id, secret from parley._p_plain_secrets()")
	if err != nil {
		return nil, pgdb.StatementError(err, "read the secrets of webhooks")
	}
	secrets, err := pgx.CollectRows(rows, pgx.RowToStructByPos[PlainSecret])
	if err != nil {
		return nil, pgdb.StatementError(err, "read the secrets of webhooks")
	}
	return secrets, nil
}

// SealWebhookSecret replaces a secret by itself, sealed under the master key; it is false when it was changed meanwhile.
func SealWebhookSecret(ctx context.Context, db pgdb.DB, plain PlainSecret, sealed []byte) (bool, error) {
	var isSealed bool
	err := db.QueryRow(ctx, `
		select parley._p_seal_webhook_secret(
			queue_id => $1::integer, secret => $2::text, sealed_secret => $3::bytea
		)`,
		plain.QueueID, plain.Secret, sealed).Scan(&isSealed)
	if err != nil {
		return false, pgdb.StatementError(err, "seal the secret of a webhook")
	}
	return isSealed, nil
}
