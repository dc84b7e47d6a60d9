package kit

import "testing"

const metricsPage = `# TYPE calls_total counter
calls_total{path="/a b",code="200"} 3
calls_total{path="/c",code="500"} 1.5
calls 7
`

func TestSumOfTheSeriesThatBeginSo(t *testing.T) {
	for series, want := range map[string]float64{"calls_total{": 4.5, `calls_total{path="/c"`: 1.5, "calls ": 7, "none": 0} {
		if sum, err := SumOf([]byte(metricsPage), series); err != nil || sum != want {
			t.Errorf("%s: %v, %v, want %v", series, sum, err, want)
		}
	}
	if _, err := SumOf([]byte("calls x\n"), "calls "); err == nil {
		t.Error("a value that is no number is one")
	}
}
