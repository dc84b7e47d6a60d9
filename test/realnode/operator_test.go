package realnode

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"quartermaster.io/test/faults/kit"
)

const (
	gpu       = "nvidia.com/gpu"
	placement = "quartermaster.io/placement"
)

// product is the kit's, whose extender is asked through a tap.
type product struct {
	*kit.Product
	t   *testing.T
	tap *kit.Tap
}

func install(t *testing.T, c *kit.Cluster, values ...string) *product {
	t.Helper()
	p := &product{t: t, Product: kit.StartProduct(ctx, t, c, policyWith(map[string]any{"mode": "None"}), values...)}
	var err error
	p.tap, err = kit.NewTap(p.Keys)
	must(t, err)
	t.Cleanup(p.tap.Close)
	p.tap.To(p.Address)
	return p
}

// policyWith a scheduler, in addition to the module pgpu with a plugin that does nothing but wait.
func policyWith(scheduler map[string]any) map[string]any {
	return map[string]any{"scheduler": scheduler, "customResources": map[string]any{"publish": false},
		"modules": map[string]any{"pgpu": map[string]any{"enabled": true, "image": pause}}}
}

// scheduler is what the policy says of it.
func (p *product) scheduler(spec map[string]any) {
	p.t.Helper()
	p.Apply(ctx, policyWith(spec))
}

// cards: real-1 becomes a node of pgpu and offers eight, written for the plugin. Its kubelet leaves them as they are and looks for none.
func (p *product) cards() {
	p.t.Helper()
	offers := func(cards string) {
		amounts := map[string]any{gpu: cards}
		p.patch(map[string]any{"status": map[string]any{"capacity": amounts, "allocatable": amounts}}, "status")
	}
	offers("0")
	p.patch(map[string]any{"spec": map[string]any{"taints": []any{}}}) // of the control plane, which a plugin does not tolerate
	p.patch(map[string]any{"metadata": map[string]any{"labels": map[string]any{kit.AskLabel: "pgpu", "nvidia.com/gpu.product": "Tesla-T4",
		"nvidia.com/gpu.count": "8", "nvidia.com/gpu.memory": "15360"}}})
	await(p.t, 60*time.Second, real1+" has the plugin", func() (bool, error) {
		pods, err := p.Client.CoreV1().Pods(kit.Namespace).List(ctx, metav1.ListOptions{LabelSelector: kit.ModuleLabel + "=pgpu", FieldSelector: "status.phase=Running"})
		return err == nil && len(pods.Items) == 1, err
	})
	offers("8")
	p.AwaitPhase(ctx, 60*time.Second, real1, "", "Ready")
}

// patch the real node.
func (p *product) patch(what map[string]any, subresources ...string) {
	p.t.Helper()
	body, err := (&unstructured.Unstructured{Object: what}).MarshalJSON()
	must(p.t, err)
	_, err = p.Client.CoreV1().Nodes().Patch(ctx, real1, types.MergePatchType, body, metav1.PatchOptions{}, subresources...)
	must(p.t, err)
}

// asksFor a card.
func asksFor(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{gpu: resource.MustParse("1")}
	return pod
}

// places a pod with a card on real-1, where it computes; by the extender or without it.
func (p *product) places(name string, byExtender bool) {
	p.t.Helper()
	since, pod := time.Now(), asksFor(adding(name, ""))
	create(p.t, p.Cluster, pod)
	computes(p.t, p.Cluster, pod)
	is, err := p.Client.CoreV1().Pods(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	must(p.t, err)
	asked := map[string]bool{}
	for _, call := range p.tap.Calls(since) {
		asked[call.Verb] = asked[call.Verb] || call.Name == name && call.Status == 200 && call.Error == ""
	}
	if said := is.Annotations[placement]; asked["filter"] != byExtender || asked["bind"] != byExtender || (said != "") != byExtender {
		p.t.Errorf("%s: the extender was asked %v, the placement is %q", name, asked, said)
	}
}
