package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"quartermaster.io/bench/figures"
)

// operator is the product itself, run as a person would outside a cluster: no chart, leader election on.
type operator struct {
	*process
	wall, cpu time.Duration // from its start to the first 200 of /readyz
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// installCRDs lets the server serve what the operator watches.
func (c *cluster) installCRDs(ctx context.Context) error {
	files, err := filepath.Glob("crds/*.yaml")
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no CRDs in crds/: %v", err)
	}
	kubectl := func(arguments ...string) error {
		command := exec.CommandContext(ctx, c.env["KUBECTL"], append([]string{"--kubeconfig", c.kubeconfig}, arguments...)...)
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("kubectl %s: %w: %s", arguments[0], err, out)
		}
		return nil
	}
	if err := kubectl("apply", "--server-side", "-f", "crds/"); err != nil {
		return err
	}
	return kubectl("wait", "--for=condition=Established", "-f", "crds/", "--timeout=60s")
}

func startOperator(ctx context.Context, o options, kubeconfig string) (*operator, error) {
	program := filepath.Join(o.release, "quartermaster")
	if _, err := os.Stat(program); err != nil {
		return nil, err
	}
	metrics, err := freeAddress()
	if err != nil {
		return nil, err
	}
	p, err := spawn(o.programCore, program, "controller", "--kubeconfig", kubeconfig, "--metrics-address", metrics)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Timeout: time.Second}
	for deadline := time.Now().Add(120 * time.Second); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(2 * time.Millisecond) {
		answer, err := client.Get("http://" + metrics + "/readyz")
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				cpu, err := cpuOf(p.pid())
				return &operator{p, time.Since(p.began), cpu}, err
			}
		}
		if p.ended() {
			break
		}
	}
	p.kill()
	return nil, fmt.Errorf("the operator was not ready: %s", strings.TrimSpace(string(p.errors.text)))
}

// operatorStage measures the real program on the loaded cluster. It writes there (it enrols nodes), so this stage is the last.
func (b *bench) operatorStage(ctx context.Context, found figures.Series) error {
	if err := b.cluster.installCRDs(ctx); err != nil {
		return err
	}
	for round := range min(b.pairs, 3) {
		o, err := startOperator(ctx, b.options, b.cluster.kubeconfig)
		if err != nil {
			return err
		}
		err = pause(ctx, b.settle)
		memory, memoryErr := memoryOf(o.pid())
		if round == 0 && err == nil { // the first start makes what is missing; it is let finish, and the later ones are restarts
			err = pause(ctx, b.idle)
			memory, memoryErr = memoryOf(o.pid())
			found.Add("first-steady", memory["VmRSS"])
		} else {
			found.Add("ready", milliseconds(o.wall))
			found.Add("cpu", milliseconds(o.cpu))
			found.Add("peak", memory["VmHWM"])
			found.Add("steady", memory["VmRSS"])
		}
		o.kill()
		if err != nil || memoryErr != nil {
			return fmt.Errorf("operator: %v %v", err, memoryErr)
		}
	}
	return nil
}

// quiet is what an idle program costs: memory in MiB and CPU in percent of a core over o.idle.
func quiet(ctx context.Context, o options, pid int, found figures.Series) error {
	if err := pause(ctx, 10*time.Second); err != nil {
		return err
	}
	before, err := cpuOf(pid)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := pause(ctx, o.idle); err != nil {
		return err
	}
	after, err := cpuOf(pid)
	if err != nil {
		return err
	}
	memory, err := memoryOf(pid)
	found.Add("percent", 100*float64(after-before)/float64(time.Since(began)))
	found.Add("anon", memory["RssAnon"])
	found.Add("rss", memory["VmRSS"])
	found.Add("peak", memory["VmHWM"])
	return err
}

// benchIdle measures the operator, and client-go's informer for orientation, on a cluster with nothing in it.
func benchIdle(ctx context.Context, o options) error {
	pinSelf(o.controlCore)
	c, err := clusterUp(ctx, o)
	if err != nil {
		return err
	}
	defer c.down(o.keep)
	if err := c.installCRDs(ctx); err != nil {
		return err
	}
	ours, peer := figures.Series{}, figures.Series{}
	started, failed := startOperator(ctx, o, c.kubeconfig)
	if failed == nil {
		failed = quiet(ctx, o, started.pid(), ours)
		ours.Add("ready", milliseconds(started.wall))
		started.kill()
	}
	informer, err := spawn(o.programCore, filepath.Join(o.peers, "informer"), "-kubeconfig", c.kubeconfig)
	if err != nil {
		return err
	}
	if _, err = informer.expect(ctx, "synced", 60*time.Second); err == nil {
		err = quiet(ctx, o, informer.pid(), peer)
	}
	informer.kill()
	if err != nil {
		return err
	}
	rows := []figures.Row{
		figures.Absolute("idle RssAnon", "MiB", 8, ours["anon"]), figures.Absolute("idle VmRSS", "MiB", 25, ours["rss"]),
		figures.Absolute("idle CPU, percent of a core", "%", 0.3, ours["percent"]), figures.Absolute("start to ready", "ms", 0, ours["ready"]),
		figures.Compare("idle RssAnon, beside a bare informer", "MiB", 0, ours, peer, "anon"), figures.Compare("idle VmRSS, beside a bare informer", "MiB", 0, ours, peer, "rss"),
		figures.Compare("idle CPU, beside a bare informer", "%", 0, ours, peer, "percent"),
	}
	fmt.Printf("\nidle: the operator on an empty cluster, over %s; the bare informer is client-go with pods, nodes and ConfigMaps only\nload average at the end: %s\n\n",
		o.idle, loadAverage())
	figures.Print(os.Stdout, rows, !o.short)
	if err := figures.WriteJSON(o.json, rows); err != nil {
		return err
	}
	return failed
}
