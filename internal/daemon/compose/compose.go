// Package compose makes a daemon out of its parts: the broker, mail transport and hosts of integration for each of its databases, the way
// to other servers, and what it shows to monitoring systems.
package compose

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/parley-broker/parley/internal/console"
	"github.com/parley-broker/parley/internal/daemon"
	"github.com/parley-broker/parley/internal/pgdb"
	"github.com/parley-broker/parley/internal/postgres"
)

// Daemon holds the settings with which a daemon was asked to run. Errors name the flags of the command line.
type Daemon struct {
	DSNs []string
	// ListenDSNs lead to the same databases without a pooler, ProcedureDSNs are the logins of procedures: none, or one for each database,
	// "" for none.
	ListenDSNs, ProcedureDSNs []string
	Broker                    bool // activation, timers, dialogs
	ServesMail                bool
	ServesFlow                bool // hosts of integration
	Ramp                      time.Duration
	GraceTime                 time.Duration
	SessionsMax               int    // of procedures, for each database
	HTTP                      string // address of /metrics, /healthz and /readyz; "" for none
	External                  External
	Network                   Network
	Mail                      Mail
	Flow                      Flow
	Console                   console.Listening // its Address is "" for none
	Private                   *postgres.Server  // supervised; nil where the databases are of others
	Logger                    *slog.Logger

	observing   observing
	connections *pgdb.ConnectionLimit // of all parts together
}

// New gives a daemon that was asked for nothing.
func New() *Daemon { return &Daemon{connections: pgdb.NewConnectionLimit()} }

// Validate finds what cannot be meant.
func (d *Daemon) Validate() error {
	switch {
	case !d.Broker && !d.ServesMail && !d.ServesFlow:
		return errors.New("--broker=false without --mail and --flow leaves nothing to run")
	case !d.Broker && (d.Network.Address != "" || len(d.ListenDSNs)+len(d.ProcedureDSNs) > 0):
		return errors.New("--listen, --listen-dsn and --procedure-dsn are for a daemon of the broker")
	case len(d.ListenDSNs) > 0 && len(d.ListenDSNs) != max(1, len(d.DSNs)):
		return errors.New("give one --listen-dsn for each --dsn, or none; an empty one is none for that database")
	case len(d.ProcedureDSNs) > 0 && len(d.ProcedureDSNs) != max(1, len(d.DSNs)):
		return errors.New("give one --procedure-dsn for each --dsn, or none; an empty one is none for that database")
	case d.Ramp < 0 || d.GraceTime <= 0 || d.SessionsMax < 1:
		return errors.New("--ramp must not be negative, --grace-time and --sessions must be positive")
	}
	for number := range d.ProcedureDSNs {
		if _, err := d.procedureLogin(number); err != nil {
			return err
		}
	}
	return errors.Join(
		d.External.validate(len(d.DSNs)), d.Network.validate(), d.Mail.validate(), d.Flow.validate(), d.validateConsole())
}

func (d *Daemon) validateConsole() error {
	if d.Console.Address == "" {
		return nil
	}
	return d.Console.Validate()
}

// Run runs the daemon until ctx ends.
func (d *Daemon) Run(ctx context.Context) error {
	err := daemon.Run(ctx, d.parts(), func() {
		d.Logger.Info("the daemon runs", "databases", len(d.DSNs))
		d.reportToSystemd(ctx)
	})
	d.Logger.Info("the daemon has stopped")
	return err
}

// parts gives the parts of the daemon. A part stands behind those that it needs.
func (d *Daemon) parts() []daemon.Part {
	d.observing.address, d.observing.logger, d.Network.logger = d.HTTP, d.Logger, d.Logger
	parts := []daemon.Part{&d.observing}
	if d.Private != nil {
		parts = append(parts, supervisor{Server: d.Private})
	}
	if d.Broker {
		for number := range d.DSNs {
			database := &servedDatabase{daemon: d, number: number}
			d.Network.databases = append(d.Network.databases, database)
			parts = append(parts, database)
		}
		parts = append(parts, &d.Network)
		for _, database := range d.Network.databases {
			parts = append(parts, &databaseLeader{servedDatabase: database})
		}
	}
	if d.ServesMail {
		for _, dsn := range d.DSNs {
			mail := &mailPart{daemon: d, dsn: dsn, config: d.Mail.Config}
			mail.config.Logger = d.Logger
			parts = append(parts, mail)
		}
	}
	if d.ServesFlow {
		for _, dsn := range d.DSNs {
			flow := &flowPart{daemon: d, dsn: dsn, config: d.Flow.Config}
			flow.config.Logger = d.Logger
			parts = append(parts, flow)
		}
	}
	if d.Console.Address != "" {
		parts = append(parts, &consolePart{daemon: d})
	}
	return parts
}

// supervisor starts the private server again when it has crashed.
type supervisor struct {
	daemon.Simple
	*postgres.Server
}

// Run supervises the server until ctx ends.
func (s supervisor) Run(ctx context.Context) error { return s.Supervise(ctx) }
