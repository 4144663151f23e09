package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/parley-broker/parley/internal/measure/postfix"
)

const (
	// rateFirst is the rate with which the search begins, in bytes a second, and rateHalvings how often the space between the highest rate
	// that was stable and the lowest that was not is halved.
	rateFirst    = 2_500_000
	rateHalvings = 3
	// rateTolerance is the difference of received and completed from the offered rate that is allowed (spec mail 19.3).
	rateTolerance = 0.02
)

// rateTrials search the highest rate that Parley sustains, which is held then if that is asked for, and that which Postfix does.
func rateTrials(b *bench, variant string) []trial {
	load := b.mailLoad(mail25KB)
	search := load
	search.isSearch = true
	trials := []trial{b.relayedTrial(variant, systemParley, search)}
	if b.Mail.Steady > 0 {
		found, run := 0.0, trials[0].run
		trials[0].run = func(ctx context.Context) (rate float64, err error) {
			found, err = run(ctx)
			return found, err
		}
		load.steady = func() float64 { return found }
		held := b.relayedTrial(variant, systemParley, load)
		held.result.Operation, held.result.isRelayed = "steady", false
		trials = append(trials, held)
	}
	if err := postfix.RequireRelay(); err == nil {
		trials = append(trials, b.relayedTrial(variant, systemPostfix, search))
	}
	return trials
}

// steadyCounts are messages that were offered, taken and completed in the second half of a step.
type steadyCounts struct{ offered, received, completed float64 }

// isStable reports whether a relay keeps up. It has to receive at the offered rate, and complete at the rate at which it receives, within
// the tolerance and one message of each connection, which is under way.
func (c steadyCounts) isStable(sessions int) bool {
	least := c.offered*(1-rateTolerance) - float64(sessions)
	return c.received >= least && c.completed >= least
}

// searchRate doubles the rate until it is not sustained, and then halves the space between. It gives the highest rate that was, 0 for none.
func searchRate(first float64, halvings int, try func(rate float64) (isStable bool, err error)) (highest float64, err error) {
	lowest := 0.0 // of those that are not sustained
	for rate := first; lowest == 0; rate *= 2 {
		isStable, err := try(rate)
		if err != nil {
			return 0, err
		}
		if isStable {
			highest = rate
		} else {
			lowest = rate
		}
	}
	for range halvings {
		rate := (highest + lowest) / 2
		isStable, err := try(rate)
		if err != nil {
			return 0, err
		}
		if isStable {
			highest = rate
		} else {
			lowest = rate
		}
	}
	return highest, nil
}

// searchMail searches the rate of a relay, and gives how many messages went through.
func (b *bench) searchMail(ctx context.Context, relay mailRelay, sink *postfix.Sink, load mailLoad) (rate float64, relayed int, err error) {
	rate, err = searchRate(float64(rateFirst)/float64(load.size), rateHalvings, func(rate float64) (bool, error) {
		counts, messages, err := b.offer(ctx, relay, sink, load, rate, b.Duration)
		relayed += messages
		b.progress("%.1f a second offered: %.0f of %.0f received, %.0f completed", rate, counts.received, counts.offered, counts.completed)
		return counts.isStable(load.sessions), err
	})
	return rate, relayed, err
}

// hold offers messages at the rate that was found, for as long as is asked for, and adds which part of them was received and completed in
// the second half.
func (b *bench) hold(
	ctx context.Context, relay mailRelay, sink *postfix.Sink, load mailLoad, figures map[string]float64,
) (messages int, lasted time.Duration, err error) {
	rate := load.steady()
	if rate == 0 {
		return 0, 0, errors.New("no rate was sustained, so that there is none to hold")
	}
	begun := time.Now()
	counts, messages, err := b.offer(ctx, relay, sink, load, rate, b.Mail.Steady)
	if err != nil {
		return 0, 0, err
	}
	figures["received_percent"] = 100 * counts.received / counts.offered
	figures["completed_percent"] = 100 * counts.completed / counts.offered
	return messages, time.Since(begun), nil
}

// offer offers messages at a rate for so long, counts those of the second half, and waits until all have come out.
func (b *bench) offer(
	ctx context.Context, relay mailRelay, sink *postfix.Sink, load mailLoad, rate float64, lasts time.Duration,
) (counts steadyCounts, messages int, err error) {
	before, _ := sink.Messages()
	i := startSteady(ctx, relay.address(), load, rate, lasts)
	defer i.stop()
	count := func(after time.Duration) (received, completed float64, err error) {
		if !waitUntil(ctx, i.begun.Add(after)) {
			return 0, 0, context.Cause(ctx)
		}
		n, _ := sink.Messages()
		return float64(i.accepted.Load()), float64(n - before), nil
	}
	received, completed, err := count(lasts / 2)
	if err != nil {
		return counts, 0, err
	}
	receivedLast, completedLast, err := count(lasts)
	if err != nil {
		return counts, 0, err
	}
	counts = steadyCounts{
		offered: rate * lasts.Seconds() / 2, received: receivedLast - received, completed: completedLast - completed,
	}
	if err := i.end(); err != nil {
		return counts, 0, err
	}
	accepted := int(i.accepted.Load())
	since := time.Now()
	for {
		n, last := sink.Messages()
		switch {
		case n-before == accepted:
			return counts, accepted, nil
		case n-before > accepted:
			return counts, accepted, fmt.Errorf("%d messages came out, %d went in", n-before, accepted)
		case time.Since(since) > mailStalled && time.Since(last) > mailStalled:
			return counts, accepted, fmt.Errorf("%d of %d messages came out, and then none for %v", n-before, accepted, mailStalled)
		}
		if !waitUntil(ctx, time.Now().Add(mailPoll)) {
			return counts, accepted, context.Cause(ctx)
		}
	}
}
