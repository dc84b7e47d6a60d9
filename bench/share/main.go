// The programs that give a node's pods their shares by MPS: how quick they are for a kubelet, and what they need at rest. README.md in this folder
// says what is real and what is played; bench/share/run.sh builds everything and calls this from the repository's root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"quartermaster.io/bench/figures"
	"quartermaster.io/bench/kit"
)

type options struct {
	pods, starts, allocations, rounds int
	rest                              time.Duration
	short, keep                       bool
	output                            kit.Output
	release, standin                  string
}

func parse(arguments []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("share", flag.ContinueOnError)
	flags.BoolVar(&o.short, "short", false, "a few calls and 3 s of rest; shows that everything runs")
	flags.IntVar(&o.pods, "pods", 50, "pods on the node, each with a share")
	flags.IntVar(&o.starts, "starts", 10, "how often the plugin is started")
	flags.IntVar(&o.allocations, "allocations", 10_000, "calls of Allocate")
	flags.IntVar(&o.rounds, "rounds", 20, "how often each pod's container is started")
	flags.DurationVar(&o.rest, "rest", 2*time.Minute, "how long CPU is measured while nothing happens")
	flags.BoolVar(&o.keep, "keep", false, "leave the cluster running")
	o.output.Flags(flags)
	flags.StringVar(&o.release, "release", "build/release", "folder of quartermaster")
	flags.StringVar(&o.standin, "standin", "build/dev/nvml", "folder of the stand-ins for the card and for MPS (./dev build dev nvml_standin mps_control)")
	if err := kit.Parse(flags, arguments); err != nil {
		return o, err
	}
	if o.short {
		if err := kit.SetDefaults(flags, map[string]string{"starts": "2", "allocations": "200", "rounds": "1", "rest": "3s"}); err != nil {
			return o, err
		}
	}
	if o.pods < 1 || o.pods > 64 {
		return o, errors.New("-pods is 1 to 64: eight cards have room for no more")
	}
	if o.starts < 1 || o.allocations < 1 || o.rounds < 1 || o.rest < time.Second {
		return o, errors.New("-starts, -allocations and -rounds are at least 1, -rest is at least 1s")
	}
	return o, nil
}

func main() { kit.Main(os.Args[1:], parse, run) }

func run(ctx context.Context, o options) error {
	before := kit.LoadAverage()
	rows, err := measure(ctx, o)
	if err != nil {
		return err
	}
	fmt.Printf("\nshare: %d pods with shares on eight cards; %d calls of Allocate, %d starts of containers, %s of rest\n", o.pods, o.allocations, o.pods*o.rounds, o.rest)
	fmt.Printf("load average before: %s, at the end: %s; %d cores\n\n", before, kit.LoadAverage(), len(kit.Cores))
	figures.FormOf("short", o.short).Report(rows, "cost")
	return o.output.Write("share", "full", rows)
}
