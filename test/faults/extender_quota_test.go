package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"quartermaster.io/test/faults/kit"
)

var quotas = schema.GroupVersionResource{Group: "quartermaster.io", Version: "v1alpha1", Resource: "acceleratorquotas"}

const limitedNs = "limited"

// limit makes namespace `limited` with one quota of cores, and takes both away when the test ends.
func (h *hall) limit(cores int64) {
	h.t.Helper()
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: limitedNs}}
	if _, err := h.Client.CoreV1().Namespaces().Create(h.ctx, space, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		h.must(err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "quartermaster.io/v1alpha1", "kind": "AcceleratorQuota", "metadata": map[string]any{"name": "q"},
		"spec": map[string]any{"hard": []any{map[string]any{"units": "cores", "max": cores}}}}}
	_ = h.Dynamic.Resource(quotas).Namespace(limitedNs).Delete(h.ctx, "q", metav1.DeleteOptions{})
	_, err := h.Dynamic.Resource(quotas).Namespace(limitedNs).Create(h.ctx, object, metav1.CreateOptions{})
	h.must(err)
	h.t.Cleanup(func() {
		now := int64(0)
		_ = h.Client.CoreV1().Pods(limitedNs).DeleteCollection(context.Background(), metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{})
	})
}

func (h *hall) highPriority() string {
	h.t.Helper()
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "extender-test-high"}, Value: 1000}
	if _, err := h.Client.SchedulingV1().PriorityClasses().Create(h.ctx, class, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		h.must(err)
	}
	return class.Name
}

// in the limited namespace
func limited(name string, limits map[string]string) *corev1.Pod {
	p := pod(name, limits)
	p.Namespace = limitedNs
	return p
}

func (h *hall) limitedPod(name string) *corev1.Pod {
	h.t.Helper()
	p, err := h.Client.CoreV1().Pods(limitedNs).Get(h.ctx, name, metav1.GetOptions{})
	h.must(err)
	return p
}

// eventually asks ten times a second.
func (h *hall) eventually(patience time.Duration, what string, is func() bool) {
	h.t.Helper()
	patience = kit.Patient(patience)
	for deadline := time.Now().Add(patience); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			h.must(fmt.Errorf("after %s: %s", patience, what))
		}
	}
}

// S14: a limit holds for its namespace and for no other. A pod that it forbids waits with the reason, whatever its priority, and no one has to leave for
// it: where all cards are taken kube-scheduler goes to preemption at once, and never asks filter.
func TestS14_nobody_leaves_for_a_pod_that_its_quota_forbids(t *testing.T) {
	if peer() {
		t.Skip("a program without quotas")
	}
	h := holdHall(t, map[string]int{"vgpu/1": 3})
	whole := map[string]string{"tencent.com/vcuda-core": "100"}
	h.limit(100)

	// Two namespaces, one limit, room for all.
	h.create(limited("first", whole))
	h.eventually(20*time.Second, "pod first is not bound", func() bool { return h.limitedPod("first").Spec.NodeName != "" })
	h.create(limited("second", whole))
	h.create(pod("foreign-0", whole))
	h.awaitBound("foreign-0", 20*time.Second)
	h.eventually(20*time.Second, "pod second is not told of the quota", func() bool {
		return strings.Contains(whyPending(h.limitedPod("second")), "the namespace's quota of cores is used up")
	})
	h.eventually(10*time.Second, "the quota does not say that it is enforced, and what is used", func() bool {
		q, err := h.Dynamic.Resource(quotas).Namespace(limitedNs).Get(h.ctx, "q", metav1.GetOptions{})
		h.must(err)
		summary, _, _ := unstructured.NestedString(q.Object, "status", "summary")
		conditions, _, _ := unstructured.NestedSlice(q.Object, "status", "conditions")
		return summary == "cores 100/100" && slices.ContainsFunc(conditions, func(one any) bool {
			c := one.(map[string]any)
			return c["type"] == "Enforced" && c["status"] == "True"
		})
	})
	now := int64(0)
	for _, name := range []string{"first", "second"} {
		h.must(h.Client.CoreV1().Pods(limitedNs).Delete(h.ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now}))
	}

	// Every card is taken by others, and a pod of high priority may use none.
	h.limit(0)
	for i := 1; i < 3; i++ {
		h.create(pod(fmt.Sprintf("foreign-%d", i), whole))
		h.awaitBound(fmt.Sprintf("foreign-%d", i), 20*time.Second)
	}
	high := h.highPriority()
	began := time.Now()
	forbidden := limited("forbidden", whole)
	forbidden.Spec.PriorityClassName = high
	h.create(forbidden)
	h.eventually(20*time.Second, "kube-scheduler did not ask about preemption", func() bool {
		return slices.ContainsFunc(h.tap.Calls(began), func(c kit.Call) bool { return c.Verb == "preempt" && c.Status == 200 })
	})
	for wait := form(10*time.Second, 2*time.Minute); time.Since(began) < wait; time.Sleep(250 * time.Millisecond) {
		for i := range 3 {
			if p := h.get(fmt.Sprintf("foreign-%d", i)); p.DeletionTimestamp != nil {
				t.Fatalf("after %s pod %s has to leave for a pod that may not run", time.Since(began), p.Name)
			}
		}
		if p := h.limitedPod("forbidden"); p.Spec.NodeName != "" {
			t.Fatalf("the forbidden pod is bound to %s", p.Spec.NodeName)
		}
	}
	h.eventually(10*time.Second, "pod forbidden has no event AcceleratorQuotaExceeded", func() bool {
		events, err := h.Client.CoreV1().Events(limitedNs).List(h.ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=forbidden,reason=AcceleratorQuotaExceeded"})
		h.must(err)
		return len(events.Items) > 0
	})

	// The same pod where the quota allows it: one of the others leaves.
	h.must(h.Client.CoreV1().Pods(limitedNs).Delete(h.ctx, "forbidden", metav1.DeleteOptions{GracePeriodSeconds: &now}))
	h.limit(100)
	allowed := limited("allowed", whole)
	allowed.Spec.PriorityClassName = high
	h.create(allowed)
	h.eventually(30*time.Second, "the allowed pod is not bound", func() bool { return h.limitedPod("allowed").Spec.NodeName != "" })
	if bound, _ := h.boundOf("foreign-"); len(bound) != 2 {
		t.Errorf("one of three had to leave, and %v are left", bound)
	}
}

// S14: what others hold in addition to cards counts in preemption: victims that kube-scheduler chose for CPU and ports go with those that hold cards, and the pod
// runs in the end.
func TestS14_preemption_for_CPU_ports_and_cards_ends_with_the_pod_running(t *testing.T) {
	h := holdHall(t, map[string]int{"vgpu/1": 1})
	high := h.highPriority()
	cpu := func(name string) *corev1.Pod { return pod(name, map[string]string{"cpu": "400"}) }
	share := func(name, cores, cpus string) *corev1.Pod {
		return pod(name, map[string]string{"tencent.com/vcuda-core": cores, "tencent.com/vcuda-memory": "8", "cpu": cpus})
	}
	onPort := func(p *corev1.Pod) *corev1.Pod {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080, HostPort: 8080}}
		return p
	}
	low := func(pods ...*corev1.Pod) {
		for _, p := range pods {
			h.create(p)
			h.awaitBound(p.Name, 20*time.Second)
		}
	}
	gone := func(names ...string) {
		for _, name := range names {
			if _, err := h.Client.CoreV1().Pods(podsIn).Get(h.ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("pod %s had to leave and is there: %v", name, err)
			}
		}
	}
	run := func(p *corev1.Pod) {
		p.Spec.PriorityClassName = high
		h.create(p)
		h.awaitBound(p.Name, 30*time.Second)
	}
	// The card is free, its node's CPU is not.
	low(cpu("low-cpu"))
	run(share("high", "60", "300"))
	gone("low-cpu")
	h.remove("high")
	// Each of three is in the way for another reason.
	low(share("low-card", "60", "1"), cpu("low-cpu"), onPort(pod("low-port", map[string]string{"cpu": "1"})))
	run(onPort(share("high-too", "60", "300")))
	gone("low-card", "low-cpu", "low-port")
}

// S14: a victim takes its time to end. Until the pod it left for is bound, its card is that pod's: a pod of lower priority that fits by kube-scheduler's own
// sums would take the card, and the first would be without one although someone was evicted for it. kube-scheduler tries the rival while the first
// pod is in its back-off, which is long here. It also takes pods out of the back-off when it has no others, and then asks about no rival: the scene
// is played again until it has.
func TestS14_a_card_that_was_emptied_for_a_pod_goes_to_no_rival(t *testing.T) {
	h := emptyHall(t, map[string]int{"vgpu/2": 1})
	h.backoff = 5
	h.open(h.proxy("first"))
	seen := false
	for scene := 0; scene < 60 && !seen; scene++ {
		seen = h.emptyForOne(scene)
	}
	if !seen {
		t.Error("kube-scheduler asked about no rival between the victim's end and the first pod's Binding: nothing was shown")
	}
}

// S14: the same where the operator sees late what happens to pods. kube-scheduler knows first that the victim has gone, asks about the pod, and
// would forget the nomination if it were refused.
func TestS14_a_card_that_was_emptied_goes_to_no_rival_while_the_operator_sees_late_long(t *testing.T) {
	h := emptyHall(t, map[string]int{"vgpu/2": 1})
	p := h.proxy("late")
	p.Use(kit.Rule{Match: podWatches, Lag: 100 * time.Millisecond})
	h.open(p)
	for scene := range 3 {
		h.emptyForOne(scene)
	}
}

// emptyForOne plays a scene: a pod leaves, slowly, for one of higher priority, and rivals come meanwhile. Whether a rival was refused because of
// the nomination.
func (h *hall) emptyForOne(scene int) bool {
	h.t.Helper()
	const hold, kept = "quartermaster.io/test-hold", "kept for a pod that is nominated"
	share := func(name, cores, priority string) *corev1.Pod {
		p := pod(name, map[string]string{"tencent.com/vcuda-core": cores, "tencent.com/vcuda-memory": "8"})
		p.Spec.PriorityClassName = priority
		return p
	}
	high := h.highPriority()
	low := share(fmt.Sprint("low-", scene), "80", "")
	low.Finalizers = []string{hold}
	h.create(low)
	h.awaitBound(low.Name, 20*time.Second)
	beside, first := fmt.Sprint("beside-", scene), fmt.Sprint("first-", scene)
	h.create(share(beside, "50", high))
	h.awaitBound(beside, 20*time.Second)
	h.create(share(first, "80", high))
	h.eventually(20*time.Second, first+" is nominated to no node", func() bool { return h.get(first).Status.NominatedNodeName != "" })
	rivals := []string{fmt.Sprint("rival-early-", scene), fmt.Sprint("rival-late-", scene)}
	h.create(share(rivals[0], "60", ""))
	_, err := h.Client.CoreV1().Pods(podsIn).Patch(h.ctx, low.Name, types.JSONPatchType, []byte(`[{"op":"remove","path":"/metadata/finalizers"}]`), metav1.PatchOptions{})
	h.must(err)
	emptied := time.Now()
	h.create(share(rivals[1], "60", ""))
	h.awaitBound(first, 30*time.Second)
	for _, name := range rivals {
		if at := h.get(name).Spec.NodeName; at != "" {
			h.t.Errorf("pod %s has a card on %s: pod %s had to leave for %s", name, at, low.Name, first)
		}
	}
	seen := slices.ContainsFunc(h.tap.Calls(emptied), func(c kit.Call) bool {
		return c.Verb == "filter" && slices.Contains(rivals, c.Name) && strings.Contains(c.Reason, kept)
	})
	for _, name := range append(rivals, beside, first) {
		h.remove(name)
	}
	h.eventually(20*time.Second, "the pods of a scene are still there", func() bool { bound, waiting := h.boundOf(""); return len(bound)+waiting == 0 })
	return seen
}
