// Command peers is the command parley, whose benchmarks measure job queues, brokers and engines of integration of others in the same run.
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
	"errors"
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
	jobs, closeJobs := jobPeers()
	status := cli.Run(os.Args[1:], bench.Peers{Jobs: jobs, Hops: hopPeers()})
	if err := closeJobs(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(max(status, 1))
	}
	os.Exit(status)
}

// jobPeers gives the job queues and brokers, and a function that ends what they have started.
func jobPeers() (peers []bench.Peer, end func() error) {
	broker, byDefault, synchronized := &rabbit{}, &jetStream{}, &jetStream{isSynchronized: true}
	peers = []bench.Peer{
		riverPeer(), pgmqPeer(), pgqPeer(), graphilePeer(), rabbitPeer(broker), outboxPeer(broker), natsPeer(synchronized), natsPeer(byDefault),
	}
	return peers, func() error { return errors.Join(broker.close(), byDefault.close(), synchronized.close()) }
}

func hopPeers() []bench.HopPeer {
	return []bench.HopPeer{springIntegrationPeer(), camelPeer(), benthosPeer()}
}
