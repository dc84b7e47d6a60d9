package faults

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quartermaster.io/test/faults/kit"
)

const (
	labelled    = "labelled-0"
	labelRecord = "state.quartermaster.io/card-labels"
	gpuCount    = "nvidia.com/gpu.count"
	gpuProduct  = "nvidia.com/gpu.product"
	gpuMemory   = "nvidia.com/gpu.memory"
)

// labelledNode is a node that no discovery has labelled, with the object that its agent makes. It has no owner: the agent writes none, and the
// operator, who owns objects of nodes that ask for no mode, removes those.
func (b *bench) labelledNode() {
	b.t.Helper()
	nodes := b.Client.CoreV1().Nodes()
	_, err := nodes.Create(b.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: labelled, Labels: map[string]string{"example.com/team": "a"}}}, metav1.CreateOptions{})
	b.must(err)
	b.t.Cleanup(func() { _ = nodes.Delete(b.ctx, labelled, metav1.DeleteOptions{}) })
	body := fmt.Sprintf(`{"apiVersion": "quartermaster.io/v1alpha1", "kind": "AcceleratorNode", "metadata": {"name": %q}}`, labelled)
	_, err = b.Dynamic.Resource(kit.AccelNodes).Patch(b.ctx, labelled, types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: "quartermaster-agent"})
	b.must(err)
}

// reportT4 plays the agent of that node.
func (b *bench) reportT4(count int) {
	b.t.Helper()
	cards := []any{}
	for i := range count {
		cards = append(cards, map[string]any{"uuid": fmt.Sprintf("GPU-%d", i), "index": i, "model": "Tesla T4", "memoryMiB": 15360, "computeCapability": "7.5"})
	}
	body, err := json.Marshal(map[string]any{"status": map[string]any{"cards": cards, "driver": map[string]any{"version": "535.183.01", "cuda": "12.2", "boot": "b"}}})
	b.must(err)
	_, err = b.Dynamic.Resource(kit.AccelNodes).Patch(b.ctx, labelled, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "quartermaster-agent"}, "status")
	b.must(err)
}

func (b *bench) labelledNow() *corev1.Node {
	b.t.Helper()
	n, err := b.Client.CoreV1().Nodes().Get(b.ctx, labelled, metav1.GetOptions{})
	b.must(err)
	return n
}

// awaitLabels: the node says that of each key; an empty text: it has no such label.
func (b *bench) awaitLabels(wanted map[string]string) {
	b.t.Helper()
	b.eventuallySo(10*time.Second, func() string {
		n := b.labelledNow()
		for key, value := range wanted {
			if found, has := n.Labels[key]; found != value || has != (value != "") {
				return fmt.Sprintf("%s is %q, not %q; %v %v", key, found, value, n.Labels, n.Annotations)
			}
		}
		return ""
	})
}

// quiet: while someone renders the same again and again, nobody of ours writes to a Node.
func (b *bench) quiet(o *kit.Operator, again func()) {
	b.t.Helper()
	b.rest(o, time.Second)
	since := time.Now()
	for range 20 {
		again()
		time.Sleep(50 * time.Millisecond)
	}
	time.Sleep(500 * time.Millisecond)
	b.clean(kit.Silent(o.Proxy.Since(since, func(r *kit.Request) bool { return r.Write() && r.Resource == "nodes" })))
}

// applyLabel as a GitOps controller does, with force.
func (b *bench) applyLabel(key, value string) {
	b.t.Helper()
	force := true
	body := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": %q, "labels": {%q: %q}}}`, labelled, key, value)
	_, err := b.Client.CoreV1().Nodes().Patch(b.ctx, labelled, types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: "gitops", Force: &force})
	b.must(err)
}

func (b *bench) askForLabels(families ...string) {
	b.t.Helper()
	b.must(b.patchPolicy(map[string]any{"cardLabels": families}))
}

// S60: labels by which people select cards. They follow the agent's report, and a label that another field manager has is never written.
func TestS60_labels_of_cards_follow_the_report_and_leave_those_of_others(t *testing.T) {
	b := take(t, "calm")
	o := b.converged("labels")
	b.labelledNode()
	b.reportT4(2)
	b.applyLabel(gpuMemory, "by-gitops")
	before := b.labelledNow().Labels
	b.quiet(o, func() {})
	if now := b.labelledNow().Labels; !maps.Equal(before, now) {
		t.Errorf("without a word in the policy the labels are %v, and were %v", now, before)
	}

	b.askForLabels("GPUFeatureDiscovery", "ACK")
	b.awaitLabels(map[string]string{gpuProduct: "Tesla-T4", gpuCount: "2", gpuMemory: "by-gitops", "nvidia.com/gpu.family": "turing",
		"nvidia.com/cuda.driver-version.full": "535.183.01", "nvidia.com/cuda.runtime-version.full": "12.2", "aliyun.accelerator/nvidia_name": "Tesla-T4",
		"aliyun.accelerator/nvidia_mem": "15360MiB", "aliyun.accelerator/nvidia_count": "2", "gaia.tencent.com/gpu-model": ""})
	b.quiet(o, func() {
		b.applyLabel(gpuMemory, "by-gitops")
		b.askForLabels("GPUFeatureDiscovery", "ACK")
	})

	b.reportT4(1)
	b.awaitLabels(map[string]string{gpuCount: "1", "aliyun.accelerator/nvidia_count": "1"})

	// Another value of another owner, over ours; and one that someone takes away.
	b.applyLabel(gpuProduct, "theirs")
	b.must(b.PatchNode(b.ctx, labelled, map[string]any{"metadata": map[string]any{"labels": map[string]any{"nvidia.com/gpu.family": nil}}}))
	b.applyLabel(gpuProduct, "theirs")
	b.quiet(o, func() { b.askForLabels("ACK", "GPUFeatureDiscovery") })
	b.reportT4(2)
	b.awaitLabels(map[string]string{gpuCount: "2", "nvidia.com/gpu.family": "", gpuProduct: "theirs"})

	// The one who had it gives it up with all that it applies: ours may come back.
	_, err := b.Client.CoreV1().Nodes().Patch(b.ctx, labelled, types.ApplyPatchType,
		fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": %q}}`, labelled), metav1.PatchOptions{FieldManager: "gitops"})
	b.must(err)
	b.awaitLabels(map[string]string{gpuProduct: "Tesla-T4", gpuMemory: "15360"})

	b.reportT4(0)
	b.awaitLabels(map[string]string{gpuProduct: "", gpuCount: "", gpuMemory: "", "aliyun.accelerator/nvidia_name": "", "nvidia.com/cuda.driver.major": "", "example.com/team": "a"})
	b.quiet(o, func() {})
	b.nothingLeft(o)
}

// nothingLeft of the labels: neither the record nor a field owner.
func (b *bench) nothingLeft(o *kit.Operator) {
	b.t.Helper()
	n := b.labelledNow()
	if record, has := n.Annotations[labelRecord]; has {
		b.t.Errorf("the record is left: %q", record)
	}
	for _, entry := range n.ManagedFields {
		if entry.Manager == "quartermaster-card-labels" {
			b.t.Errorf("we still own %s", entry.FieldsV1.Raw)
		}
	}
}

// S55: GPU Feature Discovery comes later, by Node Feature Discovery, which writes no label that has its value already. Ours yield, no label is
// gone for a moment, and from then on no one but discovery writes them.
func TestS55_labels_of_cards_yield_to_feature_discovery_long(t *testing.T) {
	b := take(t, "calm")
	o := b.converged("labels")
	b.labelledNode()
	b.reportT4(2)
	b.askForLabels("GPUFeatureDiscovery", "ACK")
	b.awaitLabels(map[string]string{gpuProduct: "Tesla-T4", gpuCount: "2", gpuMemory: "15360", "aliyun.accelerator/nvidia_count": "2"})
	b.rest(o, time.Second)

	changes, err := b.Client.CoreV1().Nodes().Watch(b.ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + labelled, ResourceVersion: b.labelledNow().ResourceVersion})
	b.must(err)
	defer changes.Stop()
	// As nfd-master does it: the labels that differ, and the list of all.
	_, err = b.Client.CoreV1().Nodes().Patch(b.ctx, labelled, types.JSONPatchType, []byte(`[
		{"op": "add", "path": "/metadata/labels/nvidia.com~1gpu.mode", "value": "compute"},
		{"op": "add", "path": "/metadata/annotations/nfd.node.kubernetes.io~1feature-labels",
			"value": "cpu-cpuid.AVX,nvidia.com/gpu.count,nvidia.com/gpu.memory,nvidia.com/gpu.mode,nvidia.com/gpu.product"}]`), metav1.PatchOptions{FieldManager: "nfd-master"})
	b.must(err)
	b.eventuallySo(10*time.Second, func() string {
		if record := b.labelledNow().Annotations[labelRecord]; strings.Contains(record, "nvidia.com/") || record == "" {
			return "the record is " + record
		}
		return ""
	})
	b.reportT4(1)
	b.awaitLabels(map[string]string{"aliyun.accelerator/nvidia_count": "1", gpuCount: "2", gpuProduct: "Tesla-T4"})
	b.quiet(o, func() { b.askForLabels("GPUFeatureDiscovery", "ACK") })
	b.askForLabels()
	b.awaitLabels(map[string]string{"aliyun.accelerator/nvidia_count": "", gpuCount: "2", gpuMemory: "15360", gpuProduct: "Tesla-T4"})
	b.nothingLeft(o)
	seen := 0
	for open := true; open; {
		select {
		case change := <-changes.ResultChan():
			n, is := change.Object.(*corev1.Node)
			if open = is; !open {
				continue
			}
			seen++
			if n.Labels[gpuCount] == "" || n.Labels[gpuProduct] == "" || n.Labels[gpuMemory] == "" {
				t.Errorf("at version %s the labels are %v", n.ResourceVersion, n.Labels)
			}
		case <-time.After(time.Second):
			open = false
		}
	}
	if seen < 3 {
		t.Errorf("only %d changes of the node were seen: of discovery, of the hand-over, of the end", seen)
	}
	// Discovery is taken off the cluster with its labels, and ours may come back.
	remove := map[string]any{gpuCount: nil, gpuMemory: nil, gpuProduct: nil, "nvidia.com/gpu.mode": nil}
	b.must(b.PatchNode(b.ctx, labelled, map[string]any{"metadata": map[string]any{"labels": remove, "annotations": map[string]any{"nfd.node.kubernetes.io/feature-labels": nil}}}))
	b.askForLabels("GPUFeatureDiscovery")
	b.awaitLabels(map[string]string{gpuCount: "1", gpuMemory: "15360", gpuProduct: "Tesla-T4"})
}
