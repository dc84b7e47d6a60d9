package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"quartermaster.io/bench/figures"
	"quartermaster.io/bench/kit"
)

// contender is a program of the comparison and what was measured of it.
type contender struct {
	name    string
	command []string
	events  bool // takes part in the event phase and the restart
	found   figures.Series
	failed  error
}

type bench struct {
	options
	cluster *cluster
	changes *changer
}

func contenders(o options, kubeconfig string) map[string]*contender {
	peer := func(flags ...string) []string {
		return append([]string{filepath.Join(o.peers, "informer"), "-kubeconfig", kubeconfig}, flags...)
	}
	all := map[string]*contender{
		"ours":    {command: []string{filepath.Join(o.release, "sync_informer"), "--kubeconfig", kubeconfig}, events: true},
		"default": {command: peer(), events: true},
		"trimmed": {command: peer("-transform")},
		"own":     {command: peer("-transform-own")},
		"json":    {command: peer("-json-list")},
		"floor":   {command: peer("-floor")},
	}
	for name, c := range all {
		c.name, c.found = name, figures.Series{}
		if _, err := os.Stat(c.command[0]); err != nil {
			c.failed = err
		}
	}
	return all
}

// toSynced starts a program and measures it until all its stores hold the initial list.
func (b *bench) toSynced(ctx context.Context, c *contender) (p *kit.Process, wall, cpu time.Duration, err error) {
	p, err = kit.SpawnTalking(b.programCore, c.command[0], c.command[1:]...)
	if err != nil {
		return nil, 0, 0, err
	}
	fields, err := p.Expect(ctx, "synced", 120*time.Second)
	if err == nil {
		if cpu, err = kit.CPU(p.PID()); err != nil && c.name == "floor" {
			err = nil // it ends by itself
		}
	}
	if err == nil && (len(fields) != 4 || !b.complete(fields[3])) {
		err = fmt.Errorf("%s synced with %s objects, there are %d", c.name, fields[len(fields)-1], b.content.Nodes+b.content.Pods)
	}
	if err != nil {
		p.Kill()
		return nil, 0, 0, err
	}
	at, _ := strconv.ParseInt(fields[1], 10, 64)
	return p, time.Unix(0, at).Sub(p.Began), cpu, nil
}

// complete: all nodes and pods, and at most a handful of ConfigMaps.
func (b *bench) complete(objects string) bool {
	n, _ := strconv.Atoi(objects)
	least := b.content.Nodes + b.content.Pods
	return n >= least && n <= least+10
}

// once is one run of one program: to synced, then the event phase, then killed and started again.
func (b *bench) once(ctx context.Context, c *contender) error {
	server := b.cluster.PID("kube-apiserver")
	serverBefore, _ := kit.CPU(server)
	p, wall, cpu, err := b.toSynced(ctx, c)
	if err != nil {
		return err
	}
	defer func() { p.Kill() }()
	serverAfter, _ := kit.CPU(server)
	c.found.Add("server", kit.Milliseconds(serverAfter-serverBefore))
	c.found.Add("wall", kit.Milliseconds(wall))
	if c.name == "floor" {
		return nil
	}
	c.found.Add("cpu", kit.Milliseconds(cpu))
	if err := kit.Pause(ctx, b.settle); err != nil {
		return err
	}
	memory, err := kit.Memory(p.PID())
	if err != nil {
		return err
	}
	c.found.Add("peak", memory["VmHWM"])
	if !c.events {
		return nil
	}
	if err := b.eventPhase(ctx, c, p); err != nil {
		return err
	}
	p.Kill()
	again, wall, _, err := b.toSynced(ctx, c)
	if err != nil {
		return err
	}
	p = again
	c.found.Add("restart", kit.Milliseconds(wall))
	return nil
}

func (b *bench) eventPhase(ctx context.Context, c *contender, p *kit.Process) error {
	before, err := kit.CPU(p.PID())
	if err != nil {
		return err
	}
	serverBefore, _ := kit.CPU(b.cluster.PID("kube-apiserver"))
	began := time.Now()
	sent, err := b.changes.run(ctx, b.rate, b.events)
	if err != nil {
		return err
	}
	took := time.Since(began)
	if err := kit.Pause(ctx, 500*time.Millisecond); err != nil {
		return err
	}
	after, err := kit.CPU(p.PID())
	if err != nil {
		return err
	}
	if err := syscall.Kill(p.PID(), syscall.SIGUSR1); err != nil {
		return err
	}
	fields, err := p.Expect(ctx, "latency", 5*time.Second)
	if err != nil {
		return err
	}
	var values [4]float64
	for i := range values {
		if i+1 < len(fields) {
			values[i], _ = strconv.ParseFloat(fields[i+1], 64)
		}
	}
	if seen := int(values[0]); seen < sent*95/100 {
		return fmt.Errorf("%s saw %d of %d changes", c.name, seen, sent)
	}
	c.found.Add("event", float64((after-before).Nanoseconds())/1000/values[0])
	c.found.Add("p50", values[1]/1e6)
	c.found.Add("p99", values[2]/1e6)
	serverAfter, _ := kit.CPU(b.cluster.PID("kube-apiserver"))
	c.found.Add("rate", float64(sent)/took.Seconds())
	c.found.Add("server-event", float64((serverAfter-serverBefore).Microseconds())/float64(sent))
	return nil
}

// steady starts the programs one after the other, leaves them alone together, and reads what they still hold: memory at rest does
// not depend on who shares the core. All rounds wait at once as far as memory allows.
func (b *bench) steady(ctx context.Context, order []*contender, rounds int) error {
	for done := 0; done < rounds; {
		var batch []map[*contender]*kit.Process
		defer func() {
			for _, round := range batch {
				for _, p := range round {
					p.Kill()
				}
			}
		}()
		for ; done < rounds && (len(batch) == 0 || kit.AvailableMemory() > steadyReserve); done++ {
			round := map[*contender]*kit.Process{}
			batch = append(batch, round)
			if err := b.startAll(ctx, kit.InTurn(order, done), round); err != nil {
				return err
			}
		}
		kit.Say("steady: %d of %d rounds started, now quiet for %s", done, rounds, b.idle)
		if err := kit.Pause(ctx, b.idle); err != nil {
			return err
		}
		for _, round := range batch {
			for c, p := range round {
				memory, err := kit.Memory(p.PID())
				if err != nil {
					return err
				}
				c.found.Add("steady", memory["VmRSS"])
				c.found.Add("steady-anon", memory["RssAnon"])
				p.Kill()
			}
			clear(round)
		}
	}
	return nil
}

// steadyReserve in MiB is left free for the next round and for others.
const steadyReserve = 5000

func (b *bench) startAll(ctx context.Context, order []*contender, into map[*contender]*kit.Process) error {
	for _, c := range order {
		if c.failed != nil {
			continue
		}
		p, _, _, err := b.toSynced(ctx, c)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			c.failed = err
			kit.Say("%s: %v", c.name, err)
			continue
		}
		into[c] = p
	}
	return nil
}

// rounds runs `each` for every program in alternating order.
func (b *bench) rounds(ctx context.Context, what string, order []*contender, each func(*contender) error) error {
	for round := range b.pairs {
		for _, c := range kit.InTurn(order, round) {
			if c.failed != nil {
				continue
			}
			if err := each(c); err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				kit.Say("%s: %v", c.name, err)
				c.failed = err
			}
		}
		kit.Say("%s: round %d of %d", what, round+1, b.pairs)
	}
	return nil
}

func benchSync(ctx context.Context, o options) (err error) {
	kit.Say("%d nodes, %d pods, %d pairs; load average before: %s", o.content.Nodes, o.content.Pods, o.pairs, kit.LoadAverage())
	b := &bench{options: o}
	if b.cluster, err = clusterUp(ctx, o); err != nil {
		return err
	}
	defer b.cluster.Down(o.keep)
	if err := b.cluster.fill(ctx, o.content); err != nil {
		return err
	}
	kit.PinSelf(o.controlCore)
	b.changes = newChanger(b.cluster.etcd(), o.content)
	all := contenders(o, b.cluster.Kubeconfig)
	if err := b.warm(ctx, all); err != nil {
		return err
	}
	if o.stage("sync") {
		order := []*contender{all["ours"], all["default"], all["trimmed"], all["floor"]}
		if !o.short {
			order = append(order, all["json"])
		}
		if err := b.rounds(ctx, "sync", order, func(c *contender) error { return b.once(ctx, c) }); err != nil {
			return err
		}
	}
	if o.stage("steady") {
		order := []*contender{all["ours"], all["default"], all["trimmed"], all["own"]}
		if err := b.steady(ctx, order, steadyRounds(o)); err != nil {
			return err
		}
	}
	rows := verdict(o, all)
	if o.stage("operator") && !o.short {
		found := figures.Series{}
		if err := b.operatorStage(ctx, found); err != nil {
			kit.Say("%v", err)
			all["operator"] = &contender{name: "operator", failed: err}
		}
		rows = append(rows, figures.Absolute("operator: restart to ready", "ms", 3000, found["ready"]), figures.Absolute("operator: CPU to ready", "ms", 0, found["cpu"]),
			figures.Absolute("operator: peak RSS", "MiB", 600, found["peak"]), figures.Absolute("operator: RSS after restart", "MiB", 400, found["steady"]),
			figures.Absolute("operator: RSS after the first start", "MiB", 400, found["first-steady"]))
	}
	for i := range rows {
		if o.short && rows[i].Note == "" {
			rows[i].Note = "short form: no verdict"
		}
	}
	report(o, rows)
	return errors.Join(anyFailed(all), o.output.Write("sync", "full", rows))
}

func steadyRounds(o options) int {
	if o.short {
		return 1
	}
	return o.pairs
}

// warm fills the API server's watch cache and the page cache; nothing of it counts.
func (b *bench) warm(ctx context.Context, all map[string]*contender) error {
	for _, name := range []string{"floor", "default", "ours"} {
		if all[name].failed != nil {
			continue
		}
		p, _, _, err := b.toSynced(ctx, all[name])
		if err != nil {
			all[name].failed = err
			kit.Say("%s: %v", name, err)
			continue
		}
		p.Kill()
	}
	return ctx.Err()
}

func anyFailed(all map[string]*contender) error {
	var failures []error
	for _, name := range []string{"ours", "default", "trimmed", "own", "json", "floor", "operator"} {
		if all[name] != nil && all[name].failed != nil {
			failures = append(failures, fmt.Errorf("%s could not run: %w", name, all[name].failed))
		}
	}
	return errors.Join(failures...)
}

func verdict(o options, all map[string]*contender) []figures.Row {
	ours, peer, trimmed, own, floor := all["ours"].found, all["default"].found, all["trimmed"].found, all["own"].found, all["floor"].found
	var rows []figures.Row
	if o.stage("sync") {
		rows = append(rows,
			figures.Compare("CPU to synced", "ms", 0.25, ours, peer, "cpu"),
			figures.Compare("wall to synced", "ms", 0.95, ours, peer, "wall"),
			figures.Compare("peak RSS", "MiB", 0.15, ours, peer, "peak"),
			figures.Compare("CPU per watch event", "us", 0.4, ours, peer, "event"),
			figures.Compare("write to handler, p50", "ms", 1.1, ours, peer, "p50"),
			figures.Compare("write to handler, p99", "ms", 1.1, ours, peer, "p99"),
			figures.Compare("restart to synced", "ms", 0.95, ours, peer, "restart"),
			figures.Compare("peak RSS, peer with SetTransform", "MiB", 0.3, ours, trimmed, "peak"),
			figures.Compare("CPU to synced, peer with SetTransform", "ms", 0, ours, trimmed, "cpu"),
			figures.Compare("wall: read and thrown away (server's share)", "ms", 0, floor, peer, "wall"),
			figures.Compare("changes a second that were written", "1/s", 0, ours, peer, "rate"),
			figures.Compare("API server CPU per change", "us", 0, ours, peer, "server-event"),
			figures.Compare("API server CPU of one sync", "ms", 0, ours, peer, "server"),
		)
		if !o.short {
			rows = append(rows, figures.Compare("CPU to synced, peer with JSON LIST", "ms", 0, ours, all["json"].found, "cpu"),
				figures.Compare("peak RSS, peer with JSON LIST", "MiB", 0, ours, all["json"].found, "peak"))
		}
	}
	if o.stage("steady") {
		rows = append(rows,
			figures.Compare("steady RSS", "MiB", 0.12, ours, peer, "steady"),
			figures.Compare("steady RSS, peer with SetTransform", "MiB", 0.27, ours, trimmed, "steady"),
			figures.Compare("steady RSS, peer with structs of its own", "MiB", 0, ours, own, "steady"))
	}
	return rows
}

func report(o options, rows []figures.Row) {
	fmt.Printf("\nsync: %d nodes, %d pods of about %d bytes, %d pairs, %d pod changes/s; the peer is client-go v0.36.3 (protobuf, WatchList, GOGC=100)\n",
		o.content.Nodes, o.content.Pods, o.content.Size, o.pairs, o.rate)
	fmt.Printf("load average at the end: %s\n\n", kit.LoadAverage())
	figures.FormOf("short", o.short).Report(rows, "targets")
}
