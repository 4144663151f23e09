package server

import (
	"sync/atomic"
	"time"

	mailstore "github.com/parley-broker/parley/internal/store/mail"
)

// latencyBounds are the bounds of a histogram of latencies, in seconds: from what a person does not notice to the life of a message.
var latencyBounds = [...]float64{
	0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600, 24 * 3600, 48 * 3600,
}

// latencies counts how long something took, by bounds.
type latencies struct {
	counts      [len(latencyBounds) + 1]atomic.Int64
	nanoseconds atomic.Int64
}

// observe counts a latency. The clock of another machine may be ahead: no latency is less than nothing.
func (l *latencies) observe(took time.Duration) {
	took = max(took, 0)
	at := 0
	for at < len(latencyBounds) && took.Seconds() > latencyBounds[at] {
		at++
	}
	l.counts[at].Add(1)
	l.nanoseconds.Add(int64(took))
}

// read gives the histogram, with the count of all.
func (l *latencies) read() (histogram *mailstore.Histogram, count uint64) {
	histogram = &mailstore.Histogram{Buckets: make(map[float64]uint64, len(latencyBounds)), Sum: float64(l.nanoseconds.Load()) / 1e9}
	for i := range l.counts {
		count += uint64(l.counts[i].Load())
		if i < len(latencyBounds) {
			histogram.Buckets[latencyBounds[i]] = count
		}
	}
	return histogram, count
}

// percentile is the bound that a share of all latencies did not exceed, the last one where they did; 0 where there are none.
func percentile(histogram *mailstore.Histogram, count uint64, share float64) float64 {
	if count == 0 {
		return 0
	}
	for _, bound := range latencyBounds {
		if float64(histogram.Buckets[bound]) >= share*float64(count) {
			return bound
		}
	}
	return latencyBounds[len(latencyBounds)-1]
}

// countLatency is how long messages took from their receipt, or their submission, to a next hop that took them.
func (s *Server) countLatency(f *figures) {
	const object = "Latency"
	for _, of := range []struct {
		name string
		took *latencies
	}{{"remote", &s.tally.remote.latency}, {"mailbox", &s.tally.mailbox.latency}, {"service", &s.tally.serviceLatency}} {
		histogram, count := of.took.read()
		*f = append(*f, mailstore.Counter{
			Object: object, Counter: "End To End Seconds", Instance: of.name, Value: float64(count), IsTotal: true, Histogram: histogram,
		})
		f.gauge(object, "End To End Seconds p50", of.name, percentile(histogram, count, 0.5))
		f.gauge(object, "End To End Seconds p95", of.name, percentile(histogram, count, 0.95))
		f.gauge(object, "End To End Seconds p99", of.name, percentile(histogram, count, 0.99))
	}
}
