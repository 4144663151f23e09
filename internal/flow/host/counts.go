package host

import (
	"sync/atomic"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/orchestrator"
	"github.com/parley-broker/parley/internal/telemetry/counters"
)

// latencyBounds are the bounds of a histogram of latencies, in seconds.
type latencyBounds struct{}

// Bounds implements [counters.Bounds].
func (latencyBounds) Bounds() []float64 { return boundsOfLatencies }

var boundsOfLatencies = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600}

// latencies counts how long something took.
type latencies = counters.Latencies[latencyBounds]

// counts are those of a host on this node since it began.
type counts struct {
	locations, sending                            atomic.Int64 // now
	received, batches, suspended, repeated        atomic.Int64
	receivedBytes, throttledBatches, commitErrors atomic.Int64
	claimed, transmitted, sentBytes, failures     atomic.Int64
	resubmitted, leasesLost                       atomic.Int64
	requests, timeouts                            atomic.Int64 // for whose answers clients waited; of those, without one in time
	waiting                                       atomic.Int64 // clients that wait now
	instances                                     instanceCounts
	inbound, outbound, latency                    latencies // of a commit, of a call of an adapter, from receipt to the end of sending
}

// instanceCounts count what steps have brought instances of orchestrations.
type instanceCounts struct {
	started, completed, terminated, suspended, failed atomic.Int64
}

func (c *instanceCounts) took(e orchestrator.Ends) {
	c.started.Add(int64(e.Started))
	c.completed.Add(int64(e.Completed))
	c.terminated.Add(int64(e.Terminated))
	c.suspended.Add(int64(e.Suspended))
	c.failed.Add(int64(e.Failed))
}

// took takes the outcome of a call of Take.
func (c *counts) took(t *take) {
	for _, p := range t.inputs {
		c.received.Add(int64(p.result.Messages))
		switch p.result.Outcome {
		case adapter.Suspended, adapter.FailedRouted:
			c.suspended.Add(1)
		case adapter.Repeated, adapter.Joined:
			c.repeated.Add(1)
		case adapter.Published, adapter.Consumed:
		}
		if size := p.input.Size; size > 0 && p.input.Open != nil {
			c.receivedBytes.Add(size)
		} else {
			c.receivedBytes.Add(int64(len(p.input.Body)))
		}
	}
}

// observeCommit takes the commit of a batch.
func (h *Host) observeCommit(took time.Duration, err error) {
	h.counts.batches.Add(1)
	if err != nil {
		h.counts.commitErrors.Add(1)
		return
	}
	if took > 0 {
		h.counts.inbound.Observe(took)
		h.server.governing.latency.Observe(took)
	}
}
