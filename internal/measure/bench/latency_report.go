package bench

import (
	"errors"
	"slices"
	"time"

	"github.com/parley-broker/parley/internal/measure/record"
	"github.com/parley-broker/parley/internal/measure/statistics"
)

// LatencyReport is the result of MeasureLatency. As JSON it is a stable format, described in docs/reference/json.md.
type LatencyReport struct {
	record.Head

	Results []LatencyResult `json:"results"`
	// Ratios are quotients of medians, to a peer, under "p50:parley_consumer/river" and so on.
	Ratios map[string]float64 `json:"ratios"`
}

// LatencyResult is the time that one system needed from commit to work; the numbers are the medians of its runs.
type LatencyResult struct {
	System string `json:"system"`
	Latency
	Spread float64        `json:"spread"` // of the p50 of the runs: (max - min) / median
	Runs   []LatencyRound `json:"runs"`
}

// Latency reports how long the way from commit to work took, in milliseconds.
type Latency struct {
	P50MS float64 `json:"p50_ms"`
	P90MS float64 `json:"p90_ms"`
	P99MS float64 `json:"p99_ms"`
	MaxMS float64 `json:"max_ms"`
}

// LatencyRound is one round of a system.
type LatencyRound struct {
	Latency
	Messages      int64   `json:"messages"`        // that counted
	SentPerSecond float64 `json:"sent_per_second"` // how well the offered rate was kept
}

// takeTimes compares when messages were committed with when work on them began, from one number on.
func takeTimes(committed, begun []time.Time, first int64) (LatencyRound, error) {
	var spans []float64
	for number := max(0, first); number < int64(len(committed)); number++ {
		// A reader that is awake already may begin before the sender's session has come to read the clock.
		span := max(0, begun[number].Sub(committed[number]))
		spans = append(spans, float64(span)/float64(time.Millisecond))
	}
	if len(spans) == 0 {
		return LatencyRound{}, errors.New("no message counts: the run was too short")
	}
	return summaryOf(spans), nil
}

// summaryOf sorts and summarizes some spans, at least one, in milliseconds.
func summaryOf(spans []float64) LatencyRound {
	slices.Sort(spans)
	return LatencyRound{
		Messages: int64(len(spans)),
		Latency: Latency{
			P50MS: statistics.Percentile(spans, 0.50), P90MS: statistics.Percentile(spans, 0.90),
			P99MS: statistics.Percentile(spans, 0.99), MaxMS: spans[len(spans)-1],
		},
	}
}

func summarize(system string, rounds []LatencyRound) LatencyResult {
	of := func(field func(Latency) float64) []float64 {
		var values []float64
		for _, round := range rounds {
			values = append(values, field(round.Latency))
		}
		return values
	}
	p50 := of(func(l Latency) float64 { return l.P50MS })
	return LatencyResult{
		System: system, Runs: rounds, Spread: statistics.Spread(p50),
		Latency: Latency{
			P50MS: statistics.Median(p50),
			P90MS: statistics.Median(of(func(l Latency) float64 { return l.P90MS })),
			P99MS: statistics.Median(of(func(l Latency) float64 { return l.P99MS })),
			MaxMS: statistics.Median(of(func(l Latency) float64 { return l.MaxMS })),
		},
	}
}

// latencyRatios compares our systems with the peers that were measured.
func latencyRatios(results []LatencyResult, peers []Peer) map[string]float64 {
	isPeer := func(system string) bool {
		return slices.ContainsFunc(peers, func(p Peer) bool { return p.Name == system })
	}
	found := map[string]float64{}
	for _, base := range results {
		if !isPeer(base.System) || base.P50MS == 0 || base.P99MS == 0 {
			continue
		}
		for _, r := range results {
			if !isPeer(r.System) {
				found["p50:"+r.System+"/"+base.System] = r.P50MS / base.P50MS
				found["p99:"+r.System+"/"+base.System] = r.P99MS / base.P99MS
			}
		}
	}
	return found
}
