package metrics

import (
	"context"
	"sync"

	"github.com/parley-broker/parley/internal/telemetry"
)

// ready checks whether each database can be worked with.
func (m *Metrics) ready(ctx context.Context) []telemetry.Readiness {
	databases := m.all()
	answers := make([]telemetry.Readiness, len(databases))
	var checking sync.WaitGroup
	for i, d := range databases {
		checking.Go(func() { answers[i] = d.readiness(ctx) })
	}
	checking.Wait()
	return answers
}

func (d *Database) readiness(ctx context.Context) telemetry.Readiness {
	d.mu.Lock()
	pool, role := d.pool, "standby"
	if d.leads {
		role = "leader"
	}
	d.mu.Unlock()
	return telemetry.Check(ctx, pool, d.name, role)
}
