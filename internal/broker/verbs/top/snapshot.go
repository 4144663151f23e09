package top

import (
	flowstore "github.com/parley-broker/parley/internal/store/flow"
	"github.com/parley-broker/parley/operate"
)

// Snapshot is one reading, with what the one before adds to it. As JSON it is a stable format, described in docs/reference/json.md.
type Snapshot struct {
	operate.Activity
	Queues []Queue                  `json:"queues"`
	Hosts  []Host                   `json:"hosts"`
	Ports  []flowstore.PortActivity `json:"ports"`

	Orchestrations []flowstore.Orchestration `json:"orchestrations"`
}

// Host is a host of integration and a node that serves it, or served it last; Node is nil where none ever did.
type Host struct {
	Host   string  `json:"host"`
	Node   *string `json:"node"`
	Status string  `json:"status"`
	// The rates are those that the node reported last, of several seconds; nil of one that is not there.
	ReceivedPerSecond *float64             `json:"received_per_second"`
	SentPerSecond     *float64             `json:"sent_per_second"`
	InProcess         int                  `json:"in_process"`
	Publishing        flowstore.Throttling `json:"publishing"`
	Correlation       flowstore.Throttling `json:"correlation"`
	Delivery          flowstore.Throttling `json:"delivery"`
	Problem           string               `json:"problem"`
}

func hostsOf(nodes []flowstore.HostNode) []Host {
	hosts := make([]Host, 0, len(nodes))
	for _, n := range nodes {
		host := Host{Host: n.Host, Node: n.Node, Status: n.Status()}
		if host.Status == "Serving" {
			r := n.Read()
			host.ReceivedPerSecond, host.SentPerSecond, host.InProcess = &r.ReceivedPerSecond, &r.SentPerSecond, r.InProcess
			host.Publishing, host.Correlation, host.Delivery, host.Problem = r.Publishing, r.Correlation, r.Delivery, r.Problem()
		}
		hosts = append(hosts, host)
	}
	return hosts
}

// Queue is a queue with its rates, which take two readings: nil after the first, or when the queue is new.
type Queue struct {
	operate.QueueActivity
	InPerSecond  *float64 `json:"in_per_second"`
	OutPerSecond *float64 `json:"out_per_second"`
}

// Compare makes a snapshot of a reading and the one before it, which may be missing.
func Compare(before *Reading, now Reading) Snapshot {
	snapshot := Snapshot{
		Activity: now.Activity, Queues: make([]Queue, 0, len(now.Queues)), Hosts: hostsOf(now.Nodes),
		Ports: append([]flowstore.PortActivity{}, now.Ports...), Orchestrations: append([]flowstore.Orchestration{}, now.Orchestrations...),
	}
	earlier := map[int32]operate.QueueActivity{}
	var seconds float64
	if before != nil {
		seconds = now.At.Sub(before.At).Seconds()
		for _, queue := range before.Queues {
			earlier[queue.QueueID] = queue
		}
	}
	for _, queue := range now.Queues {
		shown := Queue{QueueActivity: queue}
		if then, ok := earlier[queue.QueueID]; ok && seconds > 0 {
			in, out := queue.Rates(then, seconds)
			shown.InPerSecond, shown.OutPerSecond = &in, &out
		}
		snapshot.Queues = append(snapshot.Queues, shown)
	}
	return snapshot
}
