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

func TestCountersOfMailKeepTheirNames(t *testing.T) {
	t.Parallel()
	failure := error(nil)
	c := telemetry.NewCollector("parley_mail", "name", "shop", func(context.Context) ([]counters.Counter, error) {
		return []counters.Counter{
			{Object: "Queues", Counter: "Retry Non-Smtp Delivery Queue Length", Value: 3},
			{Object: "Queues", Counter: "Items Queued For Delivery/sec", Value: 0.5},
			{Object: "SMTP Receive", Counter: "Connections Total", Value: 7, IsTotal: true},
			{Object: "Back Pressure", Counter: "Transitions", Instance: "data volume", Value: 2, IsTotal: true},
		}, failure
	})
	registry := telemetry.NewRegistry()
	if err := registry.Register(telemetry.Source{Collector: c}); err != nil {
		t.Fatal(err)
	}
	get := func(path string) string {
		t.Helper()
		w := httptest.NewRecorder()
		registry.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if w.Code != http.StatusOK {
			t.Errorf("%s gives %d", path, w.Code)
		}
		return w.Body.String()
	}
	for _, want := range []string{
		`parley_mail_up{database="shop"} 1`,
		"# HELP parley_mail_queues_retry_non_smtp_delivery_queue_length Queues: Retry Non-Smtp Delivery Queue Length",
		`parley_mail_queues_retry_non_smtp_delivery_queue_length{database="shop",name=""} 3`,
		`parley_mail_queues_items_queued_for_delivery_per_second{database="shop",name=""} 0.5`,
		"# TYPE parley_mail_smtp_receive_connections_total counter",
		`parley_mail_back_pressure_transitions_total{database="shop",name="data volume"} 2`, "go_goroutines",
	} {
		if got := get("/metrics"); !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
	failure = errors.New("away")
	if got := get("/metrics"); !strings.Contains(got, `parley_mail_up{database="shop"} 0`) || !strings.Contains(got, "connections_total") {
		t.Errorf("without the database there is %s", got)
	}
	if got := get("/healthz"); got != "alive\n" {
		t.Errorf("/healthz gives %q", got)
	}
}
