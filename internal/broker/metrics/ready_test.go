package metrics_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/metrics"
	"github.com/parley-broker/parley/internal/telemetry"
	"github.com/parley-broker/parley/parleytest"
)

type readiness struct {
	Ready     bool                  `json:"ready"`
	Databases []telemetry.Readiness `json:"databases"`
}

func (b *fixture) ready() (answer readiness) {
	b.Helper()
	status, body := b.get("/readyz")
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		b.Fatalf("%s: %v", body, err)
	}
	if answer.Ready != (status == http.StatusOK) {
		b.Errorf("status %d says otherwise than %s", status, body)
	}
	return answer
}

func (b *fixture) untilReady(want bool) readiness {
	b.Helper()
	deadline := time.After(parleytest.Patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		answer := b.ready()
		if answer.Ready == want {
			return answer
		}
		select {
		case <-deadline:
			b.Fatalf("never became ready = %v: %+v", want, answer)
		case <-tick.C:
		}
	}
}

func TestReadinessTurnsFalseWhenTheDatabaseGoesAwayAndComesBack(t *testing.T) {
	t.Parallel()
	b := newFixture(t, metrics.Config{})
	if answer := b.untilReady(true); answer.Databases[0].Role != "standby" || answer.Databases[0].SchemaVersion == 0 {
		t.Errorf("it says %+v", answer)
	}
	b.database.LeadershipChanged(true, 1)
	if answer := b.untilReady(true); answer.Databases[0].Role != "leader" {
		t.Errorf("the leader says %+v", answer)
	}
	var name string
	if err := b.pool.QueryRow(t.Context(), "select current_database()").Scan(&name); err != nil {
		t.Fatal(err)
	}
	admin := maintenance(t, b.pool)
	administer := func(statements ...string) {
		t.Helper()
		for _, statement := range statements {
			if _, err := admin.Exec(context.WithoutCancel(t.Context()), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
	}
	closed := pgx.Identifier{name}.Sanitize()
	administer("alter database "+closed+" allow_connections false",
		"select pg_terminate_backend(pid) from pg_stat_activity where datname = '"+name+"'")
	answer := b.untilReady(false)
	if answer.Databases[0].Reason == "" {
		t.Errorf("it does not say why: %+v", answer)
	}
	b.until("a database that is away", func(s map[string]float64) bool { return s[`parley_up{database="orders"}`] == 0 })
	if status, body := b.get("/healthz"); status != http.StatusOK || body != "alive\n" {
		t.Errorf("the process says %d %q while the database is away", status, body)
	}
	administer("alter database " + closed + " allow_connections true")
	b.untilReady(true)
	b.until("a database that is back", func(s map[string]float64) bool { return s[`parley_up{database="orders"}`] == 1 })
}

// maintenance opens a session beside the database, to close and to open it.
func maintenance(t *testing.T, pool *pgxpool.Pool) *pgx.Conn {
	t.Helper()
	config := pool.Config().ConnConfig.Copy()
	config.Database, config.Tracer = "postgres", nil
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func TestReadinessAsksForASchemaThatThisDaemonCanWorkWith(t *testing.T) {
	t.Parallel()
	b := newFixture(t, metrics.Config{})
	for _, c := range []struct {
		schema, oldestClient int
		want                 bool
	}{
		{parley.SchemaVersion, parley.SchemaVersion, true},
		{parley.SchemaVersion - 1, parley.SchemaVersion - 1, false},
		// The schema is upgraded before the daemon.
		{parley.SchemaVersion + 1, parley.SchemaVersion, true},
		{parley.SchemaVersion + 1, parley.SchemaVersion + 1, false},
	} {
		b.exec("update parley._p_installation set schema_version = $1, oldest_client_version = $2", c.schema, c.oldestClient)
		if answer := b.ready(); answer.Ready != c.want || (answer.Databases[0].Reason == "") != c.want {
			t.Errorf("with schema %d for clients from %d it says %+v", c.schema, c.oldestClient, answer)
		}
	}
}

func TestACopyOfABrokerIsNotReady(t *testing.T) {
	t.Parallel()
	b := newFixture(t, metrics.Config{})
	b.exec("update parley._p_broker set system_identifier = 1")
	if answer := b.ready(); answer.Ready || answer.Databases[0].BrokerState != parley.BrokerElsewhere || answer.Databases[0].Reason == "" {
		t.Errorf("it says %+v", answer)
	}
	b.exec("select parley.enable_broker()")
	if answer := b.ready(); !answer.Ready {
		t.Errorf("after it was enabled it says %+v", answer)
	}
}

func TestADatabaseWithoutBrokerIsNotReady(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Config{})
	d := m.Database("orders")
	d.Attach(parleytest.EmptyDatabase(t))
	b := &fixture{T: t, database: d, server: serve(t, registered(t, m))}
	answer := b.ready()
	if answer.Ready || !strings.Contains(answer.Databases[0].Reason, "parley install") {
		t.Errorf("it says %+v", answer)
	}
}

func TestADaemonWithoutDatabasesIsNotReady(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Config{})
	b := &fixture{T: t, server: serve(t, registered(t, m))}
	if answer := b.ready(); answer.Ready {
		t.Errorf("it says %+v", answer)
	}
	m.Database("orders")
	if answer := b.ready(); answer.Ready || answer.Databases[0].Reason != "not connected yet" {
		t.Errorf("it says %+v", answer)
	}
}

func TestServingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	var listening net.ListenConfig
	listener, err := listening.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- telemetry.NewRegistry().Serve(ctx, listener) }()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String()+"/healthz", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	stop()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}
