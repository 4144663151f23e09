package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-broker/parley/internal/measure/hop"
	"github.com/parley-broker/parley/internal/measure/record"
	"github.com/parley-broker/parley/internal/measure/sustain"
)

// BBWPattern is one way to offer messages. As JSON it is part of a stable format.
type BBWPattern struct {
	Name    string  `json:"name"`
	Offered float64 `json:"offered"` // messages a second, on average
	Seconds float64 `json:"seconds"`
	Backlog int64   `json:"backlog"` // when the generator ended
	// Recovery is how many seconds the backlog took to go.
	Recovery float64 `json:"recovery_seconds"`
	IsFlat   bool    `json:"is_flat"` // of bursts, whether each backlog was gone before the next
}

// The names of patterns that give figures; the others are steps of the search.
const (
	patternSustained = "sustained"
	patternOverdrive = "overdrive"
	patternFloodgate = "floodgate"
)

// figures are those of a pattern; the rate that is sustained is the figure of the whole search.
func (p BBWPattern) figures() []record.Figure {
	recovery := record.Figure{Name: p.Name + ": recovered in", Unit: "s", Value: p.Recovery, IsCost: true}
	switch p.Name {
	case patternSustained:
		return []record.Figure{{Name: "highest sustained throughput", Unit: "messages/s", Value: p.Offered}, recovery}
	case patternOverdrive, patternFloodgate:
		return []record.Figure{{Name: p.Name + ": offered", Unit: "messages/s", Value: p.Offered}, recovery}
	}
	return nil
}

// A step of the search takes a part of the time of a run, but not less than one in which a backlog shows.
const (
	stepsOfARun = 10
	leastStep   = 250 * time.Millisecond
)

// depthsOfAnOffer are how often what waits is counted while messages are offered.
const depthsOfAnOffer = 60

// patterns searches the highest rate whose backlog stays flat, holds it, goes beyond it, and plays bursts above half of it.
func (b *bbw) patterns(ctx context.Context, back *hop.BackEnd, listen string, play BBWPlay) (patterns []BBWPattern, err error) {
	offer := func(ctx context.Context, name string, rate float64, span time.Duration, drains bool) (sustain.Load, error) {
		return b.offer(ctx, back, listen, name, rate, span, drains)
	}
	step := max(b.Duration/stepsOfARun, leastStep)
	found, err := sustain.Search(ctx, offer, play.Rate, step, b.Duration)
	for _, load := range found.Steps {
		patterns = append(patterns, patternOf(fmt.Sprintf("step %.0f/s", load.Asked), load))
	}
	if err != nil || found.Rate == 0 {
		return patterns, err // no rate was sustained: the steps show it
	}
	patterns = append(patterns, patternOf(patternSustained, found.Held))
	over, err := sustain.Overdrive(ctx, offer, found.Rate, b.Duration/2)
	if err != nil {
		return patterns, err
	}
	patterns = append(patterns, patternOf(patternOverdrive, over))
	flood, err := sustain.Floodgate(ctx, offer, found.Rate, step)
	return append(patterns, BBWPattern{
		Name: patternFloodgate, Offered: flood.Offered, Seconds: flood.Span.Seconds(), Backlog: int64(flood.Backlog),
		Recovery: flood.Recovery.Seconds(), IsFlat: flood.HasRecovered,
	}), err
}

func patternOf(name string, load sustain.Load) BBWPattern {
	return BBWPattern{
		Name: name, Offered: load.Offered, Seconds: load.Span.Seconds(), Backlog: int64(load.Backlog()),
		Recovery: load.Recovery.Seconds(), IsFlat: load.IsFlat(),
	}
}

// offer offers a rate for a time, counts what waits meanwhile, and waits until the backlog is gone where it is asked to.
func (b *bbw) offer(
	ctx context.Context, back *hop.BackEnd, listen, name string, rate float64, span time.Duration, drains bool,
) (load sustain.Load, err error) {
	b.progress("%s: %.0f messages a second for %s", name, rate, span.Round(time.Second/10))
	counting, stop := context.WithCancel(ctx)
	counted := make(chan []float64, 1)
	go func() {
		var depths []float64
		for waitUntil(counting, time.Now().Add(span/depthsOfAnOffer)) {
			depths = append(depths, float64(max(0, b.offered()-back.Taken())))
		}
		counted <- depths
	}()
	sent, err := b.generate(ctx, listen, rate, span)
	stop()
	load = sustain.Load{Asked: rate, Span: sent.Took, Depths: <-counted, Rest: float64(b.Connections)}
	if err != nil {
		return load, err
	}
	load.Offered = float64(sent.Messages) / sent.Took.Seconds()
	load.Depths = append(load.Depths, float64(max(0, b.offered()-back.Taken())))
	ended := time.Now()
	if drains {
		if err := back.Await(ctx, b.offered(), patience); err != nil {
			return load, fmt.Errorf("%s: %w", name, err)
		}
	}
	load.Recovery = time.Since(ended)
	return load, nil
}
