package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"quartermaster.io/test/faults/kit"
)

// unit is the smallest thing a pod can ask for in a mode.
var unit = map[string]string{"pgpu": "nvidia.com/gpu", "vgpu": "tencent.com/vcuda-core", "mps": "nvidia.com/mps-core",
	"hami": "nvidia.com/gpualloc", "share": "nvidia.com/gpu.shared", "gpushare": "aliyun.com/gpu-mem"}

// witness watches nodes and plugin pods by itself and writes down what must never be: plugins of two modules on one node, and more nodes
// on their way than are allowed.
type witness struct {
	mu       sync.Mutex
	plugins  map[string]map[types.UID]string // node -> plugin pods -> module
	tainted  map[string]bool
	most     int
	wrong    []string
	allowed  int
	finished sync.WaitGroup
	stop     context.CancelFunc
}

func (b *bench) witness(allowed int) *witness {
	ctx, stop := context.WithCancel(b.ctx)
	w := &witness{plugins: map[string]map[types.UID]string{}, tainted: map[string]bool{}, allowed: allowed, stop: stop}
	follow := func(list cache.Lister, watcher cache.WatcherWithContext, see func(watch.Event)) {
		began, err := list.List(metav1.ListOptions{Limit: 1})
		b.must(err)
		from, err := watchtools.NewRetryWatcherWithContext(ctx, began.(metav1.ListInterface).GetResourceVersion(), watcher)
		b.must(err)
		w.finished.Go(func() {
			for event := range from.ResultChan() {
				w.mu.Lock()
				see(event)
				if event.Type == watch.Error {
					w.wrong = append(w.wrong, "the witness lost its watch")
				}
				w.mu.Unlock()
			}
		})
	}
	pods := cache.NewFilteredListWatchFromClient(b.Client.CoreV1().RESTClient(), "pods", kit.Namespace,
		func(o *metav1.ListOptions) { o.LabelSelector = kit.ModuleLabel })
	nodes := cache.NewListWatchFromClient(b.Client.CoreV1().RESTClient(), "nodes", "", fields.Everything())
	follow(pods, pods, func(e watch.Event) {
		pod, ok := e.Object.(*corev1.Pod)
		if !ok || pod.Spec.NodeName == "" {
			return
		}
		on := w.plugins[pod.Spec.NodeName]
		if on == nil {
			on = map[types.UID]string{}
			w.plugins[pod.Spec.NodeName] = on
		}
		delete(on, pod.UID)
		if e.Type != watch.Deleted {
			on[pod.UID] = pod.Labels[kit.ModuleLabel]
		}
		modes := map[string]bool{}
		for _, module := range on {
			modes[module] = true
		}
		if len(modes) > 1 {
			w.wrong = append(w.wrong, fmt.Sprintf("plugins of %d modes on node %s: %v", len(modes), pod.Spec.NodeName, on))
		}
	})
	follow(nodes, nodes, func(e watch.Event) {
		node, ok := e.Object.(*corev1.Node)
		if !ok {
			return
		}
		delete(w.tainted, node.Name)
		if e.Type != watch.Deleted && slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == kit.SwitchingTaint }) {
			w.tainted[node.Name] = true
		}
		w.most = max(w.most, len(w.tainted))
		if len(w.tainted) > w.allowed {
			w.wrong = append(w.wrong, fmt.Sprintf("%d nodes change at once, %d may: %v", len(w.tainted), w.allowed, w.tainted))
		}
	})
	b.t.Cleanup(func() { stop(); w.finished.Wait() })
	return w
}

func (w *witness) seen() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.wrong)
}

// enrol changes spec.enrolment of the policy.
func (b *bench) enrol(fields map[string]any) {
	b.t.Helper()
	body, _ := json.Marshal(map[string]any{"spec": map[string]any{"enrolment": fields}})
	_, err := b.Dynamic.Resource(kit.Policies).Patch(b.ctx, "default", types.MergePatchType, body, metav1.PatchOptions{})
	b.must(err)
}

// status of an AcceleratorNode; empty where there is none.
func (b *bench) status(node string) map[string]any {
	b.t.Helper()
	a, err := b.Dynamic.Resource(kit.AccelNodes).Get(b.ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	b.must(err)
	out, _, _ := unstructured.NestedMap(a.Object, "status")
	return out
}

// until waits for a status of a node.
func (b *bench) until(node string, patience time.Duration, is func(status map[string]any) bool) map[string]any {
	b.t.Helper()
	patience = kit.Patient(patience)
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		last := b.status(node)
		if is(last) {
			return last
		}
		if time.Now().After(deadline) {
			b.must(fmt.Errorf("node %s is after %s still %v", node, patience, last))
		}
	}
}

func inPhase(phase string) func(map[string]any) bool {
	return func(s map[string]any) bool { return s["phase"] == phase }
}

// podOf holds one unit of a mode on a node.
func (b *bench) podOf(node, mode string) corev1.PodSpec {
	limits := corev1.ResourceList{corev1.ResourceName(unit[mode]): resource.MustParse("1")}
	return corev1.PodSpec{NodeSelector: map[string]string{"kubernetes.io/hostname": node}, TerminationGracePeriodSeconds: new(int64),
		Tolerations: []corev1.Toleration{{Key: "kwok.x-k8s.io/node", Operator: corev1.TolerationOpExists}},
		Containers:  []corev1.Container{{Name: "main", Image: "x", Resources: corev1.ResourceRequirements{Limits: limits}}}}
}

// user is a pod that holds one unit of a mode on a node.
func (b *bench) user(name, node, mode string) *corev1.Pod {
	b.t.Helper()
	pod, err := b.Client.CoreV1().Pods("default").Create(b.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: b.podOf(node, mode)}, metav1.CreateOptions{})
	b.must(err)
	b.t.Cleanup(func() {
		now := int64(0)
		_ = b.Client.CoreV1().Pods("default").Delete(context.Background(), name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	})
	for deadline := time.Now().Add(kit.Patient(20 * time.Second)); pod.Status.Phase != corev1.PodRunning; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.must(fmt.Errorf("pod %s does not run: %v", name, pod.Status.Conditions))
		}
		pod, err = b.Client.CoreV1().Pods("default").Get(b.ctx, name, metav1.GetOptions{})
		b.must(err)
	}
	return pod
}

func (b *bench) forget(pod string) {
	b.t.Helper()
	now := int64(0)
	b.must(b.Client.CoreV1().Pods("default").Delete(b.ctx, pod, metav1.DeleteOptions{GracePeriodSeconds: &now}))
}

// Every ordered pair of modes, none among them, each with the operator killed around one of the writes of the change and a pod that
// holds the old mode's cards: the change waits for the pod, ends where it was asked to, and no node ever runs two plugins.
func TestC61_F1_every_change_of_mode_killed_on_its_way_long(t *testing.T) {
	b := take(t, "calm")
	w := b.witness(1)
	modes := []string{"pgpu", "vgpu", "mps", ""}
	moments := []string{"lost", "unanswered", "answered"}
	const node = "t4-0"
	pairs, deaths := 0, 0
	o := b.converged("first")
	for i, from := range modes {
		for j, to := range modes {
			if from == to {
				continue
			}
			pairs++
			for _, k := range form([]int{1 + (i*len(modes)+j+int(seed))%7}, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}) {
				b.must(b.Ask(b.ctx, node, from))
				b.must(wrap(b.Await(b.ctx, 40*time.Second), "to begin with %q", from))
				held := from != "" && (i+j+k)%2 == 0
				if held {
					b.user("holder", node, from)
				}
				o.Terminate(10 * time.Second)
				b.must(b.ExpireLease(b.ctx))
				b.must(b.Ask(b.ctx, node, to))
				name := fmt.Sprintf("%s-%s-%d", named(from), named(to), k)
				b.dieAt(name, k, moments[(i+j+k)%3])
				deaths++
				b.must(b.ExpireLease(b.ctx))
				o = b.start("after-" + name)
				b.must(o.WaitReady(20 * time.Second))
				if held {
					s := b.until(node, 20*time.Second, inPhase("Draining"))
					if got := fmt.Sprint(s["blockers"]); !strings.Contains(got, "default/holder") {
						t.Errorf("%s: blockers are %s", name, got)
					}
					if p, err := b.Client.CoreV1().Pods("default").Get(b.ctx, "holder", metav1.GetOptions{}); err != nil || p.DeletionTimestamp != nil {
						t.Errorf("%s: the pod was taken away although no one asked: %v", name, err)
					}
					b.forget("holder")
				}
				b.must(wrap(b.Await(b.ctx, 40*time.Second), "%s, killed at write %d", name, k))
				b.clean(w.seen())
			}
		}
	}
	b.rest(o, time.Second)
	t.Logf("%d pairs of modes, %d deaths", pairs, deaths)
}

func named(mode string) string {
	if mode == "" {
		return "none"
	}
	return mode
}

// The new mode's cards never appear: the node goes back, says why, and remembers it.
func TestC61_a_mode_that_does_not_come_up_is_taken_back(t *testing.T) {
	b := take(t, "calm")
	w := b.witness(1)
	b.converged("only")
	b.enrol(map[string]any{"verifyTimeout": "4s"})
	const node = "t4-0"
	b.must(b.Break("vgpu"))
	t.Cleanup(func() { _ = b.Break("") })
	b.must(b.Ask(b.ctx, node, "vgpu"))
	s := b.until(node, 40*time.Second, inPhase("RolledBack"))
	b.must(b.Break(""))
	if s["actualMode"] != "pgpu" || s["requestedMode"] != "vgpu" || s["reason"] != "VerifyTimeout" {
		t.Errorf("rolled back to %v", s)
	}
	b.Expected.Nodes[node] = "pgpu"
	if n, _ := b.Client.CoreV1().Nodes().Get(b.ctx, node, metav1.GetOptions{}); slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == kit.SwitchingTaint }) {
		t.Errorf("the taint is still there")
	}
	b.enrol(map[string]any{"verifyTimeout": "5m"}) // an edit of the policy is a reason to try again
	b.Expected.Nodes[node] = "vgpu"
	b.must(b.Await(b.ctx, 40*time.Second))
	b.clean(w.seen())
}

// The operator hears of a pod two seconds late, and of the label that takes its mode away at once. The plugin stays under the pod: before
// it goes, the API server itself is asked which pods are there.
func TestC61_a_plugin_stays_under_a_pod_that_the_watch_has_not_shown_long(t *testing.T) {
	b := take(t, "calm")
	p, err := kit.NewProxy("late", b.Config, b.dir)
	b.must(err)
	t.Cleanup(p.Close)
	p.Use(kit.Rule{Match: podWatches, Lag: 2 * time.Second})
	b.must(b.startBehind(p).WaitReady(40 * time.Second))
	b.must(b.Await(b.ctx, 80*time.Second))
	const node = "t4-0"
	b.user("late", node, "pgpu")
	asked := time.Now()
	b.must(b.Ask(b.ctx, node, "mps"))
	s := b.until(node, 20*time.Second, func(s map[string]any) bool { return s["phase"] == "Draining" || s["phase"] == "Removing" })
	if s["phase"] != "Draining" || fmt.Sprint(s["blockers"]) != "[default/late]" {
		t.Errorf("the plugin goes under a pod that runs: %v", s)
	}
	looks := p.Since(asked, func(r *kit.Request) bool { return r.Verb == "list" && r.Resource == "pods" })
	if len(looks) == 0 || !strings.Contains(looks[0].Query.Get("fieldSelector"), "spec.nodeName="+node) {
		t.Errorf("it did not ask which pods are there: %d lists", len(looks))
	}
	b.forget("late")
	b.must(b.Await(b.ctx, 60*time.Second))
}

// A node that is deleted in mid-flight leaves nothing; one of the same name starts again from the beginning.
func TestC61_F3_a_node_deleted_in_mid_flight_long(t *testing.T) {
	b := take(t, "calm")
	b.converged("only")
	const node = "t4-0"
	b.user("holder", node, "pgpu")
	b.must(b.Ask(b.ctx, node, "mps"))
	b.until(node, 20*time.Second, inPhase("Draining"))
	old, err := b.Client.CoreV1().Nodes().Get(b.ctx, node, metav1.GetOptions{})
	b.must(err)
	b.must(b.Client.CoreV1().Nodes().Delete(b.ctx, node, metav1.DeleteOptions{}))
	b.until(node, 20*time.Second, func(s map[string]any) bool { return s == nil })
	b.forget("holder") // as the control plane does for pods of nodes that are gone, after a while
	again := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: old.Labels, Annotations: old.Annotations}, Status: old.Status}
	delete(again.Labels, kit.ModuleLabel)
	for name := range again.Status.Allocatable {
		if strings.Contains(string(name), "/") {
			delete(again.Status.Allocatable, name)
			delete(again.Status.Capacity, name)
		}
	}
	_, err = b.Client.CoreV1().Nodes().Create(b.ctx, again, metav1.CreateOptions{})
	b.must(err)
	b.must(b.Await(b.ctx, 40*time.Second))
}

// Evict asks the Eviction API, so a PodDisruptionBudget holds, and is named. A pod under two of them, which the API server can never
// evict (it answers 500), is named too, and the other pods are evicted all the same.
func TestC62_evicts_as_far_as_budgets_allow_long(t *testing.T) {
	b := take(t, "calm")
	b.converged("only")
	b.enrol(map[string]any{"drain": map[string]any{"mode": "Evict"}})
	const node = "t4-0"
	b.user("bare", node, "pgpu")
	budgets, sets := b.Client.PolicyV1().PodDisruptionBudgets("default"), b.Client.AppsV1().ReplicaSets("default")
	guard := func(name, app string) (remove func()) {
		none := intstr.FromInt32(0)
		_, err := budgets.Create(b.ctx, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}, metav1.CreateOptions{})
		b.must(err)
		remove = func() { _ = budgets.Delete(context.Background(), name, metav1.DeleteOptions{}) }
		t.Cleanup(remove)
		return remove
	}
	apps := []string{"double", "free", "guarded"}
	for _, app := range apps {
		one, now, labels := int32(1), int64(0), map[string]string{"app": app}
		_, err := sets.Create(b.ctx, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: app}, Spec: appsv1.ReplicaSetSpec{
			Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: b.podOf(node, "pgpu")}}}, metav1.CreateOptions{})
		b.must(err)
		t.Cleanup(func() {
			_ = sets.Delete(context.Background(), app, metav1.DeleteOptions{GracePeriodSeconds: &now})
		})
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		ready := int32(0)
		for _, app := range apps {
			set, err := sets.Get(b.ctx, app, metav1.GetOptions{})
			b.must(err)
			ready += set.Status.ReadyReplicas
		}
		if ready == 3 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of the pods run", ready)
		}
	}
	allow := guard("guarded", "guarded")
	guard("double-1", "double")
	part := guard("double-2", "double")
	b.must(b.Ask(b.ctx, node, "vgpu"))
	b.until(node, 30*time.Second, func(s map[string]any) bool {
		text := fmt.Sprint(s["blockers"])
		return strings.Contains(text, "default/guarded-") && strings.Contains(text, "its PodDisruptionBudget") && strings.Contains(text, "default/bare (has no controller") &&
			strings.Contains(text, "default/double-") && strings.Contains(text, "more than one PodDisruptionBudget") && !strings.Contains(text, "default/free-")
	})
	allow()
	b.until(node, 30*time.Second, func(s map[string]any) bool {
		return !strings.Contains(fmt.Sprint(s["blockers"]), "guarded")
	})
	part()
	_ = budgets.Delete(b.ctx, "double-1", metav1.DeleteOptions{})
	b.forget("bare")
	b.must(b.Await(b.ctx, 40*time.Second))
}

// All nodes are relabelled at once: no more than maxUnavailable change at any instant, and all arrive.
func TestC61_many_nodes_at_once_and_never_more_than_allowed_long(t *testing.T) {
	b := take(t, "calm")
	count := form(24, 1000)
	allowed := form(3, 20)
	b.enrol(map[string]any{"maxUnavailable": allowed})
	_, err := b.Run("", "sim", "nodes", "--kubeconfig", b.Kubeconfig, "--profile", fmt.Sprintf("l40s=%d", count))
	b.must(err)
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("l40s-%d", i)
	}
	t.Cleanup(func() {
		for _, name := range names {
			delete(b.Expected.Nodes, name)
			_ = b.Client.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{})
		}
	})
	o := b.converged("only")
	w := b.witness(allowed)
	for _, mode := range []string{"pgpu", "vgpu"} {
		began := time.Now()
		for _, name := range names {
			b.must(b.Ask(b.ctx, name, mode))
		}
		before := len(o.Proxy.Since(began, kit.Writes))
		b.must(b.Await(b.ctx, form(2*time.Minute, 50*time.Minute)))
		b.clean(w.seen())
		b.rest(o, time.Second)
		writes := len(o.Proxy.Since(began, func(r *kit.Request) bool {
			return r.Write() && r.Resource != "events" && r.Resource != "acceleratorpolicies"
		}))
		t.Logf("%d nodes to %s, %d at once: %s, %.1f writes a node (%d before the last was asked)", count, mode, allowed, time.Since(began).Round(100*time.Millisecond), float64(writes)/float64(count), before)
		if most := 12.0; float64(writes)/float64(count) > most {
			t.Errorf("%.1f writes a node, at most %.0f are needed", float64(writes)/float64(count), most)
		}
	}
	if w.most < allowed {
		t.Errorf("only %d changed at once, %d were allowed: this proved nothing", w.most, allowed)
	}
}

// A node whose cards are all cut by MIG is up with its slices, and a pod on a slice holds its card.
func TestC61_a_pod_on_a_slice_of_a_card_is_waited_for_long(t *testing.T) {
	b := take(t, "calm")
	strategy := func(value any) error {
		body, _ := json.Marshal(map[string]any{"spec": map[string]any{"modules": map[string]any{"pgpu": map[string]any{"settings": value}}}})
		_, err := b.Dynamic.Resource(kit.Policies).Patch(context.Background(), "default", types.MergePatchType, body, metav1.PatchOptions{})
		return err
	}
	_, err := b.Run("", "sim", "nodes", "--kubeconfig", b.Kubeconfig, "--profile", "l40s=1")
	b.must(err)
	const node, slice = "l40s-0", "nvidia.com/mig-1g.10gb"
	_, err = b.Client.CoreV1().Nodes().Patch(b.ctx, node, types.MergePatchType, []byte(`{"metadata":{"labels":{"sim.quartermaster.io/mig":"1g.10gb"}}}`), metav1.PatchOptions{})
	b.must(err)
	t.Cleanup(func() {
		delete(b.Expected.Nodes, node)
		_ = b.Client.CoreV1().Nodes().Delete(context.Background(), node, metav1.DeleteOptions{})
		_ = strategy(nil)
	})
	b.must(strategy(map[string]any{"MIG_STRATEGY": "mixed"}))
	b.start("only")
	b.must(b.Ask(b.ctx, node, "pgpu"))
	s := b.until(node, 40*time.Second, inPhase("Ready"))
	if s["message"] != slice+" allocatable" {
		t.Errorf("it is ready because of %q", s["message"])
	}
	unit["slices"] = slice
	t.Cleanup(func() { delete(unit, "slices") })
	b.user("slice", node, "slices")
	b.must(b.Ask(b.ctx, node, "vgpu"))
	s = b.until(node, 20*time.Second, inPhase("Draining"))
	if got := fmt.Sprint(s["blockers"]); got != "[default/slice]" {
		t.Errorf("blockers are %s", got)
	}
	b.forget("slice")
	b.until(node, 40*time.Second, inPhase("Ready"))
}
