package cli

import (
	"context"

	"github.com/spf13/cobra"

	brokerverbs "github.com/parley-broker/parley/internal/broker/verbs"
	consoleverbs "github.com/parley-broker/parley/internal/console/verbs"
	daemonverbs "github.com/parley-broker/parley/internal/daemon/verbs"
	flowverbs "github.com/parley-broker/parley/internal/flow/verbs"
	mailverbs "github.com/parley-broker/parley/internal/mail/verbs"
	"github.com/parley-broker/parley/internal/measure/bench"
	measureverbs "github.com/parley-broker/parley/internal/measure/verbs"
	tsqlverbs "github.com/parley-broker/parley/internal/tsql/verbs"
	"github.com/parley-broker/parley/internal/verb"
)

func newRootCommand(a *verb.App, peers ...bench.Peers) *cobra.Command {
	root := &cobra.Command{
		Use:   "parley",
		Short: "Service Broker for PostgreSQL",
		Long: `Parley is Service Broker for PostgreSQL: services hold ordered, exactly-once, durable conversations,
and every send and receive is part of the same transaction as the application's own data.

The database is the one named by --dsn, else by PARLEY_DSN, else by DATABASE_URL. Without any of these
Parley starts a private PostgreSQL of its own, shared by all commands that use the same --data folder.`,
		Version:       ownVersion().String(), // for --version; the command says it too, also in JSON
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)

	flags := root.PersistentFlags()
	flags.StringVar(&a.DSN, "dsn", "",
		"database to use (default PARLEY_DSN, then DATABASE_URL, then a private PostgreSQL)")
	flags.StringVar(&a.Data, "data", "",
		"data folder of the private PostgreSQL (default PARLEY_DATA, then the user's data directory)")
	flags.StringVar(&a.PostgresVersion, "postgres-version", "",
		"major version of the private PostgreSQL (default PARLEY_POSTGRES_VERSION, then the newest installed, then 18, fetched)")
	flags.BoolVar(&a.JSON, "json", false, "print JSON for programs instead of tables for people")
	root.MarkFlagsMutuallyExclusive("dsn", "data")
	root.MarkFlagsMutuallyExclusive("dsn", "postgres-version")

	root.AddCommand(brokerverbs.Commands(a)...)
	root.AddCommand(mailverbs.New(a, daemonverbs.NewMailServe(a)))
	root.AddCommand(flowverbs.New(a, daemonverbs.NewFlowServe(a)))
	root.AddCommand(tsqlverbs.New(a))
	root.AddCommand(measureverbs.NewBench(a, bench.Together(peers...)), measureverbs.NewDemo(a))
	root.AddCommand(daemonverbs.NewServe(a), consoleverbs.NewConsole(a), newVersionCommand(a))
	root.SetFlagErrorFunc(verb.ExplainFlag)
	recordWhenReached(a, root)
	explainArguments(root)
	fitHelp(root)
	fitFlags(root)
	return root
}

// recordWhenReached makes every verb record that its command line was understood.
func recordWhenReached(a *verb.App, cmd *cobra.Command) {
	if inner := cmd.RunE; inner != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			a.VerbReached = true
			return inner(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		recordWhenReached(a, sub)
	}
}

// execute runs one command line and returns the exit code: 0 done, 1 failed, 2 not understood.
func execute(ctx context.Context, a *verb.App, args []string, peers ...bench.Peers) int {
	root := newRootCommand(a, peers...)
	root.SetArgs(args)
	root.InitDefaultCompletionCmd(args...) // the library adds it when it executes, which is too late for a word that it does not know
	cmd, err := verb.UnknownSubcommand(root, args)
	if err == nil {
		cmd, err = root.ExecuteContextC(ctx)
	}
	if releaseErr := a.Release(ctx); err == nil {
		err = releaseErr
	}
	return a.Report(cmd, err)
}
