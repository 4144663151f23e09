package metrics

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/parley-broker/parley/internal/httpserver"
)

// Handler answers /metrics, /healthz and /readyz.
func (m *Metrics) Handler() http.Handler {
	exposition := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		m.refresh(r.Context())
		exposition.ServeHTTP(w, r)
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = fmt.Fprintln(w, "alive")
	})
	mux.HandleFunc("GET /readyz", m.ready)
	return mux
}

// Serve answers on a listener until ctx ends.
func (m *Metrics) Serve(ctx context.Context, listener net.Listener) error {
	if err := httpserver.Serve(ctx, listener, m.Handler()); err != nil {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}
