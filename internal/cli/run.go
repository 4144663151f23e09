// Package cli is the command line: flags and wiring, one file a verb.
package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/parley-broker/parley/internal/measure/site"
)

// Run carries out one command and gives the exit code of the process.
func Run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// From the first signal on the command winds down; a second one ends it at once.
	context.AfterFunc(ctx, stop)
	// A daemon of a demo or a benchmark ends with it, however that ends.
	ctx = site.WithLifeline(ctx)

	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	return a.execute(ctx, args)
}
