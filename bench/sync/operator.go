package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"quartermaster.io/bench/figures"
	"quartermaster.io/bench/kit"
)

// operator is the product itself, run as a person would outside a cluster: no chart, leader election on.
type operator struct {
	*kit.Process
	wall, cpu time.Duration // from its start to the first 200 of /readyz
}

func startOperator(ctx context.Context, o options, kubeconfig string) (*operator, error) {
	program := filepath.Join(o.release, "quartermaster")
	if _, err := os.Stat(program); err != nil {
		return nil, err
	}
	addresses, err := kit.FreeAddresses(1)
	if err != nil {
		return nil, err
	}
	metrics := addresses[0]
	p, err := kit.Spawn(o.programCore, program, "controller", "--kubeconfig", kubeconfig, "--metrics-address", metrics)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Timeout: time.Second}
	for deadline := time.Now().Add(120 * time.Second); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(2 * time.Millisecond) {
		answer, err := client.Get("http://" + metrics + "/readyz")
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				cpu, err := kit.CPU(p.PID())
				return &operator{p, time.Since(p.Began), cpu}, err
			}
		}
		if p.Alive() != nil {
			break
		}
	}
	p.Kill()
	return nil, fmt.Errorf("the operator was not ready: %s", p.Tail)
}

// operatorStage measures the real program on the loaded cluster. It writes there (it enrols nodes), so this stage is the last.
func (b *bench) operatorStage(ctx context.Context, found figures.Series) error {
	if err := b.cluster.InstallCRDs(ctx); err != nil {
		return err
	}
	for round := range min(b.pairs, 3) {
		o, err := startOperator(ctx, b.options, b.cluster.Kubeconfig)
		if err != nil {
			return err
		}
		err = kit.Pause(ctx, b.settle)
		memory, memoryErr := kit.Memory(o.PID())
		if round == 0 && err == nil { // the first start makes what is missing; it is let finish, and the later ones are restarts
			err = kit.Pause(ctx, b.idle)
			memory, memoryErr = kit.Memory(o.PID())
			found.Add("first-steady", memory["VmRSS"])
		} else {
			found.Add("ready", kit.Milliseconds(o.wall))
			found.Add("cpu", kit.Milliseconds(o.cpu))
			found.Add("peak", memory["VmHWM"])
			found.Add("steady", memory["VmRSS"])
		}
		o.Kill()
		if err != nil || memoryErr != nil {
			return fmt.Errorf("operator: %v %v", err, memoryErr)
		}
	}
	return nil
}

// quiet is what an idle program costs: memory in MiB and CPU in percent of a core over o.idle.
func quiet(ctx context.Context, o options, pid int, found figures.Series) error {
	calm := 10 * time.Second
	if o.short {
		calm = 2 * time.Second
	}
	if err := kit.Pause(ctx, calm); err != nil {
		return err
	}
	before, err := kit.CPU(pid)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := kit.Pause(ctx, o.idle); err != nil {
		return err
	}
	after, err := kit.CPU(pid)
	if err != nil {
		return err
	}
	memory, err := kit.Memory(pid)
	found.Add("percent", 100*float64(after-before)/float64(time.Since(began)))
	found.Add("anon", memory["RssAnon"])
	found.Add("rss", memory["VmRSS"])
	found.Add("peak", memory["VmHWM"])
	return err
}

// benchIdle measures the operator, and client-go's informer for orientation, on a cluster with nothing in it.
func benchIdle(ctx context.Context, o options) error {
	kit.PinSelf(o.controlCore)
	c, err := clusterUp(ctx, o)
	if err != nil {
		return err
	}
	defer c.Down(o.keep)
	if err := c.InstallCRDs(ctx); err != nil {
		return err
	}
	ours, peer := figures.Series{}, figures.Series{}
	started, failed := startOperator(ctx, o, c.Kubeconfig)
	if failed == nil {
		failed = quiet(ctx, o, started.PID(), ours)
		ours.Add("ready", kit.Milliseconds(started.wall))
		started.Kill()
	}
	informer, err := kit.SpawnTalking(o.programCore, filepath.Join(o.peers, "informer"), "-kubeconfig", c.Kubeconfig)
	if err != nil {
		return err
	}
	if _, err = informer.Expect(ctx, "synced", 60*time.Second); err == nil {
		err = quiet(ctx, o, informer.PID(), peer)
	}
	informer.Kill()
	if err != nil {
		return err
	}
	rows := []figures.Row{
		figures.Absolute("idle RssAnon", "MiB", 8, ours["anon"]), figures.Absolute("idle VmRSS", "MiB", 25, ours["rss"]),
		figures.Absolute("idle CPU, percent of a core", "%", 0.3, ours["percent"]), figures.Absolute("start to ready", "ms", 0, ours["ready"]),
		figures.Compare("idle RssAnon, compared with a bare informer", "MiB", 0, ours, peer, "anon"), figures.Compare("idle VmRSS, compared with a bare informer", "MiB", 0, ours, peer, "rss"),
		figures.OrZero(figures.Compare("idle CPU, compared with a bare informer", "%", 0, ours, peer, "percent")),
	}
	fmt.Printf("\nidle: the operator on an empty cluster, over %s; the bare informer is client-go with pods, nodes and ConfigMaps only\nload average at the end: %s\n\n",
		o.idle, kit.LoadAverage())
	figures.Print(os.Stdout, rows, !o.short)
	return errors.Join(failed, o.output.Write("idle", "full", rows))
}
