package verbs

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/measure/demo"
	"github.com/parley-broker/parley/internal/verb"
)

// errMailDemoFailed ends the program with exit code 1; the verdict has been printed by then.
var errMailDemoFailed = errors.New("the demo found letters lost, doubled or changed, or something left behind")

func newDemoMailCommand(a *verb.App) *cobra.Command {
	var config demo.MailConfig
	var html string
	cmd := &cobra.Command{
		Use:   "mail",
		Short: "Send a confirmation with each order and take in answers, while a relay fails and a daemon is killed; check every letter",
		Long: `A shop takes orders in a database and sends each confirmation in the order's own transaction; some orders roll back. Two daemons
take the confirmations to a relay, which is away for a quarter of the time, and take in the answers of customers, which become
messages of a service. In the last quarter a daemon is killed. Then every letter is checked: it must have arrived unchanged, once, and none
of an order that was rolled back.

It runs in a database of its own, which is dropped at the end, on the private PostgreSQL or on the server that --dsn leads to. Everything
stays on this machine, and no port below 1024 is used.

With --json the last line of standard output is one object. The exit code is 1 when anything was wrong.`,
		Example: `  parley demo mail
  parley demo mail --duration 1m --sessions 16
  parley demo mail --json --html ''`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := config.Validate(); err != nil {
				return verb.AsUsage(err)
			}
			ctx := cmd.Context()
			var err error
			if config.DSN, err = a.ResolveDSN(ctx); err != nil {
				return err
			}
			conn, err := a.Connect(ctx)
			if err != nil {
				return err
			}
			defer verb.CloseConnection(ctx, conn)
			config.Logger = a.Notices()
			config.Observer = demo.ShowMail(a.Stderr, verb.IsTerminal(a.Stderr))
			result, err := demo.RunMail(ctx, conn, config)
			if err := conclude(ctx, err, html, &result, &result.HTML); err != nil {
				return err
			}
			return ReportDemo(a, &result, result.HTML, errMailDemoFailed)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&config.Sessions, "sessions", 6, "sessions that place orders at once; as many customers answer")
	flags.DurationVar(&config.Duration, "duration", 16*time.Second, "time in which orders are placed")
	flags.StringVar(&config.Database, "database", "parley_demo_mail", "name of the database that is made for the run")
	flags.BoolVar(&config.Keep, "keep", false, "keep the database afterwards")
	flags.StringVar(&html, "html", "parley-demo-mail.html", "where to write the result page; empty for none")
	return cmd
}
