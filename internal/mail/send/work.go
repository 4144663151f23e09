package send

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// work carries the messages of a batch to their hop.
func (d *Dispatcher) work(ctx context.Context, batch Batch) {
	carrier, known := d.config.Carriers[batch.Hop.Kind]
	if !known {
		text := fmt.Sprintf("this daemon cannot reach next hops of the kind %s", batch.Hop.Kind)
		result := Result{Enhanced: "4.3.5", Text: text, HostFailed: true}
		d.giveBack(batch, batch.Deliveries)
		d.recorder.report(HopReport{Hop: batch.Hop, Failure: &result, Began: time.Now()})
		return
	}
	limits := carrier.Limits(batch.Hop)
	each, idle := cmp.Or(limits.MessagesEach, 20), cmp.Or(limits.Idle, 5*time.Second)
	way := d.idle.take(batch.Hop)
	defer func() {
		if way != nil && way.Usable() && way.Messages() < each && ctx.Err() == nil {
			d.idle.keep(batch.Hop, way, idle)
		} else if way != nil {
			way.Close()
		}
	}()
	for i, delivery := range batch.Deliveries {
		if ctx.Err() != nil {
			d.giveBack(batch, batch.Deliveries[i:])
			return
		}
		if way != nil && (!way.Usable() || way.Messages() >= each) {
			way.Close()
			way = nil
		}
		if way == nil {
			began := time.Now()
			opened, err := carrier.Connect(ctx, batch.Hop)
			if err != nil {
				if d.connectFailed(ctx, batch, i, began, err) {
					continue
				}
				return
			}
			way = opened
			d.recorder.report(HopReport{Hop: batch.Hop, Began: began})
		}
		began := time.Now()
		results := way.Send(ctx, delivery.Message)
		d.recorder.add(Outcome{Lease: batch.Lease, Delivery: delivery, Results: results})
		if failure := hostFailure(results); failure != nil && ctx.Err() == nil {
			d.giveBack(batch, batch.Deliveries[i+1:])
			d.recorder.report(HopReport{Hop: batch.Hop, Failure: failure, Began: began})
			return
		}
	}
}

// hostFailure is why nothing more is sent to a host: it said that it closes the connection, and took nothing. A connection that only
// broke is opened again, and that says more.
func hostFailure(results []Result) *Result {
	for i := range results {
		if results[i].Class == Delivered {
			return nil
		}
	}
	for i := range results {
		if results[i].HostFailed && results[i].Code == 421 {
			return &results[i]
		}
	}
	return nil
}

// connectFailed records that there is no way to the hop: for this message, when its hop does not exist, and otherwise for the hop, so
// that the batch waits untried. It says whether the worker goes on.
func (d *Dispatcher) connectFailed(ctx context.Context, batch Batch, at int, began time.Time, err error) bool {
	if ctx.Err() != nil {
		d.giveBack(batch, batch.Deliveries[at:])
		return false
	}
	result := Result{Enhanced: "4.4.1", Text: oneLine(err.Error()), HostFailed: true}
	if failed, is := errors.AsType[*OpenError](err); is {
		result = failed.Result
	}
	delivery := batch.Deliveries[at]
	if result.Class == Failed && !result.HostFailed {
		d.recorder.add(Outcome{Lease: batch.Lease, Delivery: delivery, Results: repeated(result, len(delivery.Ordinals))})
		return true
	}
	result.Class = Deferred
	d.giveBack(batch, batch.Deliveries[at:])
	d.recorder.report(HopReport{Hop: batch.Hop, Failure: &result, Began: began})
	return false
}

// giveBack gives messages back untried.
func (d *Dispatcher) giveBack(batch Batch, deliveries []Delivery) {
	for _, delivery := range deliveries {
		d.recorder.add(Outcome{Lease: batch.Lease, Delivery: delivery})
	}
}

func repeated(result Result, times int) []Result {
	results := make([]Result, times)
	for i := range results {
		results[i] = result
	}
	return results
}

// idleWays are open ways that wait for another message to their hop.
type idleWays struct {
	mu     sync.Mutex
	ways   map[Hop][]*idleWay
	closed bool
}

type idleWay struct {
	way   Way
	timer *time.Timer
}

func newIdleWays() *idleWays { return &idleWays{ways: make(map[Hop][]*idleWay)} }

// take is an open way to a hop, or nil.
func (w *idleWays) take(hop Hop) Way {
	w.mu.Lock()
	defer w.mu.Unlock()
	for kept := w.ways[hop]; len(kept) > 0; kept = w.ways[hop] {
		last := kept[len(kept)-1]
		w.forget(hop, last)
		if last.timer.Stop() {
			return last.way
		}
	}
	return nil
}

// keep keeps a way for a while, and then closes it.
func (w *idleWays) keep(hop Hop, way Way, idle time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		way.Close()
		return
	}
	kept := &idleWay{way: way}
	kept.timer = time.AfterFunc(idle, func() {
		w.mu.Lock()
		w.forget(hop, kept)
		w.mu.Unlock()
		way.Close()
	})
	w.ways[hop] = append(w.ways[hop], kept)
}

// forget removes a way. The caller holds mu.
func (w *idleWays) forget(hop Hop, gone *idleWay) {
	kept := w.ways[hop]
	for i, way := range kept {
		if way == gone {
			w.ways[hop] = append(kept[:i], kept[i+1:]...)
			break
		}
	}
	if len(w.ways[hop]) == 0 {
		delete(w.ways, hop)
	}
}

// close closes all.
func (w *idleWays) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, kept := range w.ways {
		for _, way := range kept {
			if way.timer.Stop() {
				way.way.Close()
			}
		}
	}
	clear(w.ways)
}
