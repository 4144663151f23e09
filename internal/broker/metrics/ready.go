package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/parley-broker/parley"
)

// readyTimeout bounds the check of a database: a request for readiness waits a few seconds at most.
const readyTimeout = 2 * time.Second

// Readiness is the part of /readyz about one database; as JSON it is a stable format.
type Readiness struct {
	Database      string `json:"database"`
	Ready         bool   `json:"ready"`
	Role          string `json:"role"` // "leader" or "standby"
	SchemaVersion int    `json:"schema_version"`
	BrokerState   string `json:"broker_state"`     // as in [parley.Broker]; empty when it could not be asked
	Reason        string `json:"reason,omitempty"` // why it is not ready
}

// ready answers 200 when every database can be worked with, and 503 otherwise.
func (m *Metrics) ready(w http.ResponseWriter, r *http.Request) {
	databases := m.all()
	answers := make([]Readiness, len(databases))
	var checking sync.WaitGroup
	for i, d := range databases {
		checking.Go(func() { answers[i] = d.readiness(r.Context()) })
	}
	checking.Wait()
	isReady := len(answers) > 0
	for _, a := range answers {
		isReady = isReady && a.Ready
	}
	w.Header().Set("Content-Type", "application/json")
	if !isReady {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(struct {
		Ready     bool        `json:"ready"`
		Databases []Readiness `json:"databases"`
	}{isReady, answers})
}

func (d *Database) readiness(ctx context.Context) Readiness {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	d.mu.Lock()
	answer := Readiness{Database: d.name, Role: "standby"}
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
