// Command peers is the command parley, whose benchmarks measure job queues and engines of integration of others in the same run.
//
// It is a module of its own, below the product and of the same commit. So what the peers import is in the go.mod of nobody who
// builds Parley or imports its package. In a clone of the repository:
//
//	go -C bench/peers run . bench latency
//	go -C bench/peers run . bench life
//	go -C bench/peers run . bench flow
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/parley-broker/parley/internal/cli"
	"github.com/parley-broker/parley/internal/measure/bench"
)

func main() {
	if os.Getenv(benthosVariable) != "" {
		if err := runBenthos(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(cli.Run(os.Args[1:], bench.Peers{
		Jobs: []bench.Peer{riverPeer()},
		Hops: hopPeers(),
	}))
}

func hopPeers() []bench.HopPeer {
	return []bench.HopPeer{springIntegrationPeer(), camelPeer(), benthosPeer()}
}
