package faults

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"quartermaster.io/test/faults/kit"
)

const (
	fpga    = "example.com/fpga"
	cardMiB = 15360
	eight   = 8
	podsIn  = "default"
)

// peer: the program under test is the Go extender of bench/peers. It shows that these tests can pass without a line of our code.
func peer() bool { return strings.HasPrefix(filepath.Base(program), "peer-") }

// hall is a bench with a real scheduler in it that asks the operator's extender, through a tap; and a checker that reads only the API.
type hall struct {
	*bench
	keys    kit.Keys
	tap     *kit.Tap
	sched   *kit.Scheduler
	backoff int // of kube-scheduler, in seconds
	book    *kit.PlacementBook
	address string // of the extender of the operator that was started last
	direct  *kit.Extender
	proxies []*kit.Proxy
	opened  time.Time     // before any operator ran
	ahead   time.Duration // of operators that start from now on: their day
}

// holdHall prepares the cluster: nodes of these modes, nothing else; and starts one operator and the second scheduler.
func holdHall(t *testing.T, nodes map[string]int, args ...string) *hall {
	t.Helper()
	h := emptyHall(t, nodes)
	h.open(h.proxy("first"), args...)
	return h
}

// proxy between the API server and an operator of that name; it ends after the operators.
func (h *hall) proxy(name string) *kit.Proxy {
	h.t.Helper()
	p, err := kit.NewProxy(name, h.Config, h.dir)
	h.must(err)
	p.Ahead = h.ahead
	h.proxies = append(h.proxies, p)
	return p
}

func emptyHall(t *testing.T, nodes map[string]int) *hall {
	t.Helper()
	return followedHall(t, "extender", nodes)
}

// followedHall is empty, in that lane, and its book is fed.
func followedHall(t *testing.T, name string, nodes map[string]int) *hall {
	t.Helper()
	h := emptyHallIn(t, name, form(15*time.Minute, time.Hour), nodes)
	h.must(h.book.Follow(h.ctx, h.Cluster))
	return h
}

// emptyHallIn a lane whose cluster is started with these arguments, for so long. Its book is not fed.
func emptyHallIn(t *testing.T, name string, patience time.Duration, nodes map[string]int, up ...string) *hall {
	t.Helper()
	if out, _ := exec.Command(program, "controller", "--help").CombinedOutput(); !peer() && !strings.Contains(string(out), "--extender-address") {
		t.Skip("this program has no extender")
	}
	t.Parallel()
	l := lanes[name]
	l.mu.Lock()
	t.Cleanup(l.mu.Unlock)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	b := &bench{t: t, ctx: ctx, dir: folder(t), began: time.Now()}
	h := &hall{bench: b, backoff: 1}
	if l.scenario == nil {
		cluster, err := kit.Up(ctx, prefix+"-"+name, minor, up...)
		if err != nil {
			t.Fatal(err)
		}
		if l.scenario, err = kit.InstallExtender(ctx, cluster); err != nil {
			t.Fatal(err)
		}
	}
	b.Scenario = l.scenario
	h.clear()
	h.must(b.Wipe(ctx))
	h.rights()
	b.Expected = kit.Expected{Modules: map[string]bool{}, Nodes: map[string]string{}, Declarations: map[string]string{}}
	h.must(b.SetModules(ctx, map[string]bool{"pgpu": true, "vgpu": true, "mps": true}))
	on := map[string]any{}
	for _, module := range []string{"hami", "share", "gpushare"} {
		on[module] = map[string]any{"enabled": true}
	}
	h.must(b.patchPolicy(map[string]any{"modules": on}))
	b.enrol(map[string]any{"maxUnavailable": 100000})
	h.must(b.Declare(ctx, "cf-crl-example-fpga", map[string]string{"key": fpga, "dataType": "integer", "defaultValue": "1", "group": "example-fpga",
		"descriptionEn": "cards", "descriptionZh": "fpga", "limits": "optional", "requests": "disabled"}))
	h.makeNodes(nodes)
	var err error
	b.token, err = b.Token(ctx, nil)
	h.must(err)
	h.keys, err = kit.MakeKeys(b.dir)
	h.must(err)
	h.tap, err = kit.NewTap(h.keys)
	h.must(err)
	t.Cleanup(h.tap.Close)
	h.book, err = b.PlacementBook(ctx, fpga)
	h.must(err)
	b.began, h.opened = time.Now(), time.Now()
	t.Cleanup(h.end)
	return h
}

// open starts the operator behind this proxy, and the scheduler, and waits until both work.
func (h *hall) open(p *kit.Proxy, args ...string) *kit.Operator {
	h.t.Helper()
	o := h.startExtender(p, args...)
	h.must(o.WaitReady(30 * time.Second))
	h.awaitServing(h.address, 30*time.Second)
	h.enrolled(o)
	h.openScheduler()
	return o
}

func (h *hall) openScheduler() {
	h.t.Helper()
	s, err := kit.StartScheduler(h.ctx, h.Cluster, h.dir, h.tap.URL, h.keys, h.backoff)
	h.must(err)
	h.sched = s
	h.t.Cleanup(func() {
		if !s.Running() {
			h.t.Errorf("kube-scheduler ended:\n%s", s.Tail(10))
		}
		s.Close()
	})
}

// startExtender starts one more operator; the tap asks it first.
func (h *hall) startExtender(p *kit.Proxy, args ...string) *kit.Operator {
	h.t.Helper()
	port, err := kit.FreePort()
	h.must(err)
	h.address = fmt.Sprintf("127.0.0.1:%d", port)
	o := h.startBehind(p, append(h.keys.ExtenderArgs(h.address), args...)...)
	h.tap.To(h.address)
	h.direct, err = kit.DialExtender(h.address, h.keys)
	h.must(err)
	return o
}

// awaitServing waits until the extender answers and knows every node.
func (h *hall) awaitServing(address string, patience time.Duration) {
	h.t.Helper()
	patience = kit.Patient(patience)
	to, err := kit.DialExtender(address, h.keys)
	h.must(err)
	defer to.Client.CloseIdleConnections()
	names := h.nodeNames("")
	ask := pod("probe", map[string]string{"nvidia.com/gpu": "1"})
	ask.UID = "5a1f0d0e-0000-4000-8000-000000000000"
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		answer, err := to.Filter(h.ctx, ask, names)
		if err == nil && answer.NodeNames != nil && answer.Error == "" {
			return
		}
		if time.Now().After(deadline) {
			h.must(fmt.Errorf("the extender at %s does not serve after %s: %v %s", address, patience, err, answer.Error))
		}
	}
}

// enrolled waits until the operator has taken its nodes in, so that no change of modes is under way.
func (h *hall) enrolled(o *kit.Operator) {
	h.t.Helper()
	if peer() {
		return
	}
	var last string
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		list, err := h.Dynamic.Resource(kit.AccelNodes).List(h.ctx, metav1.ListOptions{})
		h.must(err)
		ready, wanted := 0, len(h.nodeNames(""))
		last = ""
		for _, a := range list.Items {
			phase, _, _ := unstructured.NestedString(a.Object, "status", "phase")
			if phase == "Ready" {
				ready++
			} else {
				message, _, _ := unstructured.NestedString(a.Object, "status", "message")
				last = a.GetName() + ": " + phase + " " + message
			}
		}
		if ready == wanted {
			return
		}
		if time.Now().After(deadline) {
			h.must(fmt.Errorf("%d of %d nodes are enrolled: %s\n%s", ready, wanted, last, o.LogTail(5)))
		}
	}
}

// rights: ours are the chart's. The peer has a rule of its own, which must not be there when ours is tested.
func (h *hall) rights() {
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "peer-extender"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: kit.ServiceAccount, Namespace: kit.Namespace}}}
	if !peer() {
		if err := h.Client.RbacV1().ClusterRoleBindings().Delete(h.ctx, binding.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			h.must(err)
		}
		return
	}
	if _, err := h.Client.RbacV1().ClusterRoleBindings().Create(h.ctx, binding, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		h.must(err)
	}
}

// clear takes all pods and nodes away.
func (h *hall) clear() {
	now := int64(0)
	at := metav1.DeleteOptions{GracePeriodSeconds: &now}
	ctx := context.Background()
	_ = h.Client.CoreV1().Pods(podsIn).DeleteCollection(ctx, at, metav1.ListOptions{})
	_ = h.Client.CoreV1().Nodes().DeleteCollection(ctx, at, metav1.ListOptions{})
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		left, err := h.Client.CoreV1().Pods(podsIn).List(ctx, metav1.ListOptions{})
		if err == nil && len(left.Items) == 0 {
			return
		}
		_ = h.Client.CoreV1().Pods(podsIn).DeleteCollection(ctx, at, metav1.ListOptions{})
	}
}

// end: O2 over all that happened, and once more from one list.
func (h *hall) end() {
	h.t.Helper()
	now, err := kit.WrongNow(context.Background(), h.Cluster, fpga)
	if err != nil {
		h.t.Error(err)
	}
	h.clean(append(h.book.Wrong(), now...))
	if h.t.Failed() {
		for _, o := range h.ops {
			h.t.Logf("operator %s says:\n%s", o.Name, o.LogTail(12))
		}
		calls := h.tap.Calls(time.Time{})
		for _, c := range calls[max(0, len(calls)-25):] {
			h.t.Log(c)
		}
	}
	h.bench.end()
	for _, p := range h.proxies {
		p.Close()
	}
	h.clear()
}

// offers are what a node of a mode with eight cards advertises.
var offers = map[string]map[string]int64{
	"vgpu":     {"tencent.com/vcuda-core": 800, "tencent.com/vcuda-memory": eight * cardMiB / 256},
	"pgpu":     {"nvidia.com/gpu": eight, fpga: 4},
	"hami":     {"nvidia.com/gpualloc": 80},
	"gpushare": {"aliyun.com/gpu-mem": eight * cardMiB / 1024, "aliyun.com/gpu-count": eight},
	"mps":      {"nvidia.com/mps-core": 800, "nvidia.com/mps-memory": eight * cardMiB / 1024},
}

// makeNodes: `vgpu: 2` makes vgpu-0 and vgpu-1; `vgpu/1: 1` makes one with one card.
func (h *hall) makeNodes(of map[string]int) {
	h.t.Helper()
	for mode, count := range of {
		mode, cards := mode, eight
		if name, number, said := strings.Cut(mode, "/"); said {
			mode = name
			_, err := fmt.Sscan(number, &cards)
			h.must(err)
		}
		for i := range count {
			name := fmt.Sprintf("%s-%d", mode, i)
			amounts := corev1.ResourceList{"cpu": resource.MustParse("512"), "memory": resource.MustParse("4Ti"), "pods": resource.MustParse("2000")}
			for key, amount := range offers[mode] {
				if key != fpga {
					amount = amount * int64(cards) / eight
				}
				amounts[corev1.ResourceName(key)] = *resource.NewQuantity(amount, resource.DecimalSI)
			}
			labels := map[string]string{kit.ModuleLabel: mode, kit.AskLabel: mode, "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
				"nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.count": fmt.Sprint(cards), "nvidia.com/gpu.memory": fmt.Sprint(cardMiB),
				"nvidia.com/gpu.family": "turing", "nvidia.com/gpu.compute.major": "7", "nvidia.com/gpu.compute.minor": "5", "nvidia.com/mig.strategy": "none",
				"nvidia.com/cuda.driver-version.full": "535.183.01", "nvidia.com/cuda.driver-version.major": "535", "nvidia.com/cuda.driver-version.minor": "183",
				"nvidia.com/cuda.runtime-version.full": "12.2", "nvidia.com/cuda.runtime-version.major": "12", "nvidia.com/cuda.runtime-version.minor": "2",
				"feature.node.kubernetes.io/pci-10de.present": "true"}
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Status: corev1.NodeStatus{Capacity: amounts, Allocatable: amounts,
				NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.37.2", Architecture: "amd64", OperatingSystem: "linux", KernelVersion: "6.8.0", ContainerRuntimeVersion: "cri-o://1.33.2"}}}
			if mode == "hami" {
				node.Annotations = map[string]string{kit.HamiRegisterKey: kit.HamiRegister(name, "Tesla-T4", int64(cards), cardMiB)}
			}
			_, err := h.Client.CoreV1().Nodes().Create(h.ctx, node, metav1.CreateOptions{})
			h.must(err)
		}
	}
	want := 0
	for _, count := range of {
		want += count
	}
	for deadline := time.Now().Add(kit.Patient(30 * time.Second)); ; time.Sleep(50 * time.Millisecond) {
		list, err := h.Client.CoreV1().Nodes().List(h.ctx, metav1.ListOptions{})
		h.must(err)
		ready := 0
		for _, n := range list.Items {
			if len(n.Spec.Taints) == 0 && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == "Ready" && c.Status == "True" }) {
				ready++
			}
		}
		if ready == want {
			return
		}
		if time.Now().After(deadline) {
			h.must(fmt.Errorf("%d of %d nodes are ready", ready, want))
		}
	}
}

func (h *hall) nodeNames(mode string) (names []string) {
	h.t.Helper()
	list, err := h.Client.CoreV1().Nodes().List(h.ctx, metav1.ListOptions{ResourceVersion: "0"})
	h.must(err)
	for _, n := range list.Items {
		if mode == "" || n.Labels[kit.ModuleLabel] == mode {
			names = append(names, n.Name)
		}
	}
	return
}

// pod of one container for the scheduler under test.
func pod(name string, limits map[string]string) *corev1.Pod {
	return &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: podsIn},
		Spec: corev1.PodSpec{SchedulerName: kit.SchedulerName, Containers: []corev1.Container{container("main", limits)}, TerminationGracePeriodSeconds: new(int64)}}
}

func container(name string, limits map[string]string) corev1.Container {
	list := corev1.ResourceList{}
	for key, amount := range limits {
		list[corev1.ResourceName(key)] = resource.MustParse(amount)
	}
	return corev1.Container{Name: name, Image: "x", Resources: corev1.ResourceRequirements{Limits: list}}
}

func (h *hall) create(p *corev1.Pod) *corev1.Pod {
	h.t.Helper()
	made, err := h.Client.CoreV1().Pods(p.Namespace).Create(h.ctx, p, metav1.CreateOptions{})
	h.must(err)
	return made
}

func (h *hall) remove(name string) {
	h.t.Helper()
	now := int64(0)
	if err := h.Client.CoreV1().Pods(podsIn).Delete(h.ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil && !apierrors.IsNotFound(err) {
		h.must(err)
	}
}

func (h *hall) get(name string) *corev1.Pod {
	h.t.Helper()
	p, err := h.Client.CoreV1().Pods(podsIn).Get(h.ctx, name, metav1.GetOptions{})
	h.must(err)
	return p
}

// awaitBound returns the pod when it is on a node.
func (h *hall) awaitBound(name string, patience time.Duration) *corev1.Pod {
	h.t.Helper()
	patience = kit.Patient(patience)
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		p := h.get(name)
		if p.Spec.NodeName != "" {
			return p
		}
		if time.Now().After(deadline) {
			h.must(fmt.Errorf("pod %s is on no node after %s: %s", name, patience, whyPending(p)))
		}
	}
}

func whyPending(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c.Reason + ": " + c.Message
		}
	}
	return "the scheduler has said nothing of it"
}

// placementOf a bound pod, which must have one.
func (h *hall) placementOf(p *corev1.Pod) *kit.Placement {
	h.t.Helper()
	has, err := kit.PlacementOf(p)
	h.must(err)
	if has == nil {
		h.must(fmt.Errorf("pod %s on node %s has no placement; annotations: %v", p.Name, p.Spec.NodeName, p.Annotations))
	}
	return has
}

// S8, S11, S50, S60, S69: one pod of each vocabulary is bound by the real scheduler, with its placement and what the node's plugin reads.
func TestS50_S60_a_pod_of_each_vocabulary_is_bound_with_its_placement(t *testing.T) {
	h := holdHall(t, map[string]int{"vgpu": 1, "hami": 1, "pgpu": 1, "gpushare": 1, "mps": 1})
	pods := map[string]struct {
		node   string
		limits map[string]string
		has    []kit.Share
		also   map[string]string // annotations; "*": any
	}{
		"vcuda":       {"vgpu-0", map[string]string{"tencent.com/vcuda-core": "20", "tencent.com/vcuda-memory": "8"}, []kit.Share{{Cores: 20, MemoryMiB: 2048}}, map[string]string{"tencent.com/predicate-node": "vgpu-0", "tencent.com/gpu-assigned": "false", "tencent.com/predicate-time": "*", "tencent.com/predicate-gpu-idx-0": "*"}},
		"vcuda-whole": {"vgpu-0", map[string]string{"tencent.com/vcuda-core": "200", "tencent.com/vcuda-memory": "120"}, []kit.Share{{Whole: true, Cores: 100, MemoryMiB: cardMiB}, {Whole: true, Cores: 100, MemoryMiB: cardMiB}}, nil},
		"hami":        {"hami-0", map[string]string{"nvidia.com/gpualloc": "1", "nvidia.com/gpumem": "4000", "nvidia.com/gpucores": "30"}, []kit.Share{{Cores: 30, MemoryMiB: 4000}}, map[string]string{"hami.io/vgpu-node": "hami-0", "hami.io/vgpu-time": "*", "hami.io/vgpu-devices-to-allocate": "*", "hami.io/bind-phase": "allocating"}},
		"hami-two":    {"hami-0", map[string]string{"nvidia.com/gpualloc": "2", "nvidia.com/gpumem-percentage": "50"}, []kit.Share{{MemoryMiB: cardMiB / 2}, {MemoryMiB: cardMiB / 2}}, nil},
		"pgpu":        {"pgpu-0", map[string]string{"nvidia.com/gpu": "1"}, []kit.Share{{Whole: true, Cores: 100, MemoryMiB: cardMiB}}, nil},
		"gpushare":    {"gpushare-0", map[string]string{"aliyun.com/gpu-mem": "3"}, []kit.Share{{MemoryMiB: 3072}}, map[string]string{"ALIYUN_COM_GPU_MEM_IDX": "*", "ALIYUN_COM_GPU_MEM_POD": "3", "ALIYUN_COM_GPU_MEM_ASSIGNED": "false", "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "*"}},
		"mps":         {"mps-0", map[string]string{"nvidia.com/mps-core": "50", "nvidia.com/mps-memory": "4"}, []kit.Share{{Cores: 50, MemoryMiB: 4096}}, nil},
		"fpga":        {"pgpu-0", map[string]string{fpga: "2"}, nil, nil},
	}
	for name, one := range pods {
		h.create(pod(name, one.limits))
	}
	for name, one := range pods {
		p := h.awaitBound(name, 30*time.Second)
		if p.Spec.NodeName != one.node {
			t.Errorf("pod %s is on node %s, not on %s", name, p.Spec.NodeName, one.node)
			continue
		}
		has := h.placementOf(p)
		got := slices.Clone(has.Containers["main"])
		for i := range got {
			if got[i].Card == "" {
				t.Errorf("pod %s has a share of a card without name: %+v", name, has)
			}
			got[i].Card = ""
		}
		if !slices.Equal(got, one.has) {
			t.Errorf("pod %s has %+v, not %+v", name, got, one.has)
		}
		if has.V != 1 || has.Source != "planned" || has.Node != one.node {
			t.Errorf("pod %s: %s", name, p.Annotations[kit.PlacementKey])
		}
		for key, want := range one.also {
			if value, there := p.Annotations[key]; !there || (want != "*" && value != want) {
				t.Errorf("pod %s has annotation %s=%q, want %q", name, key, value, want)
			}
		}
	}
	if p := h.get("fpga"); h.placementOf(p).Counts[fpga] != 2 {
		t.Errorf("pod fpga: %s", p.Annotations[kit.PlacementKey])
	}
	// A pod that fits nowhere waits, and the scheduler gets the reason.
	h.create(pod("too-large", map[string]string{"tencent.com/vcuda-core": "50", "tencent.com/vcuda-memory": "100"}))
	h.awaitReason("too-large", "memory", 15*time.Second)
	// A pod that asks for none of our resources is not our matter, but it is bound.
	h.create(pod("plain", map[string]string{"cpu": "1"}))
	h.awaitBound("plain", 20*time.Second)
	for _, c := range h.tap.Calls(h.began) {
		if c.Status != 200 {
			t.Errorf("a call without a fault was not answered: %s", c)
		}
	}
}

// S52: the names of HAMi's resources are configurable. What the kubelet of a node does not advertise is not served there, whatever else the words of
// its mode are: `nvidia.com/gpu` is no slot where the slots are `nvidia.com/gpualloc`.
func TestS52_a_key_is_served_where_the_kubelet_offers_it(t *testing.T) {
	h := holdHall(t, map[string]int{"hami": 1, "pgpu": 1})
	for key, where := range map[string]string{"nvidia.com/gpu": "pgpu-0", "nvidia.com/gpualloc": "hami-0"} {
		probe := pod("probe-"+where, map[string]string{key: "1"})
		probe.UID = types.UID("5a1f0d0e-0000-4000-8000-00000000" + fmt.Sprintf("%04x", len(key)))
		if answer, err := h.direct.Filter(h.ctx, probe, h.nodeNames("")); err != nil || answer.NodeNames == nil || !slices.Equal(*answer.NodeNames, []string{where}) {
			t.Errorf("%s is offered by %s alone, and the answer is %+v, %v", key, where, answer, err)
		}
	}
}

// S14: a pod of higher priority may take the place of a lower one; the scheduler asks us which going would help.
func TestS14_a_pod_of_higher_priority_gets_the_card_long(t *testing.T) {
	h := holdHall(t, map[string]int{"vgpu/1": 1})
	share := map[string]string{"tencent.com/vcuda-core": "60", "tencent.com/vcuda-memory": "8"}
	h.create(pod("low", share))
	h.awaitBound("low", 20*time.Second)
	high := pod("high", share)
	high.Spec.PriorityClassName = h.highPriority()
	h.create(high)
	h.awaitBound("high", 30*time.Second)
	if _, err := h.Client.CoreV1().Pods(podsIn).Get(h.ctx, "low", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("there is one card with room for one of them, and pod low is still there: %v", err)
	}
	if !slices.ContainsFunc(h.tap.Calls(h.began), func(c kit.Call) bool { return c.Verb == "preempt" && c.Status == 200 }) {
		t.Error("the extender was not asked about preemption")
	}
}

// awaitReason waits until the pod's condition says that it cannot be scheduled, in words that contain this.
func (h *hall) awaitReason(name, says string, patience time.Duration) {
	h.t.Helper()
	patience = kit.Patient(patience)
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		why := whyPending(h.get(name))
		if strings.HasPrefix(why, corev1.PodReasonUnschedulable) && strings.Contains(why, says) {
			return
		}
		if time.Now().After(deadline) {
			h.t.Errorf("after %s pod %s waits with %q, want Unschedulable with %q", patience, name, why, says)
			return
		}
	}
}
