// Command peers is the command parley, whose benchmarks measure job queues of others in the same run.
//
// It is a module of its own, below the product and of the same commit. So what the peers import is in the go.mod of nobody who
// builds Parley or imports its package. In a clone of the repository:
//
//	go -C bench/peers run . bench latency
//	go -C bench/peers run . bench life
package main

import (
	"os"

	"github.com/parley-broker/parley/internal/cli"
)

func main() {
	os.Exit(cli.Run(os.Args[1:], riverPeer()))
}
