package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/measure/demo"
)

// demoServers plays the demo on several servers of its own.
func (a *app) demoServers(cmd *cobra.Command, config demo.ServersConfig, html string) error {
	if err := config.Validate(); err != nil {
		return asUsage(err)
	}
	for _, name := range []string{"dsn", "data", "database", "keep"} {
		if flag := cmd.Flags().Lookup(name); flag != nil && flag.Changed {
			return usagef("--%s does not go with --servers %d, which makes its servers and removes them", name, config.Servers)
		}
	}
	config.PostgresVersion = cmp.Or(a.postgresVersion, os.Getenv("PARLEY_POSTGRES_VERSION"))
	config.Logger = a.notices()
	config.FlowObserver = demo.NewFlowLines(a.stderr)
	if isTerminal(a.stderr) {
		config.FlowObserver = demo.NewFlowTerminal(a.stderr)
	}
	ctx := cmd.Context()
	result, err := demo.RunServers(ctx, config)
	switch {
	case ctx.Err() != nil:
		return errors.New("demo: interrupted")
	case err != nil:
		return fmt.Errorf("demo: %w", err)
	}
	if result.HTML, err = writeDemoPage(html, func(out io.Writer) error { return demo.WriteServersPage(out, result) }); err != nil {
		return err
	}
	return a.reportServersDemo(result)
}

// reportServersDemo prints the table for people or the object for programs.
func (a *app) reportServersDemo(result demo.ServersResult) error {
	if result.HTML != "" {
		fmt.Fprintf(a.stderr, "The result page is %s\n", result.HTML)
	}
	write := demo.WriteServersTable
	if a.json {
		write = func(out io.Writer, result demo.ServersResult) error { return json.NewEncoder(out).Encode(result) }
	}
	if err := write(a.stdout, result); err != nil {
		return err
	}
	if !result.Passed {
		return errDemoFailed
	}
	return nil
}
