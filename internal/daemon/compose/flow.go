package compose

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/flow/host"
	"github.com/parley-broker/parley/internal/pgdb"
	"github.com/parley-broker/parley/internal/telemetry"
	"github.com/parley-broker/parley/schema"
)

// flowConnections is how many sessions the integration engine has at once at least: claims, outcomes, intake and bodies.
const flowConnections = 20

// Flow is the integration engine as a daemon runs it.
type Flow struct {
	Config host.Config
}

// validate finds what cannot be meant.
func (f *Flow) validate() error {
	for name, value := range map[string]time.Duration{"--lease": f.Config.Lease, "--drain": f.Config.Drain} {
		if value != 0 && value < time.Second {
			return fmt.Errorf("%s %v: give 1s or more", name, value)
		}
	}
	return nil
}

// flowPart is the integration engine for a database as a part of a daemon.
type flowPart struct {
	daemon *Daemon
	dsn    string
	config host.Config
	server *host.Server
	isAway bool // the database could not be reached when the part was prepared
}

// Prepare connects, and asks whether the hosts may be served. The database may be out of reach for now.
func (f *flowPart) Prepare(ctx context.Context) error {
	connecting, err := pgxpool.ParseConfig(f.dsn)
	if err != nil {
		return fmt.Errorf("read the DSN: %w", err)
	}
	f.daemon.connections.Apply(connecting.ConnConfig)
	connecting.MaxConns = max(connecting.MaxConns, flowConnections)
	connecting.MaxConnIdleTime = min(connecting.MaxConnIdleTime, idleTime)
	connecting.AfterConnect = pgdb.PrepareSession
	if connecting.ConnConfig.RuntimeParams["application_name"] == "" {
		connecting.ConnConfig.RuntimeParams["application_name"] = "parley flow serve"
	}
	if f.config.Pool, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), connecting); err != nil {
		return fmt.Errorf("prepare to connect: %w", err)
	}
	f.config.Version, f.config.Tracer = parley.Release, f.daemon.observing.export.Tracer()
	if f.server, err = host.New(f.config); err != nil {
		return fmt.Errorf("prepare integration: %w", err)
	}
	if err := f.reach(ctx); pgdb.IsUnreachable(ctx, err) {
		f.isAway = true
		f.config.Logger.Warn("the database of integration cannot be reached yet", "database", connecting.ConnConfig.Database, "error", err)
	} else if err != nil {
		return err
	}
	source := telemetry.Source{Collector: telemetry.NewCollector("parley_flow", "host", connecting.ConnConfig.Database, f.server.Counters)}
	if !f.daemon.Broker && !f.daemon.ServesMail { // which ask the same database
		source.Ready = f.ready
	}
	return f.daemon.observing.registry.Register(source)
}

// reach asks what integration needs of the database first.
func (f *flowPart) reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	attached, err := parley.Attach(ctx, f.config.Pool)
	if err == nil {
		err = schema.RequireBuild(attached)
	}
	if err != nil {
		return fmt.Errorf("prepare integration: %w", err)
	}
	return f.server.Prepare(ctx)
}

// await waits until the database can be reached, or ctx ends. Without its schema, or the right to serve a host that is named, it fails.
func (f *flowPart) await(ctx context.Context) error {
	failures := backoff.NewFailures(f.config.Logger, "the database of integration cannot be reached")
	for f.isAway && ctx.Err() == nil {
		err := f.reach(ctx)
		switch {
		case err == nil:
			failures.Succeeded()
			f.isAway = false
		case pgdb.IsUnreachable(ctx, err):
			_ = backoff.Wait(ctx, failures.Failed(err))
		case ctx.Err() == nil:
			return err
		}
	}
	return nil
}

// Run serves hosts until ctx ends.
func (f *flowPart) Run(ctx context.Context) error {
	if err := f.await(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	return f.server.Run(ctx)
}

// ready checks whether the database can be worked with.
func (f *flowPart) ready(ctx context.Context) []telemetry.Readiness {
	return []telemetry.Readiness{telemetry.Check(ctx, f.config.Pool, f.config.Pool.Config().ConnConfig.Database, "flow")}
}

// Close gives back what Prepare has opened.
func (f *flowPart) Close() {
	if f.server != nil {
		f.server.Close()
	}
	if f.config.Pool != nil {
		f.config.Pool.Close()
	}
}
