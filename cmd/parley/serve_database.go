package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/activation"
)

// servedConnections is enough for what the daemon itself asks of a database; its readers have connections of their own.
const servedConnections = 6

// servedDatabase is one of the databases of the daemon.
type servedDatabase struct {
	pool     *pgxpool.Pool
	engine   *activation.Engine
	starters *externalStarters
	logger   *slog.Logger
}

// openDatabase prepares to serve a database. It may be out of reach for now, but must not lack the schema.
func (s *serving) openDatabase(ctx context.Context, number int) (*servedDatabase, error) {
	config, err := pgxpool.ParseConfig(s.dsns[number])
	if err != nil {
		return nil, fmt.Errorf("read the DSN: %w", err)
	}
	config.MaxConns = max(config.MaxConns, servedConnections)
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "parley serve"
	}
	var listen *pgx.ConnConfig
	if len(s.listenDSNs) > 0 && s.listenDSNs[number] != "" {
		if listen, err = pgx.ParseConfig(s.listenDSNs[number]); err != nil {
			return nil, fmt.Errorf("read the DSN for notifications: %w", err)
		}
	}
	observer := s.observing.database(config.ConnConfig)
	logger := s.logger.With("database", config.ConnConfig.Database)
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), config)
	if err != nil {
		return nil, fmt.Errorf("prepare to connect: %w", err)
	}
	observer.Attach(pool)
	if err := requireSchema(ctx, pool, logger); err != nil {
		pool.Close()
		return nil, err
	}
	starters, err := s.external.open(ctx, s.dsns[number], pool, logger)
	if err != nil {
		pool.Close()
		return nil, err
	}
	engine, err := activation.New(activation.Config{
		Pool:         pool,
		ListenConfig: listen,
		Starters:     starters.byKind,
		SessionsMax:  s.sessionsMax,
		Ramp:         s.ramp,
		GraceTime:    s.graceTime,
		Observer:     observer,
		Logger:       logger,
	})
	if err != nil {
		starters.close()
		pool.Close()
		return nil, err
	}
	return &servedDatabase{pool: pool, engine: engine, starters: starters, logger: logger}, nil
}

// requireSchema refuses a database without the broker, or with a schema that does not fit. One that cannot be asked is given time.
func requireSchema(ctx context.Context, pool *pgxpool.Pool, logger *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := pool.Acquire(ctx)
	if err != nil {
		logger.Warn("the database cannot be reached yet", "error", err)
		return nil // the engine tries again, for as long as the daemon runs
	}
	defer conn.Release()
	broker, err := parley.Attach(ctx, conn)
	if err != nil {
		return fmt.Errorf("database %s: %w", conn.Conn().Config().Database, err)
	}
	if broker.State != parley.BrokerEnabled {
		// Somebody may enable it while the daemon runs.
		logger.Warn("nothing is activated: the broker is not enabled", "state", broker.State, "advice", broker.Advice)
	}
	return nil
}

// run serves the database until ctx ends.
func (d *servedDatabase) run(ctx context.Context) error {
	if err := d.engine.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func (d *servedDatabase) close() {
	d.starters.close()
	d.pool.Close()
}
