package metrics

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	mailstore "github.com/parley-broker/parley/internal/store/mail"
)

// readTimeout bounds the reading of what the database knows.
const readTimeout = 5 * time.Second

// Collector reports the figures of a daemon.
type Collector struct {
	read   func(ctx context.Context) ([]mailstore.Counter, error)
	labels prometheus.Labels
}

var _ prometheus.Collector = (*Collector)(nil)

// New gives a collector of the figures that a function reads; what it gives beside an error is reported too. database is a label of all.
func New(database string, read func(ctx context.Context) ([]mailstore.Counter, error)) *Collector {
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
		prometheus.NewDesc("parley_mail_up", "1 when the figures of the database could be read.", nil, c.labels), prometheus.GaugeValue, up)
	for _, f := range figures {
		if f.Histogram != nil {
			desc := prometheus.NewDesc(name(f), f.Object+": "+f.Counter, []string{"name"}, c.labels)
			out <- prometheus.MustNewConstHistogram(desc, uint64(f.Value), f.Histogram.Sum, f.Histogram.Buckets, f.Instance)
			continue
		}
		kind := prometheus.GaugeValue
		if f.IsTotal {
			kind = prometheus.CounterValue
		}
		desc := prometheus.NewDesc(name(f), f.Object+": "+f.Counter, []string{"name"}, c.labels)
		out <- prometheus.MustNewConstMetric(desc, kind, f.Value, f.Instance)
	}
}

// name is that of a family: Queues, Retry Remote Delivery Queue Length becomes parley_mail_queues_retry_remote_delivery_queue_length.
func name(f mailstore.Counter) string {
	written := "parley_mail_" + snake(f.Object) + "_" + snake(f.Counter)
	if f.IsTotal && f.Histogram == nil && !strings.HasSuffix(written, "_total") {
		written += "_total"
	}
	return written
}

// snake writes words in lower case with one _ between them.
func snake(words string) string {
	words = strings.ReplaceAll(words, "/sec", " per second")
	isBetween := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }
	return strings.Join(strings.FieldsFunc(strings.ToLower(words), isBetween), "_")
}
