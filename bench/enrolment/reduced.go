package main

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"quartermaster.io/bench/figures"
	"quartermaster.io/bench/kit"
)

// contender is an operator and what was measured of it.
type contender struct {
	name  string
	agent string // beginning of its User-Agent
	start func(core int, c *plane) (*process, error)
	ours  bool
	found figures.Series
}

func contenders(o options) []*contender {
	peer := func(steps string) func(int, *plane) (*process, error) {
		return func(core int, c *plane) (*process, error) {
			addresses, err := kit.FreeAddresses(2)
			if err != nil {
				return nil, err
			}
			return spawn(core, filepath.Join(o.peers, "peer-operator"), "-kubeconfig", c.Kubeconfig, "-metrics-address", addresses[0], "-health-address", addresses[1], "-steps", steps)
		}
	}
	return []*contender{
		{name: "ours", agent: "quartermaster/", start: o.startOurs, ours: true, found: figures.Series{}},
		{name: "peer", agent: "peer-operator", start: peer("one"), found: figures.Series{}},
		{name: "peer, writing as often", agent: "peer-operator", start: peer("two"), found: figures.Series{}},
	}
}

func (o options) startOurs(core int, c *plane) (*process, error) {
	addresses, err := kit.FreeAddresses(1)
	if err != nil {
		return nil, err
	}
	return spawn(core, filepath.Join(o.release, "quartermaster"), "controller", "--kubeconfig", c.Kubeconfig, "--metrics-address", addresses[0])
}

// reduced is the ratio: nothing to drain, no one who would verify, every node may change at once. No controller manager, KWOK or scheduler
// runs; a plugin pod never comes, so ours ends, as the peer does, when the last node has its new label.
func reduced(ctx context.Context, o options, all []*contender) error {
	kit.PinSelf(o.controlCore)
	defer kit.PinSelf(kit.AnyCore)
	for round := range o.pairs {
		order := all
		if o.short {
			order = order[:2]
		}
		for _, one := range kit.InTurn(order, round) {
			profile := ""
			if one.ours && round == 0 {
				profile = o.profile
			}
			if err := one.once(ctx, o, profile); err != nil {
				return fmt.Errorf("%s: %w", one.name, err)
			}
		}
	}
	return nil
}

func (one *contender) once(ctx context.Context, o options, profile string) (err error) {
	c, err := planeUp(ctx, o.controlCore, true)
	if err != nil {
		return err
	}
	defer func() { c.Down(o.keep && err != nil) }()
	if one.ours {
		if err := c.applyPolicy(ctx, o.nodes); err != nil {
			return err
		}
	}
	if err := c.fill(ctx, o.nodes, "pgpu", ""); err != nil {
		return err
	}
	w := newWitness(false)
	defer w.close()
	if err := w.follow(ctx, c); err != nil {
		return err
	}
	p, err := one.start(o.programCore, c)
	if err != nil {
		return err
	}
	defer p.end()
	const patience = 60 * time.Second
	if err := w.until(ctx, "pgpu", o.nodes, patience, p.Alive, nil); err != nil {
		return err
	}
	if err := p.quiet(ctx, o.settle); err != nil {
		return err
	}
	if profile != "" {
		perf, err := spawn(kit.AnyCore, "perf", "record", "--quiet", "-F", "199", "-e", "cpu-clock", "--call-graph", "dwarf,8192", "-o", profile, "-p", fmt.Sprint(p.PID()))
		if err != nil {
			return err
		}
		defer perf.Stop(syscall.SIGINT)
	}
	change, err := c.change(ctx, o, p, w, patience, nil)
	if err != nil {
		return err
	}
	if err := kit.Pause(ctx, 2*time.Second); err != nil { // events come after
		return err
	}
	made, err := c.written(one.agent, change.began)
	if err != nil {
		return err
	}
	mean, _ := made.perNode(o.nodes)
	for name, value := range map[string]float64{"cpu": kit.Milliseconds(change.cpu), "cpu-node": kit.Milliseconds(change.cpu) / float64(o.nodes), "wall": change.wall.Seconds(), "peak": change.peak,
		"writes": mean, "others": made.others(o.nodes)} {
		one.found.Add(name, value)
	}
	kit.Say("%s: %.0f ms CPU, %.1f s, %.1f MiB; writes: %s", one.name, kit.Milliseconds(change.cpu), change.wall.Seconds(), change.peak, made)
	return nil
}

// change is one relabelling of all nodes from pgpu to vgpu.
type change struct {
	began     time.Time
	wall, cpu time.Duration
	peak      float64
}

func (c *plane) change(ctx context.Context, o options, p *process, w *witness, patience time.Duration, seen func(int)) (out change, err error) {
	before, err := p.CPU()
	if err != nil {
		return out, err
	}
	out.began = time.Now()
	asked := make(chan error, 1)
	go func() { asked <- c.ask(ctx, o.nodes, "vgpu") }()
	err = w.until(ctx, "vgpu", o.nodes, patience, p.Alive, seen)
	out.wall = time.Since(out.began)
	if err != nil {
		return out, err
	}
	after, err := p.CPU()
	if err != nil {
		return out, err
	}
	out.cpu = after - before
	memory, err := p.Memory()
	if err != nil {
		return out, err
	}
	out.peak = memory["VmHWM"]
	return out, <-asked
}

func (w writes) String() string {
	var all []string
	for _, what := range slices.Sorted(maps.Keys(w.kinds)) {
		all = append(all, fmt.Sprintf("%d %s", w.kinds[what], what))
	}
	if w.failed > 0 {
		all = append(all, fmt.Sprintf("%d of them refused", w.failed))
	}
	return strings.Join(all, ", ")
}
