package verbs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/measure/demo"
	"github.com/parley-broker/parley/internal/verb"
)

// errDemoFailed ends the program with exit code 1; the verdict has been printed by then.
var errDemoFailed = errors.New("the demo found messages lost, duplicated, out of order or changed, or something left behind")

// NewDemo makes parley demo.
func NewDemo(a *verb.App) *cobra.Command {
	var config demo.Config
	var html string
	var servers int
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Play the workload of the Service Broker performance paper, and check every message",
		Long: `Play the workload of the 2009 paper "Service Broker: Performance and Scalability Techniques": sessions that
send messages of 100 B, 1 KB, 4 KB and 8 KB in turn, one in each transaction, over many conversations. Nobody starts
readers: the messages do, as under parley serve. Their procedure receives up to 10,000 at a time and writes them to a table.
One reader is killed in the middle of a transaction, and the queue monitor starts another.
Then every message is checked: it must have arrived exactly once, in order and unchanged.

It runs in a database of its own, which is dropped at the end, on the private PostgreSQL or on the server that --dsn leads
to; the role must be allowed to create databases. The result page is one HTML file that needs no network.

With --servers 2 to 4 it plays the paper's own set-up on as many private PostgreSQL servers, made for it: one is the target, the
others are initiators, each with a daemon of its own, joined by links with mutual TLS. One link is cut and restored while
messages flow, and the page stands beside the paper's figures 2 to 5. Nothing of it is left when it ends.

With --json the last line of standard output is one object. The exit code is 1 when anything was wrong.`,
		Example: `  parley demo
  parley demo --servers 4
  parley demo --senders 32 --conversations 1000 --duration 2m
  parley demo --json --html ''`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if servers != 1 {
				return demoServers(a, cmd, demo.ServersConfig{Config: config, Servers: servers}, html)
			}
			if err := config.Validate(); err != nil {
				return verb.AsUsage(err)
			}
			ctx := cmd.Context()
			conn, err := a.Connect(ctx)
			if err != nil {
				return err
			}
			defer verb.CloseConnection(ctx, conn)
			config.Observer = demo.Show(a.Stderr, verb.IsTerminal(a.Stderr))
			result, err := demo.Run(ctx, conn, config)
			if err := conclude(ctx, err, html, &result, &result.HTML); err != nil {
				return err
			}
			if config.Keep {
				fmt.Fprintf(a.Stderr, "The database %s is still there.\n", config.Database)
			}
			return ReportDemo(a, &result, result.HTML, errDemoFailed)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&servers, "servers", 1, "PostgreSQL servers: 1, or 2 to 4 with one target and initiators")
	flags.IntVar(&config.Senders, "senders", 16, "sessions that send at once")
	flags.IntVar(&config.Conversations, "conversations", 64, "conversations that they share out")
	flags.IntVar(&config.Readers, "readers", min(16, 2*runtime.NumCPU()), "readers that messages start at most; by default two for each core")
	flags.DurationVar(&config.Duration, "duration", 20*time.Second, "time in which messages are sent, for all payload sizes together")
	flags.StringVar(&config.Database, "database", "parley_demo", "name of the database that is made for the run")
	flags.BoolVar(&config.Keep, "keep", false, "keep the database afterwards")
	flags.StringVar(&html, "html", "parley-demo.html", "where to write the result page; empty for none")
	cmd.AddCommand(newDemoMailCommand(a), newDemoFlowCommand(a))
	return cmd
}

// conclude writes the result page of a demo that has run, and puts its path into the result.
func conclude(ctx context.Context, err error, html string, outcome demo.Outcome, path *string) error {
	switch {
	case ctx.Err() != nil:
		return errors.New("demo: interrupted")
	case err != nil:
		return fmt.Errorf("demo: %w", err)
	}
	*path, err = WriteDemoPage(html, outcome.WritePage)
	return err
}

// ReportDemo prints the table for people or the object for programs, and returns failed unless the demo has passed.
func ReportDemo(a *verb.App, outcome demo.Outcome, html string, failed error) error {
	if html != "" {
		fmt.Fprintf(a.Stderr, "The result page is %s\n", html)
	}
	write := outcome.WriteTable
	if a.JSON {
		write = func(out io.Writer) error { return json.NewEncoder(out).Encode(outcome) }
	}
	if err := write(a.Stdout); err != nil {
		return err
	}
	if !outcome.Ending().Passed {
		return failed
	}
	return nil
}

// WriteDemoPage writes the result page and returns its full path, or "" when none is wanted.
func WriteDemoPage(path string, write func(io.Writer) error) (string, error) {
	if path == "" {
		return "", nil
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find the folder of the result page: %w", err)
	}
	file, err := os.Create(path)
	if err != nil {
		return "", fmt.Errorf("write the result page: %w", err)
	}
	err = write(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return "", fmt.Errorf("write the result page: %w", err)
	}
	return path, nil
}
