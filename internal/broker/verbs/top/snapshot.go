package top

import "github.com/parley-broker/parley/operate"

// Snapshot is one reading, with what the one before adds to it. As JSON it is a stable format, described in docs/reference/json.md.
type Snapshot struct {
	operate.Activity
	Queues []Queue `json:"queues"`
}

// Queue is a queue with its rates, which take two readings: nil after the first, or when the queue is new.
type Queue struct {
	operate.QueueActivity
	InPerSecond  *float64 `json:"in_per_second"`
	OutPerSecond *float64 `json:"out_per_second"`
}

// Compare makes a snapshot of a reading and the one before it, which may be missing.
func Compare(before *operate.Activity, now operate.Activity) Snapshot {
	snapshot := Snapshot{Activity: now, Queues: make([]Queue, 0, len(now.Queues))}
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
			in, out := rates(then, queue, seconds)
			shown.InPerSecond, shown.OutPerSecond = &in, &out
		}
		snapshot.Queues = append(snapshot.Queues, shown)
	}
	return snapshot
}

// rates derives what came and went. Rows that were put on the queue count as many messages as the rows that wait, or
// waited, have on average; what came and does not wait any more has gone.
func rates(then, now operate.QueueActivity, seconds float64) (in, out float64) {
	perRow := now.MessagesPerRow
	if now.WaitingMessages == 0 && then.WaitingMessages > 0 {
		perRow = then.MessagesPerRow
	}
	came := max(0, float64(now.EnqueuedRows-then.EnqueuedRows)*perRow)
	more := float64(now.WaitingMessages + now.HeldMessages - then.WaitingMessages - then.HeldMessages)
	return came / seconds, max(0, came-more) / seconds
}
