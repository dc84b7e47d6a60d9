package main

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
)

const ownerName = "quartermaster-simulation"

// installed is a fleet in a cluster with these nodes and the chart's ClusterRole.
func installed(t *testing.T, text string, nodes ...*corev1.Node) *fleet {
	t.Helper()
	objects := []runtime.Object{&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: ownerName, UID: "role"}}}
	for _, node := range nodes {
		objects = append(objects, node)
	}
	wants, err := parseWants(text, 0, load(t))
	if err != nil {
		t.Fatal(err)
	}
	return &fleet{client: fake.NewSimpleClientset(objects...), wants: wants, owner: ownerName}
}

func (f *fleet) names(t *testing.T) (out []string) {
	t.Helper()
	nodes, err := f.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes.Items {
		out = append(out, node.Name)
	}
	return out
}

func ours() metav1.OwnerReference {
	return metav1.OwnerReference{Kind: "ClusterRole", Name: ownerName, UID: "role"}
}

func named(name string, labels map[string]string, capacity map[corev1.ResourceName]string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Status: corev1.NodeStatus{Capacity: corev1.ResourceList{}}}
	for key, amount := range capacity {
		node.Status.Capacity[key] = resource.MustParse(amount)
	}
	return node
}

func TestTheFleetIsWhatIsAskedForAndBelongsToTheChart(t *testing.T) {
	surplus := simulated(makeNode(load(t)["t4"], 7, "v1", noon), ours())
	others := makeNode(load(t)["h100"], 0, "v1", noon) // of `sim nodes`
	f := installed(t, "a100=2,t4=1", named("worker", nil, map[corev1.ResourceName]string{"cpu": "8"}), surplus, others)
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.run(ctx) }()
	eventually(t, "leases of the nodes", func() bool {
		leases, err := f.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(leases.Items) == 4
	})
	if names := f.names(t); !slices.Equal(names, []string{"a100-0", "a100-1", "h100-0", "t4-0", "worker"}) {
		t.Errorf("the nodes are %v", names)
	}
	if _, err := f.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), "worker", metav1.GetOptions{}); err == nil {
		t.Error("the lease of a real node is renewed")
	}
	node, err := f.client.CoreV1().Nodes().Get(t.Context(), "a100-0", metav1.GetOptions{})
	if err != nil || !owned(node, ours()) || !slices.Equal(node.Spec.Taints, []corev1.Taint{simulatedTaint}) {
		t.Errorf("the node has no owner or no taint: %+v %v", node, err)
	}
	end()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestNoFleetNextToRealCards(t *testing.T) {
	for sign, real := range map[string]*corev1.Node{
		"nvidia.com/gpu: 8 in its capacity":                      named("gpu-1", nil, map[corev1.ResourceName]string{"nvidia.com/gpu": "8"}),
		"amd.com/gpu: 2 in its capacity":                         named("gpu-1", nil, map[corev1.ResourceName]string{"amd.com/gpu": "2"}),
		"label nvidia.com/gpu.present=true":                      named("gpu-1", map[string]string{"nvidia.com/gpu.present": "true"}, nil),
		"label feature.node.kubernetes.io/pci-10de.present=true": named("gpu-1", map[string]string{"feature.node.kubernetes.io/pci-10de.present": "true"}, nil),
		"label nvidia-device-enable=pgpu":                        named("gpu-1", map[string]string{"nvidia-device-enable": "pgpu"}, nil),
	} {
		earlier := simulated(makeNode(load(t)["t4"], 0, "v1", noon), ours())
		f := installed(t, "a100=1", real, earlier)
		err := f.run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "node gpu-1 has real cards ("+sign+")") || !strings.Contains(err.Error(), "simulate.force") {
			t.Errorf("%s: %v", sign, err)
		}
		if names := f.names(t); !slices.Equal(names, []string{"gpu-1"}) {
			t.Errorf("%s: nodes %v", sign, names)
		}
		f.force = true
		ctx, end := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.run(ctx) }()
		eventually(t, "the forced node", func() bool { return slices.Equal(f.names(t), []string{"a100-0", "gpu-1"}) })
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for _, without := range []*corev1.Node{named("a", nil, map[corev1.ResourceName]string{"nvidia.com/gpu": "0", "example.com/thing": "1"}),
		named("a", map[string]string{"nvidia.com/gpu.present": "false"}, nil), makeNode(load(t)["cpu"], 0, "v1", noon)} {
		if sign := signOfCards(without); sign != "" {
			t.Errorf("%s has cards: %s", without.Name, sign)
		}
	}
}

func TestANodeOfOthersKeepsItsName(t *testing.T) {
	f := installed(t, "t4=1", named("t4-0", nil, nil))
	if err := f.run(t.Context()); err == nil || !strings.Contains(err.Error(), "node t4-0 is there and is not simulated") {
		t.Error(err)
	}
	f = installed(t, "t4=1")
	f.owner = "gone"
	if err := f.run(t.Context()); err == nil || len(f.names(t)) != 0 {
		t.Error("nodes without an owner: ", err)
	}
}
