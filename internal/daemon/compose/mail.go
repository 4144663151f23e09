package compose

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/mail/groupcommit"
	"github.com/parley-broker/parley/internal/mail/server"
	"github.com/parley-broker/parley/internal/pgdb"
	"github.com/parley-broker/parley/internal/telemetry"
)

// mailConnections is how many sessions mail transport has at once besides those that write what arrives: categorizer, claims, outcomes and
// bodies.
const mailConnections = 8

// smallestBodyCache is the smallest body cache that may be asked for, in bytes (spec hub-transport 13).
const smallestBodyCache = 128 << 20

// Mail is mail transport as a daemon runs it.
type Mail struct {
	Config server.Config
	// Bindings are those to listen on, as they are written; all without any.
	Bindings []string
}

// validate finds what cannot be meant.
func (m *Mail) validate() error {
	for _, written := range m.Bindings {
		binding, err := netip.ParseAddrPort(written)
		if err != nil {
			return fmt.Errorf("--binding %s: give address:port, as the receive connector has it", written)
		}
		m.Config.Bindings = append(m.Config.Bindings, binding)
	}
	if m.Config.BodyCache < smallestBodyCache {
		return fmt.Errorf("a body cache of %d bytes: give %d (128 MB) or more", m.Config.BodyCache, smallestBodyCache)
	}
	if m.Config.Lease != 0 && m.Config.Lease < time.Second {
		return fmt.Errorf("--lease %v: give 1s or more", m.Config.Lease)
	}
	return nil
}

// mailPart is mail transport for a database as a part of a daemon.
type mailPart struct {
	daemon *Daemon
	dsn    string
	config server.Config
	server *server.Server
	isAway bool // the database could not be reached when the part was prepared
}

// name is that of the program, for the server.
func (m *mailPart) name() string {
	if m.daemon.Broker {
		return "parley serve --mail"
	}
	return "parley mail serve"
}

// Prepare connects, and reads the configuration. The database may be out of reach for now.
func (m *mailPart) Prepare(ctx context.Context) error {
	connecting, err := pgxpool.ParseConfig(m.dsn)
	if err != nil {
		return fmt.Errorf("read the DSN: %w", err)
	}
	m.daemon.connections.Apply(connecting.ConnConfig)
	connecting.MaxConns = max(connecting.MaxConns, int32(mailConnections+groupcommit.Writers()))
	connecting.AfterConnect = pgdb.PrepareSession
	if connecting.ConnConfig.RuntimeParams["application_name"] == "" {
		connecting.ConnConfig.RuntimeParams["application_name"] = m.name()
	}
	if m.config.Pool, err = pgxpool.NewWithConfig(ctx, connecting); err != nil {
		return fmt.Errorf("prepare to connect: %w", err)
	}
	m.config.Version = parley.Release
	if m.server, err = server.New(m.config); err != nil {
		return fmt.Errorf("prepare mail transport: %w", err)
	}
	if err := m.reach(ctx); pgdb.IsUnreachable(ctx, err) {
		m.isAway = true
		m.config.Logger.Warn("the database of mail cannot be reached yet", "database", connecting.ConnConfig.Database, "error", err)
	} else if err != nil {
		return err
	}
	source := telemetry.Source{Collector: telemetry.NewCollector("parley_mail", "name", connecting.ConnConfig.Database, m.server.Counters)}
	if !m.daemon.Broker { // which asks the same database
		source.Ready = m.ready
	}
	return m.daemon.observing.registry.Register(source)
}

// reachTime is how long one attempt to reach the database may take at the start.
const reachTime = 10 * time.Second

// reach reads the configuration, which is the first that mail transport needs of the database.
func (m *mailPart) reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	err := m.server.Prepare(ctx)
	if pgdb.SQLState(err) == "3F000" {
		return errors.New("prepare mail transport: schema parley_mail is not installed: run parley install with the same --dsn")
	}
	if err != nil {
		return fmt.Errorf("prepare mail transport: %w", err)
	}
	return nil
}

// await waits until the database can be reached, or ctx ends. Without its schema, a configuration or the right to serve it fails.
func (m *mailPart) await(ctx context.Context) error {
	failures := backoff.NewFailures(m.config.Logger, "the database of mail cannot be reached")
	for m.isAway && ctx.Err() == nil {
		err := m.reach(ctx)
		switch {
		case err == nil:
			failures.Succeeded()
			m.isAway = false
		case pgdb.IsUnreachable(ctx, err):
			_ = backoff.Wait(ctx, failures.Failed(err))
		case ctx.Err() == nil:
			return err
		}
	}
	return nil
}

// Run runs mail transport until ctx ends.
func (m *mailPart) Run(ctx context.Context) error {
	if err := m.await(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	m.config.Logger.Info("mail transport runs")
	defer m.config.Logger.Info("mail transport has stopped")
	return m.server.Run(ctx)
}

// ready checks whether the database can be worked with.
func (m *mailPart) ready(ctx context.Context) []telemetry.Readiness {
	return []telemetry.Readiness{telemetry.Check(ctx, m.config.Pool, m.config.Pool.Config().ConnConfig.Database, "mail")}
}

// Close gives back what Prepare has opened.
func (m *mailPart) Close() {
	if m.server != nil {
		m.server.Close()
	}
	if m.config.Pool != nil {
		m.config.Pool.Close()
	}
}
