package compose

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/activation"
	"github.com/parley-broker/parley/internal/broker/dialogsecurity"
	"github.com/parley-broker/parley/internal/broker/metrics"
	"github.com/parley-broker/parley/internal/daemon"
	"github.com/parley-broker/parley/internal/daemon/schedules"
	"github.com/parley-broker/parley/internal/daemon/timers"
	"github.com/parley-broker/parley/internal/pgdb"
	"github.com/parley-broker/parley/internal/tsql/runner"
	"github.com/parley-broker/parley/schema"
)

// servedConnections is enough for what the daemon itself asks of a database; its readers have connections of their own.
const servedConnections = 6

// idleTime is after how long a connection that is not used is closed: a daemon may serve hundreds of databases.
const idleTime = time.Minute

// servedDatabase is the way to one of the databases of the daemon.
type servedDatabase struct {
	daemon.Simple

	daemon   *Daemon
	number   int
	pool     *pgxpool.Pool
	listen   *pgx.ConnConfig                            // for notifications; nil when there is no better way than that of the pool
	login    func(role string) (*pgx.ConnConfig, error) // of procedures; nil when it is the daemon's
	observer *metrics.Database
	logger   *slog.Logger
}

// Prepare connects to the database. It may be out of reach for now, but must not lack the schema.
func (d *servedDatabase) Prepare(ctx context.Context) error {
	s := d.daemon
	config, err := pgxpool.ParseConfig(s.DSNs[d.number])
	if err != nil {
		return fmt.Errorf("read the DSN: %w", err)
	}
	s.connections.Apply(config.ConnConfig)
	config.MaxConns = max(config.MaxConns, servedConnections)
	config.MaxConnIdleTime = min(config.MaxConnIdleTime, idleTime)
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "parley serve"
	}
	config.AfterConnect = pgdb.PrepareSession
	if len(s.ListenDSNs) > 0 && s.ListenDSNs[d.number] != "" {
		if d.listen, err = pgx.ParseConfig(s.ListenDSNs[d.number]); err != nil {
			return fmt.Errorf("read the DSN for notifications: %w", err)
		}
		s.connections.Apply(d.listen)
	}
	if d.login, err = s.procedureLogin(d.number); err != nil {
		return err
	}
	d.observer = s.observing.database(config.ConnConfig)
	d.logger = s.Logger.With("database", config.ConnConfig.Database)
	if d.pool, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), config); err != nil {
		return fmt.Errorf("prepare to connect: %w", err)
	}
	d.observer.Attach(d.pool)
	return requireSchema(ctx, d.pool, d.logger)
}

// Close closes the connections.
func (d *servedDatabase) Close() {
	if d.pool != nil {
		d.pool.Close()
	}
}

// databaseLeader does what the daemon that leads a database does: timers, activation, dialogs.
type databaseLeader struct {
	*servedDatabase

	leader   *daemon.Leader
	starters *externalStarters
}

// Prepare makes the parts of the work.
func (d *databaseLeader) Prepare(ctx context.Context) (err error) {
	s := d.daemon
	secrets := dialogsecurity.WebhookSecrets{Keys: s.Network.keys, SealsPlain: s.Network.NamesMasterKey, Logger: d.logger}
	if d.starters, err = s.External.open(ctx, s.DSNs[d.number], d.pool, secrets, d.logger); err != nil {
		return err
	}
	engine, err := activation.New(activation.Config{
		Pool:            d.pool,
		ProcedureConfig: d.login,
		Interpret:       runner.Activated,
		Starters:        d.starters.byKind,
		SessionsMax:     s.SessionsMax,
		Ramp:            s.Ramp,
		GraceTime:       s.GraceTime,
		Observer:        d.observer,
		Logger:          d.logger,
	})
	if err != nil {
		return err
	}
	dialogs, err := s.Network.dialogs.Add(ctx, d.pool.Config(), d.logger)
	if err != nil {
		return err
	}
	d.observer.AttachTransport(dialogs.Figures)
	d.leader, err = daemon.NewLeader(daemon.LeaderConfig{
		Pool:              d.pool,
		ListenConfig:      d.listen,
		Databases:         len(s.DSNs),
		Parts:             []daemon.LedPart{timers.New(d.pool, d.logger), schedules.New(d.pool, d.logger), engine, dialogs},
		LeadershipChanged: d.observer.LeadershipChanged,
		Logger:            d.logger,
	})
	if err != nil {
		dialogs.Close()
		return err
	}
	return d.leader.Prepare(ctx)
}

// Run serves the database until ctx ends.
func (d *databaseLeader) Run(ctx context.Context) error { return d.leader.Run(ctx) }

// Close closes what Prepare has made.
func (d *databaseLeader) Close() {
	if d.leader != nil {
		d.leader.Close()
	}
	if d.starters != nil {
		d.starters.close()
	}
}

// requireSchema refuses a database without the broker, or with a schema that does not fit. One that cannot be asked, or breaks off, is
// given time: the leader tries again, for as long as the daemon runs.
func requireSchema(ctx context.Context, pool *pgxpool.Pool, logger *slog.Logger) error {
	asking, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := pool.Acquire(asking)
	if err != nil {
		logger.Warn("the database cannot be reached yet", "error", err)
		return nil
	}
	defer conn.Release()
	if err := askSchema(asking, conn, logger); pgdb.IsUnreachable(ctx, err) {
		logger.Warn("the database cannot be reached yet", "error", err)
		return nil
	} else if err != nil {
		return fmt.Errorf("database %s: %w", conn.Conn().Config().Database, err)
	}
	return nil
}

func askSchema(ctx context.Context, conn *pgxpool.Conn, logger *slog.Logger) error {
	broker, err := parley.Attach(ctx, conn)
	if err == nil {
		err = schema.RequireBuild(broker)
	}
	if err != nil {
		return err
	}
	if err := requireLeader(ctx, conn.Conn()); err != nil {
		return err
	}
	warnOfSuperuser(ctx, conn.Conn(), logger)
	if broker.State != parley.BrokerEnabled {
		// Somebody may enable it while the daemon runs.
		logger.Warn("nothing is activated: the broker is not enabled", "state", broker.State, "advice", broker.Advice)
	}
	return nil
}
