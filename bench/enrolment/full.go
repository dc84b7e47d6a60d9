package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"quartermaster.io/bench/figures"
	"quartermaster.io/bench/kit"
)

// mostWrites is what no node may exceed in the full transaction: four of the Node (taint, label off, label on, taint off); of its status one for
// each of Waiting, Draining, Removing, Enrolling, Verifying and Ready, three more where the plugin is late and the message says why, one more where
// its turn is given to another first.
const mostWrites = 14

// allowed nodes at once, as the operator rounds it: up, at least one.
func allowed(o options) int { return max(1, (o.nodes*o.percent+99)/100) }

// full is the transaction as it is, with KWOK for the kubelets and the simulator for the plugins. `broken` is a bound that did not hold.
func full(ctx context.Context, o options, found figures.Series) (broken, err error) {
	c, err := planeUp(ctx, kit.AnyCore, false)
	if err != nil {
		return nil, err
	}
	defer c.Down(o.keep)
	if err := c.applyPolicy(ctx, o.nodes); err != nil { // the first enrolment is not what is measured
		return nil, err
	}
	if err := c.fill(ctx, o.nodes, "pgpu", "a100"); err != nil {
		return nil, err
	}
	w := newWitness(true)
	defer w.close()
	if err := w.follow(ctx, c); err != nil {
		return nil, err
	}
	program, err := c.Program("sim")
	if err != nil {
		return nil, err
	}
	sim, err := spawn(kit.AnyCore, program, "plugins", "--kubeconfig", c.Kubeconfig)
	if err != nil {
		return nil, err
	}
	defer sim.end()
	p, err := o.startOurs(kit.AnyCore, c)
	if err != nil {
		return nil, err
	}
	defer p.end()
	alive := func() error { return errors.Join(p.Alive(), sim.Alive()) }
	const patience = 2 * time.Minute
	if err := w.until(ctx, "pgpu", o.nodes, patience, alive, nil); err != nil {
		return nil, err
	}
	if err := c.untilSaid(ctx, o.nodes, "Ready pgpu", patience); err != nil {
		return nil, err
	}
	if err := c.applyPolicy(ctx, fmt.Sprintf("%d%%", o.percent)); err != nil {
		return nil, err
	}
	if err := p.quiet(ctx, min(o.settle, 5*time.Second)); err != nil {
		return nil, err
	}
	w.forget()

	batch, began, last := 0, time.Now(), time.Time{}
	ended := func(done int) {
		for ; done >= (batch+1)*allowed(o); batch++ {
			now := time.Now()
			if !last.IsZero() {
				found.Add("batch", now.Sub(last).Seconds())
			} else {
				found.Add("batch", now.Sub(began).Seconds())
			}
			last = now
		}
	}
	made, err := c.change(ctx, o, p, w, patience, ended)
	if err != nil {
		return nil, err
	}
	if err := c.untilSaid(ctx, o.nodes, "Ready vgpu", patience); err != nil {
		return nil, err
	}
	if err := kit.Pause(ctx, time.Second); err != nil {
		return nil, err
	}
	away, bare, err := w.most()
	if err != nil {
		return nil, err
	}
	written, err := c.written("quartermaster/", made.began)
	if err != nil {
		return nil, err
	}
	mean, most := written.perNode(o.nodes)
	for name, value := range map[string]float64{"away": float64(away), "bare": float64(bare), "writes": mean, "most-writes": most, "others": written.others(o.nodes),
		"wall": made.wall.Seconds(), "peak": made.peak, "cpu-node": kit.Milliseconds(made.cpu) / float64(o.nodes)} {
		found.Add(name, value)
	}
	kit.Say("full transaction: %.1f s, %.0f ms CPU, at most %d nodes tainted and %d without cards of %d allowed; writes: %s", made.wall.Seconds(), kit.Milliseconds(made.cpu), away, bare,
		allowed(o), written)
	return violations(o, away, bare, most), nil
}

func violations(o options, away, bare int, most float64) error {
	var all []error
	if away > allowed(o) {
		all = append(all, fmt.Errorf("%d nodes were on their way at once, maxUnavailable allows %d", away, allowed(o)))
	}
	if bare > allowed(o) {
		all = append(all, fmt.Errorf("%d nodes had no cards at once, maxUnavailable allows %d", bare, allowed(o)))
	}
	if most > mostWrites {
		all = append(all, fmt.Errorf("a node took %.0f writes, the bound is %d", most, mostWrites))
	}
	if away == 0 {
		all = append(all, errors.New("the witness saw no node on its way: it proves nothing"))
	}
	return errors.Join(all...)
}
