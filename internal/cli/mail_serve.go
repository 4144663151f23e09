package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/daemon"
	"github.com/parley-broker/parley/internal/mail/groupcommit"
	mailmetrics "github.com/parley-broker/parley/internal/mail/metrics"
	"github.com/parley-broker/parley/internal/mail/server"
	"github.com/parley-broker/parley/internal/pgdb"
)

// mailConnections is how many sessions mail transport has at once besides those that write what arrives: categorizer, claims, outcomes and
// bodies.
const mailConnections = 8

// smallestBodyCache is the smallest body cache that may be asked for, in bytes (spec hub-transport 13).
const smallestBodyCache = 128 << 20

// servedMail is mail transport for a database as a part of a daemon.
type servedMail struct {
	config  server.Config
	dsn     string
	name    string // of the program, for the server
	address string // for metrics; "" where somebody else serves them
	// bindings are those to listen on, as they are written.
	bindings []string

	server      *server.Server
	collector   *mailmetrics.Collector
	listener    net.Listener
	connections *pgdb.ConnectionLimit // of the whole daemon
	// added is called with the collector when the part is prepared; nil where it serves the metrics itself.
	added func(*mailmetrics.Collector) error
}

// addFlags adds what mail transport may be asked for in either daemon.
func (m *servedMail) addFlags(cmd *cobra.Command, prefix string) {
	flags := cmd.Flags()
	flags.StringVar(&m.config.SpoolFolder, prefix+"spool", "", "folder for large messages while they arrive (default that of the system)")
	flags.Int64Var(&m.config.BodyCache, prefix+"body-cache", 512<<20,
		"memory for bodies of messages between receipt and delivery, in bytes, 128 MB at least")
	flags.StringArrayVar(&m.config.NameServers, prefix+"name-server", nil,
		"name server as host:port, may be given several times (default those of the system)")
	flags.StringArrayVar(&m.config.Folders, prefix+"folders", nil,
		"folder of this machine, given by its full path, below which the configuration may name folders, files and sockets, may be given "+
			"several times (default: none, so that it may name none)")
	flags.StringVar(&m.config.DataFolder, prefix+"data-folder", "",
		"folder on the volume of the database's data, which is watched (default that of a server on this machine)")
	flags.StringVar(&m.config.LogFolder, prefix+"log-folder", "",
		"folder on the volume of the database's log, which is watched (default as above)")
}

// validate finds what cannot be meant.
func (m *servedMail) validate() error {
	for _, written := range m.bindings {
		binding, err := netip.ParseAddrPort(written)
		if err != nil {
			return usagef("--binding %s: give address:port, as the receive connector has it", written)
		}
		m.config.Bindings = append(m.config.Bindings, binding)
	}
	if m.config.BodyCache < smallestBodyCache {
		return usagef("a body cache of %d bytes: give %d (128 MB) or more", m.config.BodyCache, smallestBodyCache)
	}
	if m.config.Lease != 0 && m.config.Lease < time.Second {
		return usagef("--lease %v: give 1s or more", m.config.Lease)
	}
	return nil
}

// Prepare connects, reads the configuration and listens for what asks for metrics.
func (m *servedMail) Prepare(ctx context.Context) error {
	connecting, err := pgxpool.ParseConfig(m.dsn)
	if err != nil {
		return fmt.Errorf("read the DSN: %w", err)
	}
	m.connections.Apply(connecting.ConnConfig)
	connecting.MaxConns = max(connecting.MaxConns, int32(mailConnections+groupcommit.Writers()))
	connecting.AfterConnect = pgdb.PrepareSession
	if connecting.ConnConfig.RuntimeParams["application_name"] == "" {
		connecting.ConnConfig.RuntimeParams["application_name"] = m.name
	}
	if m.config.Pool, err = pgxpool.NewWithConfig(ctx, connecting); err != nil {
		return fmt.Errorf("prepare to connect: %w", err)
	}
	m.config.Version = parley.Release
	if m.server, err = server.New(m.config); err != nil {
		return fmt.Errorf("prepare mail transport: %w", err)
	}
	if err := m.server.Prepare(ctx); err != nil {
		return fmt.Errorf("prepare mail transport: %w", err)
	}
	m.collector = mailmetrics.New(connecting.ConnConfig.Database, m.figures)
	if m.added != nil {
		return m.added(m.collector)
	}
	if m.address == "" {
		return nil
	}
	if m.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", m.address); err != nil {
		return fmt.Errorf("listen on --http %s: %w", m.address, err)
	}
	m.config.Logger.Info("metrics are served", "address", m.listener.Addr().String())
	return nil
}

// figures reads the counters.
func (m *servedMail) figures(ctx context.Context) ([]mailmetrics.Figure, error) {
	counters, err := m.server.Counters(ctx)
	figures := make([]mailmetrics.Figure, len(counters))
	for i, c := range counters {
		figures[i] = mailmetrics.Figure{Object: c.Object, Counter: c.Counter, Instance: c.Instance, Value: c.Value, IsTotal: c.IsTotal}
		if c.Histogram != nil {
			figures[i].Histogram = &mailmetrics.Histogram{Buckets: c.Histogram.Buckets, Sum: c.Histogram.Sum}
		}
	}
	return figures, err
}

// Run runs mail transport, and serves the metrics, until ctx ends.
func (m *servedMail) Run(ctx context.Context) error {
	if m.listener == nil {
		return m.server.Run(ctx)
	}
	return daemon.Together(ctx, m.server.Run, func(ctx context.Context) error { return m.collector.Serve(ctx, m.listener) })
}

// Close gives back what Prepare has opened.
func (m *servedMail) Close() {
	if m.listener != nil {
		_ = m.listener.Close()
	}
	if m.server != nil {
		m.server.Close()
	}
	if m.config.Pool != nil {
		m.config.Pool.Close()
	}
}

func newMailServeCommand(a *app) *cobra.Command {
	s := &serving{}
	m := &servedMail{name: "parley mail serve", connections: pgdb.NewConnectionLimit()}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run mail transport: receive by SMTP, categorize, send, report",
		Long: `Run mail transport for a database until Ctrl-C or SIGTERM. What it does is configured in the database: see parley mail apply.

Any number of daemons may work on one database. What one has in its hands when it is killed is sent by another when its lease is
over, half a minute after it was killed (--lease). Several daemons on one machine need a binding each (--binding). The role it logs in as
needs the right SERVE:
  select parley_mail.grant_right('SERVE', 'daemon');

The configuration names folders, files of certificates, Maildirs and sockets of the machine. The daemon uses those that are below a folder
given by --folders, and leaves out, with a finding of parley diagnose, what names others.

While resources are short it delays and refuses mail, step by step: see docs/mail-pressure.md. parley serve --mail runs it beside
the broker in one daemon.`,
		Example: `  parley mail serve --dsn postgres://daemon@db1/shop
  parley mail serve --dsn postgres://daemon@db1/shop --http 127.0.0.1:9188 --spool /var/spool/parley --body-cache 1073741824
  parley mail serve --dsn postgres://daemon@db1/shop --folders /etc/parley/tls --folders /srv/mail`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := errors.Join(m.validate(), a.openLog(s)); err != nil {
				return err
			}
			m.config.Logger = s.logger
			if m.dsn, err = a.resolveDSN(cmd.Context()); err != nil {
				return err
			}
			err = daemon.Run(cmd.Context(), []daemon.Part{m}, func() { s.logger.Info("mail transport runs") })
			s.logger.Info("mail transport has stopped")
			return err
		},
	}
	m.addFlags(cmd, "")
	flags := cmd.Flags()
	flags.StringArrayVar(&m.bindings, "binding", nil,
		"listen on this binding of the receive connectors only, may be given several times (default all)")
	flags.DurationVar(&m.config.Lease, "lease", server.DefaultLease, "how long what a daemon was sending waits for others when it was killed")
	flags.StringVar(&m.address, "http", "", "address for /metrics and /healthz, such as 127.0.0.1:9188 (default: none)")
	flags.StringVar(&s.logLevel, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&s.logFormat, "log-format", "text", "text or json")
	return cmd
}
