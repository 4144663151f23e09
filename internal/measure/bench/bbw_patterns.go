package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-broker/parley/internal/measure/hop"
	"github.com/parley-broker/parley/internal/measure/record"
)

// BBWPattern is one way to offer messages. As JSON it is part of a stable format.
type BBWPattern struct {
	Name    string  `json:"name"`
	Offered float64 `json:"offered"` // messages a second, on average
	Seconds float64 `json:"seconds"`
	Backlog int64   `json:"backlog"` // when the generator ended
	// Recovery is how many seconds the backlog took to go.
	Recovery float64 `json:"recovery_seconds"`
	IsFlat   bool    `json:"is_flat"`
}

func (p BBWPattern) figures() []record.Figure {
	return []record.Figure{
		{Name: p.Name + ": offered", Unit: "messages/s", Value: p.Offered},
		{Name: p.Name + ": recovered in", Unit: "s", Value: p.Recovery, IsCost: true},
	}
}

// The steps of the search, as parts of the rate at which all went as fast as it was acknowledged; and what the patterns offer.
var sustainSteps = []float64{0.4, 0.55, 0.7, 0.85, 1.0}

const (
	overdrive   = 1.4
	floodgate   = 0.5
	burst       = 2.0
	bursts      = 3
	flatBacklog = 0.02 // of the messages of a step, or as many as are in flight
)

// patterns searches the highest step whose backlog stays flat, holds it, goes beyond it, and plays bursts above half of it.
func (b *bbw) patterns(ctx context.Context, back *hop.BackEnd, listen string, report *BBWReport) error {
	top := 0.0
	for _, s := range report.Taken {
		top += s.Processed / float64(len(report.Taken))
	}
	step := max(b.Duration/10, time.Second)
	sustained := 0.0
	for _, part := range sustainSteps {
		p, err := b.pattern(ctx, back, listen, fmt.Sprintf("step %.0f%%", 100*part), part*top, step)
		if err != nil {
			return err
		}
		report.Patterns = append(report.Patterns, p)
		if !p.IsFlat {
			break
		}
		sustained = part * top
	}
	if sustained == 0 {
		return nil // the lowest step was too much: the steps show it
	}
	for _, p := range []struct {
		name string
		rate float64
		span time.Duration
	}{{"sustained", sustained, b.Duration}, {"overdrive", overdrive * sustained, b.Duration / 2}} {
		played, err := b.pattern(ctx, back, listen, p.name, p.rate, p.span)
		if err != nil {
			return err
		}
		report.Patterns = append(report.Patterns, played)
	}
	flood := BBWPattern{Name: "floodgate", IsFlat: true}
	for range bursts {
		for _, part := range []float64{burst * floodgate * overdrive, floodgate} {
			p, err := b.pattern(ctx, back, listen, "floodgate", part*sustained, step)
			if err != nil {
				return err
			}
			flood.Offered += p.Offered / (2 * bursts)
			flood.Seconds += p.Seconds
			flood.Backlog, flood.Recovery = max(flood.Backlog, p.Backlog), max(flood.Recovery, p.Recovery)
			flood.IsFlat = flood.IsFlat && (part != floodgate || p.IsFlat)
		}
	}
	report.Patterns = append(report.Patterns, flood)
	return nil
}

// pattern offers a rate for a time, and waits until the backlog is gone.
func (b *bbw) pattern(ctx context.Context, back *hop.BackEnd, listen, name string, rate float64, span time.Duration) (BBWPattern, error) {
	b.progress("%s: %.0f messages a second for %s", name, rate, span)
	sent, err := b.generate(ctx, listen, max(1, int(rate)), span)
	if err != nil {
		return BBWPattern{}, err
	}
	p := BBWPattern{
		Name: name, Offered: float64(sent.Messages) / sent.Took.Seconds(), Seconds: sent.Took.Seconds(),
		Backlog: max(0, b.next-back.Taken()),
	}
	p.IsFlat = float64(p.Backlog) <= max(flatBacklog*float64(sent.Messages), float64(b.Connections)) && p.Offered >= 0.95*rate
	ended := time.Now()
	if err := back.Await(ctx, b.next, patience); err != nil {
		return p, fmt.Errorf("%s: %w", name, err)
	}
	p.Recovery = time.Since(ended).Seconds()
	return p, nil
}
