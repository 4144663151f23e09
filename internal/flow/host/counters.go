package host

import (
	"context"
	"fmt"
	"time"

	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// figures collects counters under their original names (spec integration 17).
type figures struct {
	host string
	list []flowstore.Counter
}

func (f *figures) gauge(object, counter string, value float64) {
	f.list = append(f.list, flowstore.Counter{Object: object, Instance: f.host, Counter: counter, Value: value})
}

func (f *figures) total(object, counter string, value int64) {
	f.list = append(f.list, flowstore.Counter{Object: object, Instance: f.host, Counter: counter, Value: float64(value), IsTotal: true})
}

func (f *figures) histogram(object, counter string, l *latencies) {
	histogram, count := l.Read()
	f.list = append(f.list, flowstore.Counter{
		Object: object, Instance: f.host, Counter: counter, Value: float64(count), IsTotal: true, Histogram: histogram,
	})
}

// counters gives the counts of a host on this node.
func (h *Host) counters() []flowstore.Counter {
	f, c := figures{host: h.name}, &h.counts
	f.gauge("Messaging", "Active receive locations", float64(c.locations.Load()))
	f.gauge("Messaging", "Active send threads", float64(c.sending.Load()))
	f.gauge("Messaging", "Active send messages", float64(h.ports.count()))
	f.gauge("Messaging", "Pending transmitted messages", float64(h.completer.count()))
	f.total("Messaging", "Documents received", c.received.Load())
	f.total("Messaging", "Document bytes received", c.receivedBytes.Load())
	f.total("Messaging", "Documents processed", c.transmitted.Load())
	f.total("Messaging", "Document bytes processed", c.sentBytes.Load())
	f.total("Messaging", "Documents suspended", c.suspended.Load())
	f.total("Messaging", "Documents resubmitted", c.resubmitted.Load())
	f.total("Messaging", "Documents repeated", c.repeated.Load())
	f.total("Messaging", "Transmission failures", c.failures.Load())
	f.total("Messaging", "Receive batches", c.batches.Load())
	f.total("Messaging", "Receive batch failures", c.commitErrors.Load())
	f.total("Messaging", "Throttled receive batches", c.throttledBatches.Load())
	f.total("Messaging", "Leases lost", c.leasesLost.Load())
	f.total("Messaging", "Requests", c.requests.Load())
	f.total("Messaging", "Request timeouts", c.timeouts.Load())
	f.gauge("Messaging", "Active requests", float64(c.waiting.Load()))
	f.histogram("Messaging Latency", "Inbound Latency seconds", &c.inbound)
	f.histogram("Messaging Latency", "Outbound Adapter Latency seconds", &c.outbound)
	f.histogram("Messaging Latency", "Outbound Latency seconds", &c.latency)
	f.total("Orchestrations", "Instances started", c.instances.started.Load())
	f.total("Orchestrations", "Instances completed", c.instances.completed.Load())
	f.total("Orchestrations", "Instances terminated", c.instances.terminated.Load())
	f.total("Orchestrations", "Instances suspended since start", c.instances.suspended.Load())
	f.total("Orchestrations", "Failed steps", c.instances.failed.Load())
	h.countAgent(&f)
	return f.list
}

// countAgent gives how the host is throttled.
func (h *Host) countAgent(f *figures) {
	const object = "Message Agent"
	publishing, correlation, delivery := h.throttle.read()
	for _, of := range []struct {
		name string
		throttled
	}{{"publishing", publishing}, {"correlation", correlation}, {"delivery", delivery}} {
		f.gauge(object, fmt.Sprintf("Message %s throttling state", of.name), float64(of.state))
		f.gauge(object, fmt.Sprintf("Message %s throttling state duration", of.name), time.Since(of.since).Seconds())
		f.gauge(object, fmt.Sprintf("Message %s delay ms", of.name), float64(of.delay.Milliseconds()))
		f.gauge(object, fmt.Sprintf("Message %s throttling user override", of.name), map[string]float64{"force": 1, "never": 2}[of.override])
	}
	f.gauge(object, "In-process message count", float64(h.ports.count()))
	f.gauge(object, "In-process message count threshold", float64(h.ports.limit()))
	high := func(name string, isHigh bool) {
		value := 0.0
		if isHigh {
			value = 1
		}
		f.gauge(object, name, value)
	}
	high("High in-process message count", delivery.state == stateInProcess)
	high("High process memory", publishing.state == stateProcessMemory || delivery.state == stateProcessMemory)
	high("High system memory", publishing.state == stateSystemMemory || delivery.state == stateSystemMemory)
	high("High database size", publishing.state == stateDatabaseSize)
	high("High database session", publishing.state == stateSessions)
	f.total(object, "Total batches committed", h.counts.batches.Load())
	f.total(object, "Total messages published", h.counts.received.Load())
	f.total(object, "Total messages delivered", h.counts.claimed.Load())
}

// count gives how many messages were sent and are not recorded yet.
func (c *completer) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting) + c.recording
}

// Counters gives the counts of this node, for the hosts that it serves, and those of the message box. The latter are left out, with an
// error, while the database is away.
func (s *Server) Counters(ctx context.Context) ([]flowstore.Counter, error) {
	all := []flowstore.Counter{}
	for _, h := range s.served() {
		all = append(all, h.counters()...)
	}
	box, err := flowstore.BoxCounters(ctx, s.config.Pool)
	return append(all, box...), err
}

// Counter gives a count of a host on this node; 0 of one that there is not.
func (s *Server) Counter(object, host, counter string) float64 {
	for _, h := range s.served() {
		for _, c := range h.counters() {
			if h.name == host && c.Object == object && c.Counter == counter {
				return c.Value
			}
		}
	}
	return 0
}
