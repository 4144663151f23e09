package metrics_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/parley-broker/parley/internal/broker/metrics"
	"github.com/parley-broker/parley/internal/telemetry"
)

// collected holds the bodies that an OpenTelemetry collector was sent, by path.
type collected struct {
	mu     sync.Mutex
	bodies map[string][]byte
}

func (c *collected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bodies[r.URL.Path] = append(c.bodies[r.URL.Path], body...)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// holds reports whether a text is in what was sent to a path.
func (c *collected) holds(path, text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Contains(c.bodies[path], []byte(text))
}

// The environment is the process's, so this test runs alone.
func TestMetricsAndSpansAreExportedWhereTheEnvironmentStates(t *testing.T) {
	got := &collected{bodies: map[string][]byte{}}
	server := httptest.NewServer(got)
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_SERVICE_NAME", "our broker")

	ctx := context.WithoutCancel(t.Context())
	export, err := telemetry.NewExport(ctx, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	b := newFixture(t, metrics.Config{Tracer: export.Tracer()})
	b.services()
	if err := export.ExportMetrics(ctx, b.registry); err != nil {
		t.Fatal(err)
	}
	b.database.ReaderStarted(b.queue("pong"))
	b.database.ReaderEnded(b.queue("pong"), nil, time.Second)
	if err := export.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	for path, texts := range map[string][]string{
		"/v1/metrics": {"parley_queue_depth_messages", "parley_up", "our broker", "1.2.3", "orders"},
		"/v1/traces":  {"activate pong", "our broker"},
	} {
		for _, text := range texts {
			if !got.holds(path, text) {
				t.Errorf("%q was not sent to %s", text, path)
			}
		}
	}
}

func TestNothingIsExportedUnlessTheEnvironmentStatesIt(t *testing.T) {
	got := &collected{bodies: map[string][]byte{}}
	server := httptest.NewServer(got)
	defer server.Close()
	for _, environment := range []map[string]string{
		{},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": server.URL, "OTEL_SDK_DISABLED": "true"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": server.URL, "OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"},
	} {
		t.Run("", func(t *testing.T) {
			for name, value := range environment {
				t.Setenv(name, value)
			}
			export, err := telemetry.NewExport(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			_, span := export.Tracer().Start(t.Context(), "nothing")
			span.End()
			if err := errors.Join(export.ExportMetrics(t.Context(), telemetry.NewRegistry()), export.Shutdown(t.Context())); err != nil {
				t.Fatal(err)
			}
			if len(got.bodies) > 0 || span.IsRecording() {
				t.Errorf("something was sent: %v", got.bodies)
			}
		})
	}
}

func TestAnotherProtocolIsRefused(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	if _, err := telemetry.NewExport(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "http/protobuf") {
		t.Errorf("got %v", err)
	}
}

func TestEachRunOfAReaderIsASpan(t *testing.T) {
	t.Parallel()
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	b := newFixture(t, metrics.Config{Tracer: provider.Tracer("test")})
	b.services()
	queue := b.queue("pong")
	b.database.ReaderEnded(queue, nil, time.Minute)
	b.database.ReaderEnded(queue, errors.New("out of paper"), time.Second)
	spans := exporter.GetSpans()
	if len(spans) != 2 {
		t.Fatalf("there are %d spans", len(spans))
	}
	if ran := spans[0].EndTime.Sub(spans[0].StartTime); spans[0].Name != "activate pong" || ran < time.Minute || ran > 2*time.Minute {
		t.Errorf("%q took %s", spans[0].Name, ran)
	}
	if spans[1].Status.Code != codes.Error || spans[0].Status.Code == codes.Error {
		t.Errorf("their states are %v and %v", spans[0].Status, spans[1].Status)
	}
}

func TestWhatReadersDoIsLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	b := newFixture(t, metrics.Config{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	b.services()
	queue := b.queue("pong")
	b.database.ReaderStarted(queue)
	b.database.ReaderEnded(queue, nil, 0)
	b.database.ReaderStarted(queue)
	b.database.ReaderEnded(queue, errors.New("out of paper"), 0)
	b.send(b.dialog("pong"), "x")
	b.until("a scrape", func(s map[string]float64) bool {
		return s[`parley_queue_depth_messages{database="orders",queue="pong"}`] == 1
	})
	b.exec("select parley.alter_queue('pong', poison_action => 'DISABLE_QUEUE')")
	b.exec("select setval(rollback_sequence, (1::bigint << 4) | 5) from parley._p_queue where name = 'pong'")
	b.until("poison", func(s map[string]float64) bool {
		return s[`parley_queue_poisoned{database="orders",queue="pong"}`] == 1
	})
	for _, want := range []string{
		`level=DEBUG msg="reader started" database=orders event=Broker:Activation event_id=163 queue=pong kind=procedure tasks_running=1`,
		`level=DEBUG msg="reader ended" database=orders event=Broker:Activation event_id=163 queue=pong kind=procedure tasks_running=0`,
		`level=WARN msg="reader aborted" database=orders event=Broker:Activation event_id=163 queue=pong kind=procedure tasks_running=0 error="out of paper"`,
		`level=WARN msg="queue is disabled by poison message handling" database=orders event="Broker:Queue Disabled" event_id=143 queue=pong`,
	} {
		found := slices.ContainsFunc(strings.Split(log.String(), "\n"), func(line string) bool { return strings.HasSuffix(line, want) })
		if !found {
			t.Errorf("there is no line %q in\n%s", want, log.String())
		}
	}
}
