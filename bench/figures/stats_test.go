package figures

import (
	"math"
	"testing"
)

func TestRatiosArePairedByRoundAndSkipWhatIsMissing(t *testing.T) {
	got := ratios([]float64{1, math.NaN(), 3, 4}, []float64{2, 2, 0})
	if len(got) != 1 || got[0] != 0.5 {
		t.Fatalf("only the first round has both sides, got %v", got)
	}
}

func TestTheIntervalHoldsTheMedianAndWidensWithScatter(t *testing.T) {
	tight, wide := []float64{1, 1.01, 0.99, 1, 1, 1.02, 0.98}, []float64{1, 2, 0.5, 1, 3, 0.2, 1}
	for _, values := range [][]float64{tight, wide} {
		low, high := interval(values)
		if m := Median(values); m < low || m > high {
			t.Fatalf("median %v is outside [%v, %v]", m, low, high)
		}
	}
	_, a := interval(tight)
	_, b := interval(wide)
	if a >= b {
		t.Fatalf("scattered pairs must have the higher upper end: %v, %v", a, b)
	}
}

func TestARowPassesByItsUpperEndAndNeedsAPeer(t *testing.T) {
	r := Compare("x", "ms", 0.25, Series{"x": {1, 1, 1}}, Series{"x": {5, 5, 5}}, "x")
	if !r.OK || r.Ratio == nil || *r.Ratio != 0.2 {
		t.Fatalf("0.2 meets 0.25: %+v", r)
	}
	if r = Compare("x", "ms", 0.25, Series{"x": {1, 1, 2}}, Series{"x": {5, 5, 5}}, "x"); r.OK {
		t.Fatal("an upper end of 0.4 does not meet 0.25")
	}
	if r = Compare("x", "ms", 0.25, Series{"x": {1}}, nil, "x"); r.OK || r.Note == "" {
		t.Fatal("a row without peer says so and is not ok")
	}
}
