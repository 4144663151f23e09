package endpoint_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/broker/transport/endpoint"
	"github.com/parley-broker/parley/parleytest"
)

// statements counts those of a pool's connections, and of the pools that are made with its settings.
type statements struct{ count atomic.Int64 }

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if !strings.Contains(data.SQL, "_p_lead") {
		s.count.Add(1)
	}
	return ctx
}

func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func TestDestinationsThatRestCostNothingAndThoseThatFailKeepNobody(t *testing.T) {
	t.Parallel()
	a, b := newBase(t, "a"), newBase(t, "b")
	counted := &statements{}
	config, err := pgxpool.ParseConfig(parleytest.DSN(t, a.pool))
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.Tracer = counted
	if a.served, err = pgxpool.NewWithConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.served.Close)
	// A hundred servers that are not there.
	const servers = 100
	a.exec(fmt.Sprintf(`
		select parley.create_route('to ' || n, 'tcp://127.0.0.1:' || 1 + n, service_name => 'target ' || n) from generate_series(1, %d) as n;
		select parley.send(parley.begin_dialog('source a', 'target ' || n), 'DEFAULT', '1') from generate_series(1, %[1]d) as n;`, servers))
	network, _ := listen(t)
	d := serve(t, "one", endpoint.Config{Network: network}, a, b)
	handle := a.begin("b")
	a.send(handle, 1, 10)
	b.awaitGot(d.log, 10)
	a.await(d.log, "select count(*) = $1 and bool_and(attempts >= 2) from parley._p_destination where address like 'tcp://%'", servers)
	a.send(handle, 11, 20)
	b.awaitGot(d.log, 20)
	// Between their attempts, which come ever later, nothing is done for them.
	a.exec("update parley._p_destination set due_at = clock_timestamp() + interval '1 hour', attempts = 6 where address like 'tcp://%'")
	deadline := time.Now().Add(patience)
	for quiet := 0; quiet < 3; {
		before := counted.count.Load()
		<-time.After(time.Second)
		if done := counted.count.Load() - before; done <= 10 {
			quiet++
		} else {
			quiet = 0
		}
		if time.Now().After(deadline) {
			t.Fatalf("there are statements with nothing to do\n%s", d.log)
		}
	}
}
