package placements

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const policyName = "placements.quartermaster.io"

// given is what the operator writes in a Binding, of every vocabulary at once.
var given = map[string]string{
	"quartermaster.io/placement":            `{"v":1,"node":"gpu-1","source":"planned","containers":{"main":[{"card":"gpu-1/0","cores":20,"memoryMiB":2048}]}}`,
	"quartermaster.io/isolation":            "soft",
	"tencent.com/predicate-time":            "1700000000000000000",
	"tencent.com/predicate-node":            "gpu-1",
	"tencent.com/predicate-gpu-idx-0":       "0",
	"tencent.com/gpu-assigned":              "false",
	"hami.io/vgpu-node":                     "gpu-1",
	"hami.io/vgpu-time":                     "1700000000",
	"hami.io/vgpu-devices-to-allocate":      "GPU-1,NVIDIA,2048,20:;",
	"hami.io/vgpu-devices-allocated":        "GPU-1,NVIDIA,2048,20:;",
	"hami.io/bind-time":                     "1700000000",
	"hami.io/bind-phase":                    "allocating",
	"ALIYUN_COM_GPU_MEM_IDX":                "0",
	"ALIYUN_COM_GPU_MEM_POD":                "2",
	"ALIYUN_COM_GPU_MEM_DEV":                "15",
	"ALIYUN_COM_GPU_MEM_ASSIGNED":           "false",
	"ALIYUN_COM_GPU_MEM_ASSUME_TIME":        "1700000000000000000",
	"example.com/note":                      "theirs",
	"scheduling.example.com/not-guarded-by": "anybody",
}

// What of it is guarded, and one more: it is only on pods that wait.
func guarded() (out []string) {
	for key := range given {
		if !strings.Contains(key, "example.com") {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return append(out, "state.quartermaster.io/room-since")
}

// cast is who appears, and the pods they write.
type cast struct {
	*stage
	people map[string]who
	// bound to gpu-1 with everything given; plain: bound to gpu-1 with nothing; waits: with room-since; fresh: nothing, not bound.
	pods map[string]*corev1.Pod
}

func (s *stage) pod(name string) *corev1.Pod {
	return &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: work, Labels: map[string]string{"app": "x"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "x", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": *amount("500m")}, Limits: corev1.ResourceList{"cpu": *amount("1"), "memory": *amount("1Gi")}}}}}}
}

func binding(pod *corev1.Pod, node string, annotations map[string]string) map[string]any {
	metadata := map[string]any{"name": pod.Name, "namespace": pod.Namespace, "uid": pod.UID}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	return map[string]any{"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": map[string]any{"kind": "Node", "name": node}}
}

var made int

func assemble(t *testing.T) *cast {
	t.Helper()
	c := &cast{stage: at, people: map[string]who{}, pods: map[string]*corev1.Pod{}}
	for _, name := range []string{"gpu-1", "gpu-2"} {
		must(t, at.node(name, "", "", 0, 0, nil))
	}
	for _, account := range []string{"gpu-manager", "hami-device-plugin", "gpushare-device-plugin", "nvidia-device-plugin"} {
		must(t, at.account(release, account))
	}
	must(t, at.account("elsewhere", "gpu-manager"))
	must(t, at.account("elsewhere", "quartermaster"))
	must(t, at.account(work, "default"))
	c.people["admin"] = who{http: at.admin}
	c.people["mallory"] = at.user("mallory", "system:authenticated")
	c.people["kubelet"] = at.user("system:node:gpu-1", "system:nodes", "system:authenticated")
	c.people["scheduler"] = at.user("system:kube-scheduler", "system:authenticated")
	c.people["controllers"] = at.user("system:kube-controller-manager", "system:authenticated", "system:masters")
	for name, of := range map[string][3]string{
		"operator":              {release, "quartermaster", ""},
		"gpu-manager":           {release, "gpu-manager", "gpu-1"},
		"gpu-manager, no node":  {release, "gpu-manager", ""},
		"gpu-manager, gpu-2":    {release, "gpu-manager", "gpu-2"},
		"hami":                  {release, "hami-device-plugin", "gpu-1"},
		"hami, gpu-2":           {release, "hami-device-plugin", "gpu-2"},
		"gpushare":              {release, "gpushare-device-plugin", "gpu-1"},
		"gpushare, gpu-2":       {release, "gpushare-device-plugin", "gpu-2"},
		"pgpu":                  {release, "nvidia-device-plugin", "gpu-1"},
		"gpu-manager elsewhere": {"elsewhere", "gpu-manager", "gpu-1"},
		"operator elsewhere":    {"elsewhere", "quartermaster", ""},
	} {
		token, err := at.token(of[0], of[1], of[2])
		must(t, err)
		c.people[name] = token
	}
	// Names are new each time: KWOK may still have something to do for those of before.
	made++
	for _, name := range []string{"bound", "plain", "waits", "fresh"} {
		must(t, until(at.ctx, 10*time.Second, "pod "+name, func() (bool, error) {
			is, err := at.Client.CoreV1().Pods(work).Create(at.ctx, at.pod(fmt.Sprintf("%s-%d-%d", name, os.Getpid(), made)), metav1.CreateOptions{})
			c.pods[name] = is
			return err == nil, err
		}))
	}
	t.Cleanup(func() {
		var gone int64
		for _, pod := range c.pods {
			_ = at.Client.CoreV1().Pods(work).Delete(at.ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &gone})
		}
	})
	// The operator's own writes, with its own rights: the Binding, and the nudge.
	for name, annotations := range map[string]map[string]string{"bound": given, "plain": nil} {
		said, err := at.ask(c.people["operator"], "POST", c.path(name, "binding"), plain, binding(c.pods[name], "gpu-1", annotations))
		must(t, err)
		if said.code != http.StatusCreated {
			t.Fatalf("the operator cannot bind %s: %d %s", name, said.code, said.message)
		}
	}
	said, err := at.ask(c.people["operator"], "PATCH", c.path("waits", ""), merge,
		`{"metadata":{"annotations":{"state.quartermaster.io/room-since":"2026-01-01T00:00:00.000Z"}}}`)
	must(t, err)
	if said.code != http.StatusOK {
		t.Fatalf("the operator cannot nudge: %d %s", said.code, said.message)
	}
	// KWOK's writes come before those of anyone else.
	for name := range c.pods {
		must(t, until(at.ctx, 30*time.Second, "pod "+name, func() (bool, error) {
			is, err := at.Client.CoreV1().Pods(work).Get(at.ctx, c.pods[name].Name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			c.pods[name] = is
			return is.Spec.NodeName == "" || is.Status.Phase == corev1.PodRunning, fmt.Errorf("%s", is.Status.Phase)
		}))
	}
	// A kubelet that can resize says what the container has.
	able := c.whole("bound", func(p *corev1.Pod) {
		if len(p.Status.ContainerStatuses) == 0 {
			t.Fatal("the pod that runs has no containers")
		}
		p.Status.ContainerStatuses[0].Resources = p.Spec.Containers[0].Resources.DeepCopy()
	})
	said, err = at.ask(c.people["kubelet"], "PUT", c.path("bound", "status"), plain, able)
	must(t, err)
	if said.code != http.StatusOK {
		t.Fatalf("the kubelet: %d %s", said.code, said.message)
	}
	for key, value := range given {
		if c.pods["bound"].Annotations[key] != value {
			t.Fatalf("the Binding's annotation %s is %q on the pod", key, c.pods["bound"].Annotations[key])
		}
	}
	return c
}

// attempt is one write. Nothing is kept: every request is a dry run, which admission sees all the same.
type attempt struct {
	by, what           string
	method, path, kind string
	body               any
	refused            bool
	// pod whose annotations must come back as they were, where the write is accepted: some subresources drop what is not theirs.
	unchanged string
	says      string // of a refusal, where it is not that of the others
}

func annotate(annotations map[string]any) map[string]any {
	return map[string]any{"metadata": map[string]any{"annotations": annotations}}
}

// whole is the pod as someone sends it back, changed.
func (c *cast) whole(name string, change func(*corev1.Pod)) *corev1.Pod {
	pod := c.pods[name].DeepCopy()
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	pod.ManagedFields, pod.ResourceVersion = nil, ""
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	change(pod)
	return pod
}

func (c *cast) path(name, sub string) string {
	path := "/api/v1/namespaces/work/pods/" + c.pods[name].Name
	if sub != "" {
		path += "/" + sub
	}
	return path
}

func (c *cast) patch(by, what, pod, sub, kind string, body any, refused bool) attempt {
	return attempt{by, what, "PATCH", c.path(pod, sub), kind, body, refused, "", ""}
}

// legal is what each writer does in the life of a pod.
func (c *cast) legal() (out []attempt) {
	add := func(a attempt) { out = append(out, a) }
	set := func(pairs ...string) map[string]any {
		of := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			of[pairs[i]] = pairs[i+1]
		}
		return annotate(of)
	}
	// gpu-manager: corrects the cards and says that it gave them; on a pod that no one predicated it writes all of it.
	add(c.patch("gpu-manager", "says that it gave the card", "bound", "", strategic, set("tencent.com/gpu-assigned", "true", "tencent.com/predicate-gpu-idx-0", "3"), false))
	add(c.patch("gpu-manager", "finds a pod that no one predicated", "plain", "", strategic, set("tencent.com/gpu-assigned", "false", "tencent.com/predicate-gpu-idx-0", "3",
		"tencent.com/predicate-time", "1", "tencent.com/predicate-node", "gpu-1"), false))
	// HAMi's plugin.
	add(c.patch("hami", "takes the next container's devices off the list", "bound", "", strategic, set("hami.io/vgpu-devices-to-allocate", ";"), false))
	add(c.patch("hami", "says that it gave them", "bound", "", strategic, set("hami.io/bind-phase", "success", "hami.io/vgpu-devices-allocated", "GPU-2,NVIDIA,2048,20:;"), false))
	add(c.patch("hami", "says that it could not", "bound", "", merge, set("hami.io/bind-phase", "failed", "hami.io/bind-time", "1700000001"), false))
	// gpushare's.
	add(c.patch("gpushare", "says that it gave the card", "bound", "", strategic, set("ALIYUN_COM_GPU_MEM_ASSIGNED", "true", "ALIYUN_COM_GPU_MEM_ASSUME_TIME", "1700000001"), false))
	// The operator.
	add(attempt{"operator", "binds", "POST", c.path("fresh", "binding"), plain, binding(c.pods["fresh"], "gpu-1", given), false, "", ""})
	add(c.patch("operator", "nudges once more", "waits", "", merge, set("state.quartermaster.io/room-since", "2026-01-02T00:00:00.000Z"), false))
	add(c.patch("operator", "seals", "fresh", "", merge, set("state.quartermaster.io/seal", "term a, seal 1"), false))
	// Kubelets and the scheduler leave annotations alone.
	phase := map[string]any{"status": map[string]any{"phase": "Succeeded"}}
	add(c.patch("kubelet", "says how the pod is", "bound", "status", strategic, phase, false))
	add(c.patch("kubelet", "says how the pod is", "plain", "status", strategic, phase, false))
	add(attempt{"kubelet", "sends the whole pod with its status", "PUT", c.path("bound", "status"), plain, c.whole("bound", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), false, "", ""})
	condition := map[string]any{"status": map[string]any{"nominatedNodeName": "gpu-1", "conditions": []any{map[string]any{"type": "PodScheduled", "status": "False",
		"reason": "Unschedulable", "lastTransitionTime": "2026-01-01T00:00:00Z"}}}}
	add(c.patch("scheduler", "says that the pod waits", "waits", "status", strategic, condition, false))
	add(attempt{"scheduler", "binds a pod that asks for no cards", "POST", c.path("fresh", "binding"), plain, binding(c.pods["fresh"], "gpu-1", nil), false, "", ""})
	add(attempt{"scheduler", "binds a pod that we have nudged", "POST", c.path("waits", "binding"), plain, binding(c.pods["waits"], "gpu-1", nil), false, "", ""})
	add(c.patch("controllers", "adds a finalizer", "bound", "", merge, map[string]any{"metadata": map[string]any{"finalizers": []string{"example.com/x"}}}, false))
	// People.
	wishes := map[string]string{"tencent.com/vcuda-core-limit": "50", "nvidia.com/use-gputype": "A100", "nvidia.com/nouse-gpuuuid": "GPU-1", "nvidia.com/vgpu-mode": "mps",
		"hami.io/gpu-scheduler-policy": "binpack", "hami.io/node-scheduler-policy": "spread", "example.com/note": "x"}
	wishful := c.stage.pod("new")
	wishful.Annotations = wishes
	add(attempt{"mallory", "makes a pod with wishes", "POST", "/api/v1/namespaces/work/pods", plain, wishful, false, "", ""})
	add(attempt{"mallory", "makes a pod without annotations", "POST", "/api/v1/namespaces/work/pods", plain, c.stage.pod("new"), false, "", ""})
	add(c.patch("mallory", "writes an annotation of their own", "bound", "", merge, set("example.com/note", "new"), false))
	add(c.patch("mallory", "takes an annotation of their own away", "bound", "", merge, annotate(map[string]any{"example.com/note": nil}), false))
	add(c.patch("mallory", "labels it", "bound", "", merge, map[string]any{"metadata": map[string]any{"labels": map[string]string{"a": "b"}}}, false))
	add(attempt{"mallory", "sends it as it is", "PUT", c.path("bound", ""), plain, c.whole("bound", func(*corev1.Pod) {}), false, "", ""})
	add(attempt{"mallory", "adds a container to look into it", "PATCH", c.path("bound", "ephemeralcontainers"), strategic,
		map[string]any{"spec": map[string]any{"ephemeralContainers": []any{map[string]any{"name": "look", "image": "x"}}}}, false, "", ""})
	add(attempt{"mallory", "deletes it", "DELETE", c.path("bound", ""), plain, `{"apiVersion":"v1","kind":"DeleteOptions","dryRun":["All"]}`, false, "", ""})
	if c.resizes() {
		add(c.patch("mallory", "gives it more memory", "bound", "resize", strategic, map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"name": "main", "resources": map[string]any{"limits": map[string]any{"memory": "2Gi"}}}}}}, false))
	}
	return
}

// resizes: the server knows pods/resize (1.33).
func (c *cast) resizes() bool {
	is, err := c.Client.Discovery().ServerResourcesForGroupVersion("v1")
	return err == nil && slices.ContainsFunc(is.APIResources, func(r metav1.APIResource) bool { return r.Name == "pods/resize" })
}

// forged is what must not come through.
func (c *cast) forged() (out []attempt) {
	add := func(a attempt) { a.refused = true; out = append(out, a) }
	one := func(key, value string) map[string]any { return annotate(map[string]any{key: value}) }
	for _, key := range guarded() {
		fake := c.stage.pod("new")
		fake.Annotations = map[string]string{key: "forged"}
		add(attempt{by: "mallory", what: "makes a pod with " + key, method: "POST", path: "/api/v1/namespaces/work/pods", kind: plain, body: fake})
		onto := "bound"
		if key == "state.quartermaster.io/room-since" {
			onto = "waits"
		}
		add(c.patch("mallory", "changes "+key, onto, "", merge, one(key, "forged"), true))
		add(c.patch("mallory", "adds "+key, "fresh", "", merge, one(key, "forged"), true))
		add(c.patch("mallory", "removes "+key, onto, "", merge, annotate(map[string]any{key: nil}), true))
		add(attempt{by: "mallory", what: "binds with " + key, method: "POST", path: c.path("fresh", "binding"), kind: plain,
			body: binding(c.pods["fresh"], "gpu-1", map[string]string{key: "forged"})})
		add(attempt{by: "mallory", what: "binds the old way with " + key, method: "POST", path: "/api/v1/namespaces/work/bindings", kind: plain,
			body: binding(c.pods["fresh"], "gpu-1", map[string]string{key: "forged"})})
	}
	add(attempt{by: "mallory", what: "sends the pod without annotations", method: "PUT", path: c.path("bound", ""), kind: plain,
		body: c.whole("bound", func(p *corev1.Pod) { p.Annotations = nil })})
	add(attempt{by: "mallory", what: "takes all annotations away", method: "PATCH", path: c.path("bound", ""), kind: merge, body: `{"metadata":{"annotations":null}}`})
	add(attempt{by: "mallory", what: "replaces one by apply", method: "PATCH", path: c.path("bound", "") + "?fieldManager=x&force=true", kind: "application/apply-patch+yaml",
		body: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + c.pods["bound"].Name + `","annotations":{"quartermaster.io/placement":"forged"}},"spec":{"containers":[{"name":"main","image":"x"}]}}`})
	const ours = "quartermaster.io/placement"
	// Who else is not the writer of this.
	for _, by := range []string{"admin", "controllers", "operator elsewhere", "gpu-manager", "hami", "gpushare", "pgpu"} {
		add(c.patch(by, "changes "+ours, "bound", "", merge, one(ours, "forged"), true))
	}
	for _, by := range []string{"scheduler", "operator elsewhere", "admin"} {
		add(attempt{by: by, what: "binds with cards", method: "POST", path: c.path("fresh", "binding"), kind: plain, body: binding(c.pods["fresh"], "gpu-1", given)})
	}
	for _, by := range []string{"gpu-manager, no node", "gpu-manager, gpu-2", "gpu-manager elsewhere", "hami", "gpushare", "pgpu"} {
		add(c.patch(by, "changes tencent.com/predicate-gpu-idx-0", "bound", "", strategic, one("tencent.com/predicate-gpu-idx-0", "7"), true))
	}
	for _, by := range []string{"hami, gpu-2", "gpu-manager", "gpushare"} {
		add(c.patch(by, "changes hami.io/bind-phase", "bound", "", strategic, one("hami.io/bind-phase", "success"), true))
		add(c.patch(by, "changes hami.io/vgpu-devices-allocated", "bound", "", strategic, one("hami.io/vgpu-devices-allocated", ";"), true))
	}
	for _, by := range []string{"gpushare, gpu-2", "gpu-manager", "hami"} {
		add(c.patch(by, "changes ALIYUN_COM_GPU_MEM_ASSIGNED", "bound", "", strategic, one("ALIYUN_COM_GPU_MEM_ASSIGNED", "true"), true))
	}
	crowd := c.stage.pod("new")
	crowd.Annotations = map[string]string{}
	for i := range 501 {
		crowd.Annotations[fmt.Sprint("k", i)] = ""
	}
	out = append(out, attempt{by: "mallory", what: "makes a pod with too many to look through", method: "POST", path: "/api/v1/namespaces/work/pods", kind: plain,
		body: crowd, refused: true, says: "the pod has 501 annotations; allowed"})
	// A plugin and a pod that is on no node yet; a plugin that takes one of its own and one of another along.
	add(c.patch("gpu-manager", "writes a pod that is not bound", "fresh", "", strategic, one("tencent.com/gpu-assigned", "true"), true))
	add(c.patch("hami", "writes a pod that is not bound", "fresh", "", strategic, one("hami.io/bind-phase", "success"), true))
	add(c.patch("gpushare", "writes a pod that is not bound", "fresh", "", strategic, one("ALIYUN_COM_GPU_MEM_ASSIGNED", "true"), true))
	add(c.patch("gpu-manager", "takes ours along", "bound", "", strategic, annotate(map[string]any{"tencent.com/gpu-assigned": "true", ours: "forged"}), true))
	return
}

// dropped are writes the server takes, without what they would forge.
func (c *cast) dropped() (out []attempt) {
	forge := func(p *corev1.Pod) { p.Annotations["quartermaster.io/placement"] = "forged" }
	out = append(out, attempt{"mallory", "forges with a container to look into it", "PUT", c.path("bound", "ephemeralcontainers"), plain,
		c.whole("bound", func(p *corev1.Pod) {
			forge(p)
			p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "look", Image: "x"}})
		}), false, "bound", ""})
	if c.resizes() {
		out = append(out, attempt{"mallory", "forges with more memory", "PUT", c.path("bound", "resize"), plain, c.whole("bound", func(p *corev1.Pod) {
			forge(p)
			p.Spec.Containers[0].Resources.Limits["memory"] = *amount("2Gi")
		}), false, "bound", ""})
	}
	return
}

// try one; nil: as it should be.
func (c *cast) try(a attempt) error {
	separator := "?"
	if strings.Contains(a.path, "?") {
		separator = "&"
	}
	person, ok := c.people[a.by]
	if !ok {
		return fmt.Errorf("no one is called %q", a.by)
	}
	said, err := c.ask(person, a.method, a.path+separator+"dryRun=All", a.kind, a.body)
	if err != nil {
		return err
	}
	if !a.refused {
		if said.code >= 300 {
			return fmt.Errorf("%d %s", said.code, said.message)
		}
		if a.unchanged != "" {
			metadata, _ := said.object["metadata"].(map[string]any)
			annotations, _ := metadata["annotations"].(map[string]any)
			if is := annotations["quartermaster.io/placement"]; is != c.pods[a.unchanged].Annotations["quartermaster.io/placement"] {
				return fmt.Errorf("accepted, and the placement is %v", is)
			}
		}
		return nil
	}
	if said.code < 300 {
		return fmt.Errorf("accepted")
	}
	if a.says != "" && strings.Contains(said.message, policyName) && strings.Contains(said.message, a.says) && !strings.Contains(said.message, "\n") {
		return nil
	}
	// What holds plugins to their own product and node says no as well, and may be the first to do so.
	if strings.Contains(said.message, "'plugins.quartermaster.io'") && !strings.Contains(said.message, "\n") &&
		(strings.Contains(said.message, " may not change annotation ") || strings.Contains(said.message, " of its own node only, and this is ")) {
		return nil
	}
	if !strings.Contains(said.message, policyName) || !strings.Contains(said.message, "says which cards the pod has") || !strings.Contains(said.message, "Leave it out") ||
		strings.Contains(said.message, "\n") || len(said.message) > 450 {
		return fmt.Errorf("%d, but the message is not one readable line from our policy: %q", said.code, said.message)
	}
	named := slices.ContainsFunc(guarded(), func(key string) bool { return strings.Contains(said.message, "annotation "+key+" ") })
	if !named {
		return fmt.Errorf("the message names no annotation: %q", said.message)
	}
	return nil
}

// active waits until the server goes by the policies of the chart.
func (c *cast) active(t *testing.T) {
	t.Helper()
	fake := c.stage.pod("probe")
	fake.Annotations = map[string]string{"quartermaster.io/placement": "forged"}
	probe := attempt{by: "mallory", what: "probe", method: "POST", path: "/api/v1/namespaces/work/pods", kind: plain, body: fake, refused: true}
	must(t, until(c.ctx, 30*time.Second, "the policies", func() (bool, error) {
		err := c.try(probe)
		return err == nil, err
	}))
}

func TestEachWriterWritesItsOwnAndNobodyElseSaysWhichCardsAPodHas(t *testing.T) {
	c := assemble(t)
	c.active(t)
	legal, forged, dropped := c.legal(), c.forged(), c.dropped()
	shown := false
	for _, a := range slices.Concat(legal, forged, dropped) {
		if err := c.try(a); err != nil {
			t.Errorf("%s %s (%s %s): %v", a.by, a.what, a.method, a.path, err)
		} else if a.refused && !shown {
			said, _ := c.ask(c.people[a.by], a.method, a.path+"?dryRun=All", a.kind, a.body)
			t.Log(said.message)
			shown = true
		}
	}
	t.Logf("%d legal writes, %d forged, %d without effect", len(legal), len(forged), len(dropped))
}

// A pod's life with all of it kept: bound, given by the plugin, running, done, deleted.
func TestAPodLivesUnderThePolicies(t *testing.T) {
	c := assemble(t)
	c.active(t)
	for _, step := range []struct {
		by, method, sub, kind, body string
	}{
		{"gpu-manager", "PATCH", "", strategic, `{"metadata":{"annotations":{"tencent.com/gpu-assigned":"true","tencent.com/predicate-gpu-idx-0":"2"}}}`},
		{"hami", "PATCH", "", strategic, `{"metadata":{"annotations":{"hami.io/bind-phase":"success"}}}`},
		{"gpushare", "PATCH", "", strategic, `{"metadata":{"annotations":{"ALIYUN_COM_GPU_MEM_ASSIGNED":"true"}}}`},
		{"kubelet", "PATCH", "status", strategic, `{"status":{"phase":"Succeeded"}}`},
		{"mallory", "DELETE", "", plain, `{"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":0}`},
	} {
		said, err := c.ask(c.people[step.by], step.method, c.path("bound", step.sub), step.kind, step.body)
		must(t, err)
		if said.code != http.StatusOK {
			t.Fatalf("%s: %d %s", step.by, said.code, said.message)
		}
		if step.by == "kubelet" {
			is, err := c.Client.CoreV1().Pods(work).Get(c.ctx, c.pods["bound"].Name, metav1.GetOptions{})
			must(t, err)
			for key, want := range map[string]string{"tencent.com/gpu-assigned": "true", "tencent.com/predicate-gpu-idx-0": "2", "hami.io/bind-phase": "success",
				"ALIYUN_COM_GPU_MEM_ASSIGNED": "true", "quartermaster.io/placement": given["quartermaster.io/placement"]} {
				if is.Annotations[key] != want {
					t.Errorf("%s is %q", key, is.Annotations[key])
				}
			}
		}
	}
}

// The server takes time with the square of a map's size to look through it, so there is a most. A pod from before may have more: what
// leaves its annotations alone is not looked at.
func TestTooManyAnnotationsToLookThrough_long(t *testing.T) {
	c := assemble(t)
	c.active(t)
	letters := "abcdefghijklmnopqrstuvwxyz"
	with := func(count int) *corev1.Pod {
		pod := c.stage.pod(fmt.Sprintf("many-%d", os.Getpid()))
		pod.Annotations = map[string]string{}
		for i := range count {
			pod.Annotations[string([]byte{letters[i%26], letters[i/26%26], letters[i/676%26], letters[i/17576%26]})] = ""
		}
		return pod
	}
	path := "/api/v1/namespaces/work/pods"
	for count, want := range map[int]string{500: "", 501: "the pod has 501 annotations; allowed where cards are given out: 500, so that all can be looked through. Leave some out"} {
		said, err := c.ask(c.people["mallory"], "POST", path+"?dryRun=All", plain, with(count))
		must(t, err)
		if !strings.HasSuffix(said.message, want) || (want == "") != (said.code == http.StatusCreated) {
			t.Errorf("%d annotations: %d %s", count, said.code, said.message)
		}
	}
	bindings := c.Client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	kept, err := bindings.Get(c.ctx, policyName, metav1.GetOptions{})
	must(t, err)
	kept.ResourceVersion, kept.UID = "", ""
	must(t, bindings.Delete(c.ctx, policyName, metav1.DeleteOptions{}))
	restored := false
	restore := func() {
		if !restored {
			restored = true
			_, err := bindings.Create(c.ctx, kept, metav1.CreateOptions{})
			must(t, err)
			c.active(t)
		}
	}
	defer restore()
	pod := with(20000)
	pod.Spec.NodeName = "gpu-1"
	must(t, until(c.ctx, 20*time.Second, "a pod from before", func() (bool, error) {
		_, err := c.Client.CoreV1().Pods(work).Create(c.ctx, pod, metav1.CreateOptions{})
		return err == nil, err
	}))
	var gone int64
	defer c.Client.CoreV1().Pods(work).Delete(c.ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &gone})
	// The first write may still be told by managedFields; the second is measured.
	status := func() time.Duration {
		began := time.Now()
		said, err := c.ask(c.people["kubelet"], "PATCH", path+"/"+pod.Name+"/status", strategic, `{"status":{"phase":"Running"}}`)
		must(t, err)
		if said.code != http.StatusOK {
			t.Errorf("its kubelet cannot say how it is: %d %.300s", said.code, said.message)
		}
		return time.Since(began)
	}
	status()
	without := status()
	restore()
	status()
	t.Logf("status of a pod with 20,000 annotations: %s without the policy, %s with it", without.Round(time.Millisecond), status().Round(time.Millisecond))
	said, err := c.ask(c.people["mallory"], "PATCH", path+"/"+pod.Name, merge, `{"metadata":{"annotations":{"quartermaster.io/placement":"forged"}}}`)
	must(t, err)
	if said.code < 400 || !strings.Contains(said.message, "20001 annotations") {
		t.Errorf("forged: %d %s", said.code, said.message)
	}
}

// Templates are warned about; the pod of one is refused, and its controller says why.
func TestTemplatesAreWarnedAboutAndTheirPodsRefused(t *testing.T) {
	c := assemble(t)
	c.active(t)
	template := func(annotations map[string]string) map[string]any {
		pod := map[string]any{"metadata": map[string]any{"labels": map[string]string{"app": "t"}}, "spec": map[string]any{"containers": []any{map[string]any{"name": "main", "image": "x"}}}}
		if annotations != nil {
			pod["metadata"].(map[string]any)["annotations"] = annotations
		}
		return pod
	}
	selector := map[string]any{"matchLabels": map[string]string{"app": "t"}}
	spec := func(kind string, annotations map[string]string) (string, map[string]any) {
		of := template(annotations)
		restart := func() { of["spec"].(map[string]any)["restartPolicy"] = "Never" }
		switch kind {
		case "ReplicationController":
			return "/api/v1/namespaces/work/replicationcontrollers", map[string]any{"apiVersion": "v1", "spec": map[string]any{"selector": map[string]string{"app": "t"}, "template": of}}
		case "Job":
			restart()
			return "/apis/batch/v1/namespaces/work/jobs", map[string]any{"apiVersion": "batch/v1", "spec": map[string]any{"template": of}}
		case "CronJob":
			restart()
			return "/apis/batch/v1/namespaces/work/cronjobs", map[string]any{"apiVersion": "batch/v1", "spec": map[string]any{"schedule": "0 0 1 1 *",
				"jobTemplate": map[string]any{"spec": map[string]any{"template": of}}}}
		}
		body := map[string]any{"apiVersion": "apps/v1", "spec": map[string]any{"selector": selector, "template": of}}
		if kind == "StatefulSet" {
			body["spec"].(map[string]any)["serviceName"] = "t"
		}
		return "/apis/apps/v1/namespaces/work/" + strings.ToLower(kind) + "s", body
	}
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job", "CronJob"} {
		for key, warned := range map[string]bool{"quartermaster.io/placement": true, "tencent.com/predicate-gpu-idx-0": true, "hami.io/vgpu-devices-allocated": true,
			"ALIYUN_COM_GPU_MEM_IDX": true, "tencent.com/vcuda-core-limit": false, "": false} {
			annotations := map[string]string{key: "1"}
			if key == "" {
				annotations = nil
			}
			path, body := spec(kind, annotations)
			body["kind"], body["metadata"] = kind, map[string]any{"name": "t"}
			said, err := c.ask(c.people["mallory"], "POST", path+"?dryRun=All", plain, body)
			must(t, err)
			if said.code != http.StatusCreated {
				t.Errorf("%s with %q: %d %s", kind, key, said.code, said.message)
			}
			ours := slices.DeleteFunc(slices.Clone(said.warnings), func(w string) bool { return !strings.Contains(w, "placement-templates.quartermaster.io") })
			if warned != (len(ours) == 1 && strings.Contains(ours[0], "annotation "+key+" in the pod template says which cards a pod has") && !strings.Contains(ours[0], "\n")) || len(ours) > 1 {
				t.Errorf("%s with %q: warnings %q", kind, key, said.warnings)
			}
		}
	}
	path, body := spec("ReplicaSet", map[string]string{"quartermaster.io/placement": "forged"})
	body["kind"], body["metadata"] = "ReplicaSet", map[string]any{"name": "forged"}
	_, _ = c.ask(c.people["mallory"], "DELETE", path+"/forged", plain, "{}")
	said, err := c.ask(c.people["mallory"], "POST", path, plain, body)
	must(t, err)
	if said.code != http.StatusCreated {
		t.Fatalf("%d %s", said.code, said.message)
	}
	defer c.ask(c.people["mallory"], "DELETE", path+"/forged", plain, "{}")
	var why string
	must(t, until(c.ctx, 20*time.Second, "the controller's word on the pod", func() (bool, error) {
		is, err := c.Client.AppsV1().ReplicaSets(work).Get(c.ctx, "forged", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, condition := range is.Status.Conditions {
			if condition.Type == "ReplicaFailure" {
				why = condition.Message
			}
		}
		return why != "", nil
	}))
	if !strings.Contains(why, "annotation quartermaster.io/placement says which cards the pod has") {
		t.Errorf("the ReplicaSet says: %s", why)
	}
}

// The server finds nothing wrong with the expressions.
func TestTheServerHasNothingToSayAgainstThesePolicies(t *testing.T) {
	for _, name := range []string{policyName, "placement-templates.quartermaster.io", "plugins.quartermaster.io", "operator.quartermaster.io",
		"operator-webhook.quartermaster.io", "operator-workloads.quartermaster.io", "quota-bypass.quartermaster.io", "share-bypass.quartermaster.io", "visible-devices.quartermaster.io"} {
		var policy *admissionv1.ValidatingAdmissionPolicy
		must(t, until(at.ctx, 60*time.Second, "the status of "+name, func() (bool, error) {
			var err error
			policy, err = at.Client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(at.ctx, name, metav1.GetOptions{})
			return err == nil && policy.Status.ObservedGeneration == policy.Generation && policy.Status.TypeChecking != nil, err
		}))
		for _, warning := range policy.Status.TypeChecking.ExpressionWarnings {
			if policy.Spec.ParamKind == nil || !onlyLacksParams(warning.Warning) {
				t.Errorf("%s, %s: %s", name, warning.FieldRef, warning.Warning)
			}
		}
	}
}

// onlyLacksParams: the kube-controller-manager of 1.30 had read the types of the server before the CRD of the parameters was there, and does not
// look again. It reads them every 30 s. That says nothing of the expression.
func onlyLacksParams(warning string) bool {
	const lacks = "undeclared reference to 'params'"
	return strings.Contains(warning, lacks) && strings.Count(warning, "ERROR:") == strings.Count(warning, lacks)
}

// Each guard of the policy is there for a reason: without it something of the table comes out otherwise.
func TestWithoutAnyGuardTheTableFails_long(t *testing.T) {
	c := assemble(t)
	c.active(t)
	policies := c.Client.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	original, err := policies.Get(c.ctx, policyName, metav1.GetOptions{})
	must(t, err)
	text, err := json.Marshal(original.Spec)
	must(t, err)
	table := slices.Concat(c.legal(), c.forged())
	wrong := func() []string {
		var out []string
		for _, a := range table {
			if err := c.try(a); err != nil {
				out = append(out, fmt.Sprintf("%s %s: %v", a.by, a.what, err))
				break
			}
		}
		return out
	}
	// A mark that says which text of the policy the server goes by: it refuses a pod of this name, and only such.
	marked := func(spec *admissionv1.ValidatingAdmissionPolicySpec, mark string) {
		spec.Validations = append([]admissionv1.Validation{{Expression: "object.metadata.name != 'mark'", Message: "mark " + mark}}, spec.Validations...)
	}
	hold := func(spec *admissionv1.ValidatingAdmissionPolicySpec, mark string) {
		t.Helper()
		if mark != "" {
			marked(spec, mark)
		}
		body, err := json.Marshal(map[string]any{"spec": spec})
		must(t, err)
		_, err = policies.Patch(c.ctx, policyName, types.MergePatchType, body, metav1.PatchOptions{})
		if err != nil && c.stage.Revive() {
			_, err = policies.Patch(c.ctx, policyName, types.MergePatchType, body, metav1.PatchOptions{})
		}
		must(t, err)
		if mark == "" {
			return
		}
		pod := c.stage.pod("mark")
		pod.Annotations = maps.Clone(given)
		pod.Annotations["state.quartermaster.io/room-since"] = "x"
		must(t, until(c.ctx, 20*time.Second, "mark "+mark, func() (bool, error) {
			said, err := c.ask(c.people["mallory"], "POST", "/api/v1/namespaces/work/pods?dryRun=All", plain, pod)
			if err != nil && c.stage.Revive() {
				t.Log("kube-apiserver crashed when its policy changed, and runs again")
			}
			return err == nil && strings.Contains(said.message, "mark "+mark), fmt.Errorf("%v %s", err, said.message)
		}))
	}
	defer func() { hold(&original.Spec, "") }()
	// What this policy refuses to plugins, that of their accounts refuses as well: here each guard stands alone.
	bindings, accounts := c.Client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings(), "plugins.quartermaster.io"
	kept, err := bindings.Get(c.ctx, accounts, metav1.GetOptions{})
	must(t, err)
	kept.ResourceVersion, kept.UID = "", ""
	must(t, bindings.Delete(c.ctx, accounts, metav1.DeleteOptions{}))
	back := func() { _, err = bindings.Create(c.ctx, kept, metav1.CreateOptions{}) }
	defer back()
	must(t, until(c.ctx, 30*time.Second, "the accounts' policy to be off", func() (bool, error) {
		said, err := c.ask(c.people["hami"], "PATCH", c.path("bound", "")+"?dryRun=All", merge, annotated("example.com/other", "x"))
		return err == nil && said.code < 300, fmt.Errorf("%d %s %w", said.code, said.message, err)
	}))
	if found := wrong(); len(found) > 0 {
		t.Fatalf("without the accounts' policy: %v", found)
	}
	type mutant struct {
		name, from, to string
		times          int // how often `from` has to be there; 0: once
	}
	quoted := func(text string) string { bytes, _ := json.Marshal(text); return strings.Trim(string(bytes), `"`) }
	account := "'system:serviceaccount:" + release + ":"
	for i, m := range []mutant{
		{"operator by name only", "request.userInfo.username != " + account + "quartermaster'", "!request.userInfo.username.endsWith(':quartermaster')", 0},
		{"gpu-manager by name only", "request.userInfo.username == " + account + "gpu-manager'", "request.userInfo.username.endsWith(':gpu-manager')", 0},
		{"hami may not", account + "hami-device-plugin'", "'nobody'", 0},
		{"gpushare may not", account + "gpushare-device-plugin'", "'nobody'", 0},
		{"gpu-manager may write all", "(k.startsWith('tencent.com/predicate-') || k == 'tencent.com/gpu-assigned'))", "true)", 0},
		{"hami may write all", "(k.startsWith('hami.io/vgpu-') || k.startsWith('hami.io/bind-'))", "true", 0},
		{"gpushare may write all", "(k.startsWith('ALIYUN_COM_GPU_MEM_'))", "true", 0},
		{"any node", "oldObject.spec.nodeName in variables.nodes", "true", 0},
		{"no node", "variables.there && (", "true && (", 0},
		{"removing is free", "!(k in variables.now)", "false", 0},
		{"changing is free", "variables.was[k] != variables.now[k]", "false", 0},
		{"adding is free", "!(k in variables.was) || ", "k in variables.was && ", 0},
		{"removing unseen", "[object, oldObject]", "[object]", 0},
		{"pods/binding", `"pods/binding",`, "", 0},
		{"bindings", `,"bindings"`, "", 0},
		{"create", `["CREATE","UPDATE"]`, `["UPDATE"]`, 0},
		{"update", `["CREATE","UPDATE"]`, `["CREATE"]`, 0},
		{"placement", "'quartermaster.io/placement', ", "", 2},
		{"isolation", "'quartermaster.io/isolation', ", "", 2},
		{"room-since", ", 'state.quartermaster.io/room-since'", "", 2},
		{"predicate", "k.startsWith('tencent.com/predicate-') || ", "", 3},
		{"assigned", " || k == 'tencent.com/gpu-assigned'", "", 3},
		{"vgpu", "k.startsWith('hami.io/vgpu-') || ", "", 3},
		{"bind", " || k.startsWith('hami.io/bind-')", "", 3},
		{"aliyun", " || k.startsWith('ALIYUN_COM_GPU_MEM_')", "", 2},
		{"where annotations differ", "object.metadata.annotations != oldObject.metadata.annotations", "false", 0},
		{"no most", `"!variables.many"`, `"true"`, 0},
		{"where there were none", "has(object.metadata.annotations) != has(oldObject.metadata.annotations)", "false", 0},
	} {
		from := m.from
		if !strings.Contains(from, `"`) {
			from = quoted(from)
		}
		if m.times == 0 {
			m.times = 1
		}
		if is := strings.Count(string(text), from); is != m.times {
			t.Errorf("%s: %q is %d times in the policy, not %d", m.name, m.from, is, m.times)
			continue
		}
		to := m.to
		if !strings.Contains(m.from, `"`) {
			to = quoted(to)
		}
		var spec admissionv1.ValidatingAdmissionPolicySpec
		must(t, json.Unmarshal([]byte(strings.ReplaceAll(string(text), from, to)), &spec))
		// Some take the probe's own way: what is made with all annotations is still seen by the others. Without CREATE it is not.
		if m.name == "create" {
			body, err := json.Marshal(map[string]any{"spec": spec})
			must(t, err)
			_, err = policies.Patch(c.ctx, policyName, types.MergePatchType, body, metav1.PatchOptions{})
			must(t, err)
			time.Sleep(2 * time.Second)
		} else {
			hold(&spec, fmt.Sprintf("%d.", i))
		}
		if found := wrong(); len(found) == 0 {
			t.Errorf("%s: nothing of the table comes out otherwise", m.name)
		} else {
			t.Logf("%s: %s", m.name, found[0])
		}
	}
	back()
	must(t, err)
	hold(original.Spec.DeepCopy(), "end.")
	if found := wrong(); len(found) > 0 {
		t.Errorf("afterwards: %v", found)
	}
}
