package activation_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/broker/activation"
)

// A thousand queues with nothing in them cost a few statements a second, and each is woken at once all the same.
func TestAThousandIdleQueuesCostAFewStatements(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it creates a thousand queues")
	}
	b := newFixture(t)
	b.exec(`do $$ begin
		for n in 1 .. 1000 loop
			perform parley.create_queue('q' || n, activation_procedure => 'app.reader', max_queue_readers => 1, execute_as => 'SELF');
			commit;
		end loop;
	end $$`)
	b.activate(2)
	config := b.pool.Config()
	var asked counter
	config.ConnConfig.Tracer = &asked
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	b.start(activation.Config{Pool: pool})
	b.await("select count(*) = 1001 from parley.dm_broker_queue_monitors")
	b.await(`select count(*) = 1001 from parley._p_queue as q
		where q.is_activation_enabled and pg_sequence_last_value(q.wakeup_sequence) > extract(epoch from clock_timestamp())`)
	version := value[int64](b, "select last_value from parley._p_catalog_version")
	const spell = 10 * time.Second
	const most = int64(7 * spell / time.Second / 2)
	// Work that a slow machine has put off may fall into one spell, and not into each.
	statements := most + 1
	for spells := 0; statements > most && spells < 3; spells++ {
		before := asked.Load()
		<-time.After(spell)
		statements = asked.Load() - before
		t.Logf("%d statements in %s", statements, spell)
	}
	if statements > most {
		t.Errorf("%d statements in %s, want at most %d", statements, spell, most)
	}
	if after := value[int64](b, "select last_value from parley._p_catalog_version"); after != version {
		t.Errorf("the daemon changed the catalog: version %d, was %d", after, version)
	}
	b.send(1, 3)
	b.awaitDone(3)
}

// The owner's idle_session_timeout, or an administrator, may end sessions that wait for work: the next reader gets another, and has not failed.
func TestASessionThatEndedWhileItWasIdleFailsNoReader(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.activate(1)
	b.start(activation.Config{})
	b.send(1, 1)
	b.awaitDone(1)
	b.awaitReaders(0)
	const sessions = "from pg_stat_activity where datname = current_database() and application_name = 'parley reader'"
	b.await("select count(*) > 0 and bool_and(clock_timestamp() - state_change > interval '2 s') " + sessions)
	b.exec("do $$ begin perform pg_terminate_backend(pid) " + sessions + "; end $$")
	b.await("select count(*) = 0 " + sessions)
	b.send(2, 2)
	b.awaitDone(2)
	if strings.Contains(b.log.String(), "activation aborted") {
		t.Errorf("a reader failed:\n%s", b.log)
	}
}

// counter counts the statements of the connections that it traces.
type counter struct{ atomic.Int64 }

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.Add(1)
	return ctx
}

func (*counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
