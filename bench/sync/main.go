// Side by side: our informer against client-go's, on one API server with the same objects. README.md in this folder says what is
// measured and how; bench/sync/run.sh builds everything and calls this from the repository's root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"quartermaster.io/bench/sync/load"
)

type options struct {
	pairs, rate              int
	events, settle, idle     time.Duration
	short, keep              bool
	json, release, peers     string
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
	first, second := cores()
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
	flags.StringVar(&o.json, "json", "", "write the figures to this file")
	flags.BoolVar(&o.keep, "keep", false, "leave the cluster running")
	flags.StringVar(&o.release, "release", "build/release", "folder of sync_informer and quartermaster")
	flags.StringVar(&o.peers, "peers", "build/bench-go", "folder of the peers' programs")
	flags.IntVar(&o.controlCore, "control-core", first, "core of the control plane and of this program")
	flags.IntVar(&o.programCore, "program-core", second, "core of the program under measurement")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.controlCore == o.programCore {
		say("one core only: the control plane and the program under measurement share it")
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if o.short {
		shorter(&o, given)
	}
	if verb == "idle" && !given["idle"] {
		o.idle = 60 * time.Second
	}
	return o, nil
}

func shorter(o *options, given map[string]bool) {
	for name, set := range map[string]func(){
		"pairs": func() { o.pairs = 3 }, "nodes": func() { o.content.Nodes = 500 }, "pods": func() { o.content.Pods = 1500 },
		"events": func() { o.events = 2 * time.Second }, "settle": func() { o.settle = 300 * time.Millisecond },
		"idle": func() { o.idle = 3 * time.Second },
	} {
		if !given[name] {
			set()
		}
	}
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
	o, err := parse(verb, os.Args[2:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func say(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", arguments...)
}
