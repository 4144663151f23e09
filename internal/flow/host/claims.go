package host

import (
	"context"
	"runtime"
	"time"

	"github.com/parley-broker/parley/internal/backoff"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

const (
	// claimedLanes and claimedEach bound one claim: so many lanes, and so many messages of each.
	claimedLanes = 50
	claimedEach  = 500
)

// processors is how many processors this process has.
var processors = runtime.GOMAXPROCS(0)

// claim claims messages until ctx ends. Those that were claimed outlast it.
func (h *Host) claim(ctx, outlasting context.Context) {
	failures := backoff.NewFailures(h.logger, "messages cannot be claimed")
	held := time.Time{} // until then nothing is claimed but for instances
	for ctx.Err() == nil {
		if h.settings.Load() == nil {
			_ = backoff.Wait(ctx, 50*time.Millisecond)
			continue
		}
		began := time.Now()
		h.ports.giveBackHung(began)
		may, timeout := h.ports.budget(began), claimTimeout
		pause := max(h.throttle.deliveryDelay(may.room), time.Until(held))
		isHeld := pause > 0
		if closed := h.gate.closedFor(); closed > 0 || isHeld && may.ofInstances <= 0 {
			h.ports.room.wait(ctx, max(closed, pause))
			continue
		}
		if isHeld {
			may, timeout = may.forInstances(), min(timeout, max(pause, time.Millisecond))
		}
		claimed, err := h.claimOnce(ctx, may, timeout)
		switch {
		case err != nil && ctx.Err() == nil:
			_ = backoff.Wait(ctx, failures.Failed(err))
			continue
		case err != nil:
			return
		}
		failures.Succeeded()
		h.counts.claimed.Add(int64(len(claimed)))
		for _, l := range h.leases.add(outlasting, claimed, began) {
			if l.items[0].Stage == flowstore.StageReceive {
				h.ports.resubmit(l)
			} else {
				h.ports.enter(l)
			}
		}
		if len(claimed) == 0 {
			continue
		}
		all, forInstances := h.throttle.claimDelays()
		if !isHeld {
			held = time.Now().Add(all)
		}
		if forInstances > 0 {
			_ = backoff.Wait(ctx, forInstances)
		}
	}
}

// claimOnce claims as many messages as there is room for. It ends by itself soon: a claim that is broken off may have been made.
func (h *Host) claimOnce(ctx context.Context, may budget, timeout time.Duration) ([]flowstore.Claimed, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.server.config.Lease)
	defer cancel()
	room, each := may.room, min(may.room, claimedEach)
	return flowstore.ClaimMessages(ctx, h.pool, flowstore.Claim{
		Host: h.name, Holder: h.server.config.Node, Lanes: min(room, claimedLanes), Each: each, Top: room,
		Lease: h.server.config.Lease, Timeout: timeout, PassedBy: may.passedBy,
	})
}
