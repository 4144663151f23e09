package metrics

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/parley-broker/parley"
)

// readyTimeout bounds the look at a database: who asks for readiness waits a few seconds at most.
const readyTimeout = 2 * time.Second

// Readiness is what /readyz says of one database; as JSON it is a stable format.
type Readiness struct {
	Database      string `json:"database"`
	Ready         bool   `json:"ready"`
	Role          string `json:"role"` // "leader" or "standby"
	SchemaVersion int    `json:"schema_version"`
	Reason        string `json:"reason,omitempty"` // why it is not ready
}

// ready answers 200 when every database can be worked with, and 503 otherwise.
func (m *Metrics) ready(w http.ResponseWriter, r *http.Request) {
	databases := m.all()
	answers := make([]Readiness, len(databases))
	var looking sync.WaitGroup
	for i, d := range databases {
		looking.Go(func() { answers[i] = d.readiness(r.Context()) })
	}
	looking.Wait()
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
	status, err := d.status(ctx)
	switch {
	case err != nil:
		answer.Reason = err.Error()
	case !status.Installed:
		answer.Reason = "the schema parley is not installed: run parley install"
	// A daemon works with the schema that comes next, so that the schema can be upgraded first.
	case status.SchemaVersion < status.CurrentSchemaVersion || status.SchemaVersion > status.CurrentSchemaVersion+1:
		answer.Reason = fmt.Sprintf("the schema has version %d, this daemon needs %d", status.SchemaVersion, status.CurrentSchemaVersion)
	default:
		answer.Ready = true
	}
	answer.SchemaVersion = status.SchemaVersion
	return answer
}

func (d *Database) status(ctx context.Context) (parley.Status, error) {
	pool := d.attached()
	if pool == nil {
		return parley.Status{}, fmt.Errorf("not connected yet")
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return parley.Status{}, fmt.Errorf("the database cannot be reached: %w", err)
	}
	defer conn.Release()
	status, err := parley.ReadStatus(ctx, conn.Conn())
	if err != nil {
		return parley.Status{}, fmt.Errorf("the database cannot be read: %w", err)
	}
	return status, nil
}
