package views_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// counter reads a performance counter of its object.
func counter(s sqltest.Session, object, name string) int64 {
	s.Helper()
	return sqltest.Value[int64](s, `
		select cntr_value from parley.dm_os_performance_counters
		where object_name = 'SQLServer:' || $1 and counter_name = $2 and instance_name in ('', current_database())`, object, name)
}

const statistics = "Broker Statistics"

// reaches waits for a counter that comes from the server's statistics. They may be a second late, and a session of PostgreSQL 14
// reports what it did only with a later statement: call it on the session that did the work.
func reaches(s sqltest.Session, name string, atLeast int64) {
	s.Helper()
	s.WaitUntil(`
		select cntr_value >= $3 from parley.dm_os_performance_counters
		where object_name = 'SQLServer:' || $1 and counter_name = $2`, statistics, name, atLeast)
}

func TestPerformanceCountersHaveTheNamesOfTheSpecification(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	names := sqltest.Values[string](b.Session, "select object_name || '|' || counter_name from parley.dm_os_performance_counters where instance_name <> '_Total'")
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
	sqltest.Equal(b.Session, 0, `
		select count(*) from parley.dm_os_performance_counters
		where cntr_type <> case when counter_name like '%/sec' then 272696576 else 65792 end`)
}

func TestEachCounterCountsWhatItsNameStates(t *testing.T) {
	t.Parallel()
	// One session does all of it, because reaches wants that.
	b := sqltest.NewWorld(t).Connection()
	before := counter(b, statistics, "Enqueued Messages Total")
	initiator := b.Dialog()
	for i := range 3 {
		b.Send(initiator, sqltest.Request, fmt.Sprint(i))
	}
	for _, name := range []string{
		"Enqueued Messages Total", "Enqueued Messages/sec", "Enqueued Local Messages Total", "Enqueued Local Messages/sec",
		"SQL SEND Total", "SQL SENDs/sec", "Enqueued P5 Messages/sec",
	} {
		if got := counter(b, statistics, name) - before; got != 3 {
			t.Errorf("%s grew by %d, want 3", name, got)
		}
	}
	b.Receive("Answering")
	reaches(b, "SQL RECEIVE Total", 1)
	reaches(b, "SQL RECEIVEs/sec", 1)

	b.Exec("select parley.begin_conversation_timer($1::uuid, 1000)", initiator)
	timers := counter(b, statistics, "Dialog Timer Event Count")
	b.Exec("select parley.begin_conversation_timer($1::uuid, 1000)", b.FarHandle(initiator))
	if got := counter(b, statistics, "Dialog Timer Event Count"); got != timers+1 {
		t.Errorf("there are %d timers, want %d", got, timers+1)
	}

	rollbacks := counter(b, statistics, "Broker Transaction Rollbacks")
	b.Exec("begin")
	b.Send(initiator, sqltest.Request, "back")
	b.Rollback()
	reaches(b, "Broker Transaction Rollbacks", rollbacks+1)

	late := sqltest.Value[string](b, "select parley.begin_dialog('//test/Asker', '//test/Later', '//test/Work', allow_unknown_target => true)")
	b.Send(late, sqltest.Request, "x")
	reaches(b, "Enqueued Transmission Msgs/sec", 1)
	b.Exec("select parley.create_service('//test/Later', 'Answering', array['//test/Work'])")
	b.Exec("select parley.fire_timers()")
	reaches(b, "Dequeued Transmission Msgs/sec", 1)
}

func TestCountersCountEachMessageOfABatch(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator := b.Dialog()
	for _, length := range []int64{1, 2, 75, 1000, 4500} {
		before := counter(b.Session, statistics, "Enqueued Messages Total")
		// The first is a first message, too.
		b.Exec("select parley.send_batch($1::uuid, $2, array(select repeat('x', 100) from generate_series(1, $3)))", initiator, sqltest.Request, length)
		if got := counter(b.Session, statistics, "Enqueued Messages Total") - before; got != length {
			t.Errorf("the total grew by %d, want %d", got, length)
		}
	}
	before := counter(b.Session, statistics, "Enqueued Messages Total")
	for range 10 {
		b.Exec("select parley.receive('Answering', 7)")
	}
	if got := counter(b.Session, statistics, "Enqueued Messages Total"); got != before {
		t.Errorf("what was left of a frame and went back counts as %d messages", got-before)
	}
}

func TestCountersOfActivationAddUpWhatDaemonsReport(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	term := sqltest.Value[int64](b.Session, "select parley._p_lead('a daemon', 0, 60000)")
	report := func(running, started, aborted, limitReached int) {
		t.Helper()
		sqltest.Equal(b.Session, true, `
			select parley._p_report_activation($1, jsonb_build_array(jsonb_build_object(
				'queue_id', (select object_id from parley.service_queues where name = 'Answering'), 'state', 'RECEIVES_OCCURRING',
				'running_readers', $2::integer, 'failures', 0, 'started', $3::bigint, 'aborted', $4::bigint, 'limit_reached', $5::bigint
			)), null)`, term, running, started, aborted, limitReached)
	}
	b.Exec("create procedure public.work() language sql as 'select 1'")
	b.Exec("select parley.alter_queue('Answering', activation_procedure => 'public.work', max_queue_readers => 2, execute_as => 'OWNER')")
	report(1, 5, 3, 2)
	report(2, 10, 10, 10)
	want := func(when string) {
		t.Helper()
		for name, want := range map[string]int64{
			"Tasks Started/sec": 15, "Stored Procedures Invoked/sec": 15, "Tasks Aborted/sec": 13, "Task Limit Reached": 12, "Task Limit Reached/sec": 12,
		} {
			if got := counter(b.Session, "Broker Activation", name); got != want {
				t.Errorf("%s, %s is %d, want %d", when, name, got, want)
			}
		}
	}
	want("after two reports")
	sqltest.Equal(b.Session, 15, "select cntr_value from parley.dm_os_performance_counters where instance_name = '_Total' and counter_name = 'Tasks Started/sec'")
	if got := counter(b.Session, "Broker Activation", "Tasks Running"); got != 2 {
		t.Errorf("%d tasks run, want 2", got)
	}
	if got := counter(b.Session, statistics, "Activation Errors Total"); got != 13 {
		t.Errorf("%d errors of activation, want 13", got)
	}
	b.Exec("select parley._p_resign($1)", term)
	if got := counter(b.Session, "Broker Activation", "Tasks Running"); got != 0 {
		t.Errorf("%d tasks run after the daemon has left", got)
	}
	b.Exec("select parley.drop_service('//test/Answerer')")
	b.Exec("select parley.drop_queue('Answering')")
	want("after the queue was dropped")
}

func TestTotalsDoNotFallWhenAQueueIsDropped(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	for range 3 {
		b.Send(b.Dialog(), sqltest.Request, "x")
	}
	before := counter(b.Session, statistics, "Enqueued Messages Total")
	b.Exec("select parley.receive('Answering', 100), parley.receive('Answering', 100), parley.receive('Answering', 100)")
	b.Exec("select parley.end_conversation(conversation_handle, true) from parley.conversation_endpoints")
	b.Exec("select parley.drop_service('//test/Answerer')")
	b.Exec("select parley.drop_queue('Answering')")
	if got := counter(b.Session, statistics, "Enqueued Messages Total"); got < before {
		t.Errorf("the total fell from %d to %d", before, got)
	}
}

func TestCountersAreForAdministratorsAndMonitors(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	outsider := b.Role("outsider")
	sqltest.Equal(b.As(outsider), 0, "select count(*) from parley.dm_os_performance_counters")
	b.As(outsider).Refuses(229, "select parley.broker_metrics()")
	b.Exec("grant pg_monitor to " + sqltest.Quote(outsider))
	sqltest.Equal(b.As(outsider), true, "select count(*) > 80 from parley.dm_os_performance_counters")
	sqltest.Equal(b.As(outsider), true, "select parley.broker_metrics() ? 'queues'")
}

func TestFiguresCountRowsUpToAThousandAndEstimateTheRest(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	figure := func(field string) string {
		t.Helper()
		return sqltest.Value[string](b.Session, `
			select q ->> $1 from jsonb_array_elements(parley.broker_metrics() -> 'queues') as q where q ->> 'queue' = 'Answering'`, field)
	}
	initiator := b.Dialog()
	b.Exec("select parley.send_batch($1::uuid, $2, array(select repeat('x', 3000) from generate_series(1, 900)))", initiator, sqltest.Request)
	b.Send(initiator, sqltest.Request, "single")
	if got := figure("waiting_messages"); got != "901" || figure("is_estimated") != "false" {
		t.Errorf("%s messages wait, want 901 counted", got)
	}
	b.Exec("select parley.send_batch($1::uuid, $2, array(select repeat('x', 4000) from generate_series(1, 29099)))", initiator, sqltest.Request)
	got, err := strconv.Atoi(figure("waiting_messages"))
	if err != nil || figure("is_estimated") != "true" || got < 27000 || got > 33000 {
		t.Errorf("%d messages wait, want an estimate of 30000 (%v)", got, err)
	}
	if enqueued, dequeued := figure("enqueued_rows"), figure("dequeued_rows"); enqueued == "0" || strings.HasPrefix(enqueued, "-") || dequeued == "" {
		t.Errorf("%s were enqueued and %s dequeued", enqueued, dequeued)
	}
}

// A read for monitoring must keep no lock, or a monitor in an open transaction would be taken for a sender and keep queues from being
// dropped.
func TestFiguresLeaveNoLockOnQueues(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Send(b.Dialog(), sqltest.Request, "x")
	tx := b.Begin()
	tx.Exec("select parley.broker_metrics()")
	tx.Exec("select count(*) from parley.dm_os_performance_counters")
	sqltest.Equal(tx, 0, `
		select count(*) from pg_locks as l join pg_class as c on c.oid = l.relation
		where l.pid = pg_backend_pid() and c.relname like '%position'`)
}
