package endpoint_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/parley-broker/parley/internal/broker/transport/endpoint"
	"github.com/parley-broker/parley/internal/daemon"
	"github.com/parley-broker/parley/internal/daemon/timers"
	"github.com/parley-broker/parley/internal/logtest"
	"github.com/parley-broker/parley/parleytest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/pgxpool.(*Pool).backgroundHealthCheck"),
		// The server of the tests, when this is the package that starts it.
		goleak.IgnoreAnyFunction("github.com/parley-broker/parley/internal/postgres.(*Server).launch.func1"))
}

// patience is for what comes at once on an idle machine.
const patience = 60 * time.Second

const pollEvery = 10 * time.Millisecond

// Each database has a service that sends and one that is sent to. Received messages are written down with their order.
const furniture = `
	create schema app;
	create table app.got (n bigint generated always as identity, conversation uuid, number bigint, type text, body bytea);
	create function app.read() returns bigint language plpgsql as $$
	declare
		m record;
		c bigint := 0;
	begin
		for m in select * from parley.receive('inbound', top => 1000) loop
			insert into app.got (conversation, number, type, body)
			values (m.conversation_handle, m.message_sequence_number, m.message_type_name, m.message_body);
			c := c + 1;
		end loop;
		return c;
	end $$;
	select parley.create_queue('inbound');
	select parley.create_queue('outbound');
	select parley.create_service('source %[1]s', queue => 'outbound');
	select parley.create_service('target %[1]s', queue => 'inbound', contracts => array['DEFAULT']);
`

// base is a database of the fixture, under a name that its services carry.
type base struct {
	t    *testing.T
	name string
	pool *pgxpool.Pool
	// served is how daemons reach it, when that is not as the test does.
	served *pgxpool.Pool
}

// standStill keeps the database from taking anything in until goOn is called.
func (b *base) standStill() (goOn func()) {
	b.t.Helper()
	lock, err := b.pool.Begin(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = lock.Rollback(context.Background()) })
	if _, err := lock.Exec(b.t.Context(), "lock table parley._p_accept_progress, parley._p_message in access exclusive mode"); err != nil {
		b.t.Fatal(err)
	}
	return func() {
		b.t.Helper()
		if err := lock.Rollback(b.t.Context()); err != nil {
			b.t.Fatal(err)
		}
	}
}

// way is how daemons reach the database.
func (b *base) way() *pgxpool.Pool {
	if b.served != nil {
		return b.served
	}
	return b.pool
}

func newBase(t *testing.T, name string) *base {
	t.Helper()
	b := &base{t: t, name: name, pool: parleytest.Database(t)}
	b.exec(fmt.Sprintf(furniture, name))
	return b
}

func (b *base) exec(statement string, args ...any) {
	b.t.Helper()
	if len(args) == 0 {
		args = []any{pgx.QueryExecModeSimpleProtocol}
	}
	if _, err := b.pool.Exec(b.t.Context(), statement, args...); err != nil {
		b.t.Fatalf("%s: %s: %v", b.name, statement, err)
	}
}

func value[T any](b *base, query string, args ...any) T {
	b.t.Helper()
	var v T
	if err := b.pool.QueryRow(b.t.Context(), query, args...).Scan(&v); err != nil {
		b.t.Fatalf("%s: %s: %v", b.name, query, err)
	}
	return v
}

// begin begins a dialog with the target service of another database.
func (b *base) begin(to string) (handle string) {
	b.t.Helper()
	return value[string](b, "select parley.begin_dialog('source "+b.name+"', 'target "+to+"', allow_unknown_target => true)::text")
}

// beginInClear begins one that needs no encryption, so a forwarder may see it.
func (b *base) beginInClear(to string) (handle string) {
	b.t.Helper()
	return value[string](b, "select parley.begin_dialog('source "+b.name+"', 'target "+to+"', encryption => false, allow_unknown_target => true)::text")
}

// send sends numbered messages on a conversation, each in a transaction of its own.
func (b *base) send(handle string, from, to int) {
	b.t.Helper()
	for n := from; n <= to; n++ {
		b.exec("select parley.send($1::uuid, 'DEFAULT', $2::text)", handle, fmt.Sprint(n))
	}
}

// await waits until a query gives true.
func (b *base) await(log *logtest.Log, query string, args ...any) {
	b.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		var is *bool
		err := b.pool.QueryRow(b.t.Context(), query, args...).Scan(&is)
		if err == nil && is != nil && *is {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("%s: it never became true: %s (%v)\nthe log:\n%s", b.name, query, err, log)
		}
		<-time.After(pollEvery)
	}
}

// awaitGot reads until so many messages were received, and checks that each conversation has got 1, 2, 3 in order.
func (b *base) awaitGot(log *logtest.Log, count int) {
	b.t.Helper()
	b.await(log, "select app.read() >= 0 and (select count(*) >= $1 from app.got where type = 'DEFAULT')", count)
	b.checkGot(count)
}

// readOutbound makes the reader of a database read what comes back to its own conversations.
func (b *base) readOutbound() {
	b.exec("create or replace function app.read() returns bigint language sql as $$ insert into app.got (conversation, number, type, body) " +
		"select conversation_handle, message_sequence_number, message_type_name, message_body from parley.receive('outbound', top => 1000); select 1::bigint $$")
}

// awaitOver waits until nothing is left of any conversation.
func (b *base) awaitOver(log *logtest.Log) {
	b.await(log, "select not exists (select from parley.conversation_endpoints where state <> 'CD') and not exists (select from parley._p_transit)")
}

func (b *base) checkGot(count int) {
	b.t.Helper()
	if got := value[int](b, "select count(*) from app.got where type = 'DEFAULT'"); got != count {
		b.t.Errorf("%s has got %d messages, want %d", b.name, got, count)
	}
	if wrong := value[int](b, `
		select count(*) from (
			select convert_from(body, 'UTF8')::bigint as sent, row_number() over (partition by conversation order by n) as place
			from app.got where type = 'DEFAULT'
		) as g where sent <> place`); wrong != 0 {
		b.t.Errorf("%s has got %d messages out of order", b.name, wrong)
	}
}

// daemon serves some databases until it is stopped.
type served struct {
	t         *testing.T
	log       *logtest.Log
	cancel    context.CancelFunc
	ended     chan struct{}
	endpoint  *endpoint.Endpoint
	databases []*endpoint.Database
	stopped   sync.Once
}

// serve runs a daemon to the end of the test.
func serve(t *testing.T, name string, config endpoint.Config, bases ...*base) *served {
	t.Helper()
	d := &served{t: t, log: &logtest.Log{}, ended: make(chan struct{})}
	logger := d.log.Logger(slog.LevelDebug)
	ctx, cancel := context.WithCancel(context.Background())
	d.cancel = cancel
	config.Logger = logger
	e, err := endpoint.New(config)
	if err != nil {
		t.Fatal(err)
	}
	d.endpoint = e
	var leaders []*daemon.Leader
	for _, b := range bases {
		database, err := e.Add(ctx, b.way().Config(), logger.With("database", b.name))
		if err != nil {
			t.Fatal(err)
		}
		d.databases = append(d.databases, database)
		pool, log := b.way(), logger.With("database", b.name)
		leader, err := daemon.NewLeader(daemon.LeaderConfig{
			Pool: pool, Name: name, Databases: len(bases), Parts: []daemon.LedPart{timers.New(pool, log), database}, Logger: log,
		})
		if err != nil {
			t.Fatal(err)
		}
		leaders = append(leaders, leader)
	}
	var running sync.WaitGroup
	for _, leader := range leaders {
		running.Go(func() {
			if err := leader.Run(ctx); err != nil {
				t.Errorf("leader: %v", err)
			}
		})
	}
	running.Go(func() {
		if err := e.Run(ctx); err != nil {
			t.Errorf("endpoint: %v", err)
		}
	})
	go func() {
		running.Wait()
		close(d.ended)
	}()
	t.Cleanup(d.stop)
	return d
}

// stop ends a daemon and waits for it.
func (d *served) stop() {
	d.t.Helper()
	d.cancel()
	select {
	case <-d.ended:
	case <-time.After(patience):
		buf := make([]byte, 1<<20)
		d.t.Fatalf("the daemon does not end:\n%s", buf[:runtime.Stack(buf, true)])
	}
	d.stopped.Do(func() {
		for _, database := range d.databases {
			database.Close()
		}
		d.endpoint.Close()
	})
}
