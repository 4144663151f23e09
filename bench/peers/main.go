// Command peers is the command parley, whose benchmarks measure job queues, brokers and engines of integration of others in the same run.
//
// It is a module of its own, below the product and of the same commit. So what the peers import is in the go.mod of nobody who
// builds Parley or imports its package. In a clone of the repository:
//
//	go -C bench/peers run . bench queues
//	go -C bench/peers run . bench jobs
//	go -C bench/peers run . bench latency
//	go -C bench/peers run . bench life
//	go -C bench/peers run . bench flow
//	go -C bench/peers run . bench maps
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
	if run := engineOfThisProcess(); run != nil {
		if err := run(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	jobs, closeJobs := jobPeers()
	status := cli.Run(os.Args[1:], bench.Peers{Jobs: jobs, Hops: hopPeers(), Maps: []bench.MapPeer{camelMapPeer()}})
	if err := closeJobs(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(max(status, 1))
	}
	os.Exit(status)
}

// engineOfThisProcess gives the engine that a benchmark has started this program as; nil where it is the command.
func engineOfThisProcess() func(ctx context.Context) error {
	switch {
	case os.Getenv(benthosVariable) != "":
		return runBenthos
	case os.Getenv(dbosVariable) != "":
		return runDBOS
	}
	return nil
}

// jobPeers gives the job queues and brokers, and a function that ends what they have started.
func jobPeers() (peers []bench.Peer, end func() error) {
	broker, byDefault, synchronized := &rabbit{}, &jetStream{}, &jetStream{isSynchronized: true}
	peers = []bench.Peer{
		riverPeer(), pgmqPeer(), pgqPeer(), graphilePeer(), pgBossPeer(), procrastinatePeer(), awaPeer(), rabbitPeer(broker),
		outboxPeer(broker), natsPeer(synchronized), natsPeer(byDefault),
	}
	return peers, func() error { return errors.Join(broker.close(), byDefault.close(), synchronized.close()) }
}

func hopPeers() []bench.HopPeer {
	return []bench.HopPeer{springIntegrationPeer(), camelPeer(), benthosPeer(), dbosPeer()}
}
