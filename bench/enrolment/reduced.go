package main

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"quartermaster.io/bench/figures"
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
			metrics, err := freeAddress()
			if err != nil {
				return nil, err
			}
			health, err := freeAddress()
			if err != nil {
				return nil, err
			}
			return spawn(core, filepath.Join(o.peers, "peer-operator"), "-kubeconfig", c.kubeconfig, "-metrics-address", metrics, "-health-address", health, "-steps", steps)
		}
	}
	return []*contender{
		{name: "ours", agent: "quartermaster/", start: o.startOurs, ours: true, found: figures.Series{}},
		{name: "peer", agent: "peer-operator", start: peer("one"), found: figures.Series{}},
		{name: "peer, writing as often", agent: "peer-operator", start: peer("two"), found: figures.Series{}},
	}
}

func (o options) startOurs(core int, c *plane) (*process, error) {
	metrics, err := freeAddress()
	if err != nil {
		return nil, err
	}
	return spawn(core, filepath.Join(o.release, "quartermaster"), "controller", "--kubeconfig", c.kubeconfig, "--metrics-address", metrics)
}

// reduced is the ratio: nothing to drain, no one who would verify, every node may change at once. No controller manager, KWOK or scheduler
// runs; a plugin pod never comes, so ours ends, as the peer does, when the last node has its new label.
func reduced(ctx context.Context, o options, all []*contender) error {
	pinSelf(o.controlCore)
	defer pinSelf(o.allCores...)
	for round := range o.pairs {
		order := slices.Clone(all)
		if o.short {
			order = order[:2]
		}
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, one := range order {
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
	defer func() { c.down(o.keep && err != nil) }()
	if err != nil {
		return err
	}
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
	if err := w.until(ctx, "pgpu", o.nodes, patience, p.alive, nil); err != nil {
		return err
	}
	if err := p.quiet(ctx, o.settle); err != nil {
		return err
	}
	if profile != "" {
		perf, err := spawn(-1, "perf", "record", "--quiet", "-F", "199", "-e", "cpu-clock", "--call-graph", "dwarf,8192", "-o", profile, "-p", fmt.Sprint(p.pid()))
		if err != nil {
			return err
		}
		defer perf.interrupt()
	}
	change, err := c.change(ctx, o, p, w, patience, nil)
	if err != nil {
		return err
	}
	if err := pause(ctx, 2*time.Second); err != nil { // events come after
		return err
	}
	made, err := c.written(one.agent, change.began)
	if err != nil {
		return err
	}
	mean, _ := made.perNode(o.nodes)
	for name, value := range map[string]float64{"cpu": milliseconds(change.cpu), "cpu-node": milliseconds(change.cpu) / float64(o.nodes), "wall": change.wall.Seconds(), "peak": change.peak,
		"writes": mean, "others": made.others(o.nodes)} {
		one.found.Add(name, value)
	}
	say("%s: %.0f ms CPU, %.1f s, %.1f MiB; writes: %s", one.name, milliseconds(change.cpu), change.wall.Seconds(), change.peak, made)
	return nil
}

// change is one relabelling of all nodes from pgpu to vgpu.
type change struct {
	began     time.Time
	wall, cpu time.Duration
	peak      float64
}

func (c *plane) change(ctx context.Context, o options, p *process, w *witness, patience time.Duration, seen func(int)) (out change, err error) {
	before, err := p.cpu()
	if err != nil {
		return out, err
	}
	out.began = time.Now()
	asked := make(chan error, 1)
	go func() { asked <- c.ask(ctx, o.nodes, "vgpu") }()
	err = w.until(ctx, "vgpu", o.nodes, patience, p.alive, seen)
	out.wall = time.Since(out.began)
	if err != nil {
		return out, err
	}
	after, err := p.cpu()
	if err != nil {
		return out, err
	}
	out.cpu = after - before
	if out.peak, err = p.peak(); err != nil {
		return out, err
	}
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
