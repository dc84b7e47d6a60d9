package main

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quartermaster.io/bench/kit"
	"quartermaster.io/bench/sync/load"
)

const (
	namespace = "quartermaster" // of the lease
	cards     = 8
	cardMiB   = 81920
)

// plane is a control plane: etcd and kube-apiserver, pinned to the core of the caller.
type plane struct {
	*kit.Plane
	etcd *load.Etcd
}

func planeUp(ctx context.Context, core int) (*plane, error) {
	started, err := kit.PlaneUp(ctx, core, "extender", kit.Bare...)
	if err != nil {
		return nil, err
	}
	c := &plane{started, load.NewEtcd("http://127.0.0.1:" + started.Facts["ETCD_PORT"])}
	if err := c.prepare(ctx); err != nil {
		c.Down(false)
		return nil, err
	}
	return c, nil
}

func (c *plane) prepare(ctx context.Context) error {
	if err := c.InstallCRDs(ctx); err != nil {
		return err
	}
	if err := c.Run(ctx, nil, "kubectl", "create", "namespace", namespace); err != nil {
		return err
	}
	if err := c.StopControllers(); err != nil {
		return err
	}
	// Pods need it, and nobody else would make it now.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "default"}}
	if _, err := c.Client.CoreV1().ServiceAccounts("default").Create(ctx, account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// freeLeases: the next one that starts leads at once.
func (c *plane) freeLeases(ctx context.Context) error {
	return c.Client.CoordinationV1().Leases(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
}

// modes of the nodes, in turn.
var modes = []load.Mode{
	{Name: "vgpu", Offer: map[string]int64{"tencent.com/vcuda-core": 100, "tencent.com/vcuda-memory": cardMiB / 256}, Limits: map[string]string{"tencent.com/vcuda-core": "9", "tencent.com/vcuda-memory": "16"},
		Share: map[string]any{"cores": 9, "memoryMiB": 4096}},
	{Name: "hami", Offer: map[string]int64{"nvidia.com/gpualloc": 10}, Limits: map[string]string{"nvidia.com/gpualloc": "1", "nvidia.com/gpucores": "9", "nvidia.com/gpumem": "4096"},
		Share: map[string]any{"cores": 9, "memoryMiB": 4096}},
	{Name: "pgpu", Offer: map[string]int64{"nvidia.com/gpu": 1}, Limits: map[string]string{"nvidia.com/gpu": "1"},
		Share: map[string]any{"whole": true, "cores": 100, "memoryMiB": cardMiB}},
	{Name: "gpushare", Offer: map[string]int64{"aliyun.com/gpu-mem": cardMiB / 1024, "aliyun.com/gpu-count": 1}, Limits: map[string]string{"aliyun.com/gpu-mem": "4"},
		Share: map[string]any{"memoryMiB": 4096}},
}

// nodeOf is a node as GPU feature discovery leaves it (21 KB), with so many cards, which no one has enrolled: the operator leaves it alone.
func nodeOf(name string, i, cards int) *corev1.Node {
	n := load.Node(1, i)
	n.Name = name
	delete(n.Labels, "nvidia-device-enable")
	n.Labels["kubernetes.io/hostname"] = name
	mode := modes[i%len(modes)]
	if mode.Name == "hami" { // its plugin's own list
		var list []map[string]any
		for k := range cards {
			list = append(list, map[string]any{"id": fmt.Sprintf("%s/%d", name, k), "index": k, "count": 10, "devmem": cardMiB, "devcore": 100, "type": "NVIDIA-A100", "mode": "hami-core", "health": true})
		}
		text, _ := json.Marshal(list)
		n.Annotations["hami.io/node-nvidia-register"] = string(text)
	}
	mode.Advertise(n, cards)
	return n
}

// podOn is the k-th pod of node i, with its placement; nil where it has no room. On nodes with whole cards four of eight are given out.
func podOn(number, i, k int) *corev1.Pod {
	mode := modes[i%len(modes)]
	if (mode.Name == "pgpu" && k >= cards/2) || k/cards >= 10 {
		return nil
	}
	p := load.Pod(1, number, 1, 5)
	mode.Place(p, load.NodeName(i), k%cards)
	return p
}

// content is what lies in etcd so far.
type content struct {
	*plane
	nodes, pods int
	onNode      []int
}

func (c *content) addNodes(ctx context.Context, upTo int) error {
	for ; c.nodes < upTo; c.nodes++ {
		if err := c.etcd.Add(ctx, nodeOf(load.NodeName(c.nodes), c.nodes, cards)); err != nil {
			return err
		}
		c.onNode = append(c.onNode, 0)
	}
	return c.etcd.Flush(ctx)
}

// addPods places pods on the nodes there are, evenly.
func (c *content) addPods(ctx context.Context, upTo int) error {
	for at, full := 0, 0; c.pods < upTo; at = (at + 1) % c.nodes {
		p := podOn(c.pods, at, c.onNode[at])
		if p == nil {
			if full++; full > c.nodes {
				return fmt.Errorf("%d nodes have no room for %d pods", c.nodes, upTo)
			}
			continue
		}
		full = 0
		if err := c.etcd.Add(ctx, p); err != nil {
			return err
		}
		c.onNode[at]++
		c.pods++
	}
	return c.etcd.Flush(ctx)
}
