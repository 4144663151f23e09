package host

import (
	"context"
	"slices"

	"github.com/parley-broker/parley/internal/backoff"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
	governorstore "github.com/parley-broker/parley/internal/store/governor"
)

// The actions under pressure, by their names in the database.
const (
	actThrottlePublishing = "throttle publishing"
	actThrottleDelivery   = "throttle delivery"
	actThrottleMatched    = "throttle correlation"
)

// resourceStates are the states of throttling that resources have, the most severe first (spec integration 13.1).
var resourceStates = []struct {
	resource string
	state    int
}{
	{governorstore.ProcessMemory, stateProcessMemory},
	{"messages waiting", stateDatabaseSize},
	{"spool", stateDatabaseSize},
	{governorstore.SystemMemory, stateSystemMemory},
	{governorstore.MemoryStalls, stateSystemMemory},
	{"connections", stateSessions},
}

// governing measures resources, and throttles the hosts of this node.
type governing struct {
	server  *Server
	latency governorstore.Latency
	// paused are the send ports for which too many messages wait. It is used by the governor alone.
	paused map[int64]bool
}

func newGoverning(s *Server) *governing { return &governing{server: s} }

// run governs until ctx ends.
func (g *governing) run(ctx context.Context) {
	store := flowstore.Pressure{DB: g.server.config.Pool}
	config := governorstore.Config{
		Store: store, System: "flow", Node: g.server.config.Node, Logger: g.server.config.Logger, Interval: g.server.config.Poll,
		Sources: []governorstore.Source{store.Measure, governorstore.Memory(), g.latency.Source(), g.measurePorts(store)},
		OnPoll:  g.polled,
	}
	governor := governorstore.New(config)
	failures := backoff.NewFailures(g.server.config.Logger, "the resources of integration cannot be measured")
	for ctx.Err() == nil {
		if err := governor.Run(ctx); err != nil && ctx.Err() == nil {
			_ = backoff.Wait(ctx, failures.Failed(err))
		}
	}
}

// polled throttles what follows from a poll.
func (g *governing) polled(_ context.Context, p governorstore.Pressure) {
	asked := states{}
	for _, of := range resourceStates {
		at := slices.IndexFunc(p.States, func(s governorstore.State) bool { return s.Resource == of.resource })
		if at < 0 || p.States[at].Level < governorstore.Medium {
			continue
		}
		if slices.Contains(p.Active, actThrottlePublishing) {
			asked.publishing = append(asked.publishing, of.state)
		}
		// Sending frees the database, and so does whatever ends what waits: they go on unless memory is short.
		isMemory := of.state == stateProcessMemory || of.state == stateSystemMemory
		if slices.Contains(p.Active, actThrottleDelivery) && isMemory {
			asked.delivery = append(asked.delivery, of.state)
		}
		if slices.Contains(p.Active, actThrottleMatched) && isMemory {
			asked.correlation = append(asked.correlation, of.state)
		}
	}
	for _, host := range g.server.served() {
		host.throttle.poll(asked)
		host.pauseLocations(g.paused)
	}
}

// measurePorts finds the send ports for which too many messages wait: from pause_at on, until resume_at. They are no resource of all.
func (g *governing) measurePorts(store flowstore.Pressure) governorstore.Source {
	return func(ctx context.Context) (map[string]float64, error) {
		isOver, err := store.Ports(ctx)
		if err != nil {
			return nil, err // they stay as they are
		}
		paused := map[int64]bool{}
		for port, over := range isOver {
			if over || g.paused[port] {
				paused[port] = true
			}
		}
		g.paused = paused
		return nil, nil
	}
}
