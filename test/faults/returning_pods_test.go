package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quartermaster.io/test/faults/kit"
)

// tolerant deploys pods that tolerate every taint, as charts of GPU software have them, and waits until they run.
func (b *bench) tolerant(name string, replicas int32, spec corev1.PodSpec) {
	b.t.Helper()
	spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	labels := map[string]string{"app": name}
	deployments := b.Client.AppsV1().Deployments(podsIn)
	_, err := deployments.Create(b.ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}}}, metav1.CreateOptions{})
	b.must(err)
	b.t.Cleanup(func() {
		ctx, foreground := context.Background(), metav1.DeletePropagationForeground
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
			if err := deployments.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &foreground}); apierrors.IsNotFound(err) {
				return
			}
		}
	})
	b.runs(name, replicas)
}

// runs waits until so many pods of a Deployment run.
func (b *bench) runs(name string, replicas int32) {
	b.t.Helper()
	b.must(kit.Until(b.ctx, 60*time.Second, "the pods of "+name+" to run", func() (bool, error) {
		now, err := b.Client.AppsV1().Deployments(podsIn).Get(b.ctx, name, metav1.GetOptions{})
		return err == nil && now.Status.ReadyReplicas == replicas, err
	}))
}

// evictions that the API server has granted since then.
func (b *bench) evictions(since time.Time) []kit.AuditEvent {
	b.t.Helper()
	out, err := b.Audit(since, func(e kit.AuditEvent) bool {
		return e.Verb == "create" && e.ObjectRef.Resource == "pods" && e.ObjectRef.Subresource == "eviction" && e.ResponseStatus.Code == 201
	})
	b.must(err)
	return out
}

// advertise is what a kubelet does when device plugins go and come.
func (b *bench) advertise(node string, amounts map[string]any) {
	b.t.Helper()
	body, err := json.Marshal(map[string]any{"status": map[string]any{"capacity": amounts, "allocatable": amounts}})
	b.must(err)
	_, err = b.Client.CoreV1().Nodes().Patch(b.ctx, node, types.MergePatchType, body, metav1.PatchOptions{}, "status")
	b.must(err)
}

// leftOldMode: the node has no mode any more. Removing may be over before anyone looks: what the old plugin advertised is waited for in Enrolling.
func leftOldMode(s map[string]any) bool { return s["phase"] == "Removing" || s["phase"] == "Enrolling" }

// Three pods that tolerate everything hold cards of a node whose label changes, and pods are evicted. kube-scheduler would put each successor on
// the same node, because it tolerates the taint; the extender refuses, so there is one eviction per pod, and the change ends.
func TestS58_pods_that_tolerate_everything_do_not_come_back_to_a_node_that_changes_its_mode(t *testing.T) {
	h := holdHall(t, map[string]int{"vgpu": 1, "pgpu": 1})
	h.enrol(map[string]any{"drain": map[string]any{"mode": "Evict"}})
	const node = "vgpu-0"
	spec := pod("", map[string]string{"tencent.com/vcuda-core": "20", "tencent.com/vcuda-memory": "8"}).Spec
	h.tolerant("trainer", 3, spec)
	began := time.Now()
	h.must(h.Ask(h.ctx, node, "pgpu"))
	h.until(node, 20*time.Second, leftOldMode)
	var list *corev1.PodList
	h.must(kit.Until(h.ctx, 20*time.Second, "three pods without a node", func() (out bool, err error) {
		list, err = h.Client.CoreV1().Pods(podsIn).List(h.ctx, metav1.ListOptions{LabelSelector: "app=trainer"})
		return err == nil && len(list.Items) == 3 && !slices.ContainsFunc(list.Items, func(pod corev1.Pod) bool { return pod.Spec.NodeName != "" }), err
	}))
	for _, successor := range list.Items {
		h.awaitReason(successor.Name, "1 node changes its mode or its device plugin", 15*time.Second)
	}
	time.Sleep(3 * time.Second) // in which there were 30 evictions
	if count := len(h.evictions(began)); count != 3 {
		t.Errorf("three pods were evicted %d times", count)
	}
	h.advertise(node, map[string]any{"tencent.com/vcuda-core": nil, "tencent.com/vcuda-memory": nil})
	h.until(node, 20*time.Second, inPhase("Verifying"))
	h.advertise(node, map[string]any{"nvidia.com/gpu": fmt.Sprint(eight)})
	if s := h.until(node, 20*time.Second, inPhase("Ready")); s["actualMode"] != "pgpu" {
		t.Errorf("the change ended with %v", s)
	}
}

// Ten minutes of changes of one node between two modes, with pods of both that tolerate everything and are wanted all the time: each pod is
// evicted at most once, and each change ends.
func TestS58_ten_minutes_of_changes_with_pods_that_tolerate_everything_long(t *testing.T) {
	h := emptyHallIn(t, "extender", form(15*time.Minute, time.Hour), map[string]int{"vgpu": 1, "pgpu": 1}) // its book is of nodes that keep their modes
	first := h.proxy("first")
	h.open(first)
	h.enrol(map[string]any{"drain": map[string]any{"mode": "Evict"}})
	const node = "vgpu-0"
	offers := map[string]map[string]any{"vgpu": {"tencent.com/vcuda-core": "400", "tencent.com/vcuda-memory": "200", "nvidia.com/gpu": nil},
		"pgpu": {"nvidia.com/gpu": fmt.Sprint(eight), "tencent.com/vcuda-core": nil, "tencent.com/vcuda-memory": nil}}
	nothing := map[string]any{"tencent.com/vcuda-core": nil, "tencent.com/vcuda-memory": nil, "nvidia.com/gpu": nil}
	h.tolerant("vgpu", 3, pod("", map[string]string{"tencent.com/vcuda-core": "20", "tencent.com/vcuda-memory": "8"}).Spec)
	whole := pod("", map[string]string{"nvidia.com/gpu": "1"}).Spec
	whole.NodeSelector = map[string]string{"kubernetes.io/hostname": node}
	began, modes, changes := time.Now(), []string{"pgpu", "vgpu"}, 0
	for ; time.Since(began) < 10*time.Minute; changes++ {
		mode := modes[changes%2]
		h.must(h.Ask(h.ctx, node, mode))
		h.until(node, 30*time.Second, leftOldMode)
		// KWOK, which writes the node's status as well, may bring back what it had.
		becomes := func(phase string, amounts map[string]any) map[string]any {
			return h.until(node, 30*time.Second, func(s map[string]any) bool {
				if s["phase"] != phase {
					h.advertise(node, amounts)
				}
				return s["phase"] == phase
			})
		}
		becomes("Verifying", nothing)
		if s := becomes("Ready", offers[mode]); s["actualMode"] != mode {
			t.Fatalf("change %d ended with %v", changes, s)
		}
		if changes == 0 {
			h.tolerant("pgpu", 3, whole)
		}
		h.runs(mode, 3)
	}
	evicted, wrong := kit.EvictionsByUID(first.Since(began, nil))
	for _, text := range wrong {
		t.Error(text)
	}
	twice, all := 0, 0
	for uid, count := range evicted {
		all += count
		if count > 1 {
			twice++
			t.Errorf("the pod with UID %s was evicted %d times:%s", uid, count, evictionsOf(first, uid))
		}
	}
	if len(evicted) < 3*(changes-1) {
		t.Errorf("%d pods were evicted in %d changes", len(evicted), changes)
	}
	if granted := len(h.evictions(began)); granted != all {
		t.Errorf("the API server has granted %d evictions, and the operator sent %d of them", granted, all)
	}
	t.Logf("%d changes in %s, %d pods evicted by %d evictions, %d of them more than once", changes, time.Since(began).Round(time.Second), len(evicted), all, twice)
}

// evictionsOf a pod, a line each, with what was answered.
func evictionsOf(p *kit.Proxy, uid types.UID) (out string) {
	for _, entry := range p.Since(time.Time{}, func(r *kit.Request) bool {
		return r.Subresource == "eviction" && strings.Contains(string(r.Body), string(uid))
	}) {
		out += "\n\t" + entry.String()
	}
	return out
}

// The same where no kube-scheduler asks the extender: the pods come back, are evicted less and less often, and their owner is named.
func TestC62_pods_that_come_back_are_evicted_less_and_less_often_long(t *testing.T) {
	b := take(t, "calm")
	b.converged("only")
	b.enrol(map[string]any{"drain": map[string]any{"mode": "Evict"}})
	const node = "t4-0"
	b.tolerant("trainer", 3, b.podOf(node, "pgpu"))
	began := time.Now()
	b.must(b.Ask(b.ctx, node, "vgpu"))
	b.until(node, 20*time.Second, func(s map[string]any) bool {
		text := fmt.Sprint(s["blockers"])
		return s["phase"] == "Draining" && strings.Contains(text, "(ReplicaSet trainer-") && strings.Contains(text, "puts its pods back here after each eviction")
	})
	time.Sleep(time.Until(began.Add(25 * time.Second)))
	if count := len(b.evictions(began)); count < 6 || count > 9 {
		t.Errorf("in 25 s there were %d evictions of three pods at a time, want 6, or 9 on a slow machine", count)
	}
	none, err := json.Marshal(map[string]any{"spec": map[string]any{"replicas": 0}})
	b.must(err)
	_, err = b.Client.AppsV1().Deployments(podsIn).Patch(b.ctx, "trainer", types.MergePatchType, none, metav1.PatchOptions{})
	b.must(err)
	b.must(b.Await(b.ctx, 60*time.Second))
}
