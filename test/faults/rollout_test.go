package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"quartermaster.io/test/faults/kit"
)

// image writes spec.modules.<module>.image; an empty one is the version the operator was tested with.
func (b *bench) image(module, image string) {
	b.t.Helper()
	var value any
	if image != "" {
		value = image
	}
	body, _ := json.Marshal(map[string]any{"spec": map[string]any{"modules": map[string]any{module: map[string]any{"image": value}}}})
	_, err := b.Dynamic.Resource(kit.Policies).Patch(b.ctx, "default", types.MergePatchType, body, metav1.PatchOptions{})
	b.must(err)
}

// plugins of a module: node -> image, "" where it has none that is ready and stays.
func (b *bench) plugins(module string) map[string]string {
	b.t.Helper()
	pods, err := b.Client.CoreV1().Pods(kit.Namespace).List(b.ctx, metav1.ListOptions{LabelSelector: kit.ModuleLabel + "=" + module})
	b.must(err)
	out := map[string]string{}
	for node, mode := range b.Expected.Nodes {
		if mode == module {
			out[node] = ""
		}
	}
	for _, p := range pods.Items {
		if p.DeletionTimestamp == nil && p.Spec.NodeName != "" {
			out[p.Spec.NodeName] = p.Spec.Containers[0].Image
		}
	}
	return out
}

func count(plugins map[string]string, image string) (n int) {
	for _, i := range plugins {
		if i == image {
			n++
		}
	}
	return
}

// said is what the policy's status says of a module, and of itself.
func (b *bench) said(module string) (row map[string]any, degraded string) {
	b.t.Helper()
	p, err := b.Dynamic.Resource(kit.Policies).Get(b.ctx, "default", metav1.GetOptions{})
	b.must(err)
	rows, _, _ := unstructured.NestedSlice(p.Object, "status", "modules")
	for _, r := range rows {
		if m, ok := r.(map[string]any); ok && m["name"] == module {
			row = m
		}
	}
	conditions, _, _ := unstructured.NestedSlice(p.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "Degraded" && m["status"] == "True" {
			degraded = fmt.Sprint(m["reason"])
		}
	}
	return
}

// eventuallySo waits until `is` says nothing.
func (b *bench) eventuallySo(patience time.Duration, is func() string) {
	b.t.Helper()
	patience = kit.Patient(patience)
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		last := is()
		if last == "" {
			return
		}
		if time.Now().After(deadline) {
			b.must(fmt.Errorf("after %s still: %s", patience, last))
		}
	}
}

// oneAtATime watches nodes and writes down when more than one of a module's nodes has none of its cards.
func (b *bench) oneAtATime(resource string, nodes []string) func() []string {
	b.t.Helper()
	down := map[string]bool{}
	seen := make(chan []string, 1)
	seen <- nil
	nodeList := cache.NewListWatchFromClient(b.Client.CoreV1().RESTClient(), "nodes", "", fields.Everything())
	began, err := nodeList.List(metav1.ListOptions{Limit: 1})
	b.must(err)
	from, err := watchtools.NewRetryWatcherWithContext(b.ctx, began.(metav1.ListInterface).GetResourceVersion(), nodeList)
	b.must(err)
	go func() {
		for event := range from.ResultChan() {
			node, ok := event.Object.(*corev1.Node)
			if !ok || event.Type == watch.Deleted {
				continue
			}
			for _, name := range nodes {
				if name == node.Name {
					amount := node.Status.Allocatable[corev1.ResourceName(resource)]
					down[name] = amount.IsZero()
				}
			}
			var now []string
			for name, is := range down {
				if is {
					now = append(now, name)
				}
			}
			if len(now) > 1 {
				seen <- append(<-seen, fmt.Sprintf("%d nodes without %s at once: %v", len(now), resource, now))
			}
		}
	}()
	b.t.Cleanup(from.Stop)
	return func() []string {
		all := <-seen
		seen <- all
		return all
	}
}

// l40s makes nodes of a module and waits for them.
func (b *bench) l40s(module string, count int) []string {
	b.t.Helper()
	_, err := b.Run("", "sim", "nodes", "--kubeconfig", b.Kubeconfig, "--profile", fmt.Sprintf("l40s=%d", count))
	b.must(err)
	var names []string
	for i := range count {
		name := fmt.Sprintf("l40s-%d", i)
		names = append(names, name)
		b.must(b.Ask(b.ctx, name, module))
	}
	b.t.Cleanup(func() {
		for _, name := range names {
			delete(b.Expected.Nodes, name)
			_ = b.Client.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{})
		}
	})
	return names
}

// A new plugin image goes from node to node, the operator being killed on the way; a broken one halts on its first node, which is named;
// the image put back heals that node and touches no other.
func TestC155_a_new_plugin_image_goes_node_by_node_and_a_broken_one_halts_on_the_first(t *testing.T) {
	b := take(t, "pair")
	b.enrol(map[string]any{"verifyTimeout": "15s"})
	nodes := append(b.l40s("pgpu", 2), "t4-0")
	b.image("pgpu", "plugin:1")
	o := b.converged("first")
	b.eventuallySo(20*time.Second, func() string {
		if row, _ := b.said("pgpu"); row["image"] != "plugin:1" || row["updated"] != int64(3) {
			return fmt.Sprint(row)
		}
		return ""
	})
	wrong := b.oneAtATime("nvidia.com/gpu", nodes)

	b.user("runs-on", nodes[0], "pgpu")
	b.image("pgpu", "plugin:2")
	b.eventuallySo(30*time.Second, func() string {
		if got := b.plugins("pgpu"); count(got, "plugin:2") == 0 {
			return fmt.Sprint(got)
		}
		return ""
	})
	o.Kill()
	b.must(b.ExpireLease(b.ctx))
	if got := b.plugins("pgpu"); count(got, "plugin:1") < 2 {
		t.Errorf("more than one node has the new image at once: %v", got)
	}
	o = b.start("second")
	b.must(o.WaitReady(20 * time.Second))
	b.eventuallySo(90*time.Second, func() string {
		if got := b.plugins("pgpu"); count(got, "plugin:2") != 3 {
			return fmt.Sprint(got)
		}
		return ""
	})
	b.must(b.Await(b.ctx, 40*time.Second))
	if p, err := b.Client.CoreV1().Pods("default").Get(b.ctx, "runs-on", metav1.GetOptions{}); err != nil || p.Status.Phase != corev1.PodRunning {
		t.Errorf("a pod that used a card was disturbed: %v %v", err, p.Status.Phase)
	}
	b.must(b.AwaitPolicyReady(b.ctx, 40*time.Second))
	b.eventuallySo(15*time.Second, func() string { // so that a reader does not go on waiting
		if row, _ := b.said("pgpu"); row["message"] != nil && row["message"] != "" {
			return fmt.Sprint(row)
		}
		return ""
	})

	b.image("pgpu", "plugin:3-broken")
	b.eventuallySo(60*time.Second, func() string {
		if row, reason := b.said("pgpu"); reason != "RolloutHalted" {
			return fmt.Sprint(reason, row)
		}
		return ""
	})
	row, _ := b.said("pgpu")
	if said := fmt.Sprint(row["message"]); !strings.Contains(said, "halted on node l40s-0") || !strings.Contains(said, "nvidia.com/gpu is 0 and must be") {
		t.Errorf("the status says %q", said)
	}
	if row["previousImage"] != "plugin:2" {
		t.Errorf("the image before is %v", row["previousImage"])
	}
	time.Sleep(5 * time.Second)
	if got := b.plugins("pgpu"); count(got, "plugin:3-broken") != 1 || count(got, "plugin:2") != 2 {
		t.Errorf("it did not halt on one node: %v", got)
	}

	untouched := b.uids("pgpu")
	b.image("pgpu", "plugin:2")
	b.must(b.AwaitPolicyReady(b.ctx, 60*time.Second))
	b.must(b.Await(b.ctx, 40*time.Second))
	for node, uid := range b.uids("pgpu") {
		if node != "l40s-0" && untouched[node] != uid {
			t.Errorf("the plugin on %s was replaced for nothing", node)
		}
	}
	b.clean(wrong())
	b.rest(o, time.Second)
}

func (b *bench) uids(module string) map[string]types.UID {
	b.t.Helper()
	pods, err := b.Client.CoreV1().Pods(kit.Namespace).List(b.ctx, metav1.ListOptions{LabelSelector: kit.ModuleLabel + "=" + module})
	b.must(err)
	out := map[string]types.UID{}
	for _, p := range pods.Items {
		out[p.Spec.NodeName] = p.UID
	}
	return out
}

// GPU-Manager's pods ask it for their limits: a node gets the new image when none is left, the others go on.
func TestC28_a_plugin_that_running_pods_need_is_replaced_when_they_are_gone_long(t *testing.T) {
	b := take(t, "storm")
	b.l40s("vgpu", 1)
	b.image("vgpu", "manager:1")
	b.converged("only")
	b.user("holder", "t4-1", "vgpu")
	before := b.uids("vgpu")
	b.image("vgpu", "manager:2")
	b.eventuallySo(60*time.Second, func() string {
		row, _ := b.said("vgpu")
		if said := fmt.Sprint(row["message"]); !strings.Contains(said, "newest version on 1 of 2 nodes; 1 node waits for its pods: t4-1") {
			return said
		}
		return ""
	})
	if got := b.uids("vgpu"); got["t4-1"] != before["t4-1"] || got["l40s-0"] == before["l40s-0"] {
		t.Errorf("plugins before %v, now %v", before, got)
	}
	b.forget("holder")
	b.eventuallySo(60*time.Second, func() string {
		if got := b.plugins("vgpu"); count(got, "manager:2") != 2 {
			return fmt.Sprint(got)
		}
		return ""
	})
	b.must(b.AwaitPolicyReady(b.ctx, 60*time.Second))
}

// A new node set moves the nodes that ask for it one after the other, each without two plugins at once; where running pods need the
// plugin, a node waits for them.
func TestS52_nodes_move_to_another_node_set_one_after_another_long(t *testing.T) {
	b := take(t, "storm")
	nodes := append(b.l40s("pgpu", 1), "t4-0")
	b.must(b.Ask(b.ctx, "t4-1", "vgpu"))
	b.converged("only")
	note := func(node string, value any) error {
		body, _ := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{"quartermaster.io/node-set": value}}})
		_, err := b.Client.CoreV1().Nodes().Patch(context.Background(), node, types.MergePatchType, body, metav1.PatchOptions{})
		return err
	}
	sets := func(value any) error {
		body, _ := json.Marshal(map[string]any{"spec": map[string]any{"modules": map[string]any{"pgpu": map[string]any{"nodeSets": value}, "vgpu": map[string]any{"nodeSets": value}}}})
		_, err := b.Dynamic.Resource(kit.Policies).Patch(context.Background(), "default", types.MergePatchType, body, metav1.PatchOptions{})
		return err
	}
	for _, node := range append([]string{"t4-1"}, nodes...) {
		b.must(note(node, "big"))
	}
	t.Cleanup(func() { _, _, _ = sets(nil), note("t4-0", nil), note("t4-1", nil) })
	b.user("holder", "t4-1", "vgpu")
	before := b.uids("vgpu")
	served := func(set string) (n int) {
		pods, err := b.Client.CoreV1().Pods(kit.Namespace).List(b.ctx, metav1.ListOptions{LabelSelector: kit.ModuleLabel + "=pgpu"})
		b.must(err)
		for _, p := range pods.Items {
			if p.DeletionTimestamp == nil && len(p.OwnerReferences) == 1 && p.OwnerReferences[0].Name == set {
				n++
			}
		}
		return
	}
	wrong := b.oneAtATime("nvidia.com/gpu", nodes)

	b.must(sets([]any{map[string]any{"name": "big", "settings": map[string]any{}}}))
	b.eventuallySo(90*time.Second, func() string {
		if n := served("nvidia-device-plugin-ds-big"); n != 2 {
			return fmt.Sprintf("%d nodes have moved", n)
		}
		return ""
	})
	b.eventuallySo(20*time.Second, func() string {
		row, _ := b.said("vgpu")
		if said := fmt.Sprint(row["message"]); !strings.Contains(said, "1 node waits for its pods: t4-1") {
			return said
		}
		return ""
	})
	if got := b.uids("vgpu"); got["t4-1"] != before["t4-1"] {
		t.Errorf("the plugin on t4-1 was replaced under a pod that needs it")
	}
	b.must(sets(nil))
	b.eventuallySo(90*time.Second, func() string {
		if n := served("nvidia-device-plugin-ds"); n != 2 {
			return fmt.Sprintf("%d nodes are back", n)
		}
		return ""
	})
	b.forget("holder")
	b.clean(wrong())
	b.must(b.AwaitPolicyReady(b.ctx, 60*time.Second))
	b.must(b.Await(b.ctx, 40*time.Second))
}
