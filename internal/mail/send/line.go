package send

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// firstConnections is with how many connections a hop begins; each success allows one more, and each failure halves them.
const firstConnections = 5

// line is what a dispatcher does for one next hop. Its fields are guarded by the mutex of the dispatcher.
type line struct {
	hop     Hop
	carrier Carrier
	limits  Limits
	// allowed is how many connections there may be now.
	allowed int
	// workers are there, and idle of them wait for a message with an open connection.
	workers, idle int
	waiting       []Delivery
	// sending are the claims that workers hold.
	sending map[int64]struct{}
	// wake has a token for each idle worker that is to take from waiting.
	wake chan struct{}
}

func newLine(hop Hop, carrier Carrier) *line {
	limits := carrier.Limits(hop)
	limits.Connections = cmp.Or(limits.Connections, 20)
	limits.MessagesEach = cmp.Or(limits.MessagesEach, 20)
	limits.Idle = cmp.Or(limits.Idle, 5*time.Second)
	return &line{
		hop: hop, carrier: carrier, limits: limits, allowed: min(firstConnections, limits.Connections),
		sending: make(map[int64]struct{}), wake: make(chan struct{}, limits.Connections),
	}
}

// room is how many messages may be claimed beside those that are here: as many as the connections carry.
func (l *line) room() int {
	return l.allowed*l.limits.MessagesEach - len(l.waiting) - len(l.sending)
}

// wantsWorker is whether a message waits for which there is no worker.
func (l *line) wantsWorker() bool {
	return len(l.waiting) > l.idle && l.workers < l.allowed
}

// wakeIdle has idle workers take what waits.
func (l *line) wakeIdle() {
	for range min(len(l.waiting), l.idle) {
		select {
		case l.wake <- struct{}{}:
		default:
			return
		}
	}
}

func (l *line) appendClaims(claims []int64) []int64 {
	for claim := range l.sending {
		claims = append(claims, claim)
	}
	for _, delivery := range l.waiting {
		claims = append(claims, delivery.Claim)
	}
	return claims
}

// work carries messages to one hop over one connection after the other, until none waits.
func (d *Dispatcher) work(ctx context.Context, l *line) {
	var way Way
	defer func() {
		if way != nil {
			way.Close()
		}
		d.leave(l)
	}()
	for {
		delivery, found := d.next(ctx, l, way != nil)
		if !found {
			return
		}
		if way != nil && (!way.Usable() || way.Messages() >= l.limits.MessagesEach) {
			way.Close()
			way = nil
		}
		if way == nil {
			opened, err := l.carrier.Connect(ctx, l.hop)
			if err != nil {
				if !d.connectFailed(ctx, l, delivery, err) {
					return
				}
				continue
			}
			way = opened
			d.recorder.report(HopReport{Queue: l.hop.Queue})
		}
		results := way.Send(ctx, delivery.Message)
		if !d.finish(l, delivery, results) {
			return
		}
	}
}

// next takes a message that waits. When there is none, a worker that has a connection waits a while for one.
func (d *Dispatcher) next(ctx context.Context, l *line, connected bool) (Delivery, bool) {
	var idle <-chan time.Time
	if connected {
		timer := time.NewTimer(l.limits.Idle)
		defer timer.Stop()
		idle = timer.C
	}
	for {
		d.mu.Lock()
		if ctx.Err() != nil {
			d.giveBack(l)
			d.mu.Unlock()
			return Delivery{}, false
		}
		if len(l.waiting) > 0 {
			delivery := l.waiting[0]
			l.waiting = l.waiting[1:]
			l.sending[delivery.Claim] = struct{}{}
			d.mu.Unlock()
			d.free()
			return delivery, true
		}
		if idle == nil {
			d.mu.Unlock()
			return Delivery{}, false
		}
		l.idle++
		d.mu.Unlock()
		d.free()
		over := false
		select {
		case <-ctx.Done():
		case <-l.wake:
		case <-idle:
			over = true
		}
		d.mu.Lock()
		l.idle--
		over = over && len(l.waiting) == 0
		d.mu.Unlock()
		if over {
			return Delivery{}, false
		}
	}
}

// connectFailed records that there is no way to the hop. What waits for it goes back untried. It says whether the worker goes on, because
// only this message cannot be sent.
func (d *Dispatcher) connectFailed(ctx context.Context, l *line, delivery Delivery, err error) bool {
	result := Result{Enhanced: "4.4.1", Text: oneLine(err.Error()), HostFailed: true}
	if failed, is := errors.AsType[*OpenError](err); is {
		result = failed.Result
	}
	if ctx.Err() != nil {
		d.done(l, Outcome{Delivery: delivery})
		return true
	}
	if result.Class == Failed && !result.HostFailed {
		d.done(l, Outcome{Delivery: delivery, Results: repeated(result, len(delivery.Ordinals))})
		return true
	}
	result.Class = Deferred
	d.mu.Lock()
	l.allowed = 1
	d.giveBack(l)
	d.mu.Unlock()
	d.done(l, Outcome{Delivery: delivery, Results: repeated(result, len(delivery.Ordinals))})
	d.recorder.report(HopReport{Queue: l.hop.Queue, Failure: &result})
	return false
}

// finish records what became of a message, and says whether the worker goes on.
func (d *Dispatcher) finish(l *line, delivery Delivery, results []Result) bool {
	var failure *Result
	delivered := false
	for i := range results {
		delivered = delivered || results[i].Class == Delivered
		if results[i].HostFailed {
			failure = &results[i]
		}
	}
	d.mu.Lock()
	if failure == nil {
		l.allowed = min(l.allowed+1, l.limits.Connections)
	} else {
		l.allowed = max(l.allowed/2, 1)
	}
	d.mu.Unlock()
	d.done(l, Outcome{Delivery: delivery, Results: results})
	if failure != nil && !delivered && failure.Code == 421 {
		d.mu.Lock()
		d.giveBack(l)
		d.mu.Unlock()
		deferred := *failure
		deferred.Class = Deferred
		d.recorder.report(HopReport{Queue: l.hop.Queue, Failure: &deferred})
		return false
	}
	return true
}

// done records an outcome, and forgets the claim.
func (d *Dispatcher) done(l *line, outcome Outcome) {
	d.mu.Lock()
	delete(l.sending, outcome.Delivery.Claim)
	d.mu.Unlock()
	d.recorder.add(outcome)
}

// giveBack gives back what waits, untried. The caller holds mu.
func (d *Dispatcher) giveBack(l *line) {
	for _, delivery := range l.waiting {
		d.recorder.add(Outcome{Delivery: delivery})
	}
	l.waiting = nil
}

// leave ends a worker, and forgets a line that has nothing left.
func (d *Dispatcher) leave(l *line) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l.workers--
	d.active--
	if l.workers == 0 && len(l.waiting) == 0 {
		delete(d.lines, l.hop.Queue)
	}
	d.free()
}

// free has the dispatcher claim again.
func (d *Dispatcher) free() {
	select {
	case d.freed <- struct{}{}:
	default:
	}
}

func repeated(result Result, times int) []Result {
	results := make([]Result, times)
	for i := range results {
		results[i] = result
	}
	return results
}
