package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quartermaster.io/bench/kit"
	"quartermaster.io/bench/sync/load"
)

const (
	productLabel = "nvidia-device-enable"
	moduleLabel  = "quartermaster.io/module"
)

type plane struct{ *kit.Plane }

// planeUp starts a control plane with our CRDs. Bare: etcd and kube-apiserver only, and nothing taints a new node.
func planeUp(ctx context.Context, core int, bare bool) (*plane, error) {
	var options []string
	if bare {
		options = kit.Bare
	}
	started, err := kit.PlaneUp(ctx, core, "enrolment", options...)
	if err != nil {
		return nil, err
	}
	c := &plane{started}
	if err = c.InstallCRDs(ctx); err == nil && bare {
		err = c.StopControllers()
	}
	if err != nil {
		c.Down(false)
		return nil, err
	}
	return c, nil
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
	return c.Run(ctx, text, "kubectl", "apply", "--server-side", "-f", "-")
}

// fill makes the nodes: those of bench/sync (21 KB: discovery labels, 50 images, nine conditions) that ask for a mode. No device plugin has
// been there yet. With a profile the simulator plays them.
func (c *plane) fill(ctx context.Context, count int, mode, profile string) error {
	return kit.Each(count, 8, func(i int) error {
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
		_, err := c.Client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		return err
	})
}

// ask relabels every node, from four workers.
func (c *plane) ask(ctx context.Context, count int, mode string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, productLabel, mode)
	return kit.Each(count, 4, func(i int) error {
		_, err := c.Client.CoreV1().Nodes().Patch(ctx, load.NodeName(i), types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

// said is AcceleratorNode.status.phase and .actualMode, as "Ready vgpu", and how many nodes say so.
func (c *plane) said(ctx context.Context) (map[string]int, error) {
	raw, err := c.Client.CoreV1().RESTClient().Get().AbsPath("/apis/quartermaster.io/v1alpha1/acceleratornodes").SetHeader("Accept", "application/json").DoRaw(ctx)
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
		if err := kit.Pause(ctx, 250*time.Millisecond); err != nil {
			return err
		}
	}
}
