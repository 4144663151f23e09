package send

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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
	connector := connectorOf(batch.Hop)
	used, free := d.slots.take(ctx, connector, limits.Connections)
	if !free {
		d.giveBack(batch, batch.Deliveries)
		return
	}
	defer d.slots.give(connector)
	if limits.IsRated && !limits.IsRatedByHost {
		if batch.Deliveries = d.permitted(ctx, batch, nil); len(batch.Deliveries) == 0 {
			return
		}
	}
	each, idle := cmp.Or(limits.MessagesEach, 20), cmp.Or(limits.Idle, 5*time.Second)
	way := d.idle.take(batch.Hop)
	if limits.Connections > 0 {
		d.idle.bound(connector, limits.Connections-used)
	}
	d.carry(ctx, batch, carrier, way, each, idle, limits.IsRatedByHost)
}

// carry sends the messages of a batch over a way that is open, or over others that it opens.
func (d *Dispatcher) carry(ctx context.Context, batch Batch, carrier Carrier, way Way, each int, idle time.Duration, isRated bool) {
	defer func() {
		batch.under.done()
		if way != nil && way.Usable() && way.Messages() < each && ctx.Err() == nil {
			d.idle.keep(batch.Hop, way, idle)
		} else if way != nil {
			way.Close()
		}
	}()
	connecting := time.Duration(0)
	for i := 0; i < len(batch.Deliveries); i++ {
		delivery := batch.Deliveries[i]
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
			way, connecting = opened, time.Since(began)
			d.recorder.report(HopReport{Hop: batch.Hop, Began: began})
		}
		if isRated {
			isRated = false
			rest := Batch{Lease: batch.Lease, Hop: batch.Hop, Deliveries: batch.Deliveries[i:], under: batch.under}
			batch.Deliveries = d.permitted(ctx, rest, way)
			i = -1
			continue
		}
		began := time.Now()
		var results []Result
		message := delivery.Message
		message.Confirm = func(ctx context.Context) error { return d.confirm(ctx, batch.Lease, batch.under) }
		results, way = d.send(ctx, batch.Hop, carrier, way, message, each)
		batch.under.answered()
		if batch.under.over() && !slices.ContainsFunc(results, isKnownToHost) {
			return
		}
		d.recorder.add(Outcome{
			Lease: batch.Lease, Delivery: delivery, Results: results, Connect: connecting, Transfer: time.Since(began),
		})
		connecting = 0
		if failure := hostFailure(results); failure != nil && ctx.Err() == nil {
			d.giveBack(batch, batch.Deliveries[i+1:])
			d.recorder.report(HopReport{Hop: batch.Hop, Failure: failure, Began: began})
			return
		}
	}
}

// furtherWays bounds the ways that are opened for recipients of one message of whom nothing was said.
const furtherWays = 2

// send sends a message over a way, and gives the way that is open afterwards. Where the host closes the connection at one recipient, the
// others are tried over another way: he would keep them from ever getting it.
func (d *Dispatcher) send(
	ctx context.Context, hop Hop, carrier Carrier, way Way, message Message, each int,
) (results []Result, open Way) {
	results, way = d.sendTo(ctx, hop, carrier, way, message, each)
	for range furtherWays {
		var left []int
		rest := message
		rest.Recipients = nil
		for i, result := range results {
			if result.Untried {
				left, rest.Recipients = append(left, i), append(rest.Recipients, message.Recipients[i])
			}
		}
		if len(left) == 0 || way == nil || hostFailure(results) != nil || ctx.Err() != nil {
			break
		}
		way.Close()
		opened, err := carrier.Connect(ctx, hop)
		if err != nil {
			return results, nil
		}
		var tried []Result
		tried, way = d.sendTo(ctx, hop, carrier, opened, rest, each)
		for n, i := range left {
			results[i] = tried[n]
		}
	}
	return results, way
}

// sendTo sends a message over a way, and gives the way that is open afterwards. Where each recipient has a return path of its own, each
// is a message of its own to the host, and further ways are opened when one has carried as many as it may.
func (d *Dispatcher) sendTo(
	ctx context.Context, hop Hop, carrier Carrier, way Way, message Message, each int,
) (results []Result, open Way) {
	if len(message.Recipients) < 2 || message.Recipients[0].ReturnPath == "" {
		return way.Send(ctx, message), way
	}
	for left := message.Recipients; ; {
		message.Recipients = left[:min(len(left), max(each-way.Messages(), 1))]
		left = left[len(message.Recipients):]
		results = append(results, way.Send(ctx, message)...)
		if len(left) == 0 {
			return results, way
		}
		if !way.Usable() || ctx.Err() != nil {
			return append(results, repeated(untried(way.Ends().Host), len(left))...), way
		}
		if way.Messages() < each {
			continue
		}
		way.Close()
		opened, err := carrier.Connect(ctx, hop)
		if err != nil {
			return append(results, repeated(notOpened(err), len(left))...), nil
		}
		way = opened
	}
}

// notOpened is why there is no way to a hop.
func notOpened(err error) Result {
	if failed, is := errors.AsType[*OpenError](err); is {
		return failed.Result
	}
	return Result{Enhanced: "4.4.1", Text: oneLine(err.Error()), HostFailed: true}
}

// permitted are the messages that may be sent now, by the rates of their connector; the others are put off. Where nobody can be asked
// all go back.
func (d *Dispatcher) permitted(ctx context.Context, batch Batch, way Way) []Delivery {
	var ends Ends
	if way != nil {
		ends = way.Ends()
	}
	allowed, err := d.config.Store.Permit(ctx, batch, ends)
	if err != nil {
		if ctx.Err() == nil {
			d.config.Logger.Warn("the rates of a connector cannot be read; its messages wait", "connector", batch.Hop.Connector, "error", err)
		}
		d.giveBack(batch, batch.Deliveries)
		return nil
	}
	return slices.DeleteFunc(slices.Clone(batch.Deliveries), func(delivery Delivery) bool { return !slices.Contains(allowed, delivery.Item) })
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
	result := notOpened(err)
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

// isKnownToHost is whether a host has a message, or has refused it, or may have it.
func isKnownToHost(result Result) bool { return result.Class != Deferred }

// giveBack gives messages back untried, where they are still ours.
func (d *Dispatcher) giveBack(batch Batch, deliveries []Delivery) {
	if batch.under.over() {
		return
	}
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
