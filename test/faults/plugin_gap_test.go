package faults

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quartermaster.io/test/faults/kit"
)

// pluginOn is the plugin's pod on a node that is not being deleted; nil: none.
func (h *hall) pluginOn(node string) *corev1.Pod {
	h.t.Helper()
	pods, err := h.Client.CoreV1().Pods(kit.Namespace).List(h.ctx, metav1.ListOptions{LabelSelector: kit.ModuleLabel, FieldSelector: "spec.nodeName=" + node})
	h.must(err)
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp == nil {
			return &pods.Items[i]
		}
	}
	return nil
}

// A kubelet without a plugin rejects a pod for good, while its node's status still has what the plugin offered. So a pod that comes while the
// plugin is replaced waits, and is bound when the next plugin is ready.
func TestA_pod_that_comes_while_its_nodes_plugin_is_replaced_waits_for_the_next(t *testing.T) {
	h := holdHall(t, map[string]int{"vgpu/1": 1})
	ready := func(p *corev1.Pod) bool {
		if p == nil {
			return false
		}
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				return true
			}
		}
		return false
	}
	h.must(kit.Until(h.ctx, 30*time.Second, "the plugin is ready", func() (bool, error) { return ready(h.pluginOn("vgpu-0")), nil }))
	old := h.pluginOn("vgpu-0")
	plugins := h.Client.CoreV1().Pods(kit.Namespace)
	finalizers := func(text string) {
		_, err := plugins.Patch(h.ctx, old.Name, types.MergePatchType, []byte(fmt.Sprintf(`{"metadata":{"finalizers":%s}}`, text)), metav1.PatchOptions{})
		h.must(err)
	}
	finalizers(`["example.com/held"]`) // so that it is seen going
	h.must(plugins.Delete(h.ctx, old.Name, metav1.DeleteOptions{}))
	h.must(kit.Until(h.ctx, 10*time.Second, "the plugin is being deleted", func() (bool, error) {
		p, err := plugins.Get(h.ctx, old.Name, metav1.GetOptions{})
		return err == nil && p.DeletionTimestamp != nil, err
	}))
	probe := pod("probe", map[string]string{"tencent.com/vcuda-core": "20", "tencent.com/vcuda-memory": "8"})
	probe.UID = "5a1f0d0e-0000-4000-8000-000000000001"
	h.must(kit.Until(h.ctx, 10*time.Second, "the operator has seen it", func() (bool, error) {
		answer, err := h.direct.Filter(h.ctx, probe, []string{"vgpu-0"})
		return err == nil && (answer.NodeNames == nil || len(*answer.NodeNames) == 0), err
	}))
	h.create(pod("waits", map[string]string{"tencent.com/vcuda-core": "20", "tencent.com/vcuda-memory": "8"}))
	h.awaitReason("waits", "changes its mode or its device plugin", 20*time.Second)
	finalizers(`null`)
	h.awaitBound("waits", 30*time.Second)
	if next := h.pluginOn("vgpu-0"); next == nil || next.UID == old.UID {
		t.Error("it was bound before the next plugin came")
	}
}
