package cli

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/daemon"
	mailmetrics "github.com/parley-broker/parley/internal/mail/metrics"
	"github.com/parley-broker/parley/internal/pgdb"
	"github.com/parley-broker/parley/internal/postgres"
)

// serving is what the daemon was asked to do; each file serve_*.go adds what it needs.
type serving struct {
	dsns        []string
	listenDSNs  []string
	procedures  []string
	ramp        time.Duration
	graceTime   time.Duration
	sessionsMax int
	logLevel    string
	logFormat   string
	observing   observing
	external    external
	network     network
	mail        servedMail
	servesMail  bool

	logger      *slog.Logger
	connections *pgdb.ConnectionLimit // of all parts together
}

func newServeCommand(a *app) *cobra.Command {
	s := &serving{connections: pgdb.NewConnectionLimit()}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon: start readers while messages wait, fire timers",
		Long: `Run the daemon for one or more databases until Ctrl-C or SIGTERM: queues with activation on get readers while
messages wait in them, timers fire and lifetimes end on time.

Any number of daemons may serve one database: one leads, and another takes over at once when it stops, within seconds when
it is killed. The role it logs in as has to own the schema parley, or be a member of that role, and be allowed to SET ROLE
to each role that procedures execute as. It should be no superuser: what it runs can take its rights by RESET ROLE. With --procedure-dsn
procedures run on a login of their own, which needs no right but that; with {role} in place of its user they log in as the very role.

Services of the databases of one daemon talk to each other. With --listen they also talk to those of other servers, which connect to
this address; nothing goes over the network without it. Others are trusted by their keys: see parley pair.

A database may be reached through a pooler in transaction mode. Then --listen-dsn names the same database without the pooler,
for one connection on which the daemon is notified; without it the daemon scans for messages ten times a second.

Queues may name programs and web addresses to be read by. The daemon starts and calls only what --allow-program and
--allow-webhook allow: without them none.`,
		Example: `  parley serve --dsn postgres://daemon@db1/shop
  parley serve --dsn postgres://daemon@db1/shop --dsn postgres://daemon@db2/stock --log-format json
  parley serve --dsn postgres://daemon@db1/shop --listen :4022
  parley serve --dsn postgres://daemon@pooler:6432/shop --listen-dsn postgres://daemon@db1/shop`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.serve(cmd.Context(), s)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&s.dsns, "dsn", nil,
		"database to serve, may be given several times (default PARLEY_DSN, then DATABASE_URL, then a private PostgreSQL)")
	flags.StringArrayVar(&s.listenDSNs, "listen-dsn", nil,
		"how to reach the database without a pooler, for notifications; one for each --dsn, in their order, empty for none")
	flags.StringArrayVar(&s.procedures, "procedure-dsn", nil,
		"how procedures connect, with rights of their own; {role} stands for the role of each; one for each --dsn, empty for none")
	flags.DurationVar(&s.ramp, "ramp", 0, "time between two further readers of a queue; Service Broker waits 5s, here all start at once")
	flags.DurationVar(&s.graceTime, "grace-time", 10*time.Second, "how long readers may go on after the daemon was asked to stop")
	flags.IntVar(&s.sessionsMax, "sessions", 50, "sessions that run procedures at once, for each database")
	s.observing.addFlags(cmd)
	s.external.addFlags(cmd)
	s.network.addFlags(cmd)
	flags.BoolVar(&s.servesMail, "mail", false, "run mail transport too, for each database: see parley mail serve")
	s.mail.addFlags(cmd, "mail-")
	flags.StringVar(&s.logLevel, "log-level", "info", "debug, info, warn or error; debug reports each reader")
	flags.StringVar(&s.logFormat, "log-format", "text", "text or json")
	return cmd
}

// validate finds what cannot be meant.
func (s *serving) validate() error {
	switch {
	case len(s.listenDSNs) > 0 && len(s.listenDSNs) != max(1, len(s.dsns)):
		return usagef("give one --listen-dsn for each --dsn, or none; an empty one is none for that database")
	case len(s.procedures) > 0 && len(s.procedures) != max(1, len(s.dsns)):
		return usagef("give one --procedure-dsn for each --dsn, or none; an empty one is none for that database")
	case s.ramp < 0 || s.graceTime <= 0 || s.sessionsMax < 1:
		return usagef("--ramp must not be negative, --grace-time and --sessions must be positive")
	}
	return errors.Join(s.external.validate(len(s.dsns)), s.network.validate(), s.mail.validate())
}

// openLog makes the log, which is what the daemon writes to standard error.
func (a *app) openLog(s *serving) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.logLevel)); err != nil {
		return usagef("unknown --log-level %q: use debug, info, warn or error", s.logLevel)
	}
	options := &slog.HandlerOptions{Level: level}
	switch strings.ToLower(s.logFormat) {
	case "text":
		s.logger = slog.New(slog.NewTextHandler(a.stderr, options))
	case "json":
		s.logger = slog.New(slog.NewJSONHandler(a.stderr, options))
	default:
		return usagef("unknown --log-format %q: use text or json", s.logFormat)
	}
	return nil
}

// serve runs everything that the daemon does until ctx ends.
func (a *app) serve(ctx context.Context, s *serving) error {
	if err := errors.Join(s.validate(), a.openLog(s)); err != nil {
		return err
	}
	if len(s.dsns) == 0 {
		dsn, err := a.resolveDSN(ctx)
		if err != nil {
			return err
		}
		s.dsns = []string{dsn}
	}
	err := daemon.Run(ctx, a.parts(s), func() {
		s.logger.Info("the daemon runs", "databases", len(s.dsns))
		s.reportToSystemd(ctx)
	})
	s.logger.Info("the daemon has stopped")
	return err
}

// parts gives what the daemon consists of. What a part needs stands before it.
func (a *app) parts(s *serving) []daemon.Part {
	s.observing.logger, s.network.logger = s.logger, s.logger
	parts := []daemon.Part{&s.observing}
	if a.private.server != nil {
		parts = append(parts, supervisor{Server: a.private.server})
	}
	for number := range s.dsns {
		database := &servedDatabase{serving: s, number: number}
		s.network.databases = append(s.network.databases, database)
		parts = append(parts, database)
	}
	parts = append(parts, &s.network)
	for _, database := range s.network.databases {
		parts = append(parts, &databaseLeader{servedDatabase: database})
	}
	if s.servesMail {
		for _, dsn := range s.dsns {
			mail := s.mail
			mail.dsn, mail.name, mail.config.Logger = dsn, "parley serve --mail", s.logger
			mail.connections = s.connections
			mail.added = func(c *mailmetrics.Collector) error { return s.observing.metrics.Register(c) }
			parts = append(parts, &mail)
		}
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
