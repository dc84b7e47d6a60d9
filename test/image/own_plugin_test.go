package image

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"quartermaster.io/test/faults/kit"
)

const probe = "quartermaster.test/probe:1"

// The module pgpu with our own plugin, as people install it: agent, plugin and scheduler are pods, and a kubelet with containerd starts pods
// with cards of the stand-in. Each sees the card of its placement and no other; a pod that was bound past the scheduler does not start.
func TestPodsHaveTheCardsOfTheirPlacement_long(t *testing.T) {
	if _, _, err := kit.Standins(); err != nil {
		t.Skip(err)
	}
	n := &newcomer{product: &product{&kit.Scenario{Cluster: cluster}, t}}
	t.Cleanup(n.leave)
	n.haveCards()
	n.script("node-image", registry+"/quartermaster:"+theImage(t).tag, "--archive", first.file)
	must(t, n.CompileImage(probe, "../plugins/probe", "/bin/probe"))
	n.run("helm", "install", "quartermaster", filepath.Join(kit.Root(), "charts/quartermaster"), "--namespace", kit.Namespace, "--create-namespace", "--set",
		"image.registry="+registry+",image.pullPolicy=Never,agent.enabled=true,agent.runtimeClassName="+kit.NvidiaRuntime+",crds.keep=false,pgpu_enable=true,"+
			"policy.modules.pgpu.settings.plugin=quartermaster,policy.modules.pgpu.imagePullPolicy=Never", "--wait", "--timeout", "180s")
	n.run("kubectl", "label", "node", worker, kit.AskLabel+"=pgpu")
	n.run("kubectl", "wait", "--for=create", "anode/"+worker, "--timeout=60s")
	n.run("kubectl", "wait", "anode/"+worker, "--for=jsonpath={.status.phase}=Ready", "--timeout=180s")
	n.dedicate()

	seen := map[string]bool{}
	for _, name := range []string{"first", "second"} {
		n.create(name, "")
		card := n.sees(name)
		if seen[card] {
			t.Errorf("two pods see card %s", card)
		}
		seen[card] = true
	}
	n.run("kubectl", "delete", "pod", "second", "--wait")
	plugin, began := n.plugin(), time.Now()
	n.run("kubectl", "delete", "pod", plugin, "--namespace", kit.Namespace, "--wait=false")
	n.create("third", "") // a kubelet without the plugin would reject it for good
	n.sees("third")
	t.Logf("a pod that came when the plugin's pod was deleted ran after %.1f s", time.Since(began).Seconds())
	if is := n.plugin(); is == plugin {
		t.Errorf("%s is still there: the pod has not met the gap", is)
	}
	n.sees("first")
	n.run("kubectl", "delete", "pod", "third", "--wait")

	n.create("past-the-scheduler", worker)
	n.await(time.Minute, "a pod without a placement does not start", func() (bool, error) {
		pod, err := n.Client.CoreV1().Pods("default").Get(ctx, "past-the-scheduler", metav1.GetOptions{})
		if err != nil || len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].State.Waiting == nil {
			return false, fmt.Errorf("%v %+v", err, pod.Status)
		}
		waiting := pod.Status.ContainerStatuses[0].State.Waiting
		return strings.Contains(waiting.Message, "pod default/past-the-scheduler was not placed"), fmt.Errorf("%+v", waiting)
	})
	n.run("kubectl", "delete", "pod", "first", "past-the-scheduler", "--wait")
	if log := n.run("kubectl", "logs", "--namespace", kit.Namespace, n.plugin()); strings.Contains(log, "forbidden") {
		t.Errorf("the plugin lacks a right:\n%s", log)
	}
	n.dedicateNone()
	n.uninstall()
}

// shares of a module by our own plugin: what the kubelet has of it, and what a container asks for.
type sharesOf struct {
	module  string
	offered []string
	limits  func(cores, gib int64) corev1.ResourceList
}

func list(amounts map[string]int64) corev1.ResourceList {
	out := corev1.ResourceList{}
	for key, amount := range amounts {
		out[corev1.ResourceName(key)] = *resource.NewQuantity(amount, resource.DecimalSI)
	}
	return out
}

var ownShares = []sharesOf{
	{"mps", []string{"nvidia.com/mps-core", "nvidia.com/mps-memory"}, func(cores, gib int64) corev1.ResourceList {
		return list(map[string]int64{"nvidia.com/mps-core": cores, "nvidia.com/mps-memory": gib})
	}},
	{"vgpu", []string{"tencent.com/vcuda-core", "tencent.com/vcuda-memory"}, func(cores, gib int64) corev1.ResourceList {
		return list(map[string]int64{"tencent.com/vcuda-core": cores, "tencent.com/vcuda-memory": 4 * gib})
	}},
	{"gpushare", []string{"aliyun.com/gpu-core.percentage", "aliyun.com/gpu-mem", "aliyun.com/gpu-count"}, func(cores, gib int64) corev1.ResourceList {
		return list(map[string]int64{"aliyun.com/gpu-core.percentage": cores, "aliyun.com/gpu-mem": gib})
	}},
	{"hami", []string{"nvidia.com/gpualloc"}, func(cores, gib int64) corev1.ResourceList {
		return list(map[string]int64{"nvidia.com/gpualloc": 1, "nvidia.com/gpucores": cores, "nvidia.com/gpumem": 1024 * gib})
	}},
}

// The modules mps, and vgpu, gpushare and hami with our own plugin, as people install them: agent, plugin, MPS and scheduler are pods. Each pod sees the card and
// the limits of its placement; the plugin's container can end without MPS, whose daemons go on.
func TestPodsHaveTheSharesOfTheirPlacement_long(t *testing.T) {
	if _, _, err := kit.Standins(); err != nil {
		t.Skip(err)
	}
	n := &newcomer{product: &product{&kit.Scenario{Cluster: cluster}, t}}
	t.Cleanup(n.leave)
	n.haveCards()
	n.script("node-image", registry+"/quartermaster:"+theImage(t).tag, "--archive", first.file)
	must(t, n.CompileImage(probe, "../plugins/probe", "/bin/probe"))
	values := ""
	for _, of := range ownShares {
		module := ",policy.modules." + of.module
		values += module + ".enabled=true" + module + ".runtimeClassName=" + kit.NvidiaRuntime
		if of.module != "mps" {
			values += module + ".settings.plugin=quartermaster"
		}
	}
	n.run("helm", "install", "quartermaster", filepath.Join(kit.Root(), "charts/quartermaster"), "--namespace", kit.Namespace, "--create-namespace", "--set",
		"image.registry="+registry+",image.pullPolicy=Never,agent.enabled=true,agent.runtimeClassName="+kit.NvidiaRuntime+",crds.keep=false"+values, "--wait", "--timeout", "180s")
	for _, of := range ownShares {
		passed := t.Run(of.module, func(t *testing.T) {
			n.t = t
			n.run("kubectl", "label", "--overwrite", "node", worker, kit.AskLabel+"="+of.module)
			n.run("kubectl", "wait", "--for=create", "anode/"+worker, "--timeout=60s")
			n.run("kubectl", "wait", "anode/"+worker, "--for=jsonpath={.status.actualMode}="+of.module, "--timeout=180s")
			n.run("kubectl", "wait", "anode/"+worker, "--for=jsonpath={.status.phase}=Ready", "--timeout=180s")
			if of.module == "mps" {
				n.dedicate()
			}
			share := func(name string, cores, gib int64) {
				n.createWith(name, "", of.limits(cores, gib))
			}
			share("third-of-a-card", 30, 4)
			share("two-thirds", 60, 8)
			share("other-card", 90, 10)
			if a, b, c := n.seesShare("third-of-a-card", 30, 4096), n.seesShare("two-thirds", 60, 8192), n.seesShare("other-card", 90, 10240); a != b || a == c {
				t.Errorf("the shares are on cards %s, %s and %s", a, b, c)
			}
			n.script("node-exec", "--node", worker, "sh", "-c", "kill -9 $(pgrep -f 'agent [p]lugin --share=')")
			n.run("kubectl", "delete", "pod", "other-card", "--wait")
			n.await(time.Minute, "the kubelet took the plugin again", func() (bool, error) { // one without it rejects pods for good
				pods, err := n.plugins()
				if err != nil || len(pods) != 1 || !restarted(pods[0]) {
					return false, fmt.Errorf("%v %v", err, pods)
				}
				// A pod that kube-scheduler refuses meanwhile waits for five minutes, if it names a key that no node has, as nvidia.com/gpumem:
				// noderesources/fit.go, isFit.
				node, err := n.Client.CoreV1().Nodes().Get(ctx, worker, metav1.GetOptions{})
				if err != nil || node.Status.Allocatable.Name(corev1.ResourceName(of.offered[0]), resource.DecimalSI).IsZero() {
					return false, fmt.Errorf("%v no %s", err, of.offered[0])
				}
				return ready(&pods[0]), fmt.Errorf("the plugin is not ready: %v", pods[0].Status)
			})
			share("after-the-plugin", 20, 2)
			n.seesShare("after-the-plugin", 20, 2048)
			n.run("kubectl", "delete", "pod", "third-of-a-card", "two-thirds", "after-the-plugin", "--wait")
			for _, container := range []string{"quartermaster-device-plugin", "quartermaster-mps"} {
				if log := n.run("kubectl", "logs", "--namespace", kit.Namespace, "--selector", "quartermaster.io/module="+of.module, "-c", container); strings.Contains(log, "forbidden") || strings.Contains(log, "not lent") {
					t.Errorf("%s:\n%s", container, log)
				}
			}
		})
		if n.t = t; !passed {
			return
		}
	}
	n.dedicateNone()
	n.uninstall()
}

// seesShare is the card of a pod whose container has these limits by its placement and from inside.
func (n *newcomer) seesShare(name string, cores, memoryMiB int64) string {
	n.t.Helper()
	card, is, environment := n.seesOf(name)
	if is.Cores != cores || is.MemoryMiB != memoryMiB {
		n.t.Errorf("%s was placed with %+v, not with %d and %d MiB", name, is, cores, memoryMiB)
	}
	if threads, memory := environment["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"], environment["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"]; threads != fmt.Sprint(cores) || memory != fmt.Sprintf("0=%dM", memoryMiB) {
		n.t.Errorf("%s was placed with %+v, and sees %v", name, is, environment)
	}
	return card
}

func restarted(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(container corev1.ContainerStatus) bool {
		return container.Name == "quartermaster-device-plugin" && container.RestartCount > 0
	})
}

func ready(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// plugin is the one pod of the module.
func (n *newcomer) plugin() string {
	n.t.Helper()
	pods, err := n.plugins()
	must(n.t, err)
	if len(pods) != 1 {
		n.t.Fatalf("%d pods of the plugin", len(pods))
	}
	return pods[0].Name
}

// create a pod with a card, on this node past any scheduler where it is not empty.
func (n *newcomer) create(name, node string) {
	n.t.Helper()
	n.createWith(name, node, corev1.ResourceList{gpu: resource.MustParse("1")})
}

func (n *newcomer) createWith(name, node string, limits corev1.ResourceList) {
	n.t.Helper()
	none, class := int64(0), kit.NvidiaRuntime
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: corev1.PodSpec{NodeName: node, TerminationGracePeriodSeconds: &none,
		RuntimeClassName: &class, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, Containers: []corev1.Container{{Name: "main",
			Image: probe, ImagePullPolicy: corev1.PullNever, Env: []corev1.EnvVar{{Name: "NVIDIA_VISIBLE_DEVICES", Value: "all"}},
			Resources: corev1.ResourceRequirements{Limits: limits}}}}}
	_, err := n.Client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	must(n.t, err)
}

// sees is the card that NVIDIA's runtime would give to the container of a pod; it must be that of the placement.
func (n *newcomer) sees(name string) string {
	n.t.Helper()
	card, _, _ := n.seesOf(name)
	return card
}

func (n *newcomer) seesOf(name string) (card string, is kit.Share, environment map[string]string) {
	n.t.Helper()
	var found struct{ Environment map[string]string }
	pods := n.Client.CoreV1().Pods("default")
	var pod *corev1.Pod
	n.await(time.Minute, name+" says what it was given", func() (done bool, err error) {
		if pod, err = pods.Get(ctx, name, metav1.GetOptions{}); err != nil || pod.Status.Phase != corev1.PodRunning {
			return false, fmt.Errorf("%v %+v", err, pod.Status)
		}
		text, err := pods.GetLogs(name, &corev1.PodLogOptions{}).DoRaw(ctx)
		if err != nil {
			return false, err
		}
		return json.Unmarshal(text, &found) == nil, fmt.Errorf("%s", text)
	})
	placement, err := kit.PlacementOf(pod)
	must(n.t, err)
	if placement == nil || len(placement.Containers["main"]) != 1 {
		n.t.Fatalf("%s has the placement %+v", name, placement)
	}
	is = placement.Containers["main"][0]
	card = is.Card
	if found.Environment["NVIDIA_VISIBLE_DEVICES"] != card {
		n.t.Errorf("%s was placed on %s, and sees %+v", name, card, found)
	}
	return card, is, found.Environment
}
