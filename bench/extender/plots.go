package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"quartermaster.io/bench/figures"
	"quartermaster.io/bench/kit"
	"quartermaster.io/bench/sync/load"
)

// curve measures one point after another of both programs, one process each.
func (b *bench) curve(ctx context.Context, panel figures.Panel, points []int, prepare func(int) error, request func(int) []byte) error {
	for _, c := range []*contender{b.ours, b.peer} {
		panel.Lines = append(panel.Lines, figures.Line{Name: c.name})
	}
	for _, point := range points {
		if prepare != nil {
			if err := prepare(point); err != nil {
				return err
			}
		}
		body := request(point)
		for i, c := range []*contender{b.ours, b.peer} {
			p, a, _, err := b.begin(ctx, c)
			if err != nil {
				return err
			}
			t, err := a.time(p.PID(), body, max(50, b.calls/5))
			a.close()
			p.Kill()
			if err != nil {
				return fmt.Errorf("%s, %s %d: %w", c.name, panel.X, point, err)
			}
			panel.Lines[i].X, panel.Lines[i].Y = append(panel.Lines[i].X, float64(point)), append(panel.Lines[i].Y, t.p50)
			kit.Say("%s: %s %d: p50 %.3f ms", c.name, panel.X, point, t.p50)
		}
	}
	b.panels = append(b.panels, panel)
	return nil
}

// growWithPods: 500 names, more and more placed pods.
func (b *bench) growWithPods(ctx context.Context, names int) error {
	points := []int{b.content.pods}
	for _, more := range []int{5000, 10_000, 20_000} {
		if more > b.content.pods && more <= b.options.pods {
			points = append(points, more)
		}
	}
	list, _ := b.names(names)
	body := requestOf(filterBody(question(share), list, nil))
	return b.curve(ctx, figures.Panel{Title: fmt.Sprintf("%d names", names), X: "placed pods", Y: "ms"}, points,
		func(pods int) error { return b.addPods(ctx, pods) }, func(int) []byte { return body })
}

// growWithNodes: more and more names of the nodes there are.
func (b *bench) growWithNodes(ctx context.Context) error {
	points := []int{}
	for _, count := range []int{100, 200, 500, 1000, 2000, 5000} {
		if count <= b.content.nodes && (!b.quick || count == 100) {
			points = append(points, count)
		}
	}
	if b.long {
		points = append(points, 10_000, 20_000)
	}
	return b.curve(ctx, figures.Panel{Title: "names of nodes with 8 cards", X: "nodes", Y: "ms"}, points,
		func(count int) error { return b.addNodes(ctx, max(count, b.content.nodes)) },
		func(count int) []byte {
			list, _ := b.names(count)
			return requestOf(filterBody(question(share), list, nil))
		})
}

// growWithCards: 200 nodes of each size, all of one mode, which no one uses; asked for something that fits on none, so that every card is looked at.
func (b *bench) growWithCards(ctx context.Context) error {
	const each = 200
	group := func(size int) (names []string) {
		for i := range each {
			names = append(names, fmt.Sprintf("cards-%d-%s", size, load.NodeName(i)))
		}
		return
	}
	points := []int{1, 2, 4, 8, 16}
	if b.quick {
		points = []int{8}
	}
	for _, size := range points {
		for i, name := range group(size) {
			if err := b.etcd.Add(ctx, nodeOf(name, i*len(modes), size)); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(b.etcd.Flush(ctx), kit.Pause(ctx, time.Second)); err != nil {
		return err
	}
	tooMuch := question(map[string]string{"tencent.com/vcuda-core": "20", "tencent.com/vcuda-memory": "1000"})
	return b.curve(ctx, figures.Panel{Title: fmt.Sprintf("%d names, nothing fits", each), X: "cards a node", Y: "ms"}, points, nil,
		func(size int) []byte { return requestOf(filterBody(tooMuch, group(size), nil)) })
}
