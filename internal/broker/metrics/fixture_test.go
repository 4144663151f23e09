package metrics_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/activation"
	"github.com/parley-broker/parley/internal/broker/metrics"
	"github.com/parley-broker/parley/internal/telemetry"
	"github.com/parley-broker/parley/parleytest"
)

func TestMain(m *testing.M) {
	// The process of the test server is waited for as long as the tests run.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/parley-broker/parley/internal/postgres.(*Server).launch.func1"))
}

// fixture is a daemon's metrics over a database of their own.
type fixture struct {
	*testing.T
	registry *telemetry.Registry
	database *metrics.Database
	pool     *pgxpool.Pool
	server   *httptest.Server
}

func newFixture(t *testing.T, config metrics.Config) *fixture {
	t.Helper()
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	m := metrics.New(config)
	database := m.Database("orders")
	pool := traced(t, parleytest.Database(t), database)
	database.Attach(pool)
	registry := registered(t, m)
	return &fixture{t, registry, database, pool, serve(t, registry)}
}

// registered gives a registry that has figures of a broker alone.
func registered(t *testing.T, m *metrics.Metrics) *telemetry.Registry {
	t.Helper()
	registry := telemetry.NewRegistry()
	if err := registry.Register(m.Source()); err != nil {
		t.Fatal(err)
	}
	return registry
}

func serve(t *testing.T, registry *telemetry.Registry) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(registry.Handler())
	t.Cleanup(server.Close)
	return server
}

// traced opens a pool to the same database whose statements are counted.
func traced(t *testing.T, pool *pgxpool.Pool, database *metrics.Database) *pgxpool.Pool {
	t.Helper()
	config := pool.Config()
	config.ConnConfig.Tracer = database
	own, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Close)
	return own
}

func (b *fixture) get(path string) (status int, body string) {
	b.Helper()
	request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, b.server.URL+path, http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	response, err := b.server.Client().Do(request)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.Fatal(err)
	}
	return response.StatusCode, string(text)
}

var sampleLine = regexp.MustCompile(`(?m)^(parley_\w+)(\{[^}]*\})? (\S+)$`)

// scrape gives the samples of the daemon by name and labels.
func (b *fixture) scrape() map[string]float64 {
	b.Helper()
	status, text := b.get("/metrics")
	if status != http.StatusOK {
		b.Fatalf("the scrape failed with %d: %s", status, text)
	}
	samples := map[string]float64{}
	for _, line := range sampleLine.FindAllStringSubmatch(text, -1) {
		value, err := strconv.ParseFloat(line[3], 64)
		if err != nil {
			b.Fatal(err)
		}
		samples[line[1]+line[2]] = value
	}
	return samples
}

// until scrapes until it finds what it waits for; figures may be a second old, those of statistics two.
func (b *fixture) until(what string, found func(samples map[string]float64) bool) {
	b.Helper()
	deadline := time.After(parleytest.Patience)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		samples := b.scrape()
		if found(samples) {
			return
		}
		select {
		case <-deadline:
			b.Fatalf("%s was never seen; the samples are %v", what, samples)
		case <-tick.C:
		}
	}
}

func (b *fixture) exec(statement string, arguments ...any) {
	b.Helper()
	if _, err := b.pool.Exec(b.Context(), statement, arguments...); err != nil {
		b.Fatalf("%s: %v", statement, err)
	}
}

// services creates the services that talk: ping on queue ping, pong on queue pong.
func (b *fixture) services() {
	b.Helper()
	for _, name := range []string{"ping", "pong"} {
		b.exec(fmt.Sprintf("select parley.create_queue('%[1]s'), parley.create_service('%[1]s', '%[1]s', array['DEFAULT'])", name))
	}
}

func (b *fixture) dialog(to string) parley.UUID {
	b.Helper()
	handle, err := parley.BeginDialog(b.Context(), b.pool, "ping", to, parley.ToUnknownTarget())
	if err != nil {
		b.Fatal(err)
	}
	return handle
}

func (b *fixture) send(handle parley.UUID, text string) {
	b.Helper()
	if err := parley.Send(b.Context(), b.pool, handle, parley.DefaultMessageType, []byte(text)); err != nil {
		b.Fatal(err)
	}
}

// queue is the queue as the engine would report it.
func (b *fixture) queue(name string) activation.Queue {
	b.Helper()
	var id int
	if err := b.pool.QueryRow(b.Context(), "select object_id from parley.service_queues where name = $1", name).Scan(&id); err != nil {
		b.Fatal(err)
	}
	return activation.Queue{ID: id, Name: name, Kind: activation.KindProcedure}
}

// names gives the families among samples.
func names(samples map[string]float64) map[string]bool {
	found := map[string]bool{}
	for sample := range samples {
		name, _, _ := strings.Cut(sample, "{")
		found[name] = true
	}
	return found
}
