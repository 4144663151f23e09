package metrics

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// readTimeout bounds the reading of what the database knows.
const readTimeout = 5 * time.Second

// Collector reports the figures of a node.
type Collector struct {
	read   func(ctx context.Context) ([]flowstore.Counter, error)
	labels prometheus.Labels
}

var _ prometheus.Collector = (*Collector)(nil)

// New gives a collector of the figures that a function reads; what it gives beside an error is reported too. database is a label of all.
func New(database string, read func(ctx context.Context) ([]flowstore.Counter, error)) *Collector {
	return &Collector{read: read, labels: prometheus.Labels{"database": database}}
}

// Describe names no family: which there are, the figures say.
func (c *Collector) Describe(chan<- *prometheus.Desc) {}

// Collect reports the figures, and whether all of them could be read.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	figures, err := c.read(ctx)
	up := 1.0
	if err != nil {
		up = 0
	}
	out <- prometheus.MustNewConstMetric(
		prometheus.NewDesc("parley_flow_up", "1 when the figures of the database could be read.", nil, c.labels), prometheus.GaugeValue, up)
	for _, f := range figures {
		desc := prometheus.NewDesc(name(f), f.Object+": "+f.Counter, []string{"host"}, c.labels)
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

// name is that of a family: Messaging, Documents received becomes parley_flow_messaging_documents_received_total.
func name(f flowstore.Counter) string {
	written := "parley_flow_" + snake(f.Object) + "_" + snake(f.Counter)
	if f.IsTotal && f.Histogram == nil && !strings.HasSuffix(written, "_total") {
		written += "_total"
	}
	return written
}

// snake writes words in lower case with one _ between them.
func snake(words string) string {
	isBetween := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }
	return strings.Join(strings.FieldsFunc(strings.ToLower(words), isBetween), "_")
}
