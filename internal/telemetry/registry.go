// Package telemetry is what a daemon shows to monitoring systems. The systems that run in it register their figures in one registry, which
// is read over HTTP, as text of Prometheus, and sent over OTLP; /healthz and /readyz report the daemon's health.
package telemetry

import (
	"context"
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Source is a system of the daemon, as it is shown.
type Source struct {
	Collector prometheus.Collector
	// Refresh reads what Collector reports, where it is old; nil where Collector reads by itself.
	Refresh func(ctx context.Context)
	// Ready checks the databases of the system; nil where another one does.
	Ready func(ctx context.Context) []Readiness
}

// Registry holds the figures of all systems of a daemon, and those of its process.
type Registry struct {
	registry *prometheus.Registry

	mu      sync.Mutex
	sources []Source
}

// NewRegistry makes the registry of a daemon.
func NewRegistry() *Registry {
	r := &Registry{registry: prometheus.NewRegistry()}
	r.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// Register adds a system.
//
// Errors: another one has the same figures.
func (r *Registry) Register(source Source) error {
	if err := r.registry.Register(source.Collector); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sources = append(r.sources, source)
	return nil
}

// all gives the systems that are registered.
func (r *Registry) all() []Source {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Source(nil), r.sources...)
}

// refresh reads the figures of all systems anew, where they are old.
func (r *Registry) refresh(ctx context.Context) {
	var reading sync.WaitGroup
	for _, source := range r.all() {
		if source.Refresh != nil {
			reading.Go(func() { source.Refresh(ctx) })
		}
	}
	reading.Wait()
}
