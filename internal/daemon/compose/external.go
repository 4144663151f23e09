package compose

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/broker/activation"
	"github.com/parley-broker/parley/internal/broker/activation/event"
	"github.com/parley-broker/parley/internal/broker/activation/program"
	"github.com/parley-broker/parley/internal/broker/activation/webhook"
)

// External is the operator's leave for databases to start programs outside of themselves; nothing without a word of his.
type External struct {
	Program         program.Permission
	ProgramDSN      string   // what programs are given; "" for the DSN of their database
	WebhookPrefixes []string // beginnings of web addresses
	WebhookSessions int32    // for each database

	webhook webhook.Permission
}

// validate finds what cannot be meant.
func (e *External) validate(databases int) (err error) {
	if e.WebhookSessions < 1 {
		return errors.New("--webhook-sessions must be positive")
	}
	if e.ProgramDSN != "" && databases > 1 {
		return errors.New("--program-dsn is for a daemon of one database")
	}
	if e.webhook, err = webhook.ParsePermission(e.WebhookPrefixes); err != nil {
		return fmt.Errorf("--allow-webhook: %w", err)
	}
	return nil
}

// externalStarters are the starters of one database.
type externalStarters struct {
	pool    *pgxpool.Pool // of the webhooks
	webhook *webhook.Starter
	byKind  map[string]activation.Starter
}

// open prepares the starters of a database; pool is the daemon's own.
func (e *External) open(
	ctx context.Context, dsn string, pool *pgxpool.Pool, secrets webhook.Secrets, logger *slog.Logger,
) (*externalStarters, error) {
	config := pool.Config().Copy()
	config.MinConns, config.MaxConns = 0, e.WebhookSessions
	deliveries, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), config)
	if err != nil {
		return nil, errors.Join(errors.New("prepare to connect for webhooks"), err)
	}
	programs := &program.Starter{
		Permission:            e.Program,
		DSN:                   dsn,
		Database:              config.ConnConfig.Database,
		PassPostgresVariables: e.ProgramDSN == "",
		Logger:                logger,
	}
	if e.ProgramDSN != "" {
		programs.DSN = e.ProgramDSN
	}
	x := &externalStarters{pool: deliveries, webhook: webhook.NewStarter(deliveries, int(e.WebhookSessions), e.webhook, secrets, logger)}
	x.byKind = map[string]activation.Starter{
		activation.KindProgram: programs,
		activation.KindWebhook: x.webhook,
		event.Kind:             &event.Starter{Pool: pool},
	}
	return x, nil
}

func (x *externalStarters) close() {
	x.webhook.Close()
	x.pool.Close()
}
