// Package sustain searches the highest rate that something sustains, and plays what comes above it: a step is sustained when what was
// offered was taken, and what waits did not grow.
package sustain

import (
	"context"
	"fmt"
	"time"
)

// Offer offers messages at a rate (messages a second) for a time. Where drains is set it waits afterwards until nothing is left.
type Offer func(ctx context.Context, name string, rate float64, span time.Duration, drains bool) (Load, error)

// Load has the rates and the backlog of one offer.
type Load struct {
	Asked   float64       // messages a second that were to be offered
	Offered float64       // messages a second that were taken in
	Span    time.Duration // that it took
	// Depths are how many messages waited, in equal distances of time, until the offer ended.
	Depths []float64
	// Rest is how many messages may wait at any time, as they are on their way.
	Rest float64
	// Recovery is how long it took afterwards until nothing was left, where it was waited for.
	Recovery time.Duration
}

const (
	// leastTaken is the part of a rate that has to be taken in.
	leastTaken = 0.95
	// mostGrowth is the part of what is offered that may be added to what waits.
	mostGrowth = 0.02
)

// Backlog is how many messages waited at the end.
func (l Load) Backlog() float64 {
	if len(l.Depths) == 0 {
		return 0
	}
	return l.Depths[len(l.Depths)-1]
}

// Growth is by how many messages what waits grew: from the second third of the time to the last, so that neither the beginning nor one
// pause decides.
func (l Load) Growth() float64 {
	third := len(l.Depths) / 3
	if third == 0 {
		return 0
	}
	return mean(l.Depths[len(l.Depths)-third:]) - mean(l.Depths[len(l.Depths)-2*third:len(l.Depths)-third])
}

// IsFlat reports whether a load is sustained.
func (l Load) IsFlat() bool {
	return l.Offered >= leastTaken*l.Asked && l.Growth() <= max(mostGrowth*l.Asked*l.Span.Seconds()/3, l.Rest/2)
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// Result has the steps of a search, and the rate that it found.
type Result struct {
	Steps []Load
	// Rate is the highest rate that was flat when it was held, 0 where none was.
	Rate float64
	// Held is the load at that rate.
	Held Load
}

// The search: it begins at a part of the rate that is guessed, climbs by a factor until a step is not flat, halves the interval as often as
// narrowings says, and holds what it found; it goes down by a part as long as that is not flat.
const (
	firstPart  = 0.5
	climb      = 1.25
	mostClimbs = 12
	mostFalls  = 8
	narrowings = 3
	holds      = 5
	holdBelow  = 0.93
)

// Search searches around a guess (messages a second). A step takes so long as step says; what is found is held for hold.
func Search(ctx context.Context, offer Offer, guess float64, step, hold time.Duration) (r Result, err error) {
	low, high, err := r.bracket(ctx, offer, guess, step)
	if err != nil || low == 0 {
		return r, err
	}
	for range narrowings {
		if high == 0 {
			break
		}
		middle := (low + high) / 2
		isFlat, err := r.step(ctx, offer, middle, step)
		if err != nil {
			return r, err
		}
		if isFlat {
			low = middle
		} else {
			high = middle
		}
	}
	for range holds {
		load, err := offer(ctx, "sustained", low, hold, true)
		if err != nil {
			return r, err
		}
		if load.IsFlat() {
			r.Rate, r.Held = low, load
			return r, nil
		}
		r.Steps = append(r.Steps, load)
		low *= holdBelow
	}
	return r, nil
}

// bracket gives a rate that was flat and one above it that was not; high is 0 where all were flat, low where none was.
func (r *Result) bracket(ctx context.Context, offer Offer, guess float64, step time.Duration) (low, high float64, err error) {
	rate := firstPart * guess
	for range mostFalls {
		isFlat, err := r.step(ctx, offer, rate, step)
		if err != nil {
			return 0, 0, err
		}
		if isFlat {
			low = rate
			break
		}
		high, rate = rate, rate/2
	}
	for climbs := 0; low > 0 && high == 0 && climbs < mostClimbs; climbs++ {
		rate = low * climb
		isFlat, err := r.step(ctx, offer, rate, step)
		if err != nil {
			return 0, 0, err
		}
		if isFlat {
			low = rate
		} else {
			high = rate
		}
	}
	return low, high, nil
}

// step offers a rate. One that is not flat is offered again: a neighbour may have disturbed it.
func (r *Result) step(ctx context.Context, offer Offer, rate float64, span time.Duration) (isFlat bool, err error) {
	for range 2 {
		load, err := offer(ctx, fmt.Sprintf("step %.0f/s", rate), rate, span, true)
		if err != nil {
			return false, err
		}
		r.Steps = append(r.Steps, load)
		if load.IsFlat() {
			return true, nil
		}
	}
	return false, nil
}
