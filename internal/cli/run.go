// Package cli is the command line: its root, with a line for the verbs of each system.
package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/site"
	"github.com/parley-broker/parley/internal/verb"
)

// Run carries out one command and gives the exit code of the process. Its benchmarks measure the peers it is given beside Parley.
func Run(args []string, peers ...bench.Peers) int {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup has it ignored
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	// From the first signal on the command winds down; a second one ends it at once. A terminal that is closed sends several.
	context.AfterFunc(ctx, func() {
		signal.Ignore(syscall.SIGHUP)
		stop()
	})
	// A daemon of a demo or a benchmark ends with it, however that ends.
	ctx = site.WithLifeline(ctx)

	a := &verb.App{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	return execute(ctx, a, args, peers...)
}
