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
}

func newGoverning(s *Server) *governing { return &governing{server: s} }

// run governs until ctx ends.
func (g *governing) run(ctx context.Context) {
	store := flowstore.Pressure{DB: g.server.config.Pool}
	config := governorstore.Config{
		Store: store, System: "flow", Node: g.server.config.Node, Logger: g.server.config.Logger, Interval: g.server.config.Poll,
		Sources: []governorstore.Source{store.Measure, governorstore.Memory(), g.latency.Source()},
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
	publishing, delivery := []int{}, []int{}
	for _, of := range resourceStates {
		at := slices.IndexFunc(p.States, func(s governorstore.State) bool { return s.Resource == of.resource })
		if at < 0 || p.States[at].Level < governorstore.Medium {
			continue
		}
		if slices.Contains(p.Active, actThrottlePublishing) {
			publishing = append(publishing, of.state)
		}
		// Sending frees the database: it goes on unless memory is short.
		if slices.Contains(p.Active, actThrottleDelivery) && (of.state == stateProcessMemory || of.state == stateSystemMemory) {
			delivery = append(delivery, of.state)
		}
	}
	for _, host := range g.server.served() {
		host.throttle.poll(publishing, delivery)
	}
}
