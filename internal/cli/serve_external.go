package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/broker/activation"
	"github.com/parley-broker/parley/internal/broker/activation/event"
	"github.com/parley-broker/parley/internal/broker/activation/program"
	"github.com/parley-broker/parley/internal/broker/activation/webhook"
)

// external is what the operator lets the databases start outside of themselves; nothing without a word of his.
type external struct {
	program         program.Permission
	programDSN      string
	webhookPrefixes []string
	webhookSessions int32

	webhook webhook.Permission
}

func (e *external) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&e.program.Programs, "allow-program", nil,
		"full path of a program that queues may name, or of a folder of such programs; not of a shell (default none)")
	flags.StringArrayVar(&e.program.Directories, "allow-program-directory", nil,
		"folder that programs may work in, besides their own (default none)")
	flags.StringArrayVar(&e.program.Environment, "allow-program-environment", nil,
		"variable that queues may set for programs; * at the end stands for any ending (default none)")
	flags.StringVar(&e.programDSN, "program-dsn", "",
		"connection string that programs are given, for a daemon of one database (default the one of --dsn)")
	flags.StringArrayVar(&e.webhookPrefixes, "allow-webhook", nil,
		"beginning of web addresses that queues may name, such as https://shop.example.com/in; https://* for all public hosts (default none)")
	flags.Int32Var(&e.webhookSessions, "webhook-sessions", 20, "requests to web addresses at once, for each database")
}

// validate finds what cannot be meant.
func (e *external) validate(databases int) (err error) {
	if e.webhookSessions < 1 {
		return usagef("--webhook-sessions must be positive")
	}
	if e.programDSN != "" && databases > 1 {
		return usagef("--program-dsn is for a daemon of one database")
	}
	if e.webhook, err = webhook.ParsePermission(e.webhookPrefixes); err != nil {
		return usageError{fmt.Errorf("--allow-webhook: %w", err)}
	}
	return nil
}

// externalStarters are the starters of one database.
type externalStarters struct {
	pool    *pgxpool.Pool // of the webhooks, each of which holds a connection while it delivers
	webhook *webhook.Starter
	byKind  map[string]activation.Starter
}

// open prepares the starters of a database; pool is the daemon's own.
func (e *external) open(
	ctx context.Context, dsn string, pool *pgxpool.Pool, secrets webhook.Secrets, logger *slog.Logger,
) (*externalStarters, error) {
	config := pool.Config().Copy()
	config.MinConns, config.MaxConns = 0, e.webhookSessions
	deliveries, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), config)
	if err != nil {
		return nil, errors.Join(errors.New("prepare to connect for webhooks"), err)
	}
	programs := &program.Starter{
		Permission:            e.program,
		DSN:                   dsn,
		Database:              config.ConnConfig.Database,
		PassPostgresVariables: e.programDSN == "",
		Logger:                logger,
	}
	if e.programDSN != "" {
		programs.DSN = e.programDSN
	}
	x := &externalStarters{pool: deliveries, webhook: webhook.NewStarter(deliveries, e.webhook, secrets, logger)}
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
