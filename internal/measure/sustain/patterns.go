package sustain

import (
	"context"
	"time"
)

// The patterns offer so much of the rate that is sustained.
const (
	overdrive = 1.4
	half      = 0.5
	bursts    = 3
)

// Flood is the pattern of bursts above half of the rate.
type Flood struct {
	Offered float64 // messages a second, on average
	Span    time.Duration
	Backlog float64 // the most that waited when a burst ended
	// Recovery is the longest time from the end of a burst until what waits is as it was before, or the whole pause where it never was.
	Recovery time.Duration
	// HasRecovered reports that this was within the pause, each time.
	HasRecovered bool
}

// Overdrive offers more than is sustained, and waits until nothing is left.
func Overdrive(ctx context.Context, offer Offer, sustained float64, span time.Duration) (Load, error) {
	return offer(ctx, "overdrive", overdrive*sustained, span, true)
}

// Floodgate offers half of the rate, with bursts above the rate: what a burst leaves has to go while half of the rate goes on.
func Floodgate(ctx context.Context, offer Offer, sustained float64, span time.Duration) (f Flood, err error) {
	f.HasRecovered = true
	add := func(load Load) {
		f.Offered += load.Offered * load.Span.Seconds()
		f.Span += load.Span
	}
	for number := range bursts {
		burst, err := offer(ctx, "floodgate, burst", overdrive*sustained, span, false)
		if err != nil {
			return f, err
		}
		pause, err := offer(ctx, "floodgate, half", half*sustained, span, number == bursts-1)
		if err != nil {
			return f, err
		}
		add(burst)
		add(pause)
		took, is := recovered(pause)
		f.Backlog, f.Recovery = max(f.Backlog, burst.Backlog()), max(f.Recovery, took)
		f.HasRecovered = f.HasRecovered && is
	}
	f.Offered /= max(f.Span.Seconds(), 1e-3)
	return f, nil
}

// recovered is the time from which on no more waited than is on its way.
func recovered(pause Load) (after time.Duration, is bool) {
	most := pause.Rest + mostGrowth*pause.Asked
	from := len(pause.Depths)
	for from > 0 && pause.Depths[from-1] <= most {
		from--
	}
	if from == len(pause.Depths) {
		return pause.Span, false
	}
	return pause.Span * time.Duration(from) / time.Duration(len(pause.Depths)), true
}
