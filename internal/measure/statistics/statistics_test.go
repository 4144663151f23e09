package statistics

import (
	"math"
	"testing"
)

func TestMedianIsTheMiddleAndSpreadTheWidthInMedians(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		values         []float64
		median, spread float64
	}{
		"nothing":                  {nil, 0, 0},
		"one run":                  {[]float64{7}, 7, 0},
		"odd, not in order":        {[]float64{30, 10, 20}, 20, 1},
		"even":                     {[]float64{10, 40, 20, 30}, 25, 1.2},
		"one outlier of five":      {[]float64{100, 101, 99, 100, 10}, 100, 0.91},
		"nothing was ever counted": {[]float64{0, 0, 0}, 0, 0},
	} {
		if got := Median(test.values); got != test.median {
			t.Errorf("%s: median %v, want %v", name, got, test.median)
		}
		if got := Spread(test.values); math.Abs(got-test.spread) > 1e-12 {
			t.Errorf("%s: spread %v, want %v", name, got, test.spread)
		}
	}
}

func TestMedianLeavesTheOrderOfTheRunsAlone(t *testing.T) {
	t.Parallel()
	runs := []float64{3, 1, 2}
	Median(runs)
	if runs[0] != 3 || runs[1] != 1 || runs[2] != 2 {
		t.Errorf("the runs are %v", runs)
	}
}

func TestPercentileIsAValueThatOccurred(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sorted []float64
		part   float64
		want   float64
	}{
		{[]float64{7}, 0.5, 7},
		{[]float64{1, 2}, 0.5, 1},
		{[]float64{1, 2, 3}, 0.5, 2},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0.9, 9},
		{[]float64{1, 2, 3}, 0.99, 3},
	} {
		if got := Percentile(c.sorted, c.part); got != c.want {
			t.Errorf("percentile %v of %v is %v, want %v", c.part, c.sorted, got, c.want)
		}
	}
}
