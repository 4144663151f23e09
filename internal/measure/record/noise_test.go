package record_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/parley-broker/parley/internal/measure/record"
	"github.com/parley-broker/parley/internal/measure/statistics"
)

// measured is a run of three on a machine that does so much a second, whose runs lie apart by the noise.
func measured(random *rand.Rand, rate, noise float64) *record.Head {
	var runs []float64
	for range 3 {
		runs = append(runs, rate*math.Exp(noise*random.NormFloat64()))
	}
	return &record.Head{Scenario: "send", Figures: []record.Figure{{
		Name: "send", Unit: "messages/s", Value: statistics.Median(runs), Runs: runs, Spread: statistics.Spread(runs),
	}}}
}

// A machine that has not changed gives a regression in at most 1 of 100 comparisons where it is quiet, and 8 where it is not. One that does
// 40% less on purpose gives one in 99 of 100.
func TestNoiseIsNoRegressionAndALossOnPurposeIsOne(t *testing.T) {
	t.Parallel()
	const comparisons = 2000
	random := rand.New(rand.NewPCG(1, 2))
	regressions := func(after, noise float64) (part float64) {
		for range comparisons {
			c, err := record.Compare(measured(random, 5000, noise), measured(random, after, noise), "before.json")
			if err != nil {
				t.Fatal(err)
			}
			part += float64(len(c.Regressions())) / comparisons
		}
		return part
	}
	for _, c := range []struct{ after, noise, least, most float64 }{
		{5000, 0.02, 0, 0.001},
		{5000, 0.04, 0, 0.01},
		{5000, 0.15, 0, 0.08},
		{3000, 0.04, 0.99, 1},
		{3000, 0.02, 0.99, 1},
	} {
		if part := regressions(c.after, c.noise); part < c.least || part > c.most {
			t.Errorf("from 5,000 to %.0f a second with a noise of %.0f%%, %.1f%% are regressions; it should be %.0f to %.0f%%", c.after,
				100*c.noise, 100*part, 100*c.least, 100*c.most)
		} else {
			t.Logf("from 5,000 to %.0f, noise %.0f%%: %.2f%%", c.after, 100*c.noise, 100*part)
		}
	}
}
