package faults

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"quartermaster.io/test/faults/kit"
)

var loud = regexp.MustCompile(`(?i)403|forbidden`)

func (b *bench) managed(name string) *appsv1.DaemonSet {
	b.t.Helper()
	list, err := b.Client.AppsV1().DaemonSets("").List(b.ctx, metav1.ListOptions{LabelSelector: kit.ManagedBy, FieldSelector: "metadata.name=" + name})
	b.must(err)
	if len(list.Items) != 1 {
		b.t.Fatalf("%d DaemonSets %s", len(list.Items), name)
	}
	return &list.Items[0]
}

// F25: people delete and edit what we own. Back within 5 s; what they added to our fields stays (O6).
func TestF25_owned_objects_deleted_and_edited(t *testing.T) {
	b := take(t, "calm")
	o := b.converged("owner")
	name := kit.DaemonSetOf["pgpu"]
	ours := b.managed(name)
	sets := b.Client.AppsV1().DaemonSets(ours.Namespace)
	wanted := ours.Spec.Template.Spec.Containers[0].Image
	edit := func(patch string) {
		_, err := sets.Patch(b.ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"})
		b.must(err)
	}
	vandalism := []struct {
		what string
		do   func()
		good func() bool
	}{
		{"a DaemonSet deleted", func() { b.must(sets.Delete(b.ctx, name, metav1.DeleteOptions{})) }, func() bool {
			d, err := sets.Get(b.ctx, name, metav1.GetOptions{})
			return err == nil && d.UID != ours.UID
		}},
		{"its image changed", func() {
			edit(fmt.Sprintf(`{"metadata":{"annotations":{"team.example.com/note":"ours"}},"spec":{"template":{"spec":{"containers":[{"name":%q,"image":"evil:1"}]}}}}`,
				ours.Spec.Template.Spec.Containers[0].Name))
		}, func() bool {
			d, err := sets.Get(b.ctx, name, metav1.GetOptions{})
			return err == nil && d.Spec.Template.Spec.Containers[0].Image == wanted
		}},
		{"its node selector removed", func() { edit(`{"spec":{"template":{"spec":{"nodeSelector":null}}}}`) }, func() bool {
			d, err := sets.Get(b.ctx, name, metav1.GetOptions{})
			return err == nil && len(d.Spec.Template.Spec.NodeSelector) > 0
		}},
		{"the module label removed from a node", func() {
			b.must(b.PatchNode(b.ctx, "t4-0", map[string]any{"metadata": map[string]any{"labels": map[string]any{kit.ModuleLabel: nil}}}))
		}, func() bool { return b.nodeLabel("t4-0", kit.ModuleLabel) == "pgpu" }},
		{"the module label changed by hand", func() {
			b.must(b.PatchNode(b.ctx, "t4-0", map[string]any{"metadata": map[string]any{"labels": map[string]any{kit.ModuleLabel: "mps"}}}))
		}, func() bool { return b.nodeLabel("t4-0", kit.ModuleLabel) == "pgpu" }},
		{"an AcceleratorNode deleted", func() { b.must(b.Dynamic.Resource(kit.AccelNodes).Delete(b.ctx, "t4-0", metav1.DeleteOptions{})) }, func() bool {
			_, err := b.Dynamic.Resource(kit.AccelNodes).Get(b.ctx, "t4-0", metav1.GetOptions{})
			return err == nil
		}},
		{"a verdict removed", func() {
			body, _ := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{kit.VerdictKey: nil, "team.example.com/note": "ours"}}})
			_, err := b.Client.CoreV1().ConfigMaps("kube-public").Patch(b.ctx, "cf-crl-nvidia-gpu", types.MergePatchType, body, metav1.PatchOptions{})
			b.must(err)
		}, func() bool {
			cm, err := b.Client.CoreV1().ConfigMaps("kube-public").Get(b.ctx, "cf-crl-nvidia-gpu", metav1.GetOptions{})
			return err == nil && cm.Annotations[kit.VerdictKey] != "" && cm.Annotations["team.example.com/note"] == "ours"
		}},
	}
	for _, v := range vandalism {
		began := time.Now()
		v.do()
		for !v.good() {
			if time.Since(began) > 5*time.Second {
				t.Errorf("%s: not restored after 5 s", v.what)
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Logf("%-40s restored after %s", v.what, time.Since(began).Round(10*time.Millisecond))
		b.must(wrap(b.Await(b.ctx, 30*time.Second), "%s", v.what))
	}
	if note := b.managed(name).Annotations["team.example.com/note"]; note != "ours" {
		t.Errorf("O6 an annotation of others is gone from the DaemonSet: %q", note)
	}
	b.stable(o, 10*time.Second, time.Second)
}

func (b *bench) nodeLabel(node, key string) string {
	n, err := b.Client.CoreV1().Nodes().Get(b.ctx, node, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	return n.Labels[key]
}

// F24: a second writer changes our DaemonSet every 50 ms: first another field, then one of our fields. No livelock, their field kept.
func TestF24_conflicting_writer_long(t *testing.T) {
	b := take(t, "calm")
	o := b.converged("rival")
	d := b.managed(kit.DaemonSetOf["vgpu"])
	sets, since, count := b.Client.AppsV1().DaemonSets(d.Namespace), time.Now(), 0
	for end := time.Now().Add(form(5*time.Second, time.Minute)); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		count++
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"rival.example.com/count":"%d"}}}`, count)
		_, err := sets.Patch(b.ctx, d.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "rival"})
		b.must(err)
	}
	writes := o.Proxy.Since(since, func(r *kit.Request) bool { return r.Write() && r.Resource == "daemonsets" })
	if allowed := int(time.Since(since)/time.Second)*2 + 2; len(writes) > allowed {
		t.Errorf("%d writes against a rival who touched none of our fields, allowed %d", len(writes), allowed)
	}
	since = time.Now()
	edits := form(5*time.Second, time.Minute)
	for end := time.Now().Add(edits); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":%q,"image":"rival:%d"}]}}}}`, d.Spec.Template.Spec.Containers[0].Name, time.Now().UnixMilli())
		_, err := sets.Patch(b.ctx, d.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "rival"})
		b.must(err)
	}
	writes = o.Proxy.Since(since, func(r *kit.Request) bool { return r.Write() && r.Resource == "daemonsets" })
	t.Logf("%d writes in %s against a rival who edits our image 20 times a second", len(writes), edits)
	if rate := float64(len(writes)) / edits.Seconds(); rate > 3 {
		t.Errorf("%.1f writes a second; ours is to put it back twice a second at most", rate)
	}
	b.must(b.Await(b.ctx, 30*time.Second))
	if got := b.managed(d.Name).Annotations["rival.example.com/count"]; got != fmt.Sprint(count) {
		t.Errorf("O6 the rival's own annotation is %q, want %d", got, count)
	}
	ours := func() bool {
		return !strings.HasPrefix(b.managed(d.Name).Spec.Template.Spec.Containers[0].Image, "rival")
	}
	for end := time.Now().Add(10 * time.Second); !ours() && time.Now().Before(end); time.Sleep(100 * time.Millisecond) { // it is put back twice a second at most
	}
	if !ours() {
		t.Error("the rival's image stayed")
	}
	b.stable(o, 10*time.Second, time.Second)
}
