// Thousands of agents for cards on one API server: what it costs when all start at once, at rest, and when all lose their watch. README.md in
// this folder says what is real and what is played; bench/agents/run.sh builds everything and calls this from the repository's root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"quartermaster.io/bench/figures"
	"quartermaster.io/bench/kit"
)

type options struct {
	agents      []int
	real        int
	rest, calm  time.Duration
	short, keep bool
	output      kit.Output
	release     string
	standin     string
}

const userAgent = "played-agent"

func parse(arguments []string) (options, error) {
	var o options
	var sizes string
	flags := flag.NewFlagSet("agents", flag.ContinueOnError)
	flags.BoolVar(&o.short, "short", false, "30 played agents, 2 real ones, 3 s of rest; shows that everything runs")
	flags.StringVar(&sizes, "agents", "1000,2500,5000", "comma list: so many agents are played, each on a control plane of its own")
	flags.IntVar(&o.real, "real", 20, "agents that are the program, with the stand-in for the card; they run next to the played ones")
	flags.DurationVar(&o.rest, "rest", 2*time.Minute, "how long writes are counted while nothing happens")
	flags.DurationVar(&o.calm, "calm", 20*time.Second, "quiet time before writes are counted")
	flags.BoolVar(&o.keep, "keep", false, "leave the clusters running")
	o.output.Flags(flags)
	flags.StringVar(&o.release, "release", "build/release", "folder of quartermaster")
	flags.StringVar(&o.standin, "standin", "build/dev/nvml", "folder of the stand-in for the card (./dev build dev nvml_standin)")
	if err := kit.Parse(flags, arguments); err != nil {
		return o, err
	}
	if o.short {
		if err := kit.SetDefaults(flags, map[string]string{"agents": "30", "real": "2", "rest": "3s", "calm": "2s"}); err != nil {
			return o, err
		}
	}
	for text := range strings.SplitSeq(sizes, ",") {
		count, err := strconv.Atoi(text)
		if err != nil || count < 1 {
			return o, fmt.Errorf("-agents %q: %q is not a number of at least 1", sizes, text)
		}
		o.agents = append(o.agents, count)
	}
	if o.real < 1 || o.rest < time.Second {
		return o, errors.New("-real is at least 1, -rest at least 1s")
	}
	return o, nil
}

func main() { kit.Main(os.Args[1:], parse, run) }

func run(ctx context.Context, o options) error {
	before := kit.LoadAverage()
	var rows []figures.Row
	for _, count := range o.agents {
		found, err := measure(ctx, o, count)
		if err != nil {
			return fmt.Errorf("%d agents: %w", count, err)
		}
		for _, one := range found {
			row := figures.Absolute(fmt.Sprintf("%d agents, %s", count, one.name), one.unit, one.most, []float64{one.value})
			row.MayBeZero = one.mayBeZero
			rows = append(rows, row)
		}
	}
	fmt.Printf("\nagents: all start at once, %s of rest, then the API server starts again; %d real agents next to the played ones\n", o.rest, o.real)
	fmt.Printf("load average before: %s, at the end: %s; %d cores\n\n", before, kit.LoadAverage(), len(kit.Cores))
	figures.FormOf("short", o.short).Report(rows, "cost")
	return o.output.Write("agents", "full", rows)
}
