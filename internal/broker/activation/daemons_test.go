package activation_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/broker/activation"
	"github.com/parley-broker/parley/internal/daemon"
	activationstore "github.com/parley-broker/parley/internal/store/activation"
	"github.com/parley-broker/parley/parleytest"
)

func TestOfTwoDaemonsOneLeadsAndTheOtherTakesOver(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.activate(2)
	first := b.startLeader(activation.Config{}, daemon.LeaderConfig{Name: "first"})
	b.await("select leader = 'first' from parley._p_leader")
	b.startLeader(activation.Config{}, daemon.LeaderConfig{Name: "second"})
	b.log.Await(t, "another daemon leads")
	b.send(1, 10)
	b.awaitDone(10)
	first.stop()
	b.await("select leader = 'second' and term = 3 from parley._p_leader")
	b.send(11, 20)
	b.awaitDone(20)
}

func TestALeaseThatIsOverIsTakenOver(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	const long, short = 50 * time.Second, time.Second // longer than a minute is none
	term, leads, err := activationstore.Lead(t.Context(), b.pool, "dead", 0, long, 0)
	if err != nil || !leads || term != 1 {
		t.Fatalf("term %d, leads %t, error %v", term, leads, err)
	}
	if _, leads, err := activationstore.Lead(t.Context(), b.pool, "other", 0, short, 0); err != nil || leads {
		t.Errorf("leads %t while another does, error %v", leads, err)
	}
	// It renews its lease for the last time.
	if _, leads, err := activationstore.Lead(t.Context(), b.pool, "dead", term, short, 0); err != nil || !leads {
		t.Fatalf("leads %t, error %v", leads, err)
	}
	b.activate(2)
	b.start(activation.Config{})
	b.send(1, 3)
	b.awaitDone(3)
	for name, refused := range map[string]func() (bool, error){
		"lead": func() (bool, error) {
			_, leads, err := activationstore.Lead(t.Context(), b.pool, "dead", term, short, 0)
			return leads, err
		},
		"fire timers": func() (bool, error) {
			_, _, leads, err := activationstore.FireDue(t.Context(), b.pool, term, 10, false)
			return leads, err
		},
		"report": func() (bool, error) { return activationstore.ReportActivation(t.Context(), b.pool, term, nil, nil) },
	} {
		if leads, err := refused(); err != nil || leads {
			t.Errorf("%s: leads %t with a term that is over, error %v", name, leads, err)
		}
	}
	if err := activationstore.Resign(t.Context(), b.pool, term); err != nil {
		t.Error(err)
	}
	b.await("select term = 2 and leader is not null from parley._p_leader")
}

func TestALeaderWhoseTermIsTakenLeadsNoMore(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.activate(2)
	b.startLeader(activation.Config{}, daemon.LeaderConfig{Name: "first"})
	b.await("select leader = 'first' from parley._p_leader")
	b.exec("update parley._p_leader set term = term + 1, leader = 'thief'")
	b.log.Await(t, "this daemon leads no more")
	// The thief never renews.
	b.await("select leader = 'first' from parley._p_leader")
	b.send(1, 3)
	b.awaitDone(3)
}

func TestConnectionsThatAreCutComeBack(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.withoutPoison()
	b.activate(2)
	b.start(activation.Config{Pool: namedPool(t, parleytest.DSN(t, b.pool))})
	for n := 1; n <= 5; n++ {
		b.send(n, n)
		b.awaitDone(n)
		b.exec("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name like 'parley %'")
	}
	b.send(6, 6)
	b.awaitDone(6)
}

func TestReadersThatAreCutInTheMiddleLoseNothing(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.withoutPoison()
	b.procedure(gated)
	b.exec("update app.gate set is_open = false")
	b.activate(3)
	b.start(activation.Config{})
	b.send(1, 3)
	b.awaitReaders(3)
	b.exec("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'parley reader'")
	b.log.Await(t, "activation aborted")
	b.exec("update app.gate set is_open = true")
	b.awaitDone(3)
}

// namedPool gives an engine connections that the test can distinguish from its own.
func namedPool(t *testing.T, dsn string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.RuntimeParams["application_name"] = "parley engine"
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func TestThroughAPoolerReadersAreStartedWithoutNotifications(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.activate(2)
	b.start(activation.Config{Pool: b.pooler()})
	b.log.Await(t, "connected through a pooler")
	b.send(1, 5)
	b.awaitDone(5)
}

func TestThroughAPoolerOneDirectConnectionIsNotified(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.activate(2)
	direct, err := pgx.ParseConfig(parleytest.DSN(t, b.pool))
	if err != nil {
		t.Fatal(err)
	}
	b.startLeader(activation.Config{Pool: b.pooler()}, daemon.LeaderConfig{ListenConfig: direct})
	b.await("select count(*) = 1 from pg_stat_activity where datname = current_database() and application_name = 'parley listener' and query = 'listen parley'")
	b.send(1, 5)
	b.awaitDone(5)
}

func TestThroughAPoolerAProcedureOfAnotherRoleRunsInOneTransaction(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	role := b.role()
	b.procedure(`
		declare
			m record;
		begin
			for m in select * from parley.receive('target', top => 20, groups => 10) loop
				insert into app.done (number) values (convert_from(m.message_body, 'UTF8')::int);
			end loop;
		end`)
	b.activate(2)
	b.exec("select parley.alter_queue('target', execute_as => '" + role + "')")
	b.start(activation.Config{Pool: b.pooler()})
	b.send(1, 5)
	b.awaitDone(5)
	if who := value[string](b, "select string_agg(distinct role, ',') from app.done"); who != role {
		t.Errorf("it ran as %s, want %s", who, role)
	}
}

// pooler gives an engine connections through PgBouncer in transaction mode.
func (b *fixture) pooler() *pgxpool.Pool {
	b.t.Helper()
	return namedPool(b.t, parleytest.PgBouncer(b.t, b.pool))
}

// A daemon that believes to lead, and is about to call a procedure while another one takes over, calls it no more.
func TestALeaderThatIsReplacedOnTheWayToTheCallStartsNoReader(t *testing.T) {
	t.Parallel()
	for _, through := range []struct {
		name string
		pool func(b *fixture) *pgxpool.Pool
	}{
		{"directly", func(b *fixture) *pgxpool.Pool { return namedPool(b.t, parleytest.DSN(b.t, b.pool)) }},
		{"through a pooler", (*fixture).pooler},
	} {
		t.Run(through.name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			b.activate(2)
			b.startLeader(activation.Config{Pool: through.pool(b)}, daemon.LeaderConfig{Name: "first"})
			b.await("select leader = 'first' from parley._p_leader")
			tx, err := b.pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), "update parley._p_leader set term = term + 1, leader = 'second'"); err != nil {
				t.Fatal(err)
			}
			b.send(1, 1)
			b.await(`select count(*) > 0 from pg_stat_activity
				where datname = current_database() and wait_event_type = 'Lock' and query like '%_p_begin_reader%'`)
			if _, err := tx.Exec(t.Context(), "select parley._p_lease(50000)"); err != nil {
				t.Fatal(err)
			}
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.log.Await(t, "another daemon leads")
			if done := value[int](b, "select count(*) from app.done"); done != 0 {
				t.Errorf("a reader of the old leader has received %d messages", done)
			}
		})
	}
}

// The daemon's belief does not matter: a session that was allowed to call and does not is ended before another daemon can lead.
func TestASessionThatIsAllowedToCallAndPausesIsEndedByTheServer(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	paused, err := pgx.Connect(t.Context(), parleytest.DSN(t, b.pool))
	if err != nil {
		t.Fatal(err)
	}
	defer paused.Close(t.Context())
	const lease = 4 * time.Second
	role := b.role()
	b.activate(1)
	b.exec("select parley.alter_queue('target', execute_as => '" + role + "')")
	queue := value[int32](b, "select queue_id from parley._p_queue where lookup_name = 'target'")
	term, leads, err := activationstore.Lead(t.Context(), b.pool, "first", 0, lease, 0)
	if err != nil || !leads {
		t.Fatalf("leads %t, error %v", leads, err)
	}
	if may, err := activationstore.BeginReader(t.Context(), paused, term, queue, role, "app.reader()", true); err != nil || !may {
		t.Fatalf("may begin: %t, error %v", may, err)
	}
	pid := paused.PgConn().PID()
	b.await("select parley._p_lead('second', 0, 30000) is not null")
	if value[bool](b, "select exists (select from pg_stat_activity where pid = $1)", pid) {
		t.Error("another daemon leads, and the session is still there")
	}
	if _, err := paused.Exec(t.Context(), "call app.reader()"); err == nil {
		t.Error("the procedure is called")
	}
	if may, err := activationstore.BeginReader(t.Context(), b.pool, term, queue, role, "app.reader()", false); err != nil || may {
		t.Errorf("with the old term it may begin: %t, error %v", may, err)
	}
}
