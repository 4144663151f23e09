// Package statistics has what a measurement says of its figures: median, spread, percentiles.
package statistics

import (
	"math"
	"slices"
)

// Median is the middle of the values, or the mean of the two in the middle.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Spread reports how far the values lie apart: (largest - smallest) / median.
func Spread(values []float64) float64 {
	middle := Median(values)
	if middle == 0 {
		return 0
	}
	return (slices.Max(values) - slices.Min(values)) / middle
}

// Percentile gives the least of the sorted values that so great a part of them does not exceed.
func Percentile(sorted []float64, part float64) float64 {
	return sorted[max(0, int(math.Ceil(part*float64(len(sorted))))-1)]
}
