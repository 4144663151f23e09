// Command parley is Service Broker for PostgreSQL on the command line.
package main

import (
	"os"

	"github.com/parley-broker/parley/internal/cli"
)

func main() {
	os.Exit(cli.Run(os.Args[1:]))
}
