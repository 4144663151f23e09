package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	metricsstore "github.com/parley-broker/parley/internal/store/metrics"
)

// others is the name of the queues that have no series of their own, and no name that a queue could have. Names of queues are written as
// the statements take them, and a queue called so would be written in brackets if it had a point in it.
const others = "(other)"

type kind = prometheus.ValueType

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

// metric is one family: its name, type and how it is read from S.
type metric[S any] struct {
	desc *prometheus.Desc
	kind kind
	read func(S) (value float64, isKnown bool)
}

func family[S any](name, help string, k kind, labels []string, read func(S) (float64, bool)) metric[S] {
	return metric[S]{prometheus.NewDesc("parley_"+name, help, labels, nil), k, read}
}

// collector reports what was read last; [Metrics.refresh] reads.
type collector struct{ metrics *Metrics }

// Describe names all families.
func (c *collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, m := range databaseMetrics {
		descriptions <- m.desc
	}
	for _, m := range daemonMetrics {
		descriptions <- m.desc
	}
	for _, m := range transportMetrics {
		descriptions <- m.desc
	}
	for _, m := range queueMetrics {
		descriptions <- m.desc
	}
	for _, m := range readerMetrics {
		descriptions <- m.desc
	}
	descriptions <- statementErrors
}

// Collect reports the figures of all databases.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	for _, d := range c.metrics.all() {
		state := d.state()
		report(out, daemonMetrics, state, d.name)
		if state.hasTransport {
			report(out, transportMetrics, state.transport, d.name)
		}
		for class, count := range state.failedStatements {
			out <- prometheus.MustNewConstMetric(statementErrors, counter, float64(count), d.name, class)
		}
		own := ownSeries(state.figures.Queues, c.metrics.config.MaxQueues)
		if state.isUp {
			report(out, databaseMetrics, state.figures, d.name)
			for name, figures := range joinQueues(state.figures.Queues, own) {
				report(out, queueMetrics, figures, d.name, name)
			}
		}
		for name, r := range joinReaders(state.readers, own, c.metrics.config.MaxQueues) {
			report(out, readerMetrics, r, d.name, name)
		}
	}
}

func report[S any](out chan<- prometheus.Metric, metrics []metric[S], from S, labels ...string) {
	for _, m := range metrics {
		if value, isKnown := m.read(from); isKnown {
			out <- prometheus.MustNewConstMetric(m.desc, m.kind, value, labels...)
		}
	}
}

// ownSeries gives the names of the queues that have series of their own, by id: the oldest.
func ownSeries(queues []metricsstore.QueueMetrics, most int) map[int]string {
	own := make(map[int]string, min(len(queues), most))
	for _, q := range queues[:min(len(queues), most)] {
		own[q.QueueID] = q.Queue
	}
	return own
}

// joinQueues gives the figures by the name under which they are reported.
func joinQueues(queues []metricsstore.QueueMetrics, own map[int]string) map[string]metricsstore.QueueMetrics {
	joined := make(map[string]metricsstore.QueueMetrics, len(own)+1)
	for _, q := range queues {
		if name, ok := own[q.QueueID]; ok {
			joined[name] = q
			continue
		}
		all, ok := joined[others]
		if !ok {
			all = metricsstore.QueueMetrics{Queue: others, IsReceiveEnabled: true}
		}
		all.IsReceiveEnabled = all.IsReceiveEnabled && q.IsReceiveEnabled
		all.IsPoisoned = all.IsPoisoned || q.IsPoisoned
		all.SetAside += q.SetAside
		all.IsActivated = all.IsActivated || q.IsActivated
		all.MaxReaders += q.MaxReaders
		all.EnqueuedRows += q.EnqueuedRows
		all.DequeuedRows += q.DequeuedRows
		all.WaitingMessages += q.WaitingMessages
		if q.OldestSeconds != nil && (all.OldestSeconds == nil || *q.OldestSeconds > *all.OldestSeconds) {
			all.OldestSeconds = q.OldestSeconds
		}
		joined[others] = all
	}
	return joined
}

// joinReaders does the same for readers. While the database has never been read, the first to run have series.
func joinReaders(all map[int]readers, own map[int]string, most int) map[string]readers {
	joined := map[string]readers{}
	for id, r := range all {
		name, ok := own[id]
		if !ok && len(own) == 0 && len(joined) < most {
			name, ok = r.queue, true
		}
		if !ok {
			name = others
		}
		sum := joined[name]
		sum.queue = name
		sum.running += r.running
		sum.failing = sum.failing || r.failing
		sum.started += r.started
		sum.ended += r.ended
		sum.aborted += r.aborted
		sum.limitReached += r.limitReached
		sum.seconds += r.seconds
		joined[name] = sum
	}
	return joined
}
