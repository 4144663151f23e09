package activation

import (
	"context"
	"slices"
	"time"

	activationstore "github.com/parley-broker/parley/internal/store/activation"
)

// A doorbell tells senders whether to notify. It is armed while a queue has nothing to do, so that a message wakes us at once; and
// for as long as readers come and go. But each notification makes senders wait for one another, so when readers have been at work
// for a while and messages keep coming, the queue is awake: the doorbell is disarmed, and we look at intervals until its
// readers have left.
const (
	// armedTime is how long senders are asked to notify; it is renewed in time.
	armedTime   = 60 * time.Second
	rearmBefore = 30 * time.Second
	// armedAtOnce queues cost as many locks to the end of a statement.
	armedAtOnce = 200

	// A queue is awake when its readers have been at work without a pause for wakeTime, and the bell rang wakeRings times.
	wakeTime  = 500 * time.Millisecond
	wakeRings = 100
	// awakePause is how often it is looked at then. While readers run, looks take one part in lookShare of the time at most, and
	// where no more may be started one each fullPause will do.
	awakePause  = 2 * time.Millisecond
	longestDoze = 100 * time.Millisecond
	fullPause   = 20 * time.Millisecond
	lookShare   = 5
	// When a doorbell has been armed, a sender may still commit that looked for sleepers while there were none: for vigilTime the
	// queue is looked at each vigilPause.
	vigilTime  = 2 * time.Second
	vigilPause = 200 * time.Millisecond
)

// bellOf is what a queue monitor knows of its doorbell.
type bellOf struct {
	isAwake    bool
	busySince  time.Time // readers have been running all the time since then
	rings      int       // since then
	rangAt     time.Time
	armedUntil time.Time
	vigilUntil time.Time
}

// heard notes a ring.
func (m *monitor) heard(q *queueMonitor, now time.Time) {
	q.bell.rangAt = now
	if len(q.runs) == 0 {
		q.bell.busySince, q.bell.rings = now, 0
		return
	}
	q.bell.rings++
	if !q.bell.isAwake && q.bell.rings > wakeRings && now.Sub(q.bell.busySince) > wakeTime {
		q.bell.isAwake = true
		m.awake = append(m.awake, int32(q.ID))
		m.want(q, now.Add(awakePause))
	}
}

// doze has an awake queue looked at again and again, until it has nothing to do any more. The last look took so long.
func (m *monitor) doze(q *queueMonitor, isEmpty bool, took time.Duration, now time.Time) {
	switch {
	case q.bell.isAwake && isEmpty && len(q.runs) == 0:
		q.bell.isAwake, q.bell.rings = false, 0
		q.bell.armedUntil = time.Time{}
		m.unarmed = append(m.unarmed, int32(q.ID))
	case q.bell.isAwake && (len(q.runs) >= q.MaxReaders || q.failure.times > 0):
		m.want(q, now.Add(min(max(fullPause, lookShare*took), longestDoze)))
	case q.bell.isAwake && len(q.runs) == 0:
		m.want(q, now.Add(min(max(awakePause, took), longestDoze)))
	case q.bell.isAwake:
		m.want(q, now.Add(min(max(awakePause, lookShare*took), longestDoze)))
	case now.Before(q.bell.vigilUntil):
		m.want(q, now.Add(vigilPause))
	}
}

// asleep lists the queues whose doorbells are armed.
func (m *monitor) asleep() []int32 {
	ids := make([]int32, 0, len(m.queues))
	for id, q := range m.queues {
		if !q.bell.isAwake {
			ids = append(ids, id)
		}
	}
	return ids
}

// arm asks the senders to some queues to notify, and has these looked at once more: one who looked for sleepers just before will
// not notify.
func (m *monitor) arm(ctx context.Context, ids []int32) {
	m.unarmed = nil
	if len(ids) == 0 {
		return
	}
	m.ask(ctx, "arm", func(within context.Context) func(time.Time) {
		var err error
		for some := range slices.Chunk(ids, armedAtOnce) {
			if err = activationstore.ArmDoorbells(within, m.config.Pool, some, armedTime); err != nil {
				break
			}
		}
		return func(now time.Time) {
			if err != nil {
				m.nextArm = now.Add(m.failures.Failed(err))
				return
			}
			for _, id := range ids {
				m.armed(id, now)
			}
		}
	})
}

// armed notes that senders notify from now on, and has the queue watched for those who will not.
func (m *monitor) armed(id int32, now time.Time) {
	q := m.queues[id]
	if q == nil {
		return
	}
	if now.After(q.bell.armedUntil) {
		q.bell.vigilUntil = now.Add(vigilTime)
	}
	q.bell.armedUntil = now.Add(armedTime - time.Second)
	m.want(q, now)
}

// disarm tells the senders to awake queues that nobody sleeps.
func (m *monitor) disarm(ctx context.Context) {
	ids := m.awake
	m.awake = nil
	m.ask(ctx, "disarm", func(within context.Context) func(time.Time) {
		err := activationstore.DisarmDoorbells(within, m.config.Pool, ids)
		return func(time.Time) {
			if err != nil {
				m.config.Logger.Warn("the doorbells of busy queues could not be disarmed", "error", err)
			}
		}
	})
}
