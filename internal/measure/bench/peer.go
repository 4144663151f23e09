package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Peer is a job queue of others that does the same work in PostgreSQL, measured beside Parley in the same run. No package of this
// module makes one: the module bench/peers does, so that nobody who builds Parley inherits what a peer imports.
type Peer struct {
	// Name is the system in results and in ratios, Short a line on it in the list of systems of latency.
	Name, Short string
	// Promise says what it promises less or more than Parley does; empty where it promises the same.
	Promise string
	// Missing gives how to get what it needs and is not there, asked on a connection to the server; empty where all is there. Nil: it
	// needs nothing.
	Missing func(ctx context.Context, conn *pgx.Conn) (string, error)
	// Version gives its version, asked on a connection to the server; empty where that is not known. Nil: there is none to ask for.
	Version func(ctx context.Context, conn *pgx.Conn) string
	// Connections are the connections that its client needs besides those of its workers.
	Connections int
	// Prepare installs the peer in an empty database, on a connection to it.
	Prepare func(ctx context.Context, conn *pgx.Conn) error
	// Inserter makes what inserts a job in the transaction of a sender. Sessions may share it.
	Inserter func() (InsertJob, error)
	// Count gives what the peer itself has recorded of jobs: by SQL in its tables, on a connection to its database, or by the counters of its
	// broker. Clients and it have to agree, or the run is invalid. Nil: it has nothing that can be asked.
	Count func(ctx context.Context, conn *pgx.Conn) (PeerCount, error)
	// Work starts a client that works on so many jobs at once, at most, and calls work for each. The function that comes back stops it.
	Work func(ctx context.Context, pool *pgxpool.Pool, workers int, work WorkJob) (stop func(ctx context.Context) error, err error)
}

// InsertJob inserts the job with a number in a transaction, as long as its padding, in bytes, makes it.
type InsertJob func(ctx context.Context, tx pgx.Tx, number int64, padding string) error

// PeerCount has the counts of a peer.
type PeerCount struct {
	In   int64 // jobs that came in, ever; -1 where the peer does not keep that
	Left int64 // jobs that are not done
}

// WorkJob is the work on the job with a number.
type WorkJob func(ctx context.Context, number int64) error

// ErrIncompletePeer reports a peer that lacks one of its functions or its name.
var ErrIncompletePeer = errors.New("a peer needs a name and all of its functions")

// checkPeers refuses peers that could not be measured, or not be distinguished from other systems.
func checkPeers(peers []Peer, taken ...string) error {
	for _, p := range peers {
		if p.Name == "" || p.Prepare == nil || p.Inserter == nil || p.Work == nil {
			return fmt.Errorf("peer %q: %w", p.Name, ErrIncompletePeer)
		}
		if slices.Contains(taken, p.Name) {
			return fmt.Errorf("peer %q has the name of another system", p.Name)
		}
		taken = append(taken, p.Name)
	}
	return nil
}

// available divides peers into those that can be measured and reasons why others cannot, by name.
func available(ctx context.Context, conn *pgx.Conn, peers []Peer) (there []Peer, missing map[string]string, err error) {
	missing = map[string]string{}
	for _, p := range peers {
		reason := ""
		if p.Missing != nil {
			if reason, err = p.Missing(ctx, conn); err != nil {
				return nil, nil, fmt.Errorf("search what %s needs: %w", p.Name, err)
			}
		}
		if reason == "" {
			there = append(there, p)
			continue
		}
		missing[p.Name] = reason
	}
	return there, missing, nil
}

// keepAvailable leaves the peers that can be measured; the report says why others were not.
func (b *bench) keepAvailable(ctx context.Context) error {
	there, missing, err := available(ctx, b.cluster.admin, b.Peers)
	if err != nil {
		return err
	}
	b.Peers = there
	describePeers(b.settled, there, missing)
	if versions := peerVersions(ctx, b.cluster.admin, there); len(versions) > 0 {
		b.settled["peer_versions"] = versions
	}
	return nil
}

// describePeers puts into the settings of a report which peers were not measured, and what those that were promise.
func describePeers(settings map[string]any, there []Peer, missing map[string]string) {
	promises := map[string]string{}
	for _, p := range there {
		if p.Promise != "" {
			promises[p.Name] = p.Promise
		}
	}
	if len(promises) > 0 {
		settings["promises"] = promises
	}
	if len(missing) > 0 {
		settings["missing"] = missing
	}
}

// start opens a pool for a peer's client and starts it. The function that comes back stops it, and waits for that.
func (p Peer) start(
	ctx context.Context, d database, connections, workers int, work func(pool *pgxpool.Pool) WorkJob,
) (func() error, error) {
	pool, err := d.pool(ctx, connections)
	if err != nil {
		return nil, err
	}
	stop, err := p.Work(ctx, pool, workers, work(pool))
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("start %s: %w", p.Name, err)
	}
	return func() error {
		defer pool.Close()
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), peerStopTimeout)
		defer cancel()
		return stop(stopping)
	}, nil
}

// peerStopTimeout is how long a peer's client may take to finish what it works on.
const peerStopTimeout = time.Minute
