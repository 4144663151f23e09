package sql_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// counter reads a performance counter of its object.
func (s session) counter(object, name string) int64 {
	s.Helper()
	return value[int64](s, `
		select cntr_value from parley.dm_os_performance_counters
		where object_name = 'SQLServer:' || $1 and counter_name = $2 and instance_name in ('', current_database())`, object, name)
}

const statistics = "Broker Statistics"

// reaches waits for a counter that comes from the server's statistics. They may be a second late, and a session of PostgreSQL 14
// reports what it did only with a later statement: call it on the session that did the work.
func (s session) reaches(name string, atLeast int64) {
	s.Helper()
	s.waitUntil(`
		select cntr_value >= $3 from parley.dm_os_performance_counters
		where object_name = 'SQLServer:' || $1 and counter_name = $2`, statistics, name, atLeast)
}

func TestPerformanceCountersHaveTheNamesOfTheSpecification(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	names := values[string](b.session, "select object_name || '|' || counter_name from parley.dm_os_performance_counters where instance_name <> '_Total'")
	want := []string{
		"Broker Activation|Stored Procedures Invoked/sec", "Broker Activation|Task Limit Reached", "Broker Activation|Task Limit Reached/sec",
		"Broker Activation|Tasks Aborted/sec", "Broker Activation|Tasks Running", "Broker Activation|Tasks Started/sec",
		"Broker Statistics|SQL SENDs/sec", "Broker Statistics|SQL SEND Total", "Broker Statistics|SQL RECEIVEs/sec",
		"Broker Statistics|SQL RECEIVE Total", "Broker Statistics|Broker Transaction Rollbacks", "Broker Statistics|Dialog Timer Event Count",
		"Broker Statistics|Activation Errors Total", "Broker Statistics|Enqueued Messages Total", "Broker Statistics|Enqueued Messages/sec",
		"Broker Statistics|Enqueued Local Messages Total", "Broker Statistics|Enqueued Transport Msgs Total",
		"Broker Statistics|Enqueued Transport Msg Frag Tot", "Broker Statistics|Enqueued Transport Msg Frags/sec",
		"Broker Statistics|Enqueued P1 Messages/sec", "Broker Statistics|Enqueued P10 Messages/sec",
		"Broker Statistics|Enqueued Transmission Msgs/sec", "Broker Statistics|Dequeued Transmission Msgs/sec",
		"Broker Statistics|Corrupted Messages Total", "Broker Statistics|Dropped Messages Total", "Broker Statistics|Forwarded Messages Total",
		"Broker Statistics|Forwarded Msg Byte Total", "Broker Statistics|Forwarded Msg Discarded Total",
		"Broker Statistics|Forwarded Pending Msg Bytes", "Broker Statistics|Forwarded Pending Msg Count",
		"Broker TO Statistics|Avg. Length of Batched Writes", "Broker TO Statistics|Tran Object Writes/sec",
		"Broker/DBM Transport|Open Connection Count", "Broker/DBM Transport|Message Fragment P10 Sends/sec",
	}
	for _, name := range want {
		if !slices.Contains(names, "SQLServer:"+name) {
			t.Errorf("there is no counter %s", name)
		}
	}
	if len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) {
		t.Error("a counter is there twice")
	}
	// Tools take the rate of exactly those that are counters of rates.
	equal(b.session, 0, `
		select count(*) from parley.dm_os_performance_counters
		where cntr_type <> case when counter_name like '%/sec' then 272696576 else 65792 end`)
}

func TestEachCounterCountsWhatItsNameStates(t *testing.T) {
	t.Parallel()
	// One session does all of it, because reaches wants that.
	b := newWorld(t).connection()
	before := b.counter(statistics, "Enqueued Messages Total")
	initiator := b.dialog()
	for i := range 3 {
		b.send(initiator, request, fmt.Sprint(i))
	}
	for _, name := range []string{
		"Enqueued Messages Total", "Enqueued Messages/sec", "Enqueued Local Messages Total", "Enqueued Local Messages/sec",
		"SQL SEND Total", "SQL SENDs/sec", "Enqueued P5 Messages/sec",
	} {
		if got := b.counter(statistics, name) - before; got != 3 {
			t.Errorf("%s grew by %d, want 3", name, got)
		}
	}
	b.receive("Answering")
	b.reaches("SQL RECEIVE Total", 1)
	b.reaches("SQL RECEIVEs/sec", 1)

	b.exec("select parley.begin_conversation_timer($1::uuid, 1000)", initiator)
	timers := b.counter(statistics, "Dialog Timer Event Count")
	b.exec("select parley.begin_conversation_timer($1::uuid, 1000)", b.farHandle(initiator))
	if got := b.counter(statistics, "Dialog Timer Event Count"); got != timers+1 {
		t.Errorf("there are %d timers, want %d", got, timers+1)
	}

	rollbacks := b.counter(statistics, "Broker Transaction Rollbacks")
	b.exec("begin")
	b.send(initiator, request, "back")
	b.rollback()
	b.reaches("Broker Transaction Rollbacks", rollbacks+1)

	late := value[string](b, "select parley.begin_dialog('//test/Asker', '//test/Later', '//test/Work', allow_unknown_target => true)")
	b.send(late, request, "x")
	b.reaches("Enqueued Transmission Msgs/sec", 1)
	b.exec("select parley.create_service('//test/Later', 'Answering', array['//test/Work'])")
	b.exec("select parley.fire_timers()")
	b.reaches("Dequeued Transmission Msgs/sec", 1)
}

func TestCountersCountEachMessageOfABatch(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator := b.dialog()
	for _, length := range []int64{1, 2, 75, 1000, 4500} {
		before := b.counter(statistics, "Enqueued Messages Total")
		// The first is a first message, too.
		b.exec("select parley.send_batch($1::uuid, $2, array(select repeat('x', 100) from generate_series(1, $3)))", initiator, request, length)
		if got := b.counter(statistics, "Enqueued Messages Total") - before; got != length {
			t.Errorf("the total grew by %d, want %d", got, length)
		}
	}
	before := b.counter(statistics, "Enqueued Messages Total")
	for range 10 {
		b.exec("select parley.receive('Answering', 7)")
	}
	if got := b.counter(statistics, "Enqueued Messages Total"); got != before {
		t.Errorf("what was left of a frame and went back counts as %d messages", got-before)
	}
}

func TestCountersOfActivationAddUpWhatDaemonsReport(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	term := value[int64](b.session, "select parley._p_lead('a daemon', 0, 60000)")
	report := func(running, started, aborted, limitReached int) {
		t.Helper()
		equal(b.session, true, `
			select parley._p_report_activation($1, jsonb_build_array(jsonb_build_object(
				'queue_id', (select object_id from parley.service_queues where name = 'Answering'), 'state', 'RECEIVES_OCCURRING',
				'running_readers', $2::integer, 'failures', 0, 'started', $3::bigint, 'aborted', $4::bigint, 'limit_reached', $5::bigint
			)), null)`, term, running, started, aborted, limitReached)
	}
	b.exec("create procedure public.work() language sql as 'select 1'")
	b.exec("select parley.alter_queue('Answering', activation_procedure => 'public.work', max_queue_readers => 2, execute_as => 'OWNER')")
	report(1, 5, 3, 2)
	report(2, 10, 10, 10)
	want := func(when string) {
		t.Helper()
		for name, want := range map[string]int64{
			"Tasks Started/sec": 15, "Stored Procedures Invoked/sec": 15, "Tasks Aborted/sec": 13, "Task Limit Reached": 12, "Task Limit Reached/sec": 12,
		} {
			if got := b.counter("Broker Activation", name); got != want {
				t.Errorf("%s, %s is %d, want %d", when, name, got, want)
			}
		}
	}
	want("after two reports")
	equal(b.session, 15, "select cntr_value from parley.dm_os_performance_counters where instance_name = '_Total' and counter_name = 'Tasks Started/sec'")
	if got := b.counter("Broker Activation", "Tasks Running"); got != 2 {
		t.Errorf("%d tasks run, want 2", got)
	}
	if got := b.counter(statistics, "Activation Errors Total"); got != 13 {
		t.Errorf("%d errors of activation, want 13", got)
	}
	b.exec("select parley._p_resign($1)", term)
	if got := b.counter("Broker Activation", "Tasks Running"); got != 0 {
		t.Errorf("%d tasks run after the daemon has left", got)
	}
	b.exec("select parley.drop_service('//test/Answerer')")
	b.exec("select parley.drop_queue('Answering')")
	want("after the queue was dropped")
}

func TestTotalsDoNotFallWhenAQueueIsDropped(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	for range 3 {
		b.send(b.dialog(), request, "x")
	}
	before := b.counter(statistics, "Enqueued Messages Total")
	b.exec("select parley.receive('Answering', 100), parley.receive('Answering', 100), parley.receive('Answering', 100)")
	b.exec("select parley.end_conversation(conversation_handle, true) from parley.conversation_endpoints")
	b.exec("select parley.drop_service('//test/Answerer')")
	b.exec("select parley.drop_queue('Answering')")
	if got := b.counter(statistics, "Enqueued Messages Total"); got < before {
		t.Errorf("the total fell from %d to %d", before, got)
	}
}

func TestCountersAreForAdministratorsAndMonitors(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	outsider := b.role("outsider")
	equal(b.as(outsider), 0, "select count(*) from parley.dm_os_performance_counters")
	b.as(outsider).refuses(229, "select parley.broker_metrics()")
	b.exec("grant pg_monitor to " + quote(outsider))
	equal(b.as(outsider), true, "select count(*) > 80 from parley.dm_os_performance_counters")
	equal(b.as(outsider), true, "select parley.broker_metrics() ? 'queues'")
}

func TestFiguresCountRowsUpToAThousandAndEstimateTheRest(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	figure := func(field string) string {
		t.Helper()
		return value[string](b.session, `
			select q ->> $1 from jsonb_array_elements(parley.broker_metrics() -> 'queues') as q where q ->> 'queue' = 'Answering'`, field)
	}
	initiator := b.dialog()
	b.exec("select parley.send_batch($1::uuid, $2, array(select repeat('x', 3000) from generate_series(1, 900)))", initiator, request)
	b.send(initiator, request, "single")
	if got := figure("waiting_messages"); got != "901" || figure("is_estimated") != "false" {
		t.Errorf("%s messages wait, want 901 counted", got)
	}
	b.exec("select parley.send_batch($1::uuid, $2, array(select repeat('x', 4000) from generate_series(1, 29099)))", initiator, request)
	got, err := strconv.Atoi(figure("waiting_messages"))
	if err != nil || figure("is_estimated") != "true" || got < 27000 || got > 33000 {
		t.Errorf("%d messages wait, want an estimate of 30000 (%v)", got, err)
	}
	if enqueued, dequeued := figure("enqueued_rows"), figure("dequeued_rows"); enqueued == "0" || strings.HasPrefix(enqueued, "-") || dequeued == "" {
		t.Errorf("%s were enqueued and %s dequeued", enqueued, dequeued)
	}
}

// What is read for monitoring must keep no lock, or a monitor in an open transaction would be taken for a sender and keep queues
// from being dropped.
func TestFiguresLeaveNoLockOnQueues(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.send(b.dialog(), request, "x")
	tx := b.begin()
	tx.exec("select parley.broker_metrics()")
	tx.exec("select count(*) from parley.dm_os_performance_counters")
	equal(tx, 0, `
		select count(*) from pg_locks as l join pg_class as c on c.oid = l.relation
		where l.pid = pg_backend_pid() and c.relname like '%position'`)
}
