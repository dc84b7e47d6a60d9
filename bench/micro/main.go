// The micro benches: runs every program of Google Benchmark in build/release, and checks that each benchmark in it gave a figure.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"quartermaster.io/bench/figures"
	"quartermaster.io/bench/kit"
)

type options struct {
	output  kit.Output
	short   bool
	least   float64
	release string
}

func parse(arguments []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("micro", flag.ContinueOnError)
	flags.BoolVar(&o.short, "short", false, "a twentieth of a second for each benchmark")
	flags.Float64Var(&o.least, "min-time", 0.5, "seconds that each benchmark runs at least")
	flags.StringVar(&o.release, "release", "build/release", "folder of the programs")
	o.output.Flags(flags)
	if err := kit.Parse(flags, arguments); err != nil {
		return o, err
	}
	if o.short {
		return o, kit.SetDefaults(flags, map[string]string{"min-time": "0.05"})
	}
	return o, nil
}

// targets in the unit of the benchmark.
var targets = map[string]float64{"exporter, scrape_over_http/64/99/real_time": 100, "usage, scrape": 150}

func main() { kit.Main(os.Args[1:], parse, run) }

func run(ctx context.Context, o options) error {
	programs, _ := filepath.Glob(filepath.Join(o.release, "*_bench"))
	if len(programs) == 0 {
		return fmt.Errorf("no *_bench in %s: ./dev build release", o.release)
	}
	folder, err := os.MkdirTemp("", "quartermaster-micro-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	var rows []figures.Row
	for _, program := range programs {
		fmt.Printf("\n%s\n", filepath.Base(program))
		file := filepath.Join(folder, "figures.json")
		command := exec.CommandContext(ctx, program, fmt.Sprintf("--benchmark_min_time=%g", o.least), "--benchmark_counters_tabular=true",
			"--benchmark_out="+file, "--benchmark_out_format=json")
		command.Stdout = os.Stdout
		if err := command.Run(); err != nil {
			return fmt.Errorf("%s: %w", program, err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		found, err := rowsOf(strings.TrimSuffix(filepath.Base(program), "_bench"), text)
		if err != nil {
			return fmt.Errorf("%s: %w", program, err)
		}
		rows = append(rows, found...)
	}
	return o.output.Write("micro", "full", rows)
}

// rowsOf what Google Benchmark writes: a row for each benchmark.
func rowsOf(program string, text []byte) ([]figures.Row, error) {
	var said struct {
		Benchmarks []struct {
			Name     string  `json:"name"`
			Time     float64 `json:"real_time"`
			Unit     string  `json:"time_unit"`
			Failed   bool    `json:"error_occurred"`
			Problem  string  `json:"error_message"`
			Kind     string  `json:"run_type"`
			Repeated int64   `json:"iterations"`
		} `json:"benchmarks"`
	}
	if err := json.Unmarshal(text, &said); err != nil {
		return nil, err
	}
	if len(said.Benchmarks) == 0 {
		return nil, errors.New("no benchmark in it")
	}
	var rows []figures.Row
	for _, one := range said.Benchmarks {
		if one.Failed || one.Repeated < 1 {
			return nil, fmt.Errorf("%s did not run: %s", one.Name, one.Problem)
		}
		name := program + ", " + one.Name
		rows = append(rows, figures.Absolute(name, one.Unit, targets[name], []float64{one.Time}))
	}
	return rows, nil
}
