package machine

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"quartermaster.io/test/faults/kit"
)

const (
	gpu       = "nvidia.com/gpu"
	mpsCores  = "nvidia.com/mps-core"
	mpsMemory = "nvidia.com/mps-memory"
)

// product is the chart's agent and our plugin on the machine; the operator and a scheduler that asks it run next to it.
type product struct {
	*kit.Product
	t *testing.T
}

func (p *product) await(patience time.Duration, what string, done func() (bool, error)) {
	p.t.Helper()
	await(p.t, patience, what, done)
}

// asks the machine.
func (p *product) asks(command string) string {
	p.t.Helper()
	text, err := vm.asks(time.Minute, command)
	must(p.t, err)
	return strings.TrimSpace(text)
}

// ready is a machine that is a node.
func ready(t *testing.T) *corev1.Node {
	t.Helper()
	err := kit.Until(ctx, 4*time.Minute, node+" is Ready", func() (bool, error) {
		select {
		case <-vm.ended:
			t.Fatal(vm.state())
		default:
		}
		if strings.Contains(vm.screen(), "Failed to start") {
			t.Fatal(vm.state())
		}
		return cluster.NodeReady(ctx, node)
	})
	if err != nil {
		t.Fatal(err, vm.state())
	}
	is, err := cluster.Client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	must(t, err)
	return is
}

// install the product, with the node in this mode, and wait until its plugin offers so many of the resource.
func install(t *testing.T, mode string, key corev1.ResourceName, number int64) *product {
	t.Helper()
	ready(t)
	tag, err := os.ReadFile(filepath.Join(kit.Root(), "VERSION"))
	must(t, err)
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: kit.NvidiaRuntime}, Handler: kit.NvidiaRuntime}
	_, err = cluster.Client.NodeV1().RuntimeClasses().Create(ctx, class, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() { cluster.Client.NodeV1().RuntimeClasses().Delete(ctx, class.Name, metav1.DeleteOptions{}) })
	image := registry + "/quartermaster:" + strings.TrimSpace(string(tag))
	policy := map[string]any{"scheduler": map[string]any{"mode": "None"}, "customResources": map[string]any{"publish": false}, "modules": map[string]any{
		"pgpu": map[string]any{"enabled": true, "image": image, "imagePullPolicy": "Never", "settings": map[string]any{"plugin": "quartermaster"}},
		"mps":  map[string]any{"enabled": true, "image": image, "imagePullPolicy": "Never", "runtimeClassName": kit.NvidiaRuntime}}}
	p := &product{t: t, Product: kit.StartProduct(ctx, t, cluster, policy, "image.registry="+registry, "image.pullPolicy=Never", "agent.enabled=true",
		"agent.runtimeClassName="+kit.NvidiaRuntime, "agent.metrics.port=9402", "agent.metrics.processes=true")}
	t.Cleanup(p.tell)
	scheduler, err := kit.StartScheduler(ctx, cluster, p.Work, "https://"+p.Address+"/scheduler", p.Keys, 1)
	must(t, err)
	t.Cleanup(scheduler.Close)
	p.asksFor(mode, key, number)
	return p
}

// asksFor a mode, and waits until the node is in it and offers so many of the resource.
func (p *product) asksFor(mode string, key corev1.ResourceName, number int64) {
	p.t.Helper()
	must(p.t, p.PatchNode(ctx, node, map[string]any{"metadata": map[string]any{"labels": map[string]any{kit.AskLabel: mode}}}))
	p.await(4*time.Minute, fmt.Sprintf("the node offers %d %s", number, key), func() (bool, error) {
		is, err := cluster.Client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		has := is.Status.Allocatable[key]
		return has.Value() == number, fmt.Errorf("%v", is.Status.Allocatable)
	})
	p.AwaitPhase(ctx, 2*time.Minute, node, mode, "Ready")
}

// tell what helps to understand a failure.
func (p *product) tell() {
	if !p.t.Failed() {
		return
	}
	text, err := cluster.Run("", "kubectl", "get", "pods,events", "--all-namespaces", "-o", "wide")
	p.t.Log(text, err)
	text, err = vm.asks(30*time.Second, "for log in /var/log/pods/*/*/*.log; do echo \"$log\"; tail -n 8 \"$log\"; done")
	p.t.Log(text, err)
	p.t.Log(vm.state())
}

// create a pod of the probe with these limits, on the node past any scheduler where it is not empty.
func (p *product) create(name, node string, limits corev1.ResourceList) *corev1.Pod {
	p.t.Helper()
	none, class := int64(0), kit.NvidiaRuntime
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: corev1.PodSpec{NodeName: node, SchedulerName: kit.SchedulerName,
		TerminationGracePeriodSeconds: &none, RuntimeClassName: &class, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers: []corev1.Container{{Name: "main", Image: probe, ImagePullPolicy: corev1.PullNever,
			Resources: corev1.ResourceRequirements{Limits: limits}}}}}
	pod, err := cluster.Client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	must(p.t, err)
	p.t.Cleanup(func() { cluster.Client.CoreV1().Pods("default").Delete(ctx, name, metav1.DeleteOptions{}) })
	return pod
}

// gone waits until the pod is.
func (p *product) gone(name string) {
	p.t.Helper()
	p.await(time.Minute, name+" is gone", func() (bool, error) {
		_, err := cluster.Client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), err
	})
}

// given is what the probe has found in its container.
type given struct {
	Environment  map[string]string
	Devices, Smi []string
}

var numbered = regexp.MustCompile(`^/dev/nvidia\d+$`)

// runs waits until the pod does, and says what its container was given by its placement and what it sees from inside.
func (p *product) runs(name string) (pod *corev1.Pod, is kit.Share, found given) {
	p.t.Helper()
	p.await(2*time.Minute, name+" runs", func() (done bool, err error) {
		pod, err = cluster.Client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		return err == nil && pod.Status.Phase == corev1.PodRunning, fmt.Errorf("%v %+v", err, pod.Status)
	})
	p.await(time.Minute, name+" says what it was given", func() (bool, error) {
		text, err := vm.asks(20*time.Second, fmt.Sprintf("sed 's/^[^ ]* stdout F //' /var/log/pods/default_%s_%s/main/0.log", name, pod.UID))
		return err == nil && json.Unmarshal([]byte(text), &found) == nil, fmt.Errorf("%s %v", text, err)
	})
	placement, err := kit.PlacementOf(pod)
	must(p.t, err)
	if placement == nil || len(placement.Containers["main"]) != 1 {
		p.t.Fatalf("%s has the placement %+v", name, placement)
	}
	p.t.Logf("%s: %+v", name, found)
	is = placement.Containers["main"][0]
	var cards []string
	for _, device := range found.Devices {
		if numbered.MatchString(device) {
			cards = append(cards, device)
		}
	}
	// The last digit of a UUID of the fixture is the card's number.
	if wanted := []string{"/dev/nvidia" + is.Card[len(is.Card)-1:]}; found.Environment["NVIDIA_VISIBLE_DEVICES"] != is.Card || !slices.Equal(cards, wanted) {
		p.t.Errorf("%s was placed on %s, and sees %+v", name, is.Card, found)
	}
	return pod, is, found
}

// containerOf is the ID of the pod's container.
func containerOf(pod *corev1.Pod) string {
	_, id, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
	return id
}

// process of the pod's container, by its number on the machine.
func (p *product) process(pod *corev1.Pod) int {
	p.t.Helper()
	text := p.asks("grep -l " + containerOf(pod) + " /proc/[0-9]*/cgroup | head -1 | cut -d/ -f3")
	number, err := strconv.Atoi(text)
	if err != nil {
		p.t.Fatalf("no process of %s: %q", pod.Name, text)
	}
	return number
}

// A kernel with cgroup version 2 alone, systemd as process 1, and a kubelet and containerd that keep pods in systemd's slices.
func TestAMachineOfTodayIsANode(t *testing.T) {
	is := ready(t).Status.NodeInfo
	t.Logf("%+v", is)
	if !strings.Contains(is.KernelVersion, "cloud") || !strings.HasPrefix(is.ContainerRuntimeVersion, "containerd://2.") || !strings.HasPrefix(is.KubeletVersion, "v"+kit.Minor()+".") {
		t.Errorf("the node is %+v", is)
	}
	for command, wanted := range map[string]string{
		"stat --file-system --format %T /sys/fs/cgroup": "cgroup2fs",
		"cat /proc/1/comm": "systemd",
		"systemctl show --property ControlGroup --value kubepods.slice": "/kubepods.slice",
		"cut -d: -f1,2 /proc/self/cgroup":                               "0:",
	} {
		if text, err := vm.asks(time.Minute, command); err != nil || strings.TrimSpace(text) != wanted {
			t.Errorf("%s: %q %v, not %q", command, text, err, wanted)
		}
	}
}

// The product on that machine: the agent, without root, sees its cgroups, runtime and cards; the plugin binds late, by CDI, what the scheduler has
// placed; and what a process uses of a card is counted to its pod, whose cgroup the agent sees from a cgroup namespace of its own.
func TestTheProductOnAMachineOfToday(t *testing.T) {
	p := install(t, "pgpu", gpu, 2)
	t.Run("the agent reports its cgroups and runtime", (&facts{p}).test)

	whole := corev1.ResourceList{gpu: resource.MustParse("1")}
	p.create("first", "", whole)
	p.create("second", "", whole)
	first, one, _ := p.runs("first")
	second, other, _ := p.runs("second")
	if one.Card == other.Card {
		t.Errorf("two pods see card %s", one.Card)
	}
	slice := "kubepods-besteffort-pod" + strings.ReplaceAll(string(first.UID), "-", "_") + ".slice"
	wanted := "0::/kubepods.slice/kubepods-besteffort.slice/" + slice + "/cri-containerd-" + containerOf(first) + ".scope"
	process := p.process(first)
	if is := p.asks(fmt.Sprintf("cat /proc/%d/cgroup", process)); is != wanted {
		t.Errorf("first is in %s, not in %s", is, wanted)
	}

	t.Run("use is counted to pods", func(t *testing.T) {
		p := &product{p.Product, t}
		p.countsUse(use{first, one.Card, process}, use{second, other.Card, p.process(second)})
	})
	t.Run("a pod past the scheduler does not start", func(t *testing.T) {
		p := &product{p.Product, t}
		pods := cluster.Client.CoreV1().Pods("default")
		must(t, pods.Delete(ctx, "second", metav1.DeleteOptions{}))
		p.gone("second")
		p.create("past-the-scheduler", node, whole)
		p.await(time.Minute, "it says why", func() (bool, error) {
			pod, err := pods.Get(ctx, "past-the-scheduler", metav1.GetOptions{})
			if err != nil || len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].State.Waiting == nil {
				return false, fmt.Errorf("%v %+v", err, pod.Status)
			}
			waiting := pod.Status.ContainerStatuses[0].State.Waiting
			return strings.Contains(waiting.Message, "pod default/past-the-scheduler was not placed"), fmt.Errorf("%+v", waiting)
		})
	})
	t.Run("shares after the mode has changed", func(t *testing.T) {
		must(t, cluster.Client.CoreV1().Pods("default").Delete(ctx, "first", metav1.DeleteOptions{}))
		p := &product{p.Product, t}
		p.hasCards() // without processes, which MPS would wait for
		p.asksFor("mps", mpsCores, 200)
		p.hasShares()
	})
}

// facts are the agent's report of the machine.
type facts struct{ *product }

func (f *facts) test(t *testing.T) {
	var rows []any
	await(t, 2*time.Minute, "the agent has reported", func() (bool, error) {
		object, err := f.Dynamic.Resource(kit.AccelNodes).Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		rows, _, err = unstructured.NestedSlice(object.Object, "status", "preflight")
		return len(rows) > 0, err
	})
	found := map[string]string{}
	for _, row := range rows {
		is := row.(map[string]any)
		found[fmt.Sprint(is["check"])] = fmt.Sprint(is["state"], " ", is["found"])
		t.Log(is)
	}
	for check, wanted := range map[string]string{"cgroup": "ok v2", "container_runtime": "ok containerd", "device_nodes": "ok"} {
		if !strings.HasPrefix(found[check], wanted) {
			t.Errorf("%s is %q, not %q", check, found[check], wanted)
		}
	}
}

// use of a card by a process of a pod.
type use struct {
	pod     *corev1.Pod
	card    string
	process int
}

// hasCards: the machine's are so from now on.
func (p *product) hasCards(changes ...func(card map[string]any)) {
	p.t.Helper()
	text, err := cards(changes...)
	must(p.t, err)
	p.asks(fmt.Sprintf("echo '%s' >/var/lib/cards/new && mv /var/lib/cards/new /var/lib/cards/node.json", text))
}

// countsUse: processes of the pods and one of the machine itself use the cards, and the agent says whose that is.
func (p *product) countsUse(uses ...use) {
	p.t.Helper()
	list, err := cluster.Client.CoreV1().Pods(kit.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=quartermaster-agent"})
	must(p.t, err)
	if len(list.Items) != 1 {
		p.t.Fatalf("%d agents", len(list.Items))
	}
	agent := &list.Items[0]
	seen := p.asks(fmt.Sprintf("nsenter --target %d --cgroup cat /proc/%d/cgroup", p.process(agent), uses[0].process))
	if !strings.HasPrefix(seen, "0::/../") {
		p.t.Errorf("the agent has no cgroup namespace of its own: it sees %s", seen)
	}
	p.t.Logf("the agent sees the pod's cgroup as %s", seen)

	own, err := strconv.Atoi(p.asks("systemctl show --property MainPID --value containerd"))
	must(p.t, err)
	p.hasCards(func(card map[string]any) {
		for i, use := range uses {
			if card["uuid"] == use.card {
				card["memory_used_mib"] = 2000
				card["processes"] = []any{map[string]any{"pid": use.process, "memory_mib": 1000 + i}, map[string]any{"pid": own, "memory_mib": 300}}
			}
		}
	})
	const mib = 1 << 20
	p.await(time.Minute, "metrics say whose it is", func() (bool, error) {
		page, err := vm.asks(20*time.Second, fmt.Sprintf("(exec 3<>/dev/tcp/%s/9402; printf 'GET /metrics HTTP/1.0\\r\\n\\r\\n' >&3; grep -E '^quartermaster_(share_memory_used|share_processes|card_unattributed_memory)' <&3)", agent.Status.PodIP))
		if err != nil {
			return false, err
		}
		for i, use := range uses {
			for series, wanted := range map[string]int{
				fmt.Sprintf(`share_memory_used_bytes{.*uuid="%s".*namespace="default",pod="%s",container="main"`, use.card, use.pod.Name): (1000 + i) * mib,
				fmt.Sprintf(`share_processes{.*uuid="%s".*namespace="default",pod="%s",container="main"`, use.card, use.pod.Name):         1,
				fmt.Sprintf(`card_unattributed_memory_bytes{.*uuid="%s".*reason="host"`, use.card):                                        300 * mib,
				fmt.Sprintf(`card_unattributed_memory_bytes{.*uuid="%s".*reason="unknown_pod"`, use.card):                                 0,
			} {
				match := regexp.MustCompile(`(?m)^quartermaster_` + series + `.*} (\S+)$`).FindStringSubmatch(page)
				if match == nil {
					return false, fmt.Errorf("no %s in\n%s", series, page)
				}
				if is, err := strconv.ParseFloat(match[1], 64); err != nil || is != float64(wanted) {
					return false, fmt.Errorf("%s is %s, not %d, in\n%s", series, match[1], wanted, page)
				}
			}
		}
		return true, nil
	})
}
