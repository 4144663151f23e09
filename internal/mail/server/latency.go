package server

import (
	mailstore "github.com/parley-broker/parley/internal/store/mail"
	"github.com/parley-broker/parley/internal/telemetry/counters"
)

// latencyBounds are the bounds of a histogram of latencies, in seconds: from what a person does not notice to the life of a message.
type latencyBounds struct{}

// Bounds implements [counters.Bounds].
func (latencyBounds) Bounds() []float64 { return boundsOfLatencies }

var boundsOfLatencies = []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600, 24 * 3600, 48 * 3600}

// latencies counts how long something took.
type latencies = counters.Latencies[latencyBounds]

// percentile is the bound that a share of all latencies did not exceed, the last one where they did; 0 where there are none.
func percentile(histogram *counters.Histogram, count uint64, share float64) float64 {
	if count == 0 {
		return 0
	}
	bounds := latencyBounds{}.Bounds()
	for _, bound := range bounds {
		if float64(histogram.Buckets[bound]) >= share*float64(count) {
			return bound
		}
	}
	return bounds[len(bounds)-1]
}

// countLatency is how long messages took from their receipt, or their submission, to a next hop that took them.
func (s *Server) countLatency(f *figures) {
	const object = "Latency"
	for _, of := range []struct {
		name string
		took *latencies
	}{{"remote", &s.tally.remote.latency}, {"mailbox", &s.tally.mailbox.latency}, {"service", &s.tally.serviceLatency}} {
		histogram, count := of.took.Read()
		*f = append(*f, mailstore.Counter{
			Object: object, Counter: "End To End Seconds", Instance: of.name, Value: float64(count), IsTotal: true, Histogram: histogram,
		})
		f.gauge(object, "End To End Seconds p50", of.name, percentile(histogram, count, 0.5))
		f.gauge(object, "End To End Seconds p95", of.name, percentile(histogram, count, 0.95))
		f.gauge(object, "End To End Seconds p99", of.name, percentile(histogram, count, 0.99))
	}
}
