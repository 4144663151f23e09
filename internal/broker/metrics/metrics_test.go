package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/metrics"
	metricsstore "github.com/parley-broker/parley/internal/store/metrics"
)

// Each metric is asserted to change when what it counts happens.
func TestEachMetricMoves(t *testing.T) {
	t.Parallel()
	b := newFixture(t, metrics.Config{})
	b.services()
	b.until("a readable database", func(s map[string]float64) bool { return s[`parley_up{database="orders"}`] == 1 })

	// steps do something, and then a metric stands in a relation to what it was before.
	grows := func(before, after float64) bool { return after > before }
	steps := []struct {
		name   string
		does   func()
		metric string
		holds  func(before, after float64) bool
	}{
		{"a send", func() { b.send(b.dialog("pong"), "x") }, `parley_queue_depth_messages{database="orders",queue="pong"}`, grows},
		{"a send", func() { b.send(b.dialog("pong"), "x") }, `parley_queue_enqueued_rows_total{database="orders",queue="pong"}`, grows},
		{"a wait", func() {}, `parley_queue_oldest_message_seconds{database="orders",queue="pong"}`, grows},
		{"a dialog", func() { b.send(b.dialog("pong"), "x") }, `parley_conversation_endpoints{database="orders"}`, grows},
		{"a send", func() { b.send(b.dialog("pong"), "x") }, `parley_store_rows_inserted_total{database="orders"}`, grows},
		{"many sends", func() {
			handle := b.dialog("pong")
			for range 300 {
				b.send(handle, strings.Repeat("x", 1000))
			}
		}, `parley_store_bytes{database="orders"}`, grows},
		{"a receive", func() { b.exec("select parley.receive('pong')") }, `parley_queue_dequeued_rows_total{database="orders",queue="pong"}`, grows},
		{"a receive", func() { b.exec("select parley.receive('pong')") }, `parley_receives_total{database="orders"}`, grows},
		{"a receive", func() { b.exec("select parley.receive('pong')") }, `parley_store_rows_deleted_total{database="orders"}`, grows},
		{"a receive", func() {
			b.send(b.dialog("pong"), "x")
			b.exec("select parley.receive('pong')")
		}, `parley_store_rows_dead{database="orders"}`, func(_, after float64) bool { return after > 0 }},
		{"a rollback", func() {
			b.exec("begin; select 1; rollback")
		}, `parley_transactions_rolled_back_total{database="orders"}`, grows},
		{"a timer", func() {
			b.exec("select parley.begin_conversation_timer($1, 1000)", b.dialog("pong"))
		}, `parley_timers_pending{database="orders"}`, grows},
		{"a late timer", func() { b.exec("update parley._p_alarm set due_at = now() - interval '10 s'") }, `parley_timers_late{database="orders"}`, grows},
		{"a late timer", func() {}, `parley_timer_lateness_seconds{database="orders"}`, grows},
		{"a target that is missing", func() { b.send(b.dialog("nobody"), "x") }, `parley_transmission_messages{database="orders"}`, grows},
		{"a target that is missing", func() {}, `parley_transmission_oldest_seconds{database="orders"}`, grows},
		{"a certificate", func() {
			b.exec("select parley._p_report_certificate('host', repeat('0', 64), now(), '2100-01-01')")
		}, `parley_certificate_expiry_timestamp_seconds{database="orders"}`, grows},
		{"an activated queue", func() {
			b.exec("create procedure public.work() language sql as 'select 1'")
			b.exec("select parley.alter_queue('pong', activation_procedure => 'public.work', max_queue_readers => 7, execute_as => 'OWNER', activation => true)")
		}, `parley_queue_max_readers{database="orders",queue="pong"}`, func(_, after float64) bool { return after == 7 }},
		{"a conversation that is set aside", func() {
			b.send(b.dialog("pong"), "x")
			b.exec(`
				select parley._p_set_aside_conversation(m.lane / 16, m.endpoint_id, m.position, 5)
				from parley._p_message as m join parley._p_queue as q on q.queue_id = m.lane / 16 and q.name = 'pong'
				order by m.position desc limit 1`)
		}, `parley_queue_set_aside_conversations{database="orders",queue="pong"}`, grows},
		{
			"a queue that is off", func() { b.exec("select parley.alter_queue('pong', status => false)") }, `parley_queue_receive_enabled{database="orders",queue="pong"}`,
			func(before, after float64) bool { return before == 1 && after == 0 },
		},
		{"a poisoned queue", func() {
			b.exec("select parley.alter_queue('pong', status => true, poison_action => 'DISABLE_QUEUE')")
			b.exec("select setval(rollback_sequence, (1::bigint << 4) | 5) from parley._p_queue where name = 'pong'")
		}, `parley_queue_poisoned{database="orders",queue="pong"}`, func(before, after float64) bool { return before == 0 && after == 1 }},
		{"a reader", func() { b.database.ReaderStarted(b.queue("pong")) }, `parley_readers_running{database="orders",queue="pong"}`, grows},
		{"a reader", func() { b.database.ReaderStarted(b.queue("pong")) }, `parley_readers_started_total{database="orders",queue="pong"}`, grows},
		{"a reader that leaves", func() { b.database.ReaderEnded(b.queue("pong"), nil, time.Second) }, `parley_readers_ended_total{database="orders",queue="pong"}`, grows},
		{"a reader that leaves", func() { b.database.ReaderEnded(b.queue("pong"), nil, time.Second) }, `parley_reader_seconds_total{database="orders",queue="pong"}`, grows},
		{"a reader that fails", func() { b.database.ReaderEnded(b.queue("pong"), errors.New("no"), 0) }, `parley_readers_aborted_total{database="orders",queue="pong"}`, grows},
		{"a reader that fails", func() {}, `parley_readers_failing{database="orders",queue="pong"}`, func(_, after float64) bool { return after == 1 }},
		{"the limit", func() { b.database.TaskLimitReached(b.queue("pong")) }, `parley_reader_limit_reached_total{database="orders",queue="pong"}`, grows},
		{"leadership", func() { b.database.LeadershipChanged(true, 12) }, `parley_leader{database="orders"}`, func(before, after float64) bool { return before == 0 && after == 1 }},
		{"leadership", func() {}, `parley_leader_term{database="orders"}`, func(_, after float64) bool { return after == 12 }},
		{"leadership lost", func() { b.database.LeadershipChanged(false, 12) }, `parley_leadership_changes_total{database="orders"}`, grows},
		{"a statement", func() { b.exec("select 1") }, `parley_daemon_statements_total{database="orders"}`, grows},
		{"a statement that fails", func() {
			_, _ = b.pool.Exec(t.Context(), "select parley.receive('nowhere')")
		}, `parley_daemon_statement_errors_total{class="SB",database="orders"}`, grows},
		{"figures", func() {}, `parley_metrics_read_seconds{database="orders"}`, func(_, after float64) bool { return after > 0 }},
		{"figures", func() {}, `parley_schema_version{database="orders"}`, func(_, after float64) bool { return after > 0 }},
		{"a schema that is gone", func() {
			b.exec("alter function parley.broker_metrics(parley.caller) rename to gone")
		}, `parley_metrics_read_errors_total{database="orders"}`, grows},
		{"a schema that is gone", func() {}, `parley_up{database="orders"}`, func(_, after float64) bool { return after == 0 }},
	}
	asserted := map[string]bool{}
	all := map[string]bool{}
	for _, step := range steps {
		samples := b.scrape()
		for name := range names(samples) {
			all[name] = true
		}
		before := samples[step.metric]
		step.does()
		b.until(fmt.Sprintf("%s in %s, which was %v,", step.name, step.metric, before), func(s map[string]float64) bool {
			after, ok := s[step.metric]
			return ok && step.holds(before, after)
		})
		name, _, _ := strings.Cut(step.metric, "{")
		asserted[name] = true
	}
	for name := range all {
		if !asserted[name] {
			t.Errorf("nothing moves %s", name)
		}
	}
}

func TestAThousandQueuesHaveABoundedNumberOfSeries(t *testing.T) {
	t.Parallel()
	b := newFixture(t, metrics.Config{MaxQueues: 50})
	b.services()
	for range 10 {
		b.exec("select parley.create_queue('q' || gen_random_uuid()) from generate_series(1, 100)")
	}
	b.exec("select parley.create_queue('last'), parley.create_service('last', 'last', array['DEFAULT'])")
	b.send(b.dialog("last"), "x")
	b.send(b.dialog("pong"), "x")
	b.database.ReaderStarted(b.queue("last"))
	b.database.ReaderStarted(b.queue("pong"))
	const depth = `parley_queue_depth_messages{database="orders",queue=`
	b.until("all queues", func(s map[string]float64) bool {
		return s[depth+`"(other)"}`] == 1 && s[depth+`"pong"}`] == 1
	})
	samples := b.scrape()
	perFamily := map[string]int{}
	for sample := range samples {
		name, _, _ := strings.Cut(sample, "{")
		perFamily[name]++
	}
	for name, series := range perFamily {
		if series > 51 {
			t.Errorf("%s has %d series", name, series)
		}
	}
	if perFamily["parley_queue_depth_messages"] != 51 {
		t.Errorf("there are %d series of queues, want 50 and one for the others", perFamily["parley_queue_depth_messages"])
	}
	if got := samples[`parley_readers_running{database="orders",queue="(other)"}`]; got != 1 {
		t.Errorf("%v readers run on the other queues, want 1", got)
	}
}

func TestManyScrapersAskTheDatabaseOnceASecond(t *testing.T) {
	t.Parallel()
	b := newFixture(t, metrics.Config{})
	b.until("a readable database", func(s map[string]float64) bool { return s[`parley_up{database="orders"}`] == 1 })
	const statements = `parley_daemon_statements_total{database="orders"}`
	started := time.Now()
	before := b.scrape()[statements]
	var scraping sync.WaitGroup
	for range 20 {
		scraping.Go(func() { b.get("/metrics") })
	}
	scraping.Wait()
	asked := b.scrape()[statements] - before
	if most := time.Since(started).Seconds() + 2; asked > most {
		t.Errorf("the database was asked %v times, want %v at most", asked, most)
	}
}

func TestReadBrokerMetricsNeedsARight(t *testing.T) {
	t.Parallel()
	b := newFixture(t, metrics.Config{})
	tx, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), "create role metrics_outsider; set local role metrics_outsider"); err != nil {
		t.Fatal(err)
	}
	_, err = metricsstore.ReadBrokerMetrics(t.Context(), tx)
	if number, _ := parley.ErrorNumber(err); number != parley.PermissionDenied {
		t.Errorf("got %v, want error %d", err, parley.PermissionDenied)
	}
}
