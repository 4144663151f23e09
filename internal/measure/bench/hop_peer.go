package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/hop"
)

// Peers are the systems of others that are measured beside Parley. The product has none.
type Peers struct {
	Jobs []Peer    // job queues
	Hops []HopPeer // engines of integration
	Maps []MapPeer // engines with maps in XSLT
}

// Together gives all peers of some.
func Together(some ...Peers) (all Peers) {
	for _, p := range some {
		all.Jobs, all.Hops, all.Maps = append(all.Jobs, p.Jobs...), append(all.Hops, p.Hops...), append(all.Maps, p.Maps...)
	}
	return all
}

// HopPeer is an engine of integration that takes bodies over TCP and sends them on over TCP, measured beside Parley in the same run.
type HopPeer struct {
	// Name is the system in results and in ratios, Short a line on it.
	Name, Short string
	// Promise says what it promises less than Parley does; empty where it promises the same.
	Promise string
	// Orchestrates says that it runs a workflow for each body: it is compared with orchestrations.
	Orchestrates bool
	// Frames is how it writes bodies and acknowledgements.
	Frames hop.Frames
	// Missing gives how to get what it needs and is not there; empty where all is there.
	Missing func() string
	// Start starts it as a process of its own and waits until it listens. The function that comes back stops it.
	Start func(ctx context.Context, place HopPlace) (stop func(ctx context.Context) error, err error)
}

// HopPlace is where an engine works.
type HopPlace struct {
	Listen, Target string          // host:port on loopback: where it takes, and where it sends
	Database       *pgx.ConnConfig // an empty one of its own
	Folder         string          // an empty one of its own
	Workers        int             // deliveries at once
}

// errIncompleteHop reports an engine that lacks one of its functions or its name.
var errIncompleteHop = errors.New("an engine needs a name and all of its functions")

// checkHops refuses engines that could not be measured, or not be distinguished from other systems.
func checkHops(peers []HopPeer, taken ...string) error {
	for _, p := range peers {
		if p.Name == "" || p.Frames == nil || p.Missing == nil || p.Start == nil {
			return fmt.Errorf("engine %q: %w", p.Name, errIncompleteHop)
		}
		if slices.Contains(taken, p.Name) {
			return fmt.Errorf("engine %q has the name of another system", p.Name)
		}
		taken = append(taken, p.Name)
	}
	return nil
}
