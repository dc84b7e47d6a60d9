package main

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
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

// modes of the nodes, in turn; what they advertise, what a pod there asks for, and how that lies on a card.
var modes = []struct {
	name   string
	offer  map[string]int64 // for a card
	limits map[string]string
	share  map[string]any
}{
	{"vgpu", map[string]int64{"tencent.com/vcuda-core": 100, "tencent.com/vcuda-memory": cardMiB / 256}, map[string]string{"tencent.com/vcuda-core": "9", "tencent.com/vcuda-memory": "16"},
		map[string]any{"cores": 9, "memoryMiB": 4096}},
	{"hami", map[string]int64{"nvidia.com/gpualloc": 10}, map[string]string{"nvidia.com/gpualloc": "1", "nvidia.com/gpucores": "9", "nvidia.com/gpumem": "4096"}, map[string]any{"cores": 9, "memoryMiB": 4096}},
	{"pgpu", map[string]int64{"nvidia.com/gpu": 1}, map[string]string{"nvidia.com/gpu": "1"}, map[string]any{"whole": true, "cores": 100, "memoryMiB": cardMiB}},
	{"gpushare", map[string]int64{"aliyun.com/gpu-mem": cardMiB / 1024, "aliyun.com/gpu-count": 1}, map[string]string{"aliyun.com/gpu-mem": "4"}, map[string]any{"memoryMiB": 4096}},
}

func amounts(of map[string]int64, cards int64) corev1.ResourceList {
	out := corev1.ResourceList{}
	for key, amount := range of {
		out[corev1.ResourceName(key)] = *resource.NewQuantity(amount*cards, resource.DecimalSI)
	}
	return out
}

// nodeOf is a node as GPU feature discovery leaves it (21 KB), with so many cards, which no one has enrolled: the operator leaves it alone.
func nodeOf(name string, i, cards int) *corev1.Node {
	n := load.Node(1, i)
	n.Name = name
	delete(n.Labels, "nvidia-device-enable")
	n.Labels["kubernetes.io/hostname"], n.Labels["nvidia.com/gpu.count"], n.Labels["nvidia.com/mig.strategy"] = name, fmt.Sprint(cards), "none"
	if modes[i%len(modes)].name == "hami" { // its plugin's own list
		var list []map[string]any
		for k := range cards {
			list = append(list, map[string]any{"id": fmt.Sprintf("%s/%d", name, k), "index": k, "count": 10, "devmem": cardMiB, "devcore": 100, "type": "NVIDIA-A100", "mode": "hami-core", "health": true})
		}
		text, _ := json.Marshal(list)
		n.Annotations["hami.io/node-nvidia-register"] = string(text)
	}
	for _, list := range []corev1.ResourceList{n.Status.Capacity, n.Status.Allocatable} {
		delete(list, "nvidia.com/gpu")
		for key, amount := range amounts(modes[i%len(modes)].offer, int64(cards)) {
			list[key] = amount
		}
	}
	return n
}

// podOn is the k-th pod of node i, with its placement; nil where it has no room. On nodes with whole cards four of eight are given out.
func podOn(number, i, k int) *corev1.Pod {
	mode := modes[i%len(modes)]
	if (mode.name == "pgpu" && k >= cards/2) || k/cards >= 10 {
		return nil
	}
	p := load.Pod(1, number, 1, 5)
	p.Spec.NodeName = load.NodeName(i)
	limits := corev1.ResourceList{"cpu": resource.MustParse("1")}
	for key, amount := range mode.limits {
		limits[corev1.ResourceName(key)] = resource.MustParse(amount)
	}
	p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: limits, Requests: limits}
	share := map[string]any{"card": fmt.Sprintf("%s/%d", p.Spec.NodeName, k%cards)}
	for key, value := range mode.share {
		share[key] = value
	}
	text, _ := json.Marshal(map[string]any{"v": 1, "node": p.Spec.NodeName, "source": "planned", "containers": map[string]any{"main": []any{share}}})
	p.Annotations["quartermaster.io/placement"] = string(text)
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
