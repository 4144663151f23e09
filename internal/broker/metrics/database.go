package metrics

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/broker/transport"
	metricsstore "github.com/parley-broker/parley/internal/store/metrics"
)

// Database holds the figures of one database.
type Database struct {
	name   string
	config Config
	logger *slog.Logger

	statements statements

	mu      sync.Mutex
	pool    *pgxpool.Pool
	readers map[int]*readers // by queue id
	leads   bool
	term    int64
	changes int64 // of leadership
	// transport gives the figures of what goes to other databases; nil when there are none.
	transport func() transport.Figures

	reading sync.Mutex // held while figures are read, before mu
	// The rest is guarded by reading.
	figures    metricsstore.BrokerMetrics
	readAt     time.Time
	isUp       bool
	readErrors int64
	readTime   time.Duration
	dequeued   map[int]int64 // the highest that was reported, by queue id
}

// Attach sets the pool that leads to the database. Before, the database counts as away.
func (d *Database) Attach(pool *pgxpool.Pool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pool = pool
}

func (d *Database) attached() *pgxpool.Pool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pool
}

// refresh reads the figures if they are older than the cache may be.
func (d *Database) refresh(ctx context.Context) {
	pool := d.attached()
	d.reading.Lock()
	defer d.reading.Unlock()
	if pool == nil || time.Since(d.readAt) < cacheTime {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	started := time.Now()
	figures, err := metricsstore.ReadBrokerMetrics(ctx, pool)
	d.readAt, d.readTime = time.Now(), time.Since(started)
	if err != nil {
		d.readErrors++
		if d.isUp || d.readErrors == 1 {
			d.logger.Warn("figures cannot be read", "error", err)
		}
		d.isUp = false
		return
	}
	d.logDisabled(figures)
	d.isUp, d.figures = true, figures
	d.keepDequeued()
	d.forgetGone()
}

// keepDequeued keeps a counter from falling: what left a queue is computed from what waits, which may be an estimate.
func (d *Database) keepDequeued() {
	reported := make(map[int]int64, len(d.figures.Queues))
	for i := range d.figures.Queues {
		q := &d.figures.Queues[i]
		q.DequeuedRows = max(q.DequeuedRows, d.dequeued[q.QueueID])
		reported[q.QueueID] = q.DequeuedRows
	}
	d.dequeued = reported
}

// logDisabled logs the queues that poison message handling has disabled since the last time.
func (d *Database) logDisabled(figures metricsstore.BrokerMetrics) {
	before := map[int]bool{}
	for _, q := range d.figures.Queues {
		before[q.QueueID] = q.IsPoisoned
	}
	for _, q := range figures.Queues {
		if q.IsPoisoned && !before[q.QueueID] {
			d.logger.Warn("queue is disabled by poison message handling", "event", "Broker:Queue Disabled", "event_id", 143, "queue", q.Queue)
		}
	}
}

// forgetGone drops what is remembered of queues that exist no more.
func (d *Database) forgetGone() {
	exists := make(map[int]bool, len(d.figures.Queues))
	for _, q := range d.figures.Queues {
		exists[q.QueueID] = true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, r := range d.readers {
		// A reader of a queue that is newer than the figures is not gone.
		if !exists[id] && r.running == 0 && time.Since(r.touched) > time.Minute {
			delete(d.readers, id)
		}
	}
}
