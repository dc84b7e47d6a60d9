package figures

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRecord_replaces_the_rows_of_one_bench_and_no_others(t *testing.T) {
	file := filepath.Join(t.TempDir(), "figures.json")
	old, now := Origin{Date: "2026-01-01", Commit: "old"}, Origin{Date: "2026-02-02", Commit: "now", Form: "full"}
	figure := func(name string, value float64) Row { return Absolute(name, "ms", 0, []float64{value}) }
	ratio := Compare("ratio", "ms", 0.5, Series{"k": {1, 1}}, Series{"k": {4, 4}}, "k")
	for _, step := range []struct {
		bench  string
		rows   []Row
		origin Origin
	}{
		{"a", []Row{figure("first", 1), figure("gone", 2)}, old},
		{"b", []Row{figure("first", 3)}, old},
		{"a", []Row{figure("first", 4), ratio}, now},
	} {
		if err := Record(file, step.bench, step.rows, step.origin); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != 5 {
		t.Fatalf("not a row a line: %s", text)
	}
	for at, wanted := range map[int][]string{
		1: {`"bench":"a"`, `"name":"first"`, `"ours":4`, `"commit":"now"`, `"form":"full"`},
		2: {`"bench":"a"`, `"ratio":0.25`, `"interval":[0.25,0.25]`, `"target":0.5`},
		3: {`"bench":"b"`, `"ours":3`, `"commit":"old"`},
	} {
		for _, part := range wanted {
			if !strings.Contains(lines[at], part) {
				t.Errorf("line %d has no %s: %s", at, part, lines[at])
			}
		}
	}
}

func TestRecord_leaves_a_file_alone_that_it_cannot_read(t *testing.T) {
	file := filepath.Join(t.TempDir(), "figures.json")
	if err := os.WriteFile(file, []byte("[{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Record(file, "a", nil, Origin{}); err == nil {
		t.Error("it was overwritten")
	}
}
