package report

import (
	"math"
	"strconv"
)

// tick is a mark on an axis: where it is drawn, and its label.
type tick struct {
	At   float64
	Text string
}

// scale maps values from 0 up to a length on the page.
type scale struct {
	most, length float64
}

// newScale makes a scale that ends on a round number at or above the largest value.
func newScale(largest, length float64, ticks int) (scale, []float64) {
	step := roundStep(largest / float64(ticks))
	most := math.Max(step, math.Ceil(largest/step-1e-9)*step)
	var values []float64
	for v := 0.0; v <= most+step/2; v += step {
		values = append(values, v)
	}
	return scale{most: most, length: length}, values
}

func (s scale) at(value float64) float64 { return round(value / s.most * s.length) }

// roundStep gives the first of 1, 2, 5, 10, 20, 50 and so on that is no smaller than a value.
func roundStep(value float64) float64 {
	if value <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(value)))
	for _, factor := range []float64{1, 2, 5} {
		if value <= factor*power*(1+1e-9) {
			return factor * power
		}
	}
	return 10 * power
}

// round keeps coordinates short.
func round(value float64) float64 { return math.Round(value*10) / 10 }

// short writes a round number for an axis: 250, 5k, 1.5M.
func short(value float64) string {
	switch {
	case value >= 1e6:
		return strconv.FormatFloat(value/1e6, 'f', -1, 64) + "M"
	case value >= 1e4:
		return strconv.FormatFloat(value/1e3, 'f', -1, 64) + "k"
	}
	return strconv.FormatFloat(math.Round(value*100)/100, 'f', -1, 64)
}
