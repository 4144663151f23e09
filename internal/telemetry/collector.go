package telemetry

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-broker/parley/internal/telemetry/counters"
)

// readTimeout bounds one reading of the figures of a system.
const readTimeout = 5 * time.Second

// Collector reports the counters of a system to Prometheus: each under its own name in lower case, with the name that operators know it by
// as its help text.
type Collector struct {
	prefix, instance string
	read             func(ctx context.Context) ([]counters.Counter, error)
	labels           prometheus.Labels
}

var _ prometheus.Collector = (*Collector)(nil)

// NewCollector makes a collector for a database. The names of metrics begin with the prefix, such as parley_mail; instance is the label
// that has the instances of counters. Counters that read gives beside an error are reported too, and the metric up says that there was one.
func NewCollector(
	prefix, instance, database string, read func(ctx context.Context) ([]counters.Counter, error),
) *Collector {
	return &Collector{prefix: prefix, instance: instance, read: read, labels: prometheus.Labels{"database": database}}
}

// Describe implements [prometheus.Collector]. The counters are known when they are read.
func (c *Collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	figures, err := c.read(ctx)
	up := 1.0
	if err != nil {
		up = 0
	}
	out <- prometheus.MustNewConstMetric(
		prometheus.NewDesc(c.prefix+"_up", "1 when the figures of the database could be read.", nil, c.labels), prometheus.GaugeValue, up)
	for _, f := range figures {
		desc := prometheus.NewDesc(c.name(f), f.Object+": "+f.Counter, []string{c.instance}, c.labels)
		switch {
		case f.Histogram != nil:
			out <- prometheus.MustNewConstHistogram(desc, uint64(f.Value), f.Histogram.Sum, f.Histogram.Buckets, f.Instance)
		case f.IsTotal:
			out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, f.Value, f.Instance)
		default:
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, f.Value, f.Instance)
		}
	}
}

func (c *Collector) name(f counters.Counter) string {
	written := c.prefix + "_" + snake(f.Object) + "_" + snake(f.Counter)
	if f.IsTotal && f.Histogram == nil && !strings.HasSuffix(written, "_total") {
		written += "_total"
	}
	return written
}

// snake writes words as Prometheus has names.
func snake(words string) string {
	words = strings.ReplaceAll(words, "/sec", " per second")
	isBetween := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }
	return strings.Join(strings.FieldsFunc(strings.ToLower(words), isBetween), "_")
}
