package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"quartermaster.io/bench/sync/load"
)

const (
	clusterScript = "test/cluster/cluster.sh"
	productLabel  = "nvidia-device-enable"
	moduleLabel   = "quartermaster.io/module"
	ownName       = "bench-enrolment"
)

// plane is a control plane of our own.
type plane struct {
	name, kubeconfig string
	facts            map[string]string
	client           *kubernetes.Clientset
}

var planes atomic.Int32

// planeUp starts one, pinned to `core` where that is not -1. Bare: etcd and kube-apiserver only, and nothing taints a new node.
func planeUp(ctx context.Context, core int, bare bool) (*plane, error) {
	c := &plane{name: fmt.Sprintf("enrolment-%d-%d", os.Getpid(), planes.Add(1)), facts: map[string]string{}}
	arguments := []string{clusterScript, "up", "--name", c.name}
	if bare {
		arguments = append(arguments, "--no-kwok", "--no-scheduler", "--apiserver-arg=--disable-admission-plugins=TaintNodesByCondition")
	}
	if core >= 0 {
		arguments = append([]string{"taskset", "-c", strconv.Itoa(core)}, arguments...)
	}
	command := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
	said := &tail{}
	command.Stderr = said
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("the cluster did not come up: %w: %s", err, said)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	c.kubeconfig = lines[len(lines)-1]
	facts, err := os.ReadFile(filepath.Join(filepath.Dir(c.kubeconfig), "cluster.env"))
	if err != nil {
		return c, err
	}
	for line := range strings.Lines(string(facts)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			c.facts[key] = value
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return c, err
	}
	config.QPS, config.UserAgent = -1, ownName
	config.ContentType, config.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf"
	config.WarningHandler = rest.NoWarnings{}
	if c.client, err = kubernetes.NewForConfig(config); err != nil {
		return c, err
	}
	if err := c.kubectl(ctx, nil, "apply", "--server-side", "-f", "crds/"); err != nil {
		return c, err
	}
	if err := c.kubectl(ctx, nil, "wait", "--for=condition=Established", "-f", "crds/", "--timeout=60s"); err != nil {
		return c, err
	}
	if bare { // it would take nodes without a kubelet for lost
		out, err := exec.Command(clusterScript, "stop", "kube-controller-manager", "--name", c.name).CombinedOutput()
		if err != nil {
			return c, fmt.Errorf("%w: %s", err, out)
		}
	}
	return c, nil
}

func (c *plane) down(keep bool) {
	if c == nil {
		return
	}
	if keep {
		say("left running: %s (end it with: ./dev cluster down --name %s)", c.kubeconfig, c.name)
	} else if out, err := exec.Command(clusterScript, "down", "--name", c.name).CombinedOutput(); err != nil {
		say("%v: %s", err, out)
	}
}

func (c *plane) kubectl(ctx context.Context, input []byte, arguments ...string) error {
	command := exec.CommandContext(ctx, c.facts["KUBECTL"], append([]string{"--kubeconfig", c.kubeconfig}, arguments...)...)
	command.Stdin = bytes.NewReader(input)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", arguments[0], err, bytes.TrimSpace(out))
	}
	return nil
}

// program of the tools that came with the control plane.
func (c *plane) program(name string) (string, error) {
	for _, folder := range filepath.SplitList(c.facts["PROGRAMS_PATH"]) {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no program %q in %s", name, c.facts["PROGRAMS_PATH"])
}

// applyPolicy switches three modules on. Nothing may time out while we measure.
func (c *plane) applyPolicy(ctx context.Context, maxUnavailable any) error {
	text, err := json.Marshal(map[string]any{"apiVersion": "quartermaster.io/v1alpha1", "kind": "AcceleratorPolicy", "metadata": map[string]any{"name": "default"},
		"spec": map[string]any{"modules": map[string]any{"pgpu": map[string]any{"enabled": true}, "vgpu": map[string]any{"enabled": true},
			"mps": map[string]any{"enabled": true, "image": "quartermaster/mps-device-plugin:simulated"}},
			"enrolment": map[string]any{"maxUnavailable": maxUnavailable, "verifyTimeout": "2h"}}})
	if err != nil {
		return err
	}
	return c.kubectl(ctx, text, "apply", "--server-side", "-f", "-")
}

// fill makes the nodes: those of bench/sync (21 KB: discovery labels, 50 images, nine conditions) that ask for a mode. No device plugin has
// been there yet. With a profile the simulator plays them.
func (c *plane) fill(ctx context.Context, count int, mode, profile string) error {
	return c.each(count, 8, func(i int) error {
		node := load.Node(1, i)
		node.UID, node.ManagedFields, node.CreationTimestamp = "", nil, metav1.Time{}
		node.Labels[productLabel] = mode
		node.Labels["nvidia.com/mig.strategy"] = "none" // vgpu is refused where cards are cut
		if profile != "" {
			node.Labels["sim.quartermaster.io/profile"] = profile
			node.Status.Phase = corev1.NodeRunning
		}
		for _, amounts := range []corev1.ResourceList{node.Status.Capacity, node.Status.Allocatable} {
			delete(amounts, "nvidia.com/gpu")
		}
		_, err := c.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		return err
	})
}

// ask relabels every node, from four workers.
func (c *plane) ask(ctx context.Context, count int, mode string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, productLabel, mode)
	return c.each(count, 4, func(i int) error {
		_, err := c.client.CoreV1().Nodes().Patch(ctx, load.NodeName(i), types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

func (c *plane) each(count, workers int, do func(int) error) error {
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := int(next.Add(1) - 1); i < count && failed.Load() == nil; i = int(next.Add(1) - 1) {
				if err := do(i); err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// said is AcceleratorNode.status.phase and .actualMode, as "Ready vgpu", and how many nodes say so.
func (c *plane) said(ctx context.Context) (map[string]int, error) {
	raw, err := c.client.CoreV1().RESTClient().Get().AbsPath("/apis/quartermaster.io/v1alpha1/acceleratornodes").SetHeader("Accept", "application/json").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []struct {
			Status struct{ Phase, ActualMode string }
		}
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	out := map[string]int{}
	for _, one := range list.Items {
		out[one.Status.Phase+" "+one.Status.ActualMode]++
	}
	return out, nil
}

// untilSaid waits until all nodes say so.
func (c *plane) untilSaid(ctx context.Context, count int, what string, patience time.Duration) error {
	for end := time.Now().Add(patience); ; {
		said, err := c.said(ctx)
		if err != nil || said[what] == count {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("after %s %d of %d nodes are %q: %v", patience, said[what], count, what, said)
		}
		if err := pause(ctx, 250*time.Millisecond); err != nil {
			return err
		}
	}
}
