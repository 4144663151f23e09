// Package counters is the form in which the systems of a daemon count: under the names that operators know, and latencies by bounds.
package counters

import (
	"sync/atomic"
	"time"
)

// Counter is a count of a system.
type Counter struct {
	Object   string  `json:"object"`
	Counter  string  `json:"counter"`
	Instance string  `json:"instance"`
	Value    float64 `json:"value"`
	// IsTotal is whether it only grows, as long as the daemon runs.
	IsTotal bool `json:"is_total,omitempty"`
	// Histogram has how values are spread, of which Value is then the count; it is not reported to the database.
	Histogram *Histogram `db:"-" json:"-"`
}

// Histogram is how many values were at most each of some bounds, and their sum.
type Histogram struct {
	Buckets map[float64]uint64
	Sum     float64
}

// Bounds are those of a kind of latencies, in seconds, in order.
type Bounds interface{ Bounds() []float64 }

// boundsMost is how many bounds there may be.
const boundsMost = 31

// Latencies counts how long something took, by bounds. Its zero value is ready.
type Latencies[B Bounds] struct {
	counts      [boundsMost + 1]atomic.Int64
	nanoseconds atomic.Int64
}

// Observe counts a latency. The clock of another machine may be ahead: no latency is less than nothing.
func (l *Latencies[B]) Observe(took time.Duration) {
	var of B
	took = max(took, 0)
	at, bounds := 0, of.Bounds()
	for at < len(bounds) && took.Seconds() > bounds[at] {
		at++
	}
	l.counts[at].Add(1)
	l.nanoseconds.Add(int64(took))
}

// Read gives the histogram, with the count of all.
func (l *Latencies[B]) Read() (histogram *Histogram, count uint64) {
	var of B
	bounds := of.Bounds()
	histogram = &Histogram{Buckets: make(map[float64]uint64, len(bounds)), Sum: float64(l.nanoseconds.Load()) / 1e9}
	for i := range len(bounds) + 1 {
		count += uint64(l.counts[i].Load())
		if i < len(bounds) {
			histogram.Buckets[bounds[i]] = count
		}
	}
	return histogram, count
}
