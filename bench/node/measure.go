package main

import (
	"context"
	"fmt"
	"time"

	"quartermaster.io/bench/figures"
	"quartermaster.io/bench/kit"
)

// slower than a peer by a tenth is a miss.
const slower = 1.1

// turn of a contender: its figures by round, and of all rounds together.
type turn struct {
	*contender
	series figures.Series
	each   []float64
}

func measure(ctx context.Context, o options) ([]figures.Row, error) {
	b, err := openBed(ctx, o)
	if err != nil {
		return nil, err
	}
	defer b.close()
	cards := make([]share, cardsOfNode)
	for i := range cards {
		cards[i] = share{Card: b.cards[i], Cores: 100, MemoryMiB: 80 * 1024, Whole: true}
	}
	rows, err := b.stage(ctx, "whole cards", cards, b.ownCards, b.nvidiaCards, o.nvidia)
	if err != nil {
		return nil, err
	}
	shares := make([]share, o.shares)
	for i := range shares {
		shares[i] = share{Card: b.cards[i%cardsOfNode], Cores: 10, MemoryMiB: 8000}
	}
	more, err := b.stage(ctx, "shares", shares, b.ownShares, b.hamiShares, o.hami)
	return append(rows, more...), err
}

// stage: ours, the peer and pods without a card, in turn.
func (b *bed) stage(ctx context.Context, name string, shares []share, ours, peer func(context.Context) (*contender, error), has bool) ([]figures.Row, error) {
	defer b.stopPlugins()
	starts := []func(context.Context) (*contender, error){ours}
	if has {
		starts = append(starts, peer)
	}
	turns := []*turn{{contender: b.none(), series: figures.Series{}}}
	for _, start := range starts {
		c, err := start(ctx)
		if err != nil {
			return nil, err
		}
		turns = append(turns, &turn{contender: c, series: figures.Series{}})
	}
	for i := -1; i < b.options.rounds; i++ { // the first is to get warm
		for _, t := range kit.InTurn(turns, i) {
			is, err := b.round(ctx, t.contender, shares)
			if err != nil {
				return nil, err
			}
			kit.Say("%s, round %d, %s: all run after %.2f s", name, i+1, t.name, is.all.Seconds())
			if i < 0 {
				continue
			}
			number := float64(len(shares))
			t.each = append(t.each, is.each...)
			t.series.Add("all", kit.Milliseconds(is.all))
			t.series.Add("rate", number/is.all.Seconds())
			t.series.Add("p50", figures.Median(is.each))
			t.series.Add("cpu", kit.Milliseconds(is.cpu)/number)
		}
	}
	for _, t := range turns {
		t.series.Add("p99", figures.Quantile(t.each, 0.99))
	}
	if err := b.atRest(ctx, name, turns[1:]); err != nil {
		return nil, err
	}
	var other figures.Series
	if has {
		other = turns[2].series
	}
	return rowsOf(name, turns[0].series, turns[1].series, other), nil
}

// atRest is the memory and the CPU of plugins that nothing asks.
func (b *bed) atRest(ctx context.Context, name string, turns []*turn) error {
	if err := kit.Pause(ctx, min(b.rest, 10*time.Second)); err != nil {
		return err
	}
	before := make([]time.Duration, len(turns))
	for i, t := range turns {
		var err error
		if before[i], err = t.cpu(); err != nil {
			return err
		}
	}
	began := time.Now()
	if err := kit.Pause(ctx, b.rest); err != nil {
		return err
	}
	for i, t := range turns {
		after, err := t.cpu()
		if err != nil {
			return err
		}
		t.series.Add("rest", (after-before[i]).Seconds()/time.Since(began).Seconds()*100)
		sum, parts := 0.0, ""
		for _, program := range t.memory {
			memory, err := program.Memory()
			if err != nil {
				return err
			}
			sum += memory["VmRSS"]
			parts += fmt.Sprintf(" %.1f", memory["VmRSS"])
		}
		t.series.Add("memory", sum)
		kit.Say("%s, %s, memory of each program:%s MiB", name, t.name, parts)
	}
	return nil
}

// rowsOf a stage; `peer` is nil where there is none.
func rowsOf(stage string, none, ours, peer figures.Series) (rows []figures.Row) {
	for _, figure := range []struct {
		name, unit, key string
		target          float64
	}{
		{"create to all Running", "ms", "all", slower},
		{"pods a second", "1/s", "rate", 0},
		{"create to Running, p50", "ms", "p50", 0},
		{"create to Running, p99", "ms", "p99", 0},
		{"plugin, CPU of a pod", "ms", "cpu", 0},
		{"plugin at rest, CPU, percent of a core", "%", "rest", 0},
		{"plugin at rest, memory (VmRSS)", "MiB", "memory", 0},
	} {
		name := stage + ", " + figure.name
		row := figures.Absolute(name, figure.unit, 0, ours[figure.key])
		if peer != nil {
			row = figures.Compare(name, figure.unit, figure.target, ours, peer, figure.key)
		}
		row.MayBeZero = figure.key == "rest"
		rows = append(rows, row)
	}
	return append(rows, figures.Compare(stage+", create to all Running, peer without a card", "ms", 0, ours, none, "all"))
}
