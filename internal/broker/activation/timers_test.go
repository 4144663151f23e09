package activation_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/broker/activation"
)

// dialog begins a conversation that has been answered for, and gives both of its handles.
func (b *fixture) dialog() (source, target string) {
	b.t.Helper()
	source = value[string](b, "select parley.begin_dialog('source', 'target')::text")
	b.exec("select parley.send($1::uuid, 'DEFAULT', '0'::text)", source)
	target = value[string](b, "select conversation_handle::text from parley.receive('target', conversation_handle => (select conversation_handle "+
		"from parley.conversation_endpoints where not is_initiator::int::bool and conversation_id = "+
		"(select conversation_id from parley.conversation_endpoints where conversation_handle = $1::uuid)))", source)
	return source, target
}

const timerFired = "select exists (select from app.done where number = -1)"

func TestAConversationTimerFiresAndActivates(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	_, target := b.dialog()
	b.activate(2)
	b.start(activation.Config{})
	b.await("select count(*) = 1 from parley.dm_broker_queue_monitors")
	for seconds := range 3 {
		b.exec("delete from app.done")
		b.exec("select parley.begin_conversation_timer($1::uuid, $2)", target, seconds)
		b.await(timerFired)
	}
}

func TestATimerFiresOnAQueueThatNobodyReads(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	source, _ := b.dialog()
	b.start(activation.Config{})
	b.exec("select parley.begin_conversation_timer($1::uuid, 1)", source)
	b.await("select exists (select from parley.queue_contents('source') where message_type_name like '%DialogTimer')")
}

func TestALifetimeEndsOnTime(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.start(activation.Config{})
	b.exec("select parley.send(parley.begin_dialog('source', 'target', lifetime => 1), 'DEFAULT', '1'::text)")
	b.await("select exists (select from parley.queue_contents('source') where message_type_name like '%Error')")
}

func TestATimerThatCannotFireKeepsNoOther(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	held, _ := b.dialog()
	free, _ := b.dialog()
	b.exec("select parley.begin_conversation_timer(h, 1) from unnest(array[$1, $2]::uuid[]) as h", held, free)
	tx, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "select from parley._p_endpoint where conversation_handle = $1::uuid for update", held); err != nil {
		t.Fatal(err)
	}
	b.start(activation.Config{})
	const fired = "select exists (select from parley.queue_contents('source') where message_type_name like '%DialogTimer' and conversation_handle = $1::uuid)"
	b.await(fired, free)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.await(fired, held)
}

func TestTimersBehindAPoolerFireToo(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	_, target := b.dialog()
	b.activate(2)
	b.start(activation.Config{Pool: b.pooler()})
	b.exec("select parley.begin_conversation_timer($1::uuid, 1)", target)
	b.await(timerFired)
}

// A search for due timers must not read the pending ones.
func TestAmongManyTimersOnlyThoseThatAreDueAreRead(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	_, target := b.dialog()
	b.exec(`insert into parley._p_alarm (endpoint_id, kind, due_at)
		select 1000000 + n, 'timer', clock_timestamp() + interval '1 hour' from generate_series(1, 100000) as n`)
	b.exec("analyze parley._p_alarm")
	b.activate(1)
	b.start(activation.Config{})
	b.await("select count(*) = 1 from parley.dm_broker_queue_monitors")
	b.exec("select pg_stat_reset_single_table_counters('parley._p_alarm'::regclass)")
	b.exec("select parley.begin_conversation_timer($1::uuid, 1)", target)
	b.await(timerFired)
	const read = "select seq_tup_read + idx_tup_fetch from pg_stat_user_tables where relid = 'parley._p_alarm'::regclass"
	b.await("select idx_scan > 0 from pg_stat_user_tables where relid = 'parley._p_alarm'::regclass")
	if n := value[int](b, read); n > 1000 {
		t.Errorf("%d alarms were read to fire one", n)
	}
}
