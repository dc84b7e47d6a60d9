package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"quartermaster.io/bench/sync/load"
)

// cluster is a control plane of our own: etcd, kube-apiserver and kube-controller-manager, pinned to one core.
type cluster struct {
	name, kubeconfig string
	env              map[string]string
}

const clusterScript = "test/cluster/cluster.sh"

func clusterUp(ctx context.Context, o options) (*cluster, error) {
	c := &cluster{name: fmt.Sprintf("bench-%d", os.Getpid()), env: map[string]string{}}
	say("starting the control plane on core %d", o.controlCore)
	command := exec.CommandContext(ctx, "taskset", "-c", strconv.Itoa(o.controlCore), clusterScript, "up", "--name", c.name, "--no-kwok", "--no-scheduler")
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("the cluster did not come up: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	c.kubeconfig = lines[len(lines)-1]
	facts, err := os.ReadFile(filepath.Join(filepath.Dir(c.kubeconfig), "cluster.env"))
	if err != nil {
		return nil, err
	}
	for _, line := range strings.Split(string(facts), "\n") {
		if key, value, ok := strings.Cut(line, "="); ok {
			c.env[key] = value
		}
	}
	return c, nil
}

func (c *cluster) script(verb string, arguments ...string) error {
	out, err := exec.Command(clusterScript, append([]string{verb, "--name", c.name}, arguments...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", clusterScript, verb, err, bytes.TrimSpace(out))
	}
	return nil
}

func (c *cluster) down(keep bool) {
	if keep {
		say("left running: %s (end it with: ./dev cluster down --name %s)", c.kubeconfig, c.name)
	} else if err := c.script("down"); err != nil {
		say("%v", err)
	}
}

// pid of a component, 0 when it does not run.
func (c *cluster) pid(component string) int {
	text, _ := os.ReadFile(filepath.Join(filepath.Dir(c.kubeconfig), "pids", component))
	var pid int
	fmt.Sscan(string(text), &pid)
	return pid
}

func (c *cluster) etcd() *load.Etcd { return load.NewEtcd("http://127.0.0.1:" + c.env["ETCD_PORT"]) }

// fill stops the controller manager (it would collect pods whose nodes and owners it does not believe in) and loads the objects.
func (c *cluster) fill(ctx context.Context, content load.Options) error {
	if err := c.script("stop", "kube-controller-manager"); err != nil {
		return err
	}
	began := time.Now()
	sizes, err := c.etcd().Load(ctx, content)
	if err != nil {
		return fmt.Errorf("loading: %w", err)
	}
	say("loaded %d nodes (first: %d bytes protobuf, %d JSON) and %d pods (%d, %d) in %.1f s", content.Nodes, sizes.NodeProtobuf, sizes.NodeJSON,
		content.Pods, sizes.PodProtobuf, sizes.PodJSON, time.Since(began).Seconds())
	return nil
}

func leaveLoaded(ctx context.Context, o options) error {
	c, err := clusterUp(ctx, o)
	if err != nil {
		return err
	}
	if err := c.fill(ctx, o.content); err != nil {
		c.down(o.keep)
		return err
	}
	fmt.Println(c.kubeconfig)
	return nil
}
