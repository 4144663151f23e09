package activation_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/broker/activation"
)

// gated waits inside the reader, with its group locked, until the gate is open.
const gated = `
	declare
		m record;
	begin
		loop
			select * into m from parley.receive('target', top => 1);
			exit when not found;
			while not (select is_open from app.gate) loop
				perform pg_sleep(0.01);
			end loop;
			insert into app.done (number) values (convert_from(m.message_body, 'UTF8')::int);
			commit;
		end loop;
	end`

func TestAMessageStartsAReader(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.activate(2)
	b.start(activation.Config{})
	b.send(1, 3)
	b.awaitDone(3)
	b.awaitReaders(0)
	b.send(4, 4)
	b.awaitDone(4)
}

func TestMessagesThatWaitedBeforeTheDaemonCameAreRead(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.send(1, 20)
	b.activate(2)
	b.start(activation.Config{})
	b.awaitDone(20)
}

func TestActivationIsSwitchedOnAndOffWhileTheDaemonRuns(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.start(activation.Config{})
	b.send(1, 1)
	b.activate(2)
	b.awaitDone(1)
	b.exec("select parley.alter_queue('target', activation => false)")
	b.await("select not exists (select from parley.dm_broker_queue_monitors where queue_name = 'target')")
	b.send(2, 2)
	b.activate(2)
	b.awaitDone(2)
}

func TestAsManyReadersAsFreeGroupsUpToTheLimit(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.procedure(gated)
	b.exec("update app.gate set is_open = false")
	b.activate(4)
	b.start(activation.Config{})
	b.send(1, 2)
	b.awaitReaders(2)
	b.await("select count(*) = 2 and count(distinct spid) = 2 from parley.dm_broker_activated_tasks where queue_name = 'target'")
	b.send(3, 7)
	b.awaitReaders(4)
	b.await("select task_limit_reached > 0 and running_readers = 4 and state = 'RECEIVES_OCCURRING' from parley.dm_broker_queue_monitors where queue_name = 'target'")
	b.exec("update app.gate set is_open = true")
	b.awaitDone(7)
	b.awaitReaders(0)
	b.await("select not exists (select from parley.dm_broker_activated_tasks)")
	if n := value[int](b, "select count(distinct reader) from app.done"); n != 4 {
		t.Errorf("%d sessions worked, want 4", n)
	}
}

func TestOneGroupIsForOneReader(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	// One transaction for all messages: between two the group is free, and a scan at that moment may start a second reader.
	b.procedure(strings.ReplaceAll(gated, "commit;", ""))
	b.exec("update app.gate set is_open = false")
	b.activate(4)
	b.start(activation.Config{})
	b.exec(`with d as materialized (select parley.begin_dialog('source', 'target') as handle)
		select parley.send(d.handle, 'DEFAULT', n::text) from d, generate_series(1, 50) as n`)
	b.awaitReaders(1)
	for range 100 {
		if n := value[int](b, "select max(running_readers) from parley.dm_broker_queue_monitors where queue_name = 'target'"); n > 1 {
			t.Fatalf("%d readers run while one holds the group", n)
		}
	}
	b.exec("update app.gate set is_open = true")
	b.awaitDone(50)
	if n := value[int](b, "select count(distinct reader) from app.done"); n != 1 {
		t.Errorf("%d sessions worked, want 1", n)
	}
}

func TestARampStartsReadersOneAfterTheOther(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.procedure(gated)
	b.exec("update app.gate set is_open = false")
	b.activate(3)
	b.send(1, 9)
	b.start(activation.Config{Ramp: time.Second})
	b.awaitReaders(1)
	b.awaitReaders(3)
	b.await("select count(*) = 3 from parley.dm_broker_activated_tasks")
	started := value[time.Duration](b, "select max(started_at) - min(started_at) from parley.dm_broker_activated_tasks")
	// On a slow machine the first may need some time before it is there.
	if started < 1200*time.Millisecond {
		t.Errorf("the third reader came after %s, want 2s", started)
	}
	b.exec("update app.gate set is_open = true")
	b.awaitDone(9)
}

func TestTheProcedureRunsUnderTheRoleOfTheQueue(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	role := b.role()
	b.activate(2)
	b.exec("select parley.alter_queue('target', execute_as => '" + role + "')")
	b.start(activation.Config{})
	b.send(1, 3)
	b.awaitDone(3)
	if who := value[string](b, "select string_agg(distinct role, ',') from app.done"); who != role {
		t.Errorf("it ran as %s, want %s", who, role)
	}
	// The next reader may run under another role, in the same session.
	b.exec("select parley.alter_queue('target', execute_as => 'OWNER')")
	for n := 4; value[int](b, "select count(*) from app.done where role = 'postgres'") == 0; n++ {
		b.send(n, n)
		b.awaitDone(n)
	}
}

func TestAReaderLeavesNothingInItsSession(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.exec("alter table app.done add found text")
	b.procedure(`
		declare
			m record;
		begin
			select * into m from parley.receive('target', top => 1);
			if not found then
				return;
			end if;
			insert into app.done (number, found)
			values (convert_from(m.message_body, 'UTF8')::int, concat_ws(' ', current_setting('work_mem'), to_regclass('pg_temp.left_behind')));
			create temp table if not exists left_behind (n int);
			perform set_config('work_mem', '77kB', false);
			perform pg_advisory_lock(77);
		end`)
	b.activate(1)
	b.start(activation.Config{SessionsMax: 1})
	for n := 1; n <= 3; n++ {
		b.send(n, n)
		b.awaitDone(n)
		b.awaitReaders(0)
	}
	if found := value[int](b, "select count(distinct found) from app.done"); found != 1 {
		t.Errorf("readers found %s", value[string](b, "select string_agg(found, '; ' order by number) from app.done"))
	}
	b.await("select not exists (select from pg_locks where locktype = 'advisory' and objid = 77 and database = (select oid from pg_database where datname = current_database()))")
}

func TestAnEngineThatIsStoppedLetsReadersFinishAndLeavesNothingRunning(t *testing.T) {
	b := newFixture(t)
	b.procedure(gated)
	b.exec("update app.gate set is_open = false")
	b.activate(2)
	engine := b.start(activation.Config{})
	b.send(1, 2)
	b.awaitReaders(2)
	engine.cancel()
	b.await("select not exists (select from parley.dm_broker_queue_monitors)")
	b.exec("update app.gate set is_open = true")
	engine.stop()
	b.awaitDone(2)
	b.await("select not exists (select from pg_stat_activity where datname = current_database() and application_name ~ '^parley (reader|listener)')")
	requireNoGoroutines(t)
}

func TestAnEngineThatIsStoppedCutsReadersOffAfterTheGraceTime(t *testing.T) {
	b := newFixture(t)
	b.procedure(gated)
	b.exec("update app.gate set is_open = false")
	b.activate(2)
	engine := b.start(activation.Config{GraceTime: 100 * time.Millisecond})
	b.send(1, 2)
	b.awaitReaders(2)
	engine.stop()
	b.await("select not exists (select from pg_stat_activity where datname = current_database() and application_name ~ '^parley (reader|listener)')")
	if n := value[int](b, "select count(*) from parley.queue_contents('target')"); n != 2 {
		t.Errorf("%d messages wait, want 2", n)
	}
	requireNoGoroutines(t)
}

// requireNoGoroutines waits until none of the package runs. Tests that ask for it do not run in parallel.
func requireNoGoroutines(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		buf := make([]byte, 1<<20)
		stacks := string(buf[:runtime.Stack(buf, true)])
		if !strings.Contains(stacks, "/internal/activation.") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("goroutines are left:\n%s", stacks)
		}
		<-time.After(pollEvery)
	}
}

func TestTheMonitorShowsWhoWaitsInReceive(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.procedure(`
		declare
			m record;
		begin
			loop
				select * into m from parley.receive('target', top => 1, timeout => 2000);
				exit when not found;
				insert into app.done (number) values (convert_from(m.message_body, 'UTF8')::int);
				commit;
			end loop;
		end`)
	b.activate(2)
	b.start(activation.Config{})
	b.send(1, 1)
	b.await("select tasks_waiting = 1 and running_readers = 1 from parley.dm_broker_queue_monitors where queue_name = 'target'")
	b.send(2, 2)
	b.awaitDone(2)
	b.awaitReaders(0)
	b.await("select last_empty_rowset_time > last_activated_time and tasks_waiting = 0 from parley.dm_broker_queue_monitors where queue_name = 'target'")
}
