// What a call of the scheduler extender costs: ours against one in Go that keeps the same ledger, from the same API server with the same nodes
// and pods. README.md in this folder says what is measured and how; bench/extender/run.sh builds and calls this from the repository's root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	"quartermaster.io/bench/figures"
	"quartermaster.io/bench/kit"
	"quartermaster.io/bench/sync/load"
)

type options struct {
	pairs, calls, nodes, pods   int
	quick, long, keep, endToEnd bool
	output                      kit.Output
	svg, release, peers         string
	controlCore, extenderCore   int
	settle                      time.Duration
}

func parse(arguments []string) (options, error) {
	var o options
	first, last := kit.FirstAndLast()
	flags := flag.NewFlagSet("extender", flag.ContinueOnError)
	flags.BoolVar(&o.quick, "quick", false, "200 nodes, 800 pods, 1 pair: half a minute; no verdict is taken from it")
	flags.BoolVar(&o.quick, "short", false, "the same as --quick")
	flags.BoolVar(&o.long, "long", false, "also bodies with 5,000 whole nodes, and the plot up to 20,000 nodes")
	flags.IntVar(&o.pairs, "pairs", 7, "alternating runs of each program")
	flags.IntVar(&o.calls, "calls", 1000, "calls of a phase at 500 names; a fifth of it at 5,000")
	flags.IntVar(&o.nodes, "nodes", 5000, "nodes of the second stage")
	flags.IntVar(&o.pods, "pods", 20_000, "placed pods")
	flags.DurationVar(&o.settle, "settle", 5*time.Second, "quiet time before memory is read")
	flags.BoolVar(&o.endToEnd, "end-to-end", false, "only whole pods through a real kube-scheduler, at the second stage's size")
	o.output.Flags(flags)
	flags.StringVar(&o.svg, "svg", "", "draw how cost grows into this file (build/bench-go/extender.svg)")
	flags.BoolVar(&o.keep, "keep", false, "leave the control plane running")
	flags.StringVar(&o.release, "release", "build/release", "folder of quartermaster")
	flags.StringVar(&o.peers, "peers", "build/bench-go", "folder of the peer")
	flags.IntVar(&o.controlCore, "control-core", first, "core of the control plane and of this program")
	flags.IntVar(&o.extenderCore, "extender-core", last, "core of the extender under measurement")
	if err := kit.Parse(flags, arguments); err != nil {
		return o, err
	}
	if o.svg == "" {
		o.svg = "build/bench-go/extender.svg"
	}
	if o.quick {
		return o, kit.SetDefaults(flags, map[string]string{"pairs": "1", "calls": "100", "nodes": "200", "pods": "800", "settle": "500ms"})
	}
	return o, nil
}

func main() { kit.Main(os.Args[1:], parse, run) }

// contender is an extender and what was measured of it.
type contender struct {
	name, program string
	found         figures.Series
}

type bench struct {
	options
	*content
	keys       string
	ours, peer *contender
	answers    map[string][]string // of the timed questions, by the first program that answered
	panels     []figures.Panel
}

func run(ctx context.Context, o options) error {
	kit.PinSelf(o.controlCore)
	folder, err := os.MkdirTemp("", "quartermaster-extender-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if _, err := kit.Certificates(folder, "server", "client"); err != nil {
		return err
	}
	before := kit.LoadAverage()
	kit.Say("starting the control plane on core %d", o.controlCore)
	p, err := planeUp(ctx, o.controlCore)
	if err != nil {
		return err
	}
	defer p.Down(o.keep)
	b := &bench{options: o, content: &content{plane: p}, keys: folder, answers: map[string][]string{},
		ours: &contender{"ours", filepath.Join(o.release, "quartermaster"), figures.Series{}}, peer: &contender{"peer", filepath.Join(o.peers, "peer-extender"), figures.Series{}}}
	rows, err := b.stages(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("\nextender: %d nodes of %d cards, %d placed pods, %d pairs; one kept TLS connection, one call after another\nload average before: %s, at the end: %s\n\n",
		o.nodes, cards, o.pods, o.pairs, before, kit.LoadAverage())
	form := figures.FormOf("quick", o.quick)
	form.Unjudge(rows)
	form.Report(rows, "targets")
	if err := figures.WriteSVG(o.svg, "One filter call (p50)", b.panels); err != nil {
		return err
	}
	fmt.Printf("plot: %s\n", o.svg)
	whole := "full"
	if o.long {
		whole = "long"
	}
	return o.output.Write("extender", whole, rows)
}

// stages: 500 nodes first, then all of them. The plots need their own contents in between.
func (b *bench) stages(ctx context.Context) ([]figures.Row, error) {
	small := min(500, b.options.nodes)
	if b.endToEnd {
		if err := errors.Join(b.addNodes(ctx, b.options.nodes), b.addPods(ctx, b.options.pods)); err != nil {
			return nil, err
		}
		return b.wholePods(ctx)
	}
	if err := errors.Join(b.addNodes(ctx, small), b.addPods(ctx, min(2000, b.options.pods))); err != nil {
		return nil, err
	}
	if err := b.pairsOf(ctx, fmt.Sprint(small), []int{small}); err != nil {
		return nil, err
	}
	rows := []figures.Row{
		figures.Absolute(fmt.Sprintf("start to first right answer, %d nodes", small), "ms", 1000, b.ours.found[key(small, "start")]),
		figures.Compare("the same, compared with the peer", "ms", 0, b.ours.found, b.peer.found, key(small, "start")),
	}
	if err := b.growWithPods(ctx, small); err != nil {
		return nil, err
	}
	all := b.options.nodes
	if all > small || b.content.pods > min(2000, b.options.pods) {
		if err := errors.Join(b.addNodes(ctx, all), b.addPods(ctx, b.options.pods)); err != nil {
			return nil, err
		}
		if err := b.pairsOf(ctx, "all", []int{small, all}); err != nil {
			return nil, err
		}
	}
	stage := "all"
	if len(b.ours.found[stage+" rss"]) == 0 {
		stage = fmt.Sprint(small)
	}
	for _, names := range distinct(small, all) {
		of := func(what string) string { return fmt.Sprintf("%s %d %s", stage, names, what) }
		rows = append(rows,
			figures.Compare(fmt.Sprintf("filter, %d names: p50", names), "ms", 0.3, b.ours.found, b.peer.found, of("p50")),
			figures.Compare(fmt.Sprintf("filter, %d names: p99", names), "ms", 0.4, b.ours.found, b.peer.found, of("p99")),
			figures.Absolute(fmt.Sprintf("filter, %d names: p50, at most", names), "ms", allowed(names), b.ours.found[of("p50")]),
			figures.Compare(fmt.Sprintf("filter, %d names: CPU a call", names), "us", 0, b.ours.found, b.peer.found, of("cpu")))
	}
	rows = append(rows, figures.Absolute(fmt.Sprintf("RSS, %d nodes, %d pods", all, b.content.pods), "MiB", 60, b.ours.found[stage+" rss"]),
		figures.Compare("RSS, compared with the peer", "MiB", 0, b.ours.found, b.peer.found, stage+" rss"),
		figures.Compare("start to first right answer, all nodes", "ms", 0, b.ours.found, b.peer.found, stage+" start"))
	if b.long {
		if err := b.wholeNodes(ctx); err != nil {
			return nil, err
		}
		rows = append(rows, figures.Compare(fmt.Sprintf("filter, %d whole nodes: p50", all), "ms", 0.15, b.ours.found, b.peer.found, "whole"),
			figures.Absolute("memory while whole nodes are read, more than at rest", "MiB", 150, b.ours.found["whole more"]),
			figures.Compare("the same, compared with the peer", "MiB", 0, b.ours.found, b.peer.found, "whole more"))
	}
	whole, err := b.wholePods(ctx)
	if err != nil {
		return nil, err
	}
	rows = append(rows, whole...)
	if err := b.growWithNodes(ctx); err != nil {
		return nil, err
	}
	if err := b.growWithCards(ctx); err != nil {
		return nil, err
	}
	return rows, nil
}

func (b *bench) wholePods(ctx context.Context) ([]figures.Row, error) {
	pods, rounds := 2000, 3
	if b.quick {
		pods, rounds = 100, 1
	}
	if err := b.throughput(ctx, pods, rounds); err != nil {
		return nil, err
	}
	return []figures.Row{figures.Compare("end to end, a pod: compared with no extender", "ms", 1.25, b.ours.found, b.peer.found, "a pod")}, nil
}

// allowed is the orientation for p50, ms.
func allowed(names int) float64 {
	if names <= 500 {
		return 0.5
	}
	return 3
}

func key(nodes int, what string) string { return fmt.Sprintf("%d %s", nodes, what) }

func distinct(a, b int) []int {
	if a == b {
		return []int{a}
	}
	return []int{a, b}
}

// names of the first so many nodes, spread over all of them.
func (b *bench) names(count int) (names []string, indexes []int) {
	for i := range count {
		at := i * b.content.nodes / count
		names, indexes = append(names, load.NodeName(at)), append(indexes, at)
	}
	return
}

// begin starts a program and waits until it answers rightly about all nodes.
func (b *bench) begin(ctx context.Context, c *contender) (*process, *asker, time.Duration, error) {
	if err := b.freeLeases(ctx); err != nil {
		return nil, nil, 0, err
	}
	names, indexes := b.names(b.content.nodes)
	expected := b.expectations(names, indexes)
	p, err := start(b.extenderCore, c.program, b.Kubeconfig, b.keys)
	if err != nil {
		return nil, nil, 0, err
	}
	a, took, err := p.firstRight(ctx, b.keys, expected, 60*time.Second)
	if err != nil {
		p.Kill()
		return nil, nil, 0, fmt.Errorf("%s: %w", c.name, err)
	}
	return p, a, took, nil
}

// share is the question that is timed: it fits on a quarter of the nodes and is refused by the others, as is usual where nodes differ.
var share = map[string]string{"tencent.com/vcuda-core": "20", "tencent.com/vcuda-memory": "16"}

// pairsOf alternates the two programs, each time a process of its own; the first round does not count.
func (b *bench) pairsOf(ctx context.Context, stage string, counts []int) error {
	kit.Say("%d nodes, %d pods", b.content.nodes, b.content.pods)
	for round := -1; round < b.pairs; round++ {
		for _, c := range kit.InTurn([]*contender{b.ours, b.peer}, round) {
			if err := b.once(ctx, c, stage, counts, round >= 0); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) once(ctx context.Context, c *contender, stage string, counts []int, keep bool) error {
	p, a, took, err := b.begin(ctx, c)
	if err != nil {
		return err
	}
	defer p.Kill()
	defer a.close()
	add := func(name string, value float64) {
		if keep {
			c.found.Add(name, value)
		}
	}
	add(stage+" start", float64(took.Microseconds())/1000)
	line := fmt.Sprintf("%s: first right answer after %s", c.name, took.Round(time.Millisecond))
	for _, count := range counts {
		names, _ := b.names(count)
		calls := b.calls
		if count > 1000 {
			calls /= 5
		}
		request := requestOf(filterBody(question(share), names, nil))
		if err := b.agree(a, request, key(b.content.nodes, fmt.Sprint(b.content.pods, " ", count))); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		t, err := a.time(p.PID(), request, calls)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		for what, value := range map[string]float64{"p50": t.p50, "p99": t.p99, "cpu": t.cpu} {
			add(fmt.Sprintf("%s %d %s", stage, count, what), value)
		}
		line += fmt.Sprintf("; %d names: p50 %.3f ms, p99 %.3f ms, CPU %.0f us", count, t.p50, t.p99, t.cpu)
	}
	if err := kit.Pause(ctx, b.settle); err != nil {
		return err
	}
	memory, err := kit.Memory(p.PID())
	if err != nil {
		return err
	}
	add(stage+" rss", memory["VmRSS"])
	kit.Say("%s; RSS %.1f MiB", line, memory["VmRSS"])
	return nil
}

// agree asks once, and compares with what the other program answered to the same question about the same content.
func (b *bench) agree(a *asker, request []byte, question string) error {
	said, err := a.fitting(request)
	if err != nil {
		return err
	}
	before, asked := b.answers[question]
	if !asked {
		b.answers[question] = said
		if len(said) == 0 {
			return errors.New("the timed question fits nowhere")
		}
		return nil
	}
	if err := differ(said, before); err != nil {
		return fmt.Errorf("the programs do not agree: %w", err)
	}
	return nil
}

// wholeNodes asks with all nodes in the body, as a scheduler whose extender is not nodeCacheCapable does.
func (b *bench) wholeNodes(ctx context.Context) error {
	list := &corev1.NodeList{}
	for i := range b.content.nodes {
		list.Items = append(list.Items, *nodeOf(load.NodeName(i), i, cards))
	}
	request := requestOf(filterBody(question(share), nil, list))
	list = nil
	kit.Say("a body with %d whole nodes has %d MiB", b.content.nodes, len(request)>>20)
	for round := range max(3, b.pairs/2) {
		for _, c := range kit.InTurn([]*contender{b.ours, b.peer}, round) {
			p, a, _, err := b.begin(ctx, c)
			if err != nil {
				return err
			}
			before, _ := kit.Memory(p.PID())
			err = forgetPeak(p.PID())
			var t timing
			if err == nil {
				t, err = a.time(p.PID(), request, 5)
			}
			after, _ := kit.Memory(p.PID())
			a.close()
			p.Kill()
			if err != nil {
				return fmt.Errorf("%s, whole nodes: %w", c.name, err)
			}
			c.found.Add("whole", t.p50)
			c.found.Add("whole more", after["VmHWM"]-before["VmRSS"])
			kit.Say("%s: whole nodes: p50 %.1f ms, CPU %.0f ms; memory %.0f MiB, at most %.0f", c.name, t.p50, t.cpu/1000, before["VmRSS"], after["VmHWM"])
		}
	}
	return nil
}
