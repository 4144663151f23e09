package activation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/broker/activation"
)

// failing is the monitor of the queue while its readers fail.
const failing = `select state = 'NOTIFIED' and failures > 0 and failing_since is not null and last_error like $1 and last_sqlstate is not distinct from $2
	from parley.dm_broker_queue_monitors where queue_name = 'target'`

const content = `select state = 'INACTIVE' and failures = 0 and failing_since is null and last_error is null and next_attempt_time is null
	from parley.dm_broker_queue_monitors where queue_name = 'target'`

// withoutPoison keeps the queue on, however often its readers fail.
func (b *fixture) withoutPoison() {
	b.exec("select parley.alter_queue('target', poison_message_handling => false)")
}

func TestAProcedureThatRaisesIsTriedAgainUntilItSucceeds(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.withoutPoison()
	b.procedure(`begin
		perform parley.receive('target');
		raise exception 'the shop is closed' using errcode = 'SHOP1';
	end`)
	b.activate(2)
	b.start(activation.Config{})
	b.send(1, 3)
	b.await(failing, "%the shop is closed%", "SHOP1")
	b.await("select failures > 3 and tasks_aborted > 3 from parley.dm_broker_queue_monitors where queue_name = 'target'")
	b.log.Await(t, `msg="activation aborted" number=28088 queue=target`)
	b.restore()
	b.awaitDone(3)
	b.send(4, 4)
	b.awaitDone(4)
	b.await(content)
}

func TestAProcedureThatIsDroppedIsMissedAndNoticedWhenItComesBack(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.activate(2)
	b.start(activation.Config{})
	b.send(1, 1)
	b.awaitDone(1)
	b.exec("drop procedure app.reader()")
	b.send(2, 2)
	b.await(failing, "%does not exist%", "42883")
	b.restore()
	b.awaitDone(2)
	b.await(content)
}

func TestAReaderThatReturnsWithoutReceivingIsNoTrap(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.procedure("begin null; end")
	b.activate(2)
	b.start(activation.Config{})
	b.send(1, 2)
	b.await(failing, "%received nothing%", nil)
	b.await("select next_attempt_time > clock_timestamp() from parley.dm_broker_queue_monitors where queue_name = 'target'")
	b.log.Await(t, "number=28087")
	b.restore()
	b.awaitDone(2)
	b.await(content)
}

func TestAReaderThatLoopsWithoutReceivingDoesNotKeepTheQueue(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.exec("create sequence app.first")
	b.procedure(`
		declare
			m record;
		begin
			if nextval('app.first') = 1 then
				loop
					perform pg_sleep(0.01);
				end loop;
			end if;
			loop
				select * into m from parley.receive('target', top => 1);
				exit when not found;
				insert into app.done (number) values (convert_from(m.message_body, 'UTF8')::int);
				commit;
			end loop;
		end`)
	b.activate(2)
	engine := b.start(activation.Config{GraceTime: 1})
	b.send(1, 1)
	b.log.Await(t, "number=28087")
	b.awaitDone(1)
	b.await("select running_readers = 1 and failures = 0 from parley.dm_broker_queue_monitors where queue_name = 'target'")
	engine.stop()
	b.await("select not exists (select from pg_stat_activity where datname = current_database() and application_name = 'parley reader')")
}

func TestAReaderThatHoldsALockKeepsOnlyItsOwnGroup(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.exec("create table app.locked (n int); insert into app.locked values (1)")
	b.procedure(`
		declare
			m record;
		begin
			loop
				select * into m from parley.receive('target', top => 1);
				exit when not found;
				perform from app.locked where convert_from(m.message_body, 'UTF8')::int = n for update;
				insert into app.done (number) values (convert_from(m.message_body, 'UTF8')::int);
				commit;
			end loop;
		end`)
	b.activate(2)
	b.start(activation.Config{})
	tx, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "select from app.locked for update"); err != nil {
		t.Fatal(err)
	}
	b.send(1, 30)
	b.await("select count(*) = 29 from app.done")
	b.awaitReaders(1)
	b.send(31, 40)
	b.await("select count(*) = 39 from app.done")
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.awaitDone(40)
	b.awaitReaders(0)
}

func TestABacklogBehindHeldGroupsIsFound(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.procedure(gated)
	b.exec("update app.gate set is_open = false")
	// More rows than an ordinary scan reads, all of one group, and another group behind them.
	b.exec(`with d as materialized (select parley.begin_dialog('source', 'target') as handle)
		select parley.send(d.handle, 'DEFAULT', n::text) from d, generate_series(1, 1000) as n`)
	b.send(1001, 1001)
	b.activate(3)
	b.start(activation.Config{})
	b.awaitReaders(2)
	b.exec("update app.gate set is_open = true")
	b.awaitDone(1001)
}

func TestAQueueThatIsSwitchedOffStartsNoReader(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.activate(2)
	b.start(activation.Config{})
	b.exec("select parley.alter_queue('target', status => false)")
	b.send(1, 1)
	b.exec("select parley.alter_queue('target', status => true)")
	b.awaitDone(1)
}

func TestARoleThatIsGoneIsMissed(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.activate(2)
	b.exec("select parley.alter_queue('target', execute_as => 'OWNER')")
	b.exec("alter table parley._p_queue disable trigger all; update parley._p_queue set execute_as = 'nobody at all' where lookup_name = 'target'")
	b.start(activation.Config{})
	b.send(1, 1)
	b.await(failing, "%role%does not exist%", "42704")
}

// In Service Broker a procedure that leaves a transaction open has failed (8415). Here it cannot: what it has not committed is committed
// when it returns, and a transaction that it tries to begin is refused.
func TestAProcedureCannotLeaveATransactionOpen(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.procedure(`
		begin
			insert into app.done (number) select convert_from(m.message_body, 'UTF8')::int from parley.receive('target') as m;
		end`)
	b.activate(1)
	b.start(activation.Config{})
	b.send(1, 3)
	b.awaitDone(3)
	b.awaitReaders(0)
	b.procedure(`
		begin
			perform from parley.receive('target');
			execute 'begin';
		end`)
	b.send(4, 4)
	b.log.Await(t, "activation aborted")
	if log := b.log.String(); strings.Contains(log, "8415") {
		t.Errorf("8415 is logged:\n%s", log)
	}
	b.await("select count(*) = 0 from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'")
	b.procedure(`
		begin
			insert into app.done (number) select convert_from(m.message_body, 'UTF8')::int from parley.receive('target') as m;
		end`)
	b.awaitDone(4)
}

// A reader whose queue goes away under it ends with Service Broker's numbers for that: 28086 disabled, 28085 dropped.
func TestAReaderOfAQueueThatIsSwitchedOffOrDroppedSaysSo(t *testing.T) {
	t.Parallel()
	for number, change := range map[int]string{
		28086: "select parley.alter_queue('target', status => false)",
		28085: "select parley.drop_service('target'); select parley.drop_queue('target')",
	} {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			b.withoutPoison()
			b.procedure("begin perform parley.receive('target', timeout => -1); commit; insert into app.done (number) values (1); commit; " +
				"perform parley.receive('target', timeout => -1); end")
			b.activate(1)
			b.start(activation.Config{})
			b.send(1, 1)
			b.awaitDone(1)
			b.exec(change)
			b.log.Await(t, fmt.Sprintf("number=%d queue=target", number))
		})
	}
}
