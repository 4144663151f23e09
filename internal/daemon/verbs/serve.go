// Package verbs is the verbs that run a daemon: its parts chosen and set up from the command line.
package verbs

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/broker/dialogsecurity"
	"github.com/parley-broker/parley/internal/broker/verbs/trust"
	"github.com/parley-broker/parley/internal/daemon/compose"
	"github.com/parley-broker/parley/internal/verb"
)

// serving holds the arguments of the command line for the daemon.
type serving struct {
	*compose.Daemon

	advertised trust.Advertised
	masterKey  trust.MasterKeyFlag
	logLevel   string
	logFormat  string
}

const serveLong = `Run the daemon for one or more databases until Ctrl-C or SIGTERM: queues with activation on get readers while
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
--allow-webhook allow: without them none.

With --mail it runs mail transport too, with --flow hosts of integration; parley mail serve and parley flow serve are the
same for a daemon of one of them alone, and have the flags --mail-... and --flow-... without mail- and flow-.`

// alone says of which part a command that runs a daemon is.
type alone string

const (
	allParts  alone = ""
	mailAlone alone = "mail"
	flowAlone alone = "flow"
)

// prefix gives how the names of flags of a part begin, where the command has several.
func (o alone) prefix(part alone) string {
	if o == part {
		return ""
	}
	return string(part) + "-"
}

// NewServe makes parley serve.
func NewServe(a *verb.App) *cobra.Command {
	cmd := serveCommand(a, allParts)
	cmd.Short = "Run the daemon: start readers while messages wait, fire timers"
	cmd.Long = serveLong
	cmd.Example = `  parley serve --dsn postgres://daemon@db1/shop
  parley serve --dsn postgres://daemon@db1/shop --dsn postgres://daemon@db2/stock --log-format json
  parley serve --dsn postgres://daemon@db1/shop --listen :4022
  parley serve --dsn postgres://daemon@pooler:6432/shop --listen-dsn postgres://daemon@db1/shop`
	return cmd
}

// serveCommand is parley serve, and with other defaults, and shorter names of the flags of one part, parley mail serve and parley flow
// serve.
func serveCommand(a *verb.App, of alone) *cobra.Command {
	s := &serving{Daemon: compose.New()}
	cmd := &cobra.Command{
		Use:  "serve",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), a, s)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&s.Broker, "broker", of == allParts, "run the broker: activation, timers, dialogs")
	flags.BoolVar(&s.ServesMail, "mail", of == mailAlone, "run mail transport, for each database")
	flags.BoolVar(&s.ServesFlow, "flow", of == flowAlone, "run hosts of integration, for each database")
	flags.StringArrayVar(&s.DSNs, "dsn", nil,
		"database to serve, may be given several times (default PARLEY_DSN, then DATABASE_URL, then a private PostgreSQL)")
	flags.StringArrayVar(&s.ListenDSNs, "listen-dsn", nil,
		"how to reach the database without a pooler, for notifications; one for each --dsn, in their order, empty for none")
	flags.StringArrayVar(&s.ProcedureDSNs, "procedure-dsn", nil,
		"how procedures connect, with rights of their own; {role} stands for the role of each; one for each --dsn, empty for none")
	flags.DurationVar(&s.Ramp, "ramp", 0, "time between two further readers of a queue; Service Broker waits 5s, here all start at once")
	flags.DurationVar(&s.GraceTime, "grace-time", 10*time.Second, "how long readers may go on after the daemon was asked to stop")
	flags.IntVar(&s.SessionsMax, "sessions", 50, "sessions that run procedures at once, for each database")
	flags.StringVar(&s.HTTP, "http", "", "address for /metrics, /healthz and /readyz, such as 127.0.0.1:9187 (default: none)")
	flags.StringVar(&s.logLevel, "log-level", "info", "debug, info, warn or error; debug reports each reader")
	flags.StringVar(&s.logFormat, "log-format", "text", "text or json")
	s.addExternalFlags(cmd)
	s.addNetworkFlags(cmd)
	s.addMailFlags(cmd, of.prefix(mailAlone))
	s.addFlowFlags(cmd, of.prefix(flowAlone))
	s.addConsoleFlags(cmd)
	return cmd
}

// openLog makes the log, which is what the daemon writes to standard error.
func openLog(a *verb.App, s *serving) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.logLevel)); err != nil {
		return verb.Usagef("unknown --log-level %q: use debug, info, warn or error", s.logLevel)
	}
	options := &slog.HandlerOptions{Level: level}
	switch strings.ToLower(s.logFormat) {
	case "text":
		s.Logger = slog.New(slog.NewTextHandler(a.Stderr, options))
	case "json":
		s.Logger = slog.New(slog.NewJSONHandler(a.Stderr, options))
	default:
		return verb.Usagef("unknown --log-format %q: use text or json", s.logFormat)
	}
	return nil
}

// serve runs everything that the daemon does until ctx ends.
func serve(ctx context.Context, a *verb.App, s *serving) error {
	s.Network.Advertised = s.advertised.Route()
	s.Network.NamesMasterKey = s.masterKey.IsNamed()
	s.Network.MasterKeys = func() (*dialogsecurity.MasterKeys, error) { return s.masterKey.OpenIn(s.Network.Identity) }
	if err := errors.Join(s.advertised.Validate(), s.Validate()); err != nil {
		return verb.AsUsage(err)
	}
	if err := openLog(a, s); err != nil {
		return err
	}
	if len(s.DSNs) == 0 {
		dsn, err := a.ResolveDSN(ctx)
		if err != nil {
			return err
		}
		s.DSNs = []string{dsn}
	}
	s.Private = a.Private.Server
	return s.Run(ctx)
}
