package verbs

import (
	"cmp"
	"os"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/measure/demo"
	"github.com/parley-broker/parley/internal/verb"
)

// demoServers plays the demo on several servers of its own.
func demoServers(a *verb.App, cmd *cobra.Command, config demo.ServersConfig, html string) error {
	if err := config.Validate(); err != nil {
		return verb.AsUsage(err)
	}
	for _, name := range []string{"dsn", "data", "database", "keep"} {
		if flag := cmd.Flags().Lookup(name); flag != nil && flag.Changed {
			return verb.Usagef("--%s does not go with --servers %d, which makes its servers and removes them", name, config.Servers)
		}
	}
	config.PostgresVersion = cmp.Or(a.PostgresVersion, os.Getenv("PARLEY_POSTGRES_VERSION"))
	config.Logger = a.Notices()
	config.FlowObserver = demo.ShowServers(a.Stderr, verb.IsTerminal(a.Stderr))
	result, err := demo.RunServers(cmd.Context(), config)
	if err := conclude(cmd.Context(), err, html, &result, &result.HTML); err != nil {
		return err
	}
	return ReportDemo(a, &result, result.HTML, errDemoFailed)
}
