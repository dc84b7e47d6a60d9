package figures

import (
	"math"
	"math/rand"
	"slices"
)

// Median of the values; NaN of none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// ratios pairs the values by round; rounds that either side lacks are left out.
func ratios(ours, peer []float64) []float64 {
	var all []float64
	for i := range min(len(ours), len(peer)) {
		if peer[i] > 0 && !math.IsNaN(ours[i]) {
			all = append(all, ours[i]/peer[i])
		}
	}
	return all
}

// interval is the 95 % bootstrap interval of the median: 10,000 resamples of the pairs, always the same ones.
func interval(values []float64) (low, high float64) {
	if len(values) == 0 {
		return math.NaN(), math.NaN()
	}
	r := rand.New(rand.NewSource(1))
	medians := make([]float64, 10_000)
	drawn := make([]float64, len(values))
	for i := range medians {
		for j := range drawn {
			drawn[j] = values[r.Intn(len(values))]
		}
		medians[i] = Median(drawn)
	}
	slices.Sort(medians)
	return medians[250], medians[9749]
}

// Quantile of the values, which are some.
func Quantile(values []float64, part float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(part*float64(len(sorted))))]
}
