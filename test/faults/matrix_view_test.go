package faults

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"quartermaster.io/test/faults/kit"
)

type view struct {
	r       *round
	nodes   map[string]*corev1.Node
	status  map[string]*unstructured.Unstructured
	plugins map[string][]*corev1.Pod
	users   map[string]*corev1.Pod
}

func (r *round) look() *view {
	v := &view{r: r, nodes: map[string]*corev1.Node{}, status: map[string]*unstructured.Unstructured{}, plugins: map[string][]*corev1.Pod{}, users: map[string]*corev1.Pod{}}
	all := metav1.ListOptions{ResourceVersion: "0"}
	objects, err := r.Dynamic.Resource(kit.AccelNodes).List(r.ctx, all)
	r.must(err)
	for i := range objects.Items {
		v.status[objects.Items[i].GetName()] = &objects.Items[i]
	}
	pods, err := r.Client.CoreV1().Pods("").List(r.ctx, all)
	r.must(err)
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Namespace == kit.Namespace && p.Labels[kit.ModuleLabel] != "" {
			v.plugins[p.Spec.NodeName] = append(v.plugins[p.Spec.NodeName], p)
		} else {
			v.users[p.Name] = p
		}
	}
	nodes, err := r.Client.CoreV1().Nodes().List(r.ctx, all)
	r.must(err)
	for i := range nodes.Items {
		v.nodes[nodes.Items[i].Name] = &nodes.Items[i]
	}
	return v
}

func (v *view) of(c *cell) (status map[string]any, phase string) {
	if o := v.status[c.node]; o != nil {
		status, _, _ = unstructured.NestedMap(o.Object, "status")
		phase, _ = status["phase"].(string)
	}
	return
}

// check says what keeps a cell from being at its end.
func (v *view) check(c *cell) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, c.node+": "+fmt.Sprintf(format, args...)) }
	want, node, object := c.end(), v.nodes[c.node], v.status[c.node]
	status, phase := v.of(c)
	if want.gone {
		if node != nil || object != nil {
			say("not gone: %v", status)
		}
		return
	}
	if node == nil {
		say("there is no such node")
		return
	}
	tainted := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == kit.SwitchingTaint })
	reason, _ := status["reason"].(string)
	message, _ := status["message"].(string)
	switch {
	case phase != want.phase || tainted != want.tainted || node.Labels[kit.ModuleLabel] != want.label:
		say("phase %q, module label %q, tainted: %v; want %q, %q, %v: %v", phase, node.Labels[kit.ModuleLabel], tainted, want.phase, want.label, want.tainted, status)
	case want.phase == "" && object != nil:
		say("an AcceleratorNode is left: %v", status)
	case want.phase != "" && (status["actualMode"] != want.actual || status["requestedMode"] != named(c.asks()) || !slices.Contains(want.reasons, reason) || message == ""):
		say("actual mode %v, reason %v, want %s and one of %v: %v", status["actualMode"], reason, want.actual, want.reasons, status)
	case want.phase == "RolledBack" && (!strings.Contains(message, "goes back to") || !strings.Contains(message, "tried again when")):
		say("the message does not say what becomes of it: %s", message)
	case want.phase == "Stuck" && !slices.ContainsFunc([]string{"look at", "start", "end ", "remove", "see its"}, func(s string) bool { return strings.Contains(message, s) }):
		say("the message names no remedy: %s", message)
	}
	if object != nil && !slices.ContainsFunc(object.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.Kind == "Node" && o.UID == node.UID }) {
		say("its AcceleratorNode is of another node")
	}
	for _, p := range v.plugins[c.node] {
		ready := slices.ContainsFunc(p.Status.Conditions, func(x corev1.PodCondition) bool {
			return x.Type == corev1.PodReady && x.Status == corev1.ConditionTrue
		})
		if p.Labels[kit.ModuleLabel] != want.plugin || ready != want.ready {
			say("plugin pod of %s, ready: %v; want %q, %v", p.Labels[kit.ModuleLabel], ready, want.plugin, want.ready)
		}
	}
	if n := len(v.plugins[c.node]); (n > 0) != (want.plugin != "") || n > 1 {
		say("%d plugin pods, want one of %q", n, want.plugin)
	}
	// What is not ours, as it was.
	if node.Annotations[foreignNote] != c.node || !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == foreignNote && t.Value == "ours" }) ||
		node.Labels[kit.AskLabel] != c.asks() {
		say("O6 someone else's note, taint or label was changed: %v %v %v", node.Annotations, node.Spec.Taints, node.Labels[kit.AskLabel])
	}
	v.r.mu.Lock()
	pod, ended := c.pod, c.ended
	v.r.mu.Unlock()
	if pod != "" && !ended {
		if p := v.users[pod]; p == nil || p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning {
			say("its pod is not there any more, though no one ended it")
		}
	}
	return
}

// waits: a cell that waits for what will not come, and says so.
func (v *view) waits(c *cell) bool {
	status, phase := v.of(c)
	switch c.fault {
	case kept:
		return phase == "Draining" && strings.Contains(fmt.Sprint(status["blockers"]), "default/"+c.pod)
	case unready, absent, stuck:
		return phase == "Verifying"
	case lingering:
		return phase == "Removing" && status["reason"] == "PluginLeaving"
	}
	return false
}

func (r *round) wait(what string, patience time.Duration, wrong func(*view) []string) {
	r.t.Helper()
	patience = kit.Patient(patience)
	for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		left := wrong(r.look())
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			r.must(fmt.Errorf("%s: after %s still\n  %s", what, patience, strings.Join(left[:min(len(left), 12)], "\n  ")))
		}
	}
}
