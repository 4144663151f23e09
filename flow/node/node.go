// Package node runs hosts of the integration engine in a program, with adapters of its own beside those of Parley.
//
// Package flow/adapter has what an adapter is made of, and flow/adaptertest the rules that it keeps, as tests. A program that imports this
// package gets the modules of all adapters; packages parley and flow have none of them.
package node

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapters"
	"github.com/parley-broker/parley/internal/flow/host"
)

// Config holds the parts and the settings of a node. Only Pool is needed.
type Config struct {
	// Pool leads to the database, as a role that is a member of the roles of the hosts, with 20 connections at least.
	Pool *pgxpool.Pool
	// Hosts are those that are served, by their names; none means all whose roles the role of the session is a member of.
	Hosts []string
	// Node distinguishes this process from others; "" means host and process id.
	Node string
	// Adapters are those of the program, beside those of Parley.
	Adapters []adapter.Kind
	// Permission limits what definitions may use of this machine and its network; the zero value permits nothing.
	Permission adapter.Permission
	// Lease is how long messages in hand wait for others when this process was killed; 0 means 15 seconds.
	Lease time.Duration
	// Drain is how long the node finishes its work in hand when it is asked to stop; 0 means 30 seconds.
	Drain  time.Duration
	Logger *slog.Logger
}

// Node serves hosts.
type Node struct{ server *host.Server }

// New checks the configuration. Nothing runs before [Node.Run]. An adapter without a name, or with that of another one, is an error.
func New(config Config) (*Node, error) {
	known, err := adapters.With(config.Adapters...)
	if err != nil {
		return nil, err
	}
	server, err := host.New(host.Config{
		Pool: config.Pool, Hosts: config.Hosts, Node: config.Node, Adapters: known, Permission: config.Permission, Lease: config.Lease,
		Drain: config.Drain, Logger: config.Logger,
	})
	if err != nil {
		return nil, err
	}
	return &Node{server}, nil
}

// Run serves hosts until ctx ends, and then finishes its work in hand, for as long as Drain says. It returns an error at once where a host
// that is named may not be served, or the engine is not installed.
func (n *Node) Run(ctx context.Context) error {
	if err := n.server.Prepare(ctx); err != nil {
		return err
	}
	defer n.server.Close()
	return n.server.Run(ctx)
}
