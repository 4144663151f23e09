package transport_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"github.com/parley-broker/parley"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
	"github.com/parley-broker/parley/parleytest"
)

// decision is where a message that has arrived goes.
type decision struct{ address, otherwise string }

func readInboundRoutes(ctx context.Context, t rapid.TB, pool *pgxpool.Pool) []transportstore.InboundRoute {
	t.Helper()
	routes, err := transportstore.ReadInboundRoutes(ctx, pool)
	if err != nil {
		t.Fatal(err)
	}
	return routes
}

func decideInSQL(ctx context.Context, t rapid.TB, pool *pgxpool.Pool, service string, broker, conversation parley.UUID) (d decision) {
	t.Helper()
	err := pool.QueryRow(ctx, `
		select coalesce(address, ''), coalesce(otherwise, '')
		from parley._p_find_inbound_route($1, nullif($2, '00000000-0000-0000-0000-000000000000'), $3)`,
		service, broker.String(), conversation).Scan(&d.address, &d.otherwise)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func decideInMemory(routes []transportstore.InboundRoute, service string, broker, conversation parley.UUID) (d decision) {
	d.address, d.otherwise = transportstore.FindInboundRoute(routes, service, broker, conversation, time.Now())
	return d
}

var (
	inboundServices = []string{
		"//near/Service", "//NEAR/Service", "//far/Service", "tcp://Far:4022/Service", "tcp://[::1]:22/x", "tcp://far/none", "http://far:80/x",
		"tcp://1.2.3.4:4022", "tcp://1.2.3.400:4022/x", "tcp://[fe80::0:0:2]:0001/x", "tcp://-a:1/x", "TCP://b_1.example.:65536", "é",
	}
	inboundBrokers = []parley.UUID{{}, {1}, {2}, {3}}
	inboundHops    = []string{
		"LOCAL", "TRANSPORT", "tcp://a:1", "TCP://B:2/", "tcp://[FE80::0:3]:3", "tcp://10.0.0.4:04",
	}
)

// The daemon decides in memory what the schema defines. Random tables, decided by both.
func TestInboundRoutesAreDecidedInMemoryAsInTheDatabase(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	ctx := t.Context()
	rapid.Check(t, func(r *rapid.T) {
		if _, err := pool.Exec(ctx, "select parley.drop_route(name) from parley.routes where is_inbound"); err != nil {
			r.Fatal(err)
		}
		for i := range rapid.IntRange(0, 6).Draw(r, "routes") {
			hop := rapid.SampledFrom(inboundHops).Draw(r, "address")
			service, broker, mirror := "", parley.UUID{}, ""
			if hop != "TRANSPORT" && rapid.Bool().Draw(r, "names a service") {
				service = rapid.SampledFrom(inboundServices[:4]).Draw(r, "service")
				broker = rapid.SampledFrom(inboundBrokers).Draw(r, "broker")
				if hop != "LOCAL" && !broker.IsZero() && rapid.Bool().Draw(r, "has a mirror") {
					mirror = "tcp://Mirror:5"
				}
			}
			_, err := pool.Exec(ctx, `
				select parley.create_route($1, $2, nullif($3, ''), nullif($4, '00000000-0000-0000-0000-000000000000'), 60, nullif($5, ''), is_inbound => true)`,
				fmt.Sprint("inbound ", i), hop, service, broker.String(), mirror)
			if err != nil {
				r.Fatal(err)
			}
		}
		routes := readInboundRoutes(ctx, r, pool)
		for range 10 {
			service := rapid.SampledFrom(inboundServices).Draw(r, "to service")
			broker := rapid.SampledFrom(inboundBrokers).Draw(r, "to broker")
			conversation := parley.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(r, "conversation"))
			want := decideInSQL(ctx, r, pool, service, broker, conversation)
			if got := decideInMemory(routes, service, broker, conversation); got != want {
				r.Fatalf("to %q of %v: %q in memory, %q in the database", service, broker, got, want)
			}
		}
	})
}

func TestLocalAppliesWhereNoInboundRouteMatches(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	// A route of the database is none for what arrives.
	if _, err := pool.Exec(t.Context(), "select parley.create_route('out', 'tcp://a:1', '//far/Service')"); err != nil {
		t.Fatal(err)
	}
	local := decision{address: transportstore.LocalAddress}
	if got := decideInSQL(t.Context(), t, pool, "//far/Service", parley.UUID{}, parley.UUID{9}); got != local {
		t.Errorf("%q in the database", got)
	}
	routes := readInboundRoutes(t.Context(), t, pool)
	if got := decideInMemory(routes, "//far/Service", parley.UUID{}, parley.UUID{9}); got != local || len(routes) > 0 {
		t.Errorf("%q in memory, of %v", got, routes)
	}
}

func TestInboundRouteExpiresInMemoryToo(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	if _, err := pool.Exec(t.Context(), "select parley.create_route('in', 'tcp://a:1', lifetime => 3600, is_inbound => true)"); err != nil {
		t.Fatal(err)
	}
	routes := readInboundRoutes(t.Context(), t, pool)
	if address, _ := transportstore.FindInboundRoute(routes, "//far", parley.UUID{}, parley.UUID{9}, time.Now()); address != "tcp://a:1" {
		t.Errorf("goes to %q before the route expires", address)
	}
	if address, _ := transportstore.FindInboundRoute(routes, "//far", parley.UUID{}, parley.UUID{9}, time.Now().Add(3601*time.Second)); address != transportstore.LocalAddress {
		t.Errorf("goes to %q after the route has expired", address)
	}
	if _, err := pool.Exec(t.Context(), "update parley._p_route set expires_at = clock_timestamp() where is_inbound"); err != nil {
		t.Fatal(err)
	}
	if got := readInboundRoutes(t.Context(), t, pool); len(got) > 0 {
		t.Errorf("read %v, which has expired", got)
	}
	if got := decideInSQL(t.Context(), t, pool, "//far", parley.UUID{}, parley.UUID{9}); got.address != transportstore.LocalAddress {
		t.Errorf("%q in the database after the route has expired", got)
	}
}

func TestChangeOfRoutesIsNotified(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	statements := []string{
		"select parley.create_route('out', 'tcp://a:1')",
		"select parley.create_route('in', 'tcp://a:1', is_inbound => true)",
		"select parley.alter_route('out', 'tcp://b:1')",
		"select parley.alter_route('in', 'tcp://b:1')",
		"select parley.drop_route('out')",
		"select parley.drop_route('in')",
	}
	if _, err := conn.Exec(t.Context(), "listen parley"); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = conn.Exec(context.WithoutCancel(t.Context()), "unlisten *") }()
	for _, s := range statements {
		// Sent by the same session, so it arrives with the answer; the last one marks where to stop reading.
		if _, err := conn.Exec(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), "notify parley, 'end'"); err != nil {
			t.Fatal(err)
		}
		var payloads []string
		for !slices.Contains(payloads, "end") {
			n, err := conn.Conn().WaitForNotification(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			payloads = append(payloads, n.Payload)
		}
		if !slices.Contains(payloads, "routes") {
			t.Errorf("%s: notified %q", s, payloads)
		}
	}
}
