package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// fleet is the whole simulation in a cluster that belongs to others, as the chart runs it (simulate.nodes): nodes, leases and plugins. KWOK
// runs next to it and plays the pods. The nodes belong to an object of the chart, so that they go with it, whatever tool deletes it.
type fleet struct {
	client kubernetes.Interface
	wants  []want
	owner  string // name of the ClusterRole
	force  bool   // also next to real cards
}

const lookInterval = 30 * time.Second // for real cards

// simulatedTaint is KWOK's own. It keeps off pods that do not tolerate everything: no container would run.
var simulatedTaint = corev1.Taint{Key: lifelessLabel, Value: "fake", Effect: corev1.TaintEffectNoSchedule}

func (f *fleet) run(ctx context.Context) error {
	role, err := f.client.RbacV1().ClusterRoles().Get(ctx, f.owner, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("the owner of the nodes: %w", err)
	}
	owner := metav1.OwnerReference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: role.Name, UID: role.UID}
	if err := f.judge(ctx, owner); err != nil {
		return err
	}
	profiles, err := loadProfiles()
	if err != nil {
		return err
	}
	modules, err := loadModules()
	if err != nil {
		return err
	}
	if err := f.settle(ctx, owner); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 3)
	go func() { ended <- (&leases{client: f.client, selector: profileLabel}).run(ctx, 8) }()
	go func() { ended <- (&plugins{client: f.client, profiles: profiles, modules: modules}).run(ctx, 8) }()
	go func() { ended <- f.watch(ctx, owner) }()
	return <-ended // the first that ends takes the others with it
}

// watch looks for real cards that come later.
func (f *fleet) watch(ctx context.Context, owner metav1.OwnerReference) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lookInterval):
		}
		if err := f.judge(ctx, owner); errors.As(err, &refusal{}) {
			return err
		} else if err != nil && ctx.Err() == nil {
			slog.Warn("will look for real cards again", "error", err)
		}
	}
}

// refusal is why there may be no simulated nodes here.
type refusal struct{ node, sign string }

func (r refusal) Error() string {
	return fmt.Sprintf("node %s has real cards (%s), and pods that ask for cards could go to simulated nodes, where no container runs; "+
		"no node is simulated next to it: set simulate.nodes to nothing, or simulate.force to true", r.node, r.sign)
}

// judge refuses where a node that is not simulated has cards, and takes our nodes away then.
func (f *fleet) judge(ctx context.Context, owner metav1.OwnerReference) error {
	if f.force {
		return nil
	}
	nodes, err := f.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "!" + profileLabel})
	if err != nil {
		return err
	}
	for _, node := range nodes.Items {
		if sign := signOfCards(&node); sign != "" {
			return errors.Join(refusal{node.Name, sign}, f.remove(ctx, owner, nil))
		}
	}
	return nil
}

// Resources of cards, by the beginning of their names, and labels of discovery programs and of people who believe that there are cards.
var (
	cardResources = []string{"nvidia.com/", "amd.com/gpu", "huawei.com/", "tencent.com/vcuda", "aliyun.com/gpu", "gpu.intel.com/", "habana.ai/", "cambricon.com/"}
	cardLabels    = []string{"nvidia.com/gpu.present", "feature.node.kubernetes.io/pci-10de.present", "feature.node.kubernetes.io/pci-0300_10de.present",
		"feature.node.kubernetes.io/pci-0302_10de.present", "nvidia-device-enable", moduleLabel}
)

// signOfCards says by what a node has real cards; empty: by nothing.
func signOfCards(node *corev1.Node) string {
	for key, amount := range node.Status.Capacity {
		if amount.Sign() > 0 && slices.ContainsFunc(cardResources, func(beginning string) bool { return strings.HasPrefix(string(key), beginning) }) {
			return fmt.Sprintf("%s: %s in its capacity", key, amount.String())
		}
	}
	for _, key := range cardLabels {
		if value := node.Labels[key]; value != "" && value != "false" {
			return fmt.Sprintf("label %s=%s", key, value)
		}
	}
	return ""
}

// simulated is the node as it is in a cluster of others.
func simulated(node *corev1.Node, owner metav1.OwnerReference) *corev1.Node {
	node.OwnerReferences = []metav1.OwnerReference{owner}
	node.Annotations = map[string]string{simulatedTaint.Key: simulatedTaint.Value}
	node.Labels["type"] = "kwok"
	node.Labels[corev1.LabelNodeExcludeBalancers] = "true"
	node.Spec.Taints = []corev1.Taint{simulatedTaint}
	return node
}

// settle makes the nodes that are missing, and deletes ours that are no longer asked for.
func (f *fleet) settle(ctx context.Context, owner metav1.OwnerReference) error {
	server, err := f.client.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	kept := map[string]bool{}
	for _, w := range f.wants {
		for i := range w.count {
			node := simulated(makeNode(w.profile, i, server.GitVersion, time.Now()), owner)
			kept[node.Name] = true
			if err := f.make(ctx, node); err != nil {
				return err
			}
		}
	}
	slog.Info("simulated nodes", "nodes", len(kept))
	return f.remove(ctx, owner, kept)
}

// make waits while a node of an earlier release is there, which the garbage collector is about to delete.
func (f *fleet) make(ctx context.Context, node *corev1.Node) error {
	return wait.PollUntilContextTimeout(ctx, time.Second, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := f.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			return err == nil, err
		}
		same, err := f.client.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		} else if err != nil {
			return false, err
		}
		if same.Labels[profileLabel] == "" {
			return false, fmt.Errorf("node %s is there and is not simulated: simulated nodes are named after their model, so leave this model out of simulate.nodes", node.Name)
		}
		return owned(same, node.OwnerReferences[0]), nil
	})
}

func owned(node *corev1.Node, owner metav1.OwnerReference) bool {
	return slices.ContainsFunc(node.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == owner.UID })
}

// remove deletes the nodes of this owner, except for some.
func (f *fleet) remove(ctx context.Context, owner metav1.OwnerReference, kept map[string]bool) error {
	nodes, err := f.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: profileLabel})
	if err != nil {
		return err
	}
	for _, node := range nodes.Items {
		if kept[node.Name] || !owned(&node, owner) {
			continue
		}
		err := f.client.CoreV1().Nodes().Delete(ctx, node.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &node.UID}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
		slog.Info("removed a simulated node", "node", node.Name)
	}
	return nil
}
