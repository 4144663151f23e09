package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/activation"
	"github.com/parley-broker/parley/internal/broker/activation/webhook"
	"github.com/parley-broker/parley/internal/broker/metrics"
	"github.com/parley-broker/parley/internal/broker/transport/endpoint"
)

// servedConnections is enough for what the daemon itself asks of a database; its readers have connections of their own.
const servedConnections = 6

// idleTime is after how long a connection that is not used is closed: a daemon may serve hundreds of databases.
const idleTime = time.Minute

// servedDatabase is one of the databases of the daemon.
type servedDatabase struct {
	pool     *pgxpool.Pool
	listen   *pgx.ConnConfig                            // for notifications; nil when there is no better way than that of the pool
	login    func(role string) (*pgx.ConnConfig, error) // of procedures; nil when it is the daemon's
	observer *metrics.Database
	logger   *slog.Logger

	engine   *activation.Engine
	starters *externalStarters
	dialogs  *endpoint.Database
}

// openDatabase connects to a database. It may be out of reach for now, but must not lack the schema.
func (s *serving) openDatabase(ctx context.Context, number int) (*servedDatabase, error) {
	config, err := pgxpool.ParseConfig(s.dsns[number])
	if err != nil {
		return nil, fmt.Errorf("read the DSN: %w", err)
	}
	config.MaxConns = max(config.MaxConns, servedConnections)
	config.MaxConnIdleTime = min(config.MaxConnIdleTime, idleTime)
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "parley serve"
	}
	config.AfterConnect = pinSearchPath
	var listen *pgx.ConnConfig
	if len(s.listenDSNs) > 0 && s.listenDSNs[number] != "" {
		if listen, err = pgx.ParseConfig(s.listenDSNs[number]); err != nil {
			return nil, fmt.Errorf("read the DSN for notifications: %w", err)
		}
	}
	login, err := s.procedureLogin(number)
	if err != nil {
		return nil, err
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
	return &servedDatabase{pool: pool, listen: listen, login: login, observer: observer, logger: logger}, nil
}

// prepare makes what serves the database.
func (d *servedDatabase) prepare(ctx context.Context, s *serving, number int, dialogs *endpoint.Endpoint) (err error) {
	secrets := webhook.Secrets{Keys: s.network.keys, SealsPlain: s.network.masterKey.path != ""}
	if d.starters, err = s.external.open(ctx, s.dsns[number], d.pool, secrets, d.logger); err != nil {
		return err
	}
	if d.dialogs, err = dialogs.Add(ctx, d.pool.Config(), d.logger); err != nil {
		return err
	}
	d.observer.AttachTransport(d.dialogs.Figures)
	d.engine, err = activation.New(activation.Config{
		Pool:            d.pool,
		ListenConfig:    d.listen,
		ProcedureConfig: d.login,
		Starters:        d.starters.byKind,
		SessionsMax:     s.sessionsMax,
		Ramp:            s.ramp,
		GraceTime:       s.graceTime,
		Companion:       d.dialogs.Transmit,
		Observer:        d.observer,
		Logger:          d.logger,
	})
	return err
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
	warnOfSuperuser(ctx, conn.Conn(), logger)
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
	if d.dialogs != nil {
		d.dialogs.Close()
	}
	if d.starters != nil {
		d.starters.close()
	}
	d.pool.Close()
}
