// Side by side: our informer against client-go's, on one API server with the same objects. README.md in this folder says what is
// measured and how; bench/sync/run.sh builds everything and calls this from the repository's root.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"quartermaster.io/bench/kit"
	"quartermaster.io/bench/sync/load"
)

type options struct {
	pairs, rate              int
	events, settle, idle     time.Duration
	short, keep              bool
	output                   kit.Output
	release, peers           string
	only                     string
	controlCore, programCore int
	content                  load.Options
}

const usage = `usage: bench/sync/run.sh sync|idle|load [options]
  sync   ours against client-go: CPU, wall and memory to synced, watch events, latency, restart
  idle   the operator on an empty cluster: memory and CPU
  load   bring up a cluster with the objects in it, print its kubeconfig and leave it running
`

func parse(verb string, arguments []string) (options, error) {
	var o options
	first, second := kit.FirstAndLast()
	flags := flag.NewFlagSet(verb, flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprint(os.Stderr, usage, "options:\n"); flags.PrintDefaults() }
	flags.BoolVar(&o.short, "short", false, "500 nodes, 1,500 pods, 3 pairs, seconds instead of minutes; no verdict is taken from it")
	flags.IntVar(&o.pairs, "pairs", 7, "alternating runs of each program")
	flags.IntVar(&o.content.Nodes, "nodes", 5000, "nodes to load")
	flags.IntVar(&o.content.Pods, "pods", 15000, "pods to load")
	flags.IntVar(&o.content.Size, "size", 10_000, "protobuf bytes of a pod")
	flags.Int64Var(&o.content.Seed, "seed", 1, "seed of the objects")
	flags.IntVar(&o.rate, "rate", 200, "pod changes a second in the event phase")
	flags.DurationVar(&o.events, "events", 20*time.Second, "length of the event phase")
	flags.DurationVar(&o.settle, "settle", 2*time.Second, "wait between synced and the event phase")
	flags.DurationVar(&o.idle, "idle", 5*time.Minute, "quiet time before steady RSS is read: Go collects after two minutes and gives memory back after that")
	flags.StringVar(&o.only, "only", "", "comma list of stages: sync,steady,operator (all)")
	o.output.Flags(flags)
	flags.BoolVar(&o.keep, "keep", false, "leave the cluster running")
	flags.StringVar(&o.release, "release", "build/release", "folder of sync_informer and quartermaster")
	flags.StringVar(&o.peers, "peers", "build/bench-go", "folder of the peers' programs")
	flags.IntVar(&o.controlCore, "control-core", first, "core of the control plane and of this program")
	flags.IntVar(&o.programCore, "program-core", second, "core of the program under measurement")
	if err := kit.Parse(flags, arguments); err != nil {
		return o, err
	}
	if o.controlCore == o.programCore {
		kit.Say("one core only: the control plane and the program under measurement share it")
	}
	defaults := map[string]string{}
	if o.short {
		defaults = map[string]string{"pairs": "3", "nodes": "500", "pods": "1500", "events": "2s", "settle": "300ms", "idle": "3s"}
	}
	if verb == "idle" && !o.short {
		defaults["idle"] = "1m"
	}
	return o, kit.SetDefaults(flags, defaults)
}

func (o options) stage(name string) bool {
	return o.only == "" || strings.Contains(","+o.only+",", ","+name+",")
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	verb := os.Args[1]
	verbs := map[string]func(context.Context, options) error{"sync": benchSync, "idle": benchIdle, "load": leaveLoaded}
	run, ok := verbs[verb]
	if !ok {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	kit.Main(os.Args[2:], func(arguments []string) (options, error) { return parse(verb, arguments) }, run)
}
