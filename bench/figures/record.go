package figures

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
)

// Origin says where and when a figure was measured. What is not known is empty.
type Origin struct {
	Machine    Machine `json:"machine"`
	Date       string  `json:"date"`
	Commit     string  `json:"commit"`
	Kubernetes string  `json:"kubernetes"`
	Form       string  `json:"form"`
}

// Machine is a processor's model and how many cores a bench may use.
type Machine struct {
	Processor string `json:"processor"`
	Cores     int    `json:"cores"`
}

// Recorded is a row of bench/figures.json, which docs/performance.md quotes.
type Recorded struct {
	Bench    string      `json:"bench"`
	Name     string      `json:"name"`
	Ours     *float64    `json:"ours"`
	Peer     *float64    `json:"peer"`
	Ratio    *float64    `json:"ratio"`
	Interval *[2]float64 `json:"interval"`
	Target   *float64    `json:"target"`
	Unit     string      `json:"unit"`
	Origin
}

// Merge replaces the rows of a bench. Others stay in their place.
func Merge(recorded []Recorded, bench string, rows []Row, origin Origin) []Recorded {
	at := slices.IndexFunc(recorded, func(row Recorded) bool { return row.Bench == bench })
	out := slices.DeleteFunc(slices.Clone(recorded), func(row Recorded) bool { return row.Bench == bench })
	if at < 0 {
		at = len(out)
	}
	for i, row := range rows {
		one := Recorded{Bench: bench, Name: row.Name, Ours: row.Ours, Peer: row.Peer, Ratio: row.Ratio, Target: row.Target, Unit: row.Unit, Origin: origin}
		if row.Low != nil && row.High != nil {
			one.Interval = &[2]float64{*row.Low, *row.High}
		}
		out = slices.Insert(out, at+i, one)
	}
	return out
}

// Record writes the rows of a bench into the file: a row a line, so that a change shows which figures it changes.
func Record(path, bench string, rows []Row, origin Origin) error {
	var recorded []Recorded
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &recorded)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var lines []string
	for _, row := range Merge(recorded, bench, rows, origin) {
		line, err := json.Marshal(row)
		if err != nil {
			return err
		}
		lines = append(lines, string(line))
	}
	return os.WriteFile(path, []byte("[\n"+strings.Join(lines, ",\n")+"\n]\n"), 0o644)
}
