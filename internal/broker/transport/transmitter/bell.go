package transmitter

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/parley-broker/parley"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// The doorbell tells senders whether to notify. It is armed while there is little to do. But each notification makes senders wait
// for one another, so when messages keep coming the bell is disarmed, and we look at intervals until nothing has come for a while.
const (
	armedTime = 60 * time.Second
	rearmTime = 30 * time.Second

	// We are awake when workers have been at work without a pause for wakeTime, and the bell rang wakeRings times.
	wakeTime  = 500 * time.Millisecond
	wakeRings = 100
	// awakePause is how often we look then, or less often when that takes long, or when workers look themselves; we go to sleep when
	// nothing came for quietTime.
	awakePause   = 2 * time.Millisecond
	longestAwake = 20 * time.Millisecond
	quietTime    = 200 * time.Millisecond
	lookCost     = 2
	// Without notifications we look each blindPause.
	blindPause = 50 * time.Millisecond
	// When the bell has been armed a sender may still commit that looked before: for vigilTime we look each vigilPause.
	vigilTime  = 2 * time.Second
	vigilPause = 200 * time.Millisecond
)

// bell is what the coordinator knows of its doorbell.
type bell struct {
	isAwake    atomic.Bool // nobody is told when something is put on a lane
	busySince  time.Time
	rings      int // since then
	busyAt     time.Time
	armedUntil time.Time
	vigilUntil time.Time
	nextArm    time.Time
	lookedAt   time.Time
	lookPause  time.Duration
}

// heard notes a ring.
func (b *bell) heard(now time.Time, workers int) {
	if workers == 0 && now.Sub(b.busyAt) > quietTime {
		b.busySince, b.rings = now, 0
	}
	b.busyAt = now
	b.rings++
}

// looked notes a look, what it cost, whether there was something, and how many workers look for themselves.
func (b *bell) looked(now time.Time, cost time.Duration, isBusy bool, workers int) {
	b.lookedAt = now
	b.lookPause = min(max(awakePause, lookCost*cost), longestAwake)
	if workers > 0 {
		b.lookPause = longestAwake
	}
	if isBusy {
		b.busyAt = now
	}
}

// next tells when to look again by the state of the bell.
func (b *bell) next(now time.Time, isListening bool) time.Time {
	switch {
	case !isListening && now.Sub(b.busyAt) > time.Second:
		return b.lookedAt.Add(max(blindPause, b.lookPause))
	case b.isAwake.Load(), !isListening:
		return b.lookedAt.Add(b.lookPause)
	case now.Before(b.vigilUntil):
		return b.lookedAt.Add(vigilPause)
	}
	return b.lookedAt.Add(safetyInterval)
}

// tendBell arms or disarms the doorbell when it is time to, and has the database looked at when the bell does not tell.
func (c *coordinator) tendBell(ctx context.Context, now time.Time) {
	b := &c.bell
	isListening := c.term.Notifier.IsListening()
	switch {
	case !isListening:
		b.isAwake.Store(true)
	case !b.isAwake.Load() && b.rings > wakeRings && now.Sub(b.busySince) > wakeTime:
		b.isAwake.Store(true)
		b.armedUntil = time.Time{}
		c.ask(ctx, transportstore.DisarmTransmission)
	case b.isAwake.Load() && c.running == 0 && now.Sub(b.busyAt) > quietTime:
		b.isAwake.Store(false)
		b.rings, b.armedUntil, b.nextArm = 0, time.Time{}, time.Time{}
	case b.isAwake.Load() && now.Before(b.armedUntil):
		// It was armed when we could not listen any more.
		b.armedUntil = time.Time{}
		c.ask(ctx, transportstore.DisarmTransmission)
	}
	if isListening && !b.isAwake.Load() && now.Add(rearmTime).After(b.armedUntil) && !now.Before(b.nextArm) {
		if !c.ask(ctx, func(ctx context.Context, db parley.DB) error {
			return transportstore.ArmTransmission(ctx, db, armedTime)
		}) {
			b.nextArm = now.Add(time.Second)
			return
		}
		if now.After(b.armedUntil) {
			b.vigilUntil = now.Add(vigilTime)
			c.nextLook, c.nextUnresolved = time.Time{}, time.Time{}
		}
		b.armedUntil = now.Add(armedTime - time.Second)
		b.nextArm = now.Add(rearmTime)
	}
	c.nextLook = earliest(c.nextLook, b.next(now, isListening))
}

// ask runs a statement, and tells whether it succeeded.
func (c *coordinator) ask(ctx context.Context, statement func(ctx context.Context, db parley.DB) error) bool {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	if err := statement(ctx, c.pool.DB()); err != nil {
		if ctx.Err() == nil {
			c.failures.Failed(err)
		}
		return false
	}
	return true
}
