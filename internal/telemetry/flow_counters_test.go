package telemetry_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/telemetry"
	"github.com/parley-broker/parley/internal/telemetry/counters"
)

func TestCountersOfIntegrationKeepTheirNames(t *testing.T) {
	t.Parallel()
	c := telemetry.NewCollector("parley_flow", "host", "shop", func(context.Context) ([]counters.Counter, error) {
		return []counters.Counter{
			{Object: "Messaging", Counter: "Documents received", Instance: "Receive", Value: 7, IsTotal: true},
			{Object: "Message Agent", Counter: "Message publishing throttling state", Instance: "Receive", Value: 6},
			{
				Object: "Messaging Latency", Counter: "Inbound Latency seconds", Instance: "Receive", Value: 2, IsTotal: true,
				Histogram: &counters.Histogram{Buckets: map[float64]uint64{0.1: 1, 1: 2}, Sum: 0.5},
			},
		}, errors.New("away")
	})
	registry := telemetry.NewRegistry()
	if err := registry.Register(telemetry.Source{Collector: c}); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	registry.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	for _, want := range []string{
		`parley_flow_up{database="shop"} 0`,
		`parley_flow_messaging_documents_received_total{database="shop",host="Receive"} 7`,
		"# HELP parley_flow_messaging_documents_received_total Messaging: Documents received",
		`parley_flow_message_agent_message_publishing_throttling_state{database="shop",host="Receive"} 6`,
		`parley_flow_messaging_latency_inbound_latency_seconds_bucket{database="shop",host="Receive",le="0.1"} 1`,
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%q is not in %s", want, w.Body.String())
		}
	}
}
