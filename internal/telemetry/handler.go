package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/parley-broker/parley"
)

// Readiness is the part of /readyz about one database; as JSON it is a stable format.
type Readiness struct {
	Database      string `json:"database"`
	Ready         bool   `json:"ready"`
	Role          string `json:"role"` // "leader", "standby", or "mail" where mail transport alone runs
	SchemaVersion int    `json:"schema_version"`
	BrokerState   string `json:"broker_state"`     // as in [parley.Broker]; empty when it could not be asked
	Reason        string `json:"reason,omitempty"` // why it is not ready
}

// readyTimeout bounds the check of a database: a request for readiness waits a few seconds at most.
const readyTimeout = 2 * time.Second

// Check asks a database for its broker, as every program does that works for it. pool is nil before it is connected.
func Check(ctx context.Context, pool *pgxpool.Pool, database, role string) Readiness {
	answer := Readiness{Database: database, Role: role}
	if pool == nil {
		answer.Reason = "not connected yet"
		return answer
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	broker, err := parley.Attach(ctx, pool)
	answer.SchemaVersion, answer.BrokerState = broker.SchemaVersion, broker.State
	switch {
	case errors.Is(err, parley.ErrNotInstalled):
		answer.Reason = err.Error() + ": run parley install"
	case err != nil:
		answer.Reason = err.Error()
	case broker.State == parley.BrokerElsewhere:
		answer.Reason = broker.Advice
	default:
		answer.Ready = true
	}
	return answer
}

// Handler answers /metrics, /healthz and /readyz.
func (r *Registry) Handler() http.Handler {
	exposition := promhttp.HandlerFor(r.registry, promhttp.HandlerOpts{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, request *http.Request) {
		r.refresh(request.Context())
		exposition.ServeHTTP(w, request)
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = fmt.Fprintln(w, "alive")
	})
	mux.HandleFunc("GET /readyz", r.ready)
	return mux
}

// ready answers 200 when every database can be worked with, and 503 otherwise.
func (r *Registry) ready(w http.ResponseWriter, request *http.Request) {
	answers := []Readiness{}
	for _, source := range r.all() {
		if source.Ready != nil {
			answers = append(answers, source.Ready(request.Context())...)
		}
	}
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
