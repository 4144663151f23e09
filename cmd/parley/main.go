// Command parley is Service Broker for PostgreSQL on the command line.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/parley-broker/parley/internal/site"
)

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// From the first signal on the command winds down; a second one ends it at once.
	context.AfterFunc(ctx, stop)
	// A daemon of a demo or a benchmark ends with it, however that ends.
	ctx = site.WithLifeline(ctx)

	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	return a.execute(ctx, args)
}
