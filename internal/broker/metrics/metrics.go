package metrics

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/parley-broker/parley/internal/telemetry"
)

const (
	defaultMaxQueues = 1000
	// cacheTime is how old figures of a database may be: several scrapers at once ask it once.
	cacheTime = time.Second
	// readTimeout bounds the statement of a scrape; Prometheus gives up after 10 seconds.
	readTimeout = 5 * time.Second
)

// Config states what to measure. The zero value will do.
type Config struct {
	// MaxQueues bounds how many queues of a database have series of their own; 0 means 1000. The oldest queues come
	// first, so that a queue keeps its series; the others are added up under the name (other).
	MaxQueues int
	// Tracer draws a span for each run of a reader; nil draws none.
	Tracer trace.Tracer
	// Logger receives the events that Service Broker's profiler shows; nil means [slog.Default].
	Logger *slog.Logger
}

// Metrics holds the figures of all databases of a daemon.
type Metrics struct {
	config Config

	mu        sync.Mutex
	databases []*Database
}

// New makes the figures of a daemon.
func New(config Config) *Metrics {
	if config.MaxQueues <= 0 {
		config.MaxQueues = defaultMaxQueues
	}
	if config.Tracer == nil {
		config.Tracer = noop.NewTracerProvider().Tracer("")
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	return &Metrics{config: config}
}

// Source is how they are shown.
func (m *Metrics) Source() telemetry.Source {
	return telemetry.Source{Collector: &collector{metrics: m}, Refresh: m.refresh, Ready: m.ready}
}

// Database adds a database under the name that its figures carry. Make it before the pool, because it is the Tracer of
// the pool's connections; then set the pool with [Database.Attach].
func (m *Metrics) Database(name string) *Database {
	d := &Database{
		name: name, config: m.config, logger: m.config.Logger.With("database", name),
		readers: map[int]*readers{}, dequeued: map[int]int64{},
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.databases = append(m.databases, d)
	return d
}

func (m *Metrics) all() []*Database {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]*Database(nil), m.databases...)
}

// refresh reads the figures of all databases anew, where they are old.
func (m *Metrics) refresh(ctx context.Context) {
	var reading sync.WaitGroup
	for _, d := range m.all() {
		reading.Go(func() { d.refresh(ctx) })
	}
	reading.Wait()
}
