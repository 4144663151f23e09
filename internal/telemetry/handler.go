package telemetry

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Readiness is the part of /readyz about one database; as JSON it is a stable format.
type Readiness struct {
	Database      string `json:"database"`
	Ready         bool   `json:"ready"`
	Role          string `json:"role"` // "leader" or "standby"
	SchemaVersion int    `json:"schema_version"`
	BrokerState   string `json:"broker_state"`     // as in parley.Broker; empty when it could not be asked
	Reason        string `json:"reason,omitempty"` // why it is not ready
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
