package endpoint_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/broker/transport/endpoint"
	activationstore "github.com/parley-broker/parley/internal/store/activation"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
	"github.com/parley-broker/parley/parleytest"
)

// flow sends numbered messages on some conversations, from several sessions, until all are sent.
func (b *base) flow(to string, conversations, messages int) (sent func()) {
	b.t.Helper()
	var sending sync.WaitGroup
	for range conversations {
		handle := b.begin(to)
		sending.Go(func() {
			for n := 1; n <= messages && b.t.Context().Err() == nil; n++ {
				if _, err := b.pool.Exec(b.t.Context(), "select parley.send($1::uuid, 'DEFAULT', $2::text)", handle, fmt.Sprint(n)); err != nil {
					b.t.Errorf("send: %v", err)
					return
				}
			}
		})
	}
	return sending.Wait
}

// cut ends the sessions of the daemons with some name in a database.
func (b *base) cut(name string) {
	b.t.Helper()
	b.exec("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name like '" + name + "'")
}

func TestSessionsThatAreCutAtAnyInstantLoseAndRepeatNothing(t *testing.T) {
	t.Parallel()
	a, b := newBase(t, "a"), newBase(t, "b")
	d := serve(t, "one", endpoint.Config{}, a, b)
	const conversations, messages = 5, 200
	sent := a.flow("b", conversations, messages)
	for range 15 {
		b.await(d.log, "select app.read() >= 0")
		if rand.N(2) == 0 {
			a.cut("parley transmitter")
		} else {
			b.cut("parley inbox")
		}
		<-time.After(rand.N(50 * time.Millisecond))
	}
	sent()
	b.awaitGot(d.log, conversations*messages)
	a.await(d.log, "select not exists (select from parley._p_transit)")
}

func TestDaemonsThatTakeOverAtAnyInstantLoseAndRepeatNothing(t *testing.T) {
	t.Parallel()
	a, b := newBase(t, "a"), newBase(t, "b")
	const conversations, messages = 5, 200
	sent := a.flow("b", conversations, messages)
	d := serve(t, "daemon 0", endpoint.Config{}, a, b)
	for n := range 6 {
		next := serve(t, fmt.Sprintf("daemon %d", n+1), endpoint.Config{}, a, b)
		b.await(d.log, "select app.read() >= 0")
		<-time.After(rand.N(100 * time.Millisecond))
		d.stop()
		d = next
	}
	sent()
	b.awaitGot(d.log, conversations*messages)
	a.await(d.log, "select not exists (select from parley._p_transit)")
}

func TestWhatADeadDaemonHadTakenIsSentByTheNext(t *testing.T) {
	t.Parallel()
	a, b := newBase(t, "a"), newBase(t, "b")
	d := serve(t, "one", endpoint.Config{}, a, b)
	handle := a.begin("b")
	a.send(handle, 1, 1)
	b.awaitGot(d.log, 1)
	a.await(d.log, "select not exists (select from parley._p_transit)")
	d.stop()
	a.send(handle, 2, 10)
	// It takes them, and never answers again.
	term, leads, err := activationstore.Lead(t.Context(), a.pool, "dead", 0, time.Second, 0)
	if err != nil || !leads {
		t.Fatal(leads, err)
	}
	if _, _, err := transportstore.ReadSpeaker(t.Context(), a.pool, term); err != nil {
		t.Fatal(err)
	}
	destination := value[int32](a, "select destination_id from parley._p_destination")
	runs, err := transportstore.TakeRuns(t.Context(), a.pool, term, destination, 5, 1<<20)
	if err != nil || len(runs) != 5 {
		t.Fatal(len(runs), err)
	}
	d = serve(t, "two", endpoint.Config{}, a, b)
	b.awaitGot(d.log, 10)
	if err := transportstore.BindConversations(t.Context(), a.pool, term, nil, "", ""); err != nil {
		t.Error(err)
	}
	if late, err := transportstore.TakeRuns(t.Context(), a.pool, term, destination, 5, 1<<20); err != nil || len(late) != 0 {
		t.Errorf("the dead one takes %d runs, %v", len(late), err)
	}
}

func TestALargeMessageArrivesWholeAndOthersPassIt(t *testing.T) {
	t.Parallel()
	a, b := newBase(t, "a"), newBase(t, "b")
	d := serve(t, "one", endpoint.Config{}, a, b)
	large := a.begin("b")
	a.exec("select parley.send($1::uuid, 'DEFAULT', convert_to(repeat('0123456789', 1000 * 1000), 'UTF8'))", large)
	a.send(a.begin("b"), 1, 5)
	b.await(d.log, "select app.read() >= 0 and (select count(*) = 6 from app.got)")
	if whole := value[int](b, "select count(*) from app.got where body = convert_to(repeat('0123456789', 1000 * 1000), 'UTF8')"); whole != 1 {
		t.Errorf("%d large messages have arrived as they were sent", whole)
	}
	if left := value[int](b, "select count(*) from parley._p_fragment"); left != 0 {
		t.Errorf("%d fragments are left", left)
	}
}

func TestALargeMessageGoesOnWhereItWasCut(t *testing.T) {
	t.Parallel()
	a, b := newBase(t, "a"), newBase(t, "b")
	d := serve(t, "one", endpoint.Config{}, a, b)
	// The third part fails, once.
	b.exec(`
		create sequence app.parts;
		create function app.fail() returns trigger language plpgsql as $$
		begin
			if nextval('app.parts') = 3 then
				perform pg_terminate_backend(pg_backend_pid());
			end if;
			return new;
		end $$;
		create trigger fail before insert on parley._p_fragment for each row execute function app.fail();`)
	a.exec("select parley.send($1::uuid, 'DEFAULT', convert_to(repeat('0123456789', 600 * 1000), 'UTF8'))", a.begin("b"))
	b.await(d.log, "select app.read() >= 0 and (select count(*) = 1 from app.got)")
	if whole := value[int](b, "select count(*) from app.got where body = convert_to(repeat('0123456789', 600 * 1000), 'UTF8')"); whole != 1 {
		t.Errorf("%d large messages have arrived as they were sent", whole)
	}
	// Six parts, one of which came twice, and the first one again to ask how far it had come.
	if parts := value[int](b, "select last_value from app.parts"); parts > 7 {
		t.Errorf("%d parts were stored", parts)
	}
}

func TestACopyThatIsRefusedStopsSpeaking(t *testing.T) {
	t.Parallel()
	a, b := newBase(t, "a"), newBase(t, "b")
	d := serve(t, "one", endpoint.Config{}, a, b)
	handle := a.begin("b")
	a.send(handle, 1, 1)
	b.awaitGot(d.log, 1)
	b.exec("update parley._p_known_broker set term = term + 100")
	a.send(handle, 2, 3)
	d.log.Await(t, "another copy of this broker speaks for it")
	a.await(d.log, "select status like '%spoken%' or status like '%copies%' from parley._p_destination")
	// It goes on when the database begins a new epoch.
	a.exec("select parley._p_begin_epoch()")
	b.awaitGot(d.log, 3)
	d.log.Await(t, "this broker speaks again")
}

func TestAConversationThatCannotBeTakenDoesNotKeepOthers(t *testing.T) {
	t.Parallel()
	a, b := newBase(t, "a"), newBase(t, "b")
	d := serve(t, "one", endpoint.Config{}, a, b)
	b.exec("select parley.create_queue('off'); select parley.create_service('target off', queue => 'off', contracts => array['DEFAULT'])")
	b.exec("select parley.alter_queue('off', status => false)")
	off := a.begin("off")
	a.send(off, 1, 3)
	a.send(a.begin("b"), 1, 20)
	b.awaitGot(d.log, 20)
	a.await(d.log, "select bool_and(transmission_status like '%disabled%') from parley.transmission_queue")
	b.exec("select parley.alter_queue('off', status => true)")
	b.await(d.log, `select count(*) = 3 from parley_queue."off"`)
}

func TestThroughAPoolerDatabasesConverse(t *testing.T) {
	t.Parallel()
	a, b := newBase(t, "a"), newBase(t, "b")
	for _, side := range []*base{a, b} {
		pool, err := pgxpool.New(t.Context(), parleytest.PgBouncer(t, side.pool))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		side.served = pool
	}
	d := serve(t, "one", endpoint.Config{}, a, b)
	sent := a.flow("b", 3, 30)
	sent()
	b.awaitGot(d.log, 3*30)
	a.await(d.log, "select not exists (select from parley._p_transit)")
}

func TestADatabaseThatTakesNoWritesForAWhileIsTriedAgainWithNewConnections(t *testing.T) {
	t.Parallel()
	a, b := newBase(t, "a"), newBase(t, "b")
	d := serve(t, "one", endpoint.Config{}, a, b)
	handle := a.begin("b")
	a.send(handle, 1, 1)
	b.awaitGot(d.log, 1)
	readOnly := func(value string) {
		t.Helper()
		err := pgx.BeginTxFunc(t.Context(), b.pool, pgx.TxOptions{AccessMode: pgx.ReadWrite}, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), "do $$ begin execute format('alter database %I set default_transaction_read_only = "+value+"', current_database()); end $$")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	readOnly("on")
	b.cut("parley inbox")
	a.send(handle, 2, 3)
	a.await(d.log, "select status like '%25006%' and attempts > 0 from parley._p_destination")
	readOnly("off")
	b.await(d.log, "select coalesce(sum(coalesce(cardinality(frame), 1)), 0) = 2 from parley._p_message")
	// The test's own sessions may have begun while nothing could be written.
	b.pool.Reset()
	b.awaitGot(d.log, 3)
	a.await(d.log, "select attempts = 0 and status = '' from parley._p_destination")
}
