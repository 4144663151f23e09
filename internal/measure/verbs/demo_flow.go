package verbs

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/measure/demo"
	"github.com/parley-broker/parley/internal/verb"
)

// errFlowDemoFailed ends the program with exit code 1; the verdict has been printed by then.
var errFlowDemoFailed = errors.New("the demo found orders lost, doubled, changed, out of order or misrouted, ended wrongly, or left behind")

func newDemoFlowCommand(a *verb.App) *cobra.Command {
	var config demo.FlowConfig
	var html string
	cmd := &cobra.Command{
		Use:   "flow",
		Short: "Route orders from files, HTTP and a table to a folder, a table, a service and TCP, while a node is killed; check every order",
		Long: `Orders come as flat files, as XML files, by HTTP and from a table, and are routed by what stands in them: to a folder, a table,
a service and to a warehouse behind TCP. Some records of the flat files are bad: they are suspended, mended and resubmitted. Two nodes
serve the host. Orders of partners come as JSON: a map makes them orders of the shop, and an orchestration asks two back ends about each at
once; it confirms the order when both have answered in time, and takes back what it asked for when not. How it ended goes to a table, a
folder and the partner by mail. The warehouse is away for a quarter of the time, and in the last quarter one node is killed with -9. Then
every order is checked: it must have arrived unchanged at each place where it has to be, in the table and the service exactly once, over TCP
with the same key, and each customer's orders in their order. Each order of a partner must have ended once, with one row, one file and one
mail in the mail transport, which has no daemon here; the back ends must hold what was confirmed, and nothing else.

The definitions are files of the repository, in examples/flow. It runs in a database of its own, which is dropped at the end, on the private
PostgreSQL or on the server that --dsn leads to. Everything stays on this machine, and no port below 1024 is used.

With --json the last line of standard output is one object. The exit code is 1 when anything was wrong.`,
		Example: `  parley demo flow
  parley demo flow --duration 1m --sessions 8
  parley demo flow --json --html ''`,
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
			config.Observer = demo.ShowFlow(a.Stderr, verb.IsTerminal(a.Stderr))
			result, err := demo.RunFlow(ctx, conn, config)
			if err := conclude(ctx, err, html, &result, &result.HTML); err != nil {
				return err
			}
			return ReportDemo(a, &result, result.HTML, errFlowDemoFailed)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&config.Sessions, "sessions", 4, "sessions that post orders by HTTP at once; half as many put them into a table")
	flags.DurationVar(&config.Duration, "duration", 16*time.Second, "time in which orders are placed")
	flags.StringVar(&config.Database, "database", "parley_demo_flow", "name of the database that is made for the run")
	flags.BoolVar(&config.Keep, "keep", false, "keep the database afterwards")
	flags.StringVar(&html, "html", "parley-demo-flow.html", "where to write the result page; empty for none")
	return cmd
}
