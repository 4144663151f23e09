package router

import (
	"context"
	"sync"
	"time"

	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// InboundRoutes finds inbound routes: those of all databases of a directory are the table of the server (spec 2.6).
type InboundRoutes struct {
	Directory *Directory

	mu     sync.Mutex
	readAt time.Time
	routes map[*served][]transportstore.InboundRoute
}

// Find finds the inbound route for what has arrived; see [Config].
func (r *InboundRoutes) Find(ctx context.Context, target Target) (address, otherwise string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.readAt) >= memoryTime {
		if err := r.read(ctx); err != nil {
			return "", "", err
		}
	}
	var all []transportstore.InboundRoute
	for _, s := range r.Directory.all() {
		all = append(all, r.routes[s]...)
	}
	address, otherwise = transportstore.FindInboundRoute(all, target.ToService, target.ToBroker, target.ConversationID, time.Now())
	return address, otherwise, nil
}

// read reads the routes of all databases. Those of one that does not answer stay what they were.
func (r *InboundRoutes) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	databases := r.Directory.all()
	found := make([][]transportstore.InboundRoute, len(databases))
	failures := make([]error, len(databases))
	var asking sync.WaitGroup
	for i, s := range databases {
		asking.Go(func() { found[i], failures[i] = transportstore.ReadInboundRoutes(ctx, s.inbox.DB()) })
	}
	asking.Wait()
	if r.routes == nil {
		r.routes = map[*served][]transportstore.InboundRoute{}
	}
	for i, s := range databases {
		if _, isKnown := r.routes[s]; failures[i] != nil && !isKnown {
			return failures[i]
		}
		if failures[i] == nil {
			r.routes[s] = found[i]
		}
	}
	r.readAt = time.Now()
	return nil
}
