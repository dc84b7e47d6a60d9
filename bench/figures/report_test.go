package figures

import (
	"math"
	"strings"
	"testing"
)

func TestCheck_names_each_figure_that_is_missing(t *testing.T) {
	one := Series{"cpu": {1}, "none": {}, "zero": {0}, "nan": {math.NaN()}}
	for name, test := range map[string]struct {
		row     Row
		missing string
	}{
		"there":             {Compare("f", "ms", 0.3, one, one, "cpu"), ""},
		"a target missed":   {Absolute("f", "ms", 0.5, one["cpu"]), ""},
		"never measured":    {Absolute("f", "ms", 0, one["none"]), `"f" has no value of ours`},
		"not a number":      {Absolute("f", "ms", 0, one["nan"]), `"f" has no value of ours`},
		"infinite":          {Absolute("f", "ms", 0, []float64{math.Inf(1)}), `"f" has no value of ours`},
		"zero":              {Absolute("f", "ms", 0, one["zero"]), `"f" is 0, and cannot be`},
		"zero, as it may":   {OrZero(Absolute("f", "", 0, one["zero"])), ""},
		"no peer":           {Compare("f", "ms", 0, one, Series{}, "cpu"), `"f" has no value of the peer`},
		"peer without work": {Compare("f", "ms", 0, one, Series{"cpu": {0}}, "cpu"), `"f" is 0 for the peer`},
	} {
		err := Check([]Row{test.row})
		if (err == nil) != (test.missing == "") || err != nil && !strings.Contains(err.Error(), test.missing) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if Check(nil) == nil {
		t.Error("no figure at all passes")
	}
}
