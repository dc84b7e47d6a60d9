// What the metrics of a running operator cost when its ledger is full: the time and the memory of a scrape, and whether pods that are gone leave
// series behind. README.md in this folder says what is real and what is played; bench/usage/run.sh builds and calls this from the repository's root.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"quartermaster.io/bench/figures"
	"quartermaster.io/bench/kit"
)

type options struct {
	nodes, pods, churn, scrapes int
	settle                      time.Duration
	short, keep                 bool
	output                      kit.Output
	operator                    string
}

func parse(arguments []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("usage", flag.ContinueOnError)
	flags.BoolVar(&o.short, "short", false, "150 nodes, 600 pods; shows that everything runs")
	flags.IntVar(&o.nodes, "nodes", 5000, "enrolled nodes of 8 cards: vgpu, pgpu and mps in turn")
	flags.IntVar(&o.pods, "pods", 20_000, "pods with a placement, evenly on the nodes")
	flags.IntVar(&o.churn, "churn", 10_000, "pods that come and go before series are counted again")
	flags.IntVar(&o.scrapes, "scrapes", 60, "scrapes that are timed")
	flags.DurationVar(&o.settle, "settle", 5*time.Second, "quiet time before memory is read")
	flags.BoolVar(&o.keep, "keep", false, "leave the control plane running")
	o.output.Flags(flags)
	flags.StringVar(&o.operator, "operator", "build/release/quartermaster", "the program")
	if err := kit.Parse(flags, arguments); err != nil {
		return o, err
	}
	if o.short {
		if err := kit.SetDefaults(flags, map[string]string{"nodes": "150", "pods": "600", "churn": "300", "scrapes": "20", "settle": "1s"}); err != nil {
			return o, err
		}
	}
	if o.nodes < len(modes) || o.scrapes < 20 || o.churn < 1 || o.pods < 1 || o.pods > o.nodes*(cards-1) {
		return o, fmt.Errorf("-nodes is at least %d, -scrapes at least 20, -pods and -churn at least 1, and there are at most %d pods per node", len(modes), cards-1)
	}
	return o, nil
}

func main() { kit.Main(os.Args[1:], parse, run) }

func run(ctx context.Context, o options) (err error) {
	before := kit.LoadAverage()
	p, err := planeUp(ctx)
	if err != nil {
		return err
	}
	defer p.Down(o.keep)
	rows, err := p.measure(ctx, o)
	if err != nil {
		return err
	}
	fmt.Printf("\nusage: %d enrolled nodes of %d cards, %d pods with a placement in %d namespaces\n", o.nodes, cards, o.pods, namespaces)
	fmt.Printf("load average before: %s, at the end: %s; %d cores\n\n", before, kit.LoadAverage(), len(kit.Cores))
	form := figures.FormOf("short", o.short)
	form.Unjudge(rows)
	form.Report(rows, "targets")
	return o.output.Write("usage", "full", rows)
}
