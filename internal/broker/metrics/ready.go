package metrics

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/telemetry"
)

// readyTimeout bounds the check of a database: a request for readiness waits a few seconds at most.
const readyTimeout = 2 * time.Second

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
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	d.mu.Lock()
	answer := telemetry.Readiness{Database: d.name, Role: "standby"}
	if d.leads {
		answer.Role = "leader"
	}
	d.mu.Unlock()
	broker, err := d.attach(ctx)
	answer.SchemaVersion, answer.BrokerState = broker.SchemaVersion, broker.State
	switch {
	case err != nil:
		answer.Reason = err.Error()
	case broker.State == parley.BrokerElsewhere:
		answer.Reason = broker.Advice
	default:
		answer.Ready = true
	}
	return answer
}

// attach asks the database for its broker, as every program does that works for it.
func (d *Database) attach(ctx context.Context) (parley.Broker, error) {
	pool := d.attached()
	if pool == nil {
		return parley.Broker{}, errors.New("not connected yet")
	}
	broker, err := parley.Attach(ctx, pool)
	if errors.Is(err, parley.ErrNotInstalled) {
		return broker, fmt.Errorf("%w: run parley install", err)
	}
	return broker, err
}
