package send

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	// renewals is how often a lease is renewed while it lasts.
	renewals = 6
	// confirmation bounds how long a message waits before its last byte for the database to say whether its lease holds.
	confirmation = 5 * time.Second
)

// errLeaseOver is why a message is not sent to its end: others may have it.
var errLeaseOver = errors.New("the lease of the message is over: another daemon may be sending it")

// held is a lease of this daemon, while its messages are being sent.
//
// The database counts a lease from when it has given or renewed it, and this daemon from when it has asked: so while it holds by the
// clock of the daemon nobody else has its messages. A process that was stopped, a machine that slept and a database that was away are
// found by that: then nothing is finished before the database has said that the lease is there.
type held struct {
	cancel context.CancelFunc

	mu    sync.Mutex
	asked time.Time // when the claim or the last renewal was begun that succeeded
	lasts time.Duration
	// isOver is whether the database has said that it is over; isEnding, whether a host has the end of a message and has to answer; isDone,
	// whether all messages have been seen to.
	isOver, isEnding, isDone bool
}

// holds is whether the lease holds for certain, by the clock of this daemon: by the one that runs on while the process is stopped, and
// the one that does so while the machine sleeps.
func (h *held) holds() bool {
	now := time.Now()
	return max(now.Sub(h.asked), now.Round(0).Sub(h.asked.Round(0))) < h.lasts-h.lasts/10
}

// renewed records that the database has renewed the lease for who asked then.
func (h *held) renewed(asked time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if asked.After(h.asked) {
		h.asked = asked
	}
}

// lose cancels what is done under a lease that is over. Where a host has the end of a message its answer is awaited: it says whether the
// recipients have it. It reports whether something was cancelled or awaits that.
func (h *held) lose() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.isOver || h.isDone {
		return false
	}
	h.isOver = true
	if !h.isEnding {
		h.cancel()
	}
	return true
}

// over is whether the lease is known to be over.
func (h *held) over() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.isOver
}

// end records that a message is about to end, and fails when the lease is over; isSure is whether it holds by our clock.
func (h *held) end() (isSure bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.isOver {
		return false, errLeaseOver
	}
	h.isEnding = h.holds()
	return h.isEnding, nil
}

// answered records that no host has to answer now, and done that all messages have been seen to.
func (h *held) answered() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.isEnding = false
	if h.isOver {
		h.cancel()
	}
}

func (h *held) done() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.isDone = true
}

// confirm fails unless a message may be ended: its lease holds by the clock of this daemon, or the database renews it now.
func (d *Dispatcher) confirm(ctx context.Context, lease int64, under *held) error {
	isSure, err := under.end()
	if err != nil || isSure {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, min(confirmation, d.config.Lease))
	defer cancel()
	asked := time.Now()
	renewed, gone, err := d.config.Store.Renew(ctx, []int64{lease}, d.config.Lease)
	switch {
	case err != nil:
		return fmt.Errorf("it is not known whether the lease of the message is over: %w", err)
	case slices.Contains(gone, lease):
		under.lose()
		return errLeaseOver
	case slices.Contains(renewed, lease):
		under.renewed(asked)
	}
	// In neither, it is in the hands of who ends it.
	if isSure, err = under.end(); err == nil && !isSure {
		err = errLeaseOver
	}
	return err
}

// keepLeases renews what is under way until ctx ends, and cancels what is done under leases that are over.
func (d *Dispatcher) keepLeases(ctx context.Context) {
	ticker := time.NewTicker(d.config.Lease / renewals)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		d.renew(ctx)
	}
}

// renew renews all leases once.
func (d *Dispatcher) renew(ctx context.Context) {
	d.mu.Lock()
	leases := make([]int64, 0, len(d.leases))
	for lease := range d.leases {
		leases = append(leases, lease)
	}
	d.mu.Unlock()
	if len(leases) == 0 {
		return
	}
	// One that hangs keeps the next from being tried no longer than this.
	within, cancel := context.WithTimeout(ctx, d.config.Lease/3)
	defer cancel()
	asked := time.Now()
	renewed, gone, err := d.config.Store.Renew(within, leases, d.config.Lease)
	if err != nil {
		if ctx.Err() == nil {
			d.config.Logger.Warn("leases of messages that are being sent cannot be renewed; what is not sent when they are over others send",
				"error", err)
		}
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, lease := range renewed {
		if under := d.leases[lease]; under != nil {
			under.renewed(asked)
		}
	}
	for _, lease := range gone {
		if under := d.leases[lease]; under != nil && under.lose() {
			d.config.Logger.Warn("the lease of messages is over while they are being sent; others send what has not ended", "lease", lease)
		}
	}
}
