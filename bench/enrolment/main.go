// A thousand nodes change their mode at once: what that costs our operator next to one on controller-runtime that only turns labels into
// labels, and the full transaction under the eyes of an independent witness. README.md in this folder says what is measured and how;
// bench/enrolment/run.sh builds everything and calls this from the repository's root.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"quartermaster.io/bench/figures"
	"quartermaster.io/bench/kit"
)

type options struct {
	nodes, pairs             int
	settle                   time.Duration
	percent                  int
	short, keep              bool
	only                     string
	output                   kit.Output
	release, peers           string
	profile                  string
	controlCore, programCore int
}

func parse(arguments []string) (options, error) {
	var o options
	first, last := kit.FirstAndLast()
	flags := flag.NewFlagSet("enrolment", flag.ContinueOnError)
	flags.BoolVar(&o.short, "short", false, "20 nodes, 1 pair; no verdict on the ratio is taken from it, maxUnavailable is held to")
	flags.IntVar(&o.nodes, "nodes", 1000, "nodes that change at once")
	flags.IntVar(&o.pairs, "pairs", 5, "alternating runs of each program, each on a control plane of its own")
	flags.DurationVar(&o.settle, "settle", 12*time.Second, "rest before the labels change; ours says after ten seconds that no plugin came")
	flags.IntVar(&o.percent, "max-unavailable", 10, "percent of the nodes that may change at once, in the full transaction")
	flags.StringVar(&o.only, "only", "", "comma list of stages: reduced,full (both)")
	flags.BoolVar(&o.keep, "keep", false, "leave the cluster of stage full running, and one in which something failed")
	o.output.Flags(flags)
	flags.StringVar(&o.release, "release", "build/release", "folder of quartermaster")
	flags.StringVar(&o.peers, "peers", "build/bench-go", "folder of the peer")
	flags.StringVar(&o.profile, "profile", "", "`perf record` ours into this file while the nodes change, in the first pair; costs a few percent")
	flags.IntVar(&o.controlCore, "control-core", first, "core of the control plane and of this program in stage reduced")
	flags.IntVar(&o.programCore, "program-core", last, "core of the operator under measurement in stage reduced")
	if err := kit.Parse(flags, arguments); err != nil {
		return o, err
	}
	for stage := range strings.SplitSeq(o.only, ",") {
		if stage != "" && stage != "reduced" && stage != "full" {
			return o, fmt.Errorf("-only %q: there are the stages reduced and full", stage)
		}
	}
	if o.nodes < 1 || o.pairs < 1 || o.percent < 1 || o.percent > 100 {
		return o, errors.New("-nodes and -pairs are at least 1, -max-unavailable is 1 to 100")
	}
	if o.short {
		return o, kit.SetDefaults(flags, map[string]string{"nodes": "20", "pairs": "1", "settle": "0s", "max-unavailable": "50"})
	}
	return o, nil
}

func (o options) stage(name string) bool {
	return o.only == "" || strings.Contains(","+o.only+",", ","+name+",")
}

func main() { kit.Main(os.Args[1:], parse, run) }

// measurable: the program is no build with sanitizers, which costs several times as much of everything.
func (o options) measurable() error {
	program := filepath.Join(o.release, "quartermaster")
	text, err := os.ReadFile(program)
	if err == nil && bytes.Contains(text, []byte("__asan_init")) {
		err = fmt.Errorf("%s is built with AddressSanitizer: remove it and run ./dev build release, or name another folder with -release", program)
	}
	return err
}

func run(ctx context.Context, o options) error {
	if err := o.measurable(); err != nil {
		return err
	}
	before := kit.LoadAverage()
	all := contenders(o)
	if o.stage("reduced") {
		if err := reduced(ctx, o, all); err != nil {
			return err
		}
	}
	whole := figures.Series{}
	var broken error
	if o.stage("full") {
		var err error
		if broken, err = full(ctx, o, whole); err != nil {
			return fmt.Errorf("full transaction: %w", err)
		}
	}
	ours, peer, alike := all[0].found, all[1].found, all[2].found
	var rows []figures.Row
	if o.stage("reduced") {
		rows = append(rows,
			figures.Compare("CPU, first label to last node labelled", "ms", 0.4, ours, peer, "cpu"),
			figures.Compare("the same a node", "ms", 0, ours, peer, "cpu-node"),
			figures.Compare("wall, first label to last node labelled", "s", 0, ours, peer, "wall"),
			figures.Compare("peak memory (VmHWM)", "MiB", 0, ours, peer, "peak"),
			figures.Compare("writes of Node and AcceleratorNode, a node", "", 0, ours, peer, "writes"),
			figures.OrZero(figures.Compare("other writes (events, policy status), a node", "", 0, ours, peer, "others")))
		if !o.short {
			rows = append(rows,
				figures.Compare("peer writes as often: CPU", "ms", 0, ours, alike, "cpu"),
				figures.Compare("peer writes as often: writes, a node", "", 0, ours, alike, "writes"))
		}
	}
	if o.stage("full") {
		rows = append(rows,
			figures.Absolute("full: nodes tainted at once, at most", "", float64(allowed(o)), whole["away"]),
			figures.OrZero(figures.Absolute("full: nodes without cards at once, at most", "", float64(allowed(o)), whole["bare"])),
			figures.Absolute("full: writes a node, mean", "", 0, whole["writes"]),
			figures.Absolute("full: writes a node, at most", "", mostWrites, whole["most-writes"]),
			figures.OrZero(figures.Absolute("full: other writes a node", "", 0, whole["others"])),
			figures.Absolute(fmt.Sprintf("full: a batch of %d nodes", allowed(o)), "s", 0, whole["batch"]),
			figures.Absolute("full: all nodes", "s", 0, whole["wall"]),
			figures.Absolute("full: peak memory (VmHWM)", "MiB", 0, whole["peak"]))
		if o.stage("reduced") {
			rows = append(rows, figures.Compare("full, compared with the reduced peer: CPU a node", "ms", 0, whole, peer, "cpu-node"))
		} else {
			rows = append(rows, figures.Absolute("full: CPU a node", "ms", 0, whole["cpu-node"]))
		}
	}
	fmt.Printf("\nenrolment: %d nodes change from pgpu to vgpu at once; %d pairs where nothing is drained or verified; full: maxUnavailable %d %%\n", o.nodes, o.pairs, o.percent)
	fmt.Printf("load average before: %s, at the end: %s\n\n", before, kit.LoadAverage())
	if o.short {
		for i := range rows {
			if rows[i].Ratio != nil {
				rows[i].OK, rows[i].Note = false, "short form: judges no ratio"
			}
		}
	}
	figures.FormOf("short", o.short).Report(rows, "ratio")
	return errors.Join(o.output.Write("enrolment", "full", rows), broken)
}
