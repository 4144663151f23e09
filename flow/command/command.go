// Package command is the whole command parley with adapters of a program beside those of Parley: apply checks definitions by them, and
// serve runs them.
package command

import (
	"fmt"
	"os"

	"github.com/parley-broker/parley/flow/adapter"
	"github.com/parley-broker/parley/internal/cli"
	"github.com/parley-broker/parley/internal/flow/adapters"
)

// Run carries out a command, of which args are the arguments without the name of the program, and gives the exit code of the process.
// A program calls it as its whole main:
//
//	func main() { os.Exit(command.Run(os.Args[1:], myadapter.Kind)) }
func Run(args []string, kinds ...adapter.Kind) int {
	if err := adapters.Register(kinds...); err != nil {
		fmt.Fprintf(os.Stderr, "parley: %v\n", err)
		return 2
	}
	return cli.Run(args)
}
