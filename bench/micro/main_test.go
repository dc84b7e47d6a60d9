package main

import (
	"strings"
	"testing"

	"quartermaster.io/bench/figures"
)

func TestRowsOf_has_a_row_for_each_benchmark_and_no_result_without_work(t *testing.T) {
	rows, err := rowsOf("queue", []byte(`{"benchmarks": [{"name": "add/100", "run_type": "iteration", "iterations": 7, "real_time": 12.5, "time_unit": "ns"}]}`))
	if err != nil || len(rows) != 1 || rows[0].Name != "queue, add/100" || *rows[0].Ours != 12.5 || figures.Check(rows) != nil {
		t.Errorf("%v, %v", rows, err)
	}
	for text, wanted := range map[string]string{
		`{"benchmarks": []}`: "no benchmark",
		`{"benchmarks": [{"name": "add", "iterations": 0, "error_occurred": true, "error_message": "no file"}]}`: "no file",
		`{"benchmarks": [`: "unexpected end",
	} {
		if _, err := rowsOf("queue", []byte(text)); err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("%s: %v", text, err)
		}
	}
	rows, err = rowsOf("queue", []byte(`{"benchmarks": [{"name": "add", "iterations": 7, "real_time": 0, "time_unit": "ns"}]}`))
	if err != nil || figures.Check(rows) == nil {
		t.Errorf("a time of 0 passes: %v", err)
	}
}
