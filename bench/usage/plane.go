package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quartermaster.io/bench/kit"
	"quartermaster.io/bench/sync/load"
)

const (
	namespace    = "quartermaster" // of the operator
	namespaces   = 200             // of pods
	owners       = 2000            // ReplicaSets of pods
	cards        = 8
	writers      = 8 // of etcd
	cardGiB      = 80
	productLabel = "nvidia-device-enable"
	moduleLabel  = "quartermaster.io/module"
)

// modes of the nodes, in turn.
var modes = []load.Mode{
	{Name: "vgpu", Offer: map[string]int64{"tencent.com/vcuda-core": 100, "tencent.com/vcuda-memory": cardGiB * 4}, Limits: map[string]string{"tencent.com/vcuda-core": "20", "tencent.com/vcuda-memory": "16"},
		Share: map[string]any{"cores": 20, "memoryMiB": 4096}},
	{Name: "pgpu", Offer: map[string]int64{"nvidia.com/gpu": 1}, Limits: map[string]string{"nvidia.com/gpu": "1"},
		Share: map[string]any{"whole": true, "cores": 100, "memoryMiB": cardGiB * 1024}},
	{Name: "mps", Offer: map[string]int64{"nvidia.com/mps-core": 100, "nvidia.com/mps-memory": cardGiB}, Limits: map[string]string{"nvidia.com/mps-core": "20", "nvidia.com/mps-memory": "4"},
		Share: map[string]any{"cores": 20, "memoryMiB": 4096}},
}

// plane is etcd and an API server with our CRDs, a policy with three modules, and the namespaces.
type plane struct {
	*kit.Plane
	etcd *load.Etcd
}

func planeUp(ctx context.Context) (*plane, error) {
	started, err := kit.PlaneUp(ctx, kit.AnyCore, "usage", kit.Bare...)
	if err != nil {
		return nil, err
	}
	p := &plane{started, load.NewEtcd("http://127.0.0.1:" + started.Facts["ETCD_PORT"])}
	if err := p.prepare(ctx); err != nil {
		p.Down(false)
		return nil, err
	}
	return p, nil
}

func (p *plane) prepare(ctx context.Context) error {
	if err := p.InstallCRDs(ctx); err != nil {
		return err
	}
	if err := p.StopControllers(); err != nil {
		return err
	}
	policy, err := json.Marshal(map[string]any{"apiVersion": "quartermaster.io/v1alpha1", "kind": "AcceleratorPolicy", "metadata": map[string]any{"name": "default"},
		"spec": map[string]any{"chargeback": map[string]any{"organizationLabel": "organization"},
			"modules": map[string]any{"pgpu": map[string]any{"enabled": true}, "vgpu": map[string]any{"enabled": true},
				"mps": map[string]any{"enabled": true, "image": "quartermaster/mps-device-plugin:simulated"}}}})
	if err != nil {
		return err
	}
	if err := p.Run(ctx, policy, "kubectl", "apply", "--server-side", "-f", "-"); err != nil {
		return err
	}
	made := append([]string{namespace}, make([]string, namespaces)...)
	for i := range namespaces {
		made[i+1] = namespaceName(i)
	}
	return kit.Each(len(made), 4, func(i int) error {
		space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: made[i], Labels: map[string]string{"organization": fmt.Sprintf("org-%d", i%10)}}}
		_, err := p.Client.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{})
		return err
	})
}

func namespaceName(i int) string { return fmt.Sprintf("team-%03d", i%namespaces) }

// enrolled is a node as discovery and the operator leave it, with its plugin's resources.
func enrolled(i int) *corev1.Node {
	mode := modes[i%len(modes)]
	n := load.Node(1, i)
	n.Labels[productLabel], n.Labels[moduleLabel] = mode.Name, mode.Name
	mode.Advertise(n, cards)
	return n
}

// placed is a pod with a placement on its node: the k-th there.
func placed(number, node, k int, owner string) *corev1.Pod {
	p := load.Pod(1, number, 1, 5)
	p.Name, p.Namespace = fmt.Sprintf("train-%06d", number), namespaceName(number)
	p.OwnerReferences[0].Kind, p.OwnerReferences[0].Name = "ReplicaSet", owner
	modes[node%len(modes)].Place(p, load.NodeName(node), k%cards)
	return p
}

func (p *plane) addNodes(ctx context.Context, count int) error {
	for i := range count {
		if err := p.etcd.Add(ctx, enrolled(i)); err != nil {
			return err
		}
	}
	return p.etcd.Flush(ctx)
}

// addPlugins plays the DaemonSet controller and the kubelets: a Ready pod of its module's DaemonSet on each node.
func (p *plane) addPlugins(ctx context.Context, count int) error {
	sets := map[string]*appsv1.DaemonSet{}
	for deadline := time.Now().Add(time.Minute); len(sets) < len(modes); {
		list, err := p.Client.AppsV1().DaemonSets(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if module := list.Items[i].Spec.Template.Spec.NodeSelector[moduleLabel]; module != "" {
				sets[module] = &list.Items[i]
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the operator has made the DaemonSets of %d of %d modules", len(sets), len(modes))
		}
		if err := kit.Pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
	return kit.Each(count, writers, func(i int) error { return p.etcd.Put(ctx, pluginPod(sets[modes[i%len(modes)].Name], i)) })
}

func pluginPod(set *appsv1.DaemonSet, node int) *corev1.Pod {
	yes := true
	template := set.Spec.Template.DeepCopy()
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name, pod.Namespace, pod.UID = fmt.Sprintf("%s-%05d", set.Name, node), set.Namespace, types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", node))
	pod.CreationTimestamp = metav1.Now()
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: set.Name, UID: set.UID, Controller: &yes}}
	pod.Spec.NodeName = load.NodeName(node)
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	return pod
}
