package verbs

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	config.FlowObserver = demo.NewFlowLines(a.Stderr)
	if verb.IsTerminal(a.Stderr) {
		config.FlowObserver = demo.NewFlowTerminal(a.Stderr)
	}
	ctx := cmd.Context()
	result, err := demo.RunServers(ctx, config)
	switch {
	case ctx.Err() != nil:
		return errors.New("demo: interrupted")
	case err != nil:
		return fmt.Errorf("demo: %w", err)
	}
	if result.HTML, err = WriteDemoPage(html, func(out io.Writer) error { return demo.WriteServersPage(out, result) }); err != nil {
		return err
	}
	return reportServersDemo(a, result)
}

// reportServersDemo prints the table for people or the object for programs.
func reportServersDemo(a *verb.App, result demo.ServersResult) error {
	if result.HTML != "" {
		fmt.Fprintf(a.Stderr, "The result page is %s\n", result.HTML)
	}
	write := demo.WriteServersTable
	if a.JSON {
		write = func(out io.Writer, result demo.ServersResult) error { return json.NewEncoder(out).Encode(result) }
	}
	if err := write(a.Stdout, result); err != nil {
		return err
	}
	if !result.Passed {
		return errDemoFailed
	}
	return nil
}
