package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-broker/parley/internal/broker/transport"
	metricsstore "github.com/parley-broker/parley/internal/store/metrics"
)

// state is all that is reported of a database, as it was at one instant.
type state struct {
	isUp             bool
	figures          metricsstore.BrokerMetrics
	readErrors       int64
	readTime         time.Duration
	leads            bool
	term, changes    int64
	statements       int64
	failedStatements map[string]int64
	readers          map[int]readers
	transport        transport.Figures
	hasTransport     bool
}

func (d *Database) state() state {
	d.reading.Lock()
	s := state{isUp: d.isUp, figures: d.figures, readErrors: d.readErrors, readTime: d.readTime}
	d.reading.Unlock()
	s.statements, s.failedStatements = d.statements.read()
	d.mu.Lock()
	defer d.mu.Unlock()
	s.leads, s.term, s.changes = d.leads, d.term, d.changes
	if d.transport != nil {
		s.transport, s.hasTransport = d.transport(), true
	}
	s.readers = make(map[int]readers, len(d.readers))
	for id, r := range d.readers {
		s.readers[id] = *r
	}
	return s
}

var (
	ofDatabase = []string{"database"}
	ofQueue    = []string{"database", "queue"}
)

var statementErrors = prometheus.NewDesc("parley_daemon_statement_errors_total",
	"Statements of this daemon that failed, by class of SQLSTATE.", []string{"database", "class"}, nil)

// daemonMetrics are the daemon's own numbers: there even when the database is away.
var daemonMetrics = []metric[state]{
	family("up", "1 when the figures of the database could be read.", gauge, ofDatabase,
		func(s state) (float64, bool) { return truth(s.isUp), true }),
	family("leader", "1 when this daemon leads the database.", gauge, ofDatabase,
		func(s state) (float64, bool) { return truth(s.leads), true }),
	family("leader_term", "Term under which this daemon leads or led last.", gauge, ofDatabase,
		func(s state) (float64, bool) { return float64(s.term), true }),
	family("leadership_changes_total", "How often this daemon began or ceased to lead.", counter, ofDatabase,
		func(s state) (float64, bool) { return float64(s.changes), true }),
	family("daemon_statements_total", "Statements of this daemon.", counter, ofDatabase,
		func(s state) (float64, bool) { return float64(s.statements), true }),
	family("metrics_read_errors_total", "How often the figures could not be read.", counter, ofDatabase,
		func(s state) (float64, bool) { return float64(s.readErrors), true }),
	family("metrics_read_seconds", "How long reading the figures took last.", gauge, ofDatabase,
		func(s state) (float64, bool) { return s.readTime.Seconds(), true }),
}

// databaseMetrics are the figures of a whole broker.
var databaseMetrics = []metric[metricsstore.BrokerMetrics]{
	family("schema_version", "Version of the schema that is installed.", gauge, ofDatabase,
		func(m metricsstore.BrokerMetrics) (float64, bool) { return float64(m.SchemaVersion), true }),
	family("conversation_endpoints", "Sides of conversations, estimated beyond 10,000.", gauge, ofDatabase,
		func(m metricsstore.BrokerMetrics) (float64, bool) { return float64(m.ConversationEndpoints), true }),
	family("timers_pending", "Conversation timers, ends of lifetime and clean-ups that are set, estimated beyond 10,000.", gauge, ofDatabase,
		func(m metricsstore.BrokerMetrics) (float64, bool) { return float64(m.TimersPending), true }),
	family("timers_late", "Those of them that are more than a second late, up to 10,000.", gauge, ofDatabase,
		func(m metricsstore.BrokerMetrics) (float64, bool) { return float64(m.TimersLate), true }),
	family("timer_lateness_seconds", "How late the one is that is late most.", gauge, ofDatabase,
		func(m metricsstore.BrokerMetrics) (float64, bool) { return seconds(m.TimerOldestDueSeconds), true }),
	family("transmission_messages", "Messages that cannot be delivered yet, estimated beyond 10,000.", gauge, ofDatabase,
		func(m metricsstore.BrokerMetrics) (float64, bool) { return float64(m.TransmissionMessages), true }),
	family("transmission_oldest_seconds", "How long the oldest of them has waited.", gauge, ofDatabase,
		func(m metricsstore.BrokerMetrics) (float64, bool) { return seconds(m.TransmissionOldestSeconds), true }),
	family("certificate_expiry_timestamp_seconds", "When the certificate of a daemon expires, the first of them.", gauge, ofDatabase,
		func(m metricsstore.BrokerMetrics) (float64, bool) {
			return seconds(m.CertificateNotAfter), m.CertificateNotAfter != nil
		}),
	family("receives_total", "RECEIVEs that found messages, once for each conversation.", counter, ofDatabase,
		func(m metricsstore.BrokerMetrics) (float64, bool) { return float64(m.Receives), true }),
	family("transactions_rolled_back_total", "Transactions of the database that rolled back, for whatever reason.", counter, ofDatabase,
		func(m metricsstore.BrokerMetrics) (float64, bool) { return float64(m.TransactionsRolledBack), true }),
	family("store_rows_inserted_total", "Rows put into the message store, rolled back ones included.", counter, ofDatabase,
		func(m metricsstore.BrokerMetrics) (float64, bool) { return float64(m.RowsInserted), true }),
	family("store_rows_deleted_total", "Rows taken out of the message store, rolled back ones included.", counter, ofDatabase,
		func(m metricsstore.BrokerMetrics) (float64, bool) { return float64(m.RowsDeleted), true }),
	family("store_rows_dead", "Rows that were received and wait for vacuum.", gauge, ofDatabase,
		func(m metricsstore.BrokerMetrics) (float64, bool) { return float64(m.RowsDead), true }),
	family("store_bytes", "Size of the message store with its indexes.", gauge, ofDatabase,
		func(m metricsstore.BrokerMetrics) (float64, bool) { return float64(m.StoreBytes), true }),
}

// queueMetrics are the figures of each queue.
var queueMetrics = []metric[metricsstore.QueueMetrics]{
	family("queue_depth_messages", "Messages that wait, estimated beyond 1,000 rows.", gauge, ofQueue,
		func(q metricsstore.QueueMetrics) (float64, bool) { return float64(q.WaitingMessages), true }),
	family("queue_oldest_message_seconds", "How long the oldest message has waited; 0 when none does.", gauge, ofQueue,
		func(q metricsstore.QueueMetrics) (float64, bool) { return seconds(q.OldestSeconds), true }),
	family("queue_enqueued_rows_total", "Rows ever put on the queue: a message each, or a frame of a batch.", counter, ofQueue,
		func(q metricsstore.QueueMetrics) (float64, bool) { return float64(q.EnqueuedRows), true }),
	family("queue_dequeued_rows_total", "Rows that are on the queue no more.", counter, ofQueue,
		func(q metricsstore.QueueMetrics) (float64, bool) { return float64(q.DequeuedRows), true }),
	family("queue_receive_enabled", "1 when messages can be received.", gauge, ofQueue,
		func(q metricsstore.QueueMetrics) (float64, bool) { return truth(q.IsReceiveEnabled), true }),
	family("queue_poisoned", "1 when poison message handling has disabled the queue.", gauge, ofQueue,
		func(q metricsstore.QueueMetrics) (float64, bool) { return truth(q.IsPoisoned), true }),
	family("queue_set_aside_conversations", "Conversations that poison message handling has set aside.", gauge, ofQueue,
		func(q metricsstore.QueueMetrics) (float64, bool) { return float64(q.SetAside), true }),
	family("queue_max_readers", "Most readers that activation may run; for activated queues.", gauge, ofQueue,
		func(q metricsstore.QueueMetrics) (float64, bool) { return float64(q.MaxReaders), q.IsActivated }),
}

// readerMetrics count the work of this daemon for each queue that it has activated.
var readerMetrics = []metric[readers]{
	family("readers_running", "Readers that run now.", gauge, ofQueue,
		func(r readers) (float64, bool) { return float64(r.running), true }),
	family("readers_failing", "1 when the last reader that ended has failed.", gauge, ofQueue,
		func(r readers) (float64, bool) { return truth(r.failing), true }),
	family("readers_started_total", "Readers that were started.", counter, ofQueue,
		func(r readers) (float64, bool) { return float64(r.started), true }),
	family("readers_ended_total", "Readers that have ended, failed ones included.", counter, ofQueue,
		func(r readers) (float64, bool) { return float64(r.ended), true }),
	family("readers_aborted_total", "Readers that have failed.", counter, ofQueue,
		func(r readers) (float64, bool) { return float64(r.aborted), true }),
	family("reader_limit_reached_total", "How often a reader more would have had work.", counter, ofQueue,
		func(r readers) (float64, bool) { return float64(r.limitReached), true }),
	family("reader_seconds_total", "Time that the readers that have ended had run.", counter, ofQueue,
		func(r readers) (float64, bool) { return r.seconds, true }),
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// seconds reads an age, which is 0 when nothing waits: an alert needs a value to end at.
func seconds(age *float64) float64 {
	if age == nil {
		return 0
	}
	return max(*age, 0)
}
