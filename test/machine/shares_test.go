package machine

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"quartermaster.io/test/faults/kit"
)

// hasShares: the node is in mode mps. Each container sees the card and the limits of its placement, the driver limits the cgroups that systemd
// and the kubelet have made for it, and both go on when programs of the node are killed.
func (p *product) hasShares() {
	p.t.Helper()
	p.await(2*time.Minute, "the driver's limits hold on both cards", func() (bool, error) {
		found := p.cards("memoryLimits")
		return len(found) == 2 && found[0] == "Driver" && found[1] == "Driver", fmt.Errorf("%v", found)
	})
	third, two := p.runsShare("third-of-a-card", 30, 4), p.runsShare("two-thirds", 60, 8)
	other := p.runsShare("other-card", 90, 10)
	if third != two || third == other {
		p.t.Errorf("the shares are on cards %s, %s and %s", third, two, other)
	}

	times := p.taken()
	for _, unit := range []string{"containerd", "kubelet"} {
		before := p.asks("systemctl show --property MainPID --value " + unit)
		p.asks("systemctl kill --kill-who=main --signal=KILL " + unit)
		p.await(2*time.Minute, unit+" is back", func() (bool, error) {
			text, err := vm.asks(20*time.Second, "systemctl is-active "+unit+" && systemctl show --property MainPID --value "+unit)
			state, process, _ := strings.Cut(strings.TrimSpace(text), "\n")
			return err == nil && state == "active" && process != before, fmt.Errorf("%s %v", text, err)
		})
	}
	p.await(2*time.Minute, "the kubelet took both resources of the plugin again", func() (bool, error) {
		is := p.taken()
		return is >= times+2, fmt.Errorf("%d times, before %d", is, times)
	})
	if card := p.runsShare("after-the-kill", 10, 2); card != third {
		p.t.Errorf("after-the-kill is on card %s, which has no room: %s is the other", card, third)
	}

	// Only the card of a control daemon that dies is taken out.
	p.asks("kill -9 $(cat /run/quartermaster/mps/" + other + "/pipe/nvidia-cuda-mps-control.pid)")
	p.await(2*time.Minute, "its card is out of order", func() (bool, error) {
		uuids, health := p.cards("uuid"), p.cards("health")
		states := map[string]string{}
		for i, uuid := range uuids {
			states[uuid] = health[i]
		}
		return states[other] == "MpsFailed" && states[third] == "Healthy", fmt.Errorf("%v", states)
	})
	for _, name := range []string{"third-of-a-card", "two-thirds", "after-the-kill"} {
		pod, err := cluster.Client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		must(p.t, err)
		if pod.Status.Phase != corev1.PodRunning || pod.Status.ContainerStatuses[0].RestartCount > 0 {
			p.t.Errorf("%s: %+v", name, pod.Status)
		}
	}
}

// taken is how often the kubelet took a resource of the plugin. What the API says of its pod is of the last probe.
func (p *product) taken() int {
	p.t.Helper()
	out, err := strconv.Atoi(p.asks("cat /var/log/pods/*mps*/quartermaster-device-plugin/*.log | grep -c 'the kubelet took the device plugin'"))
	must(p.t, err)
	return out
}

// cards of the agent's report: a field of each, in the report's order.
func (p *product) cards(field string) (out []string) {
	p.t.Helper()
	object, err := p.Dynamic.Resource(kit.AccelNodes).Get(ctx, node, metav1.GetOptions{})
	must(p.t, err)
	list, _, err := unstructured.NestedSlice(object.Object, "status", "cards")
	must(p.t, err)
	for _, card := range list {
		out = append(out, fmt.Sprint(card.(map[string]any)[field]))
	}
	return out
}

// runsShare makes a pod with a share, and compares what its container sees and what the driver limits with its placement.
func (p *product) runsShare(name string, cores, gib int64) (card string) {
	p.t.Helper()
	p.create(name, "", corev1.ResourceList{mpsCores: *resource.NewQuantity(cores, resource.DecimalSI), mpsMemory: *resource.NewQuantity(gib, resource.DecimalSI)})
	pod, is, found := p.runs(name)
	memory := gib << 10
	if is.Cores != cores || is.MemoryMiB != memory {
		p.t.Errorf("%s was placed with %+v", name, is)
	}
	for variable, wanted := range map[string]string{"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": fmt.Sprint(cores),
		"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": fmt.Sprintf("0=%dM", memory), "NVIDIA_GPU_MEMORY_LIMIT": fmt.Sprint(memory)} {
		if found.Environment[variable] != wanted {
			p.t.Errorf("%s sees %s=%q, not %q", name, variable, found.Environment[variable], wanted)
		}
	}
	if by := pod.Annotations["quartermaster.io/isolation"]; by != "driver" {
		p.t.Errorf("%s is kept apart by %q", name, by)
	}
	slice := "/sys/fs/cgroup/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + strings.ReplaceAll(string(pod.UID), "-", "_") + ".slice"
	for _, cgroup := range []string{slice, slice + "/cri-containerd-" + containerOf(pod) + ".scope"} {
		p.await(time.Minute, "the driver limits "+cgroup, func() (bool, error) {
			text, err := vm.asks(20*time.Second, "test -d "+cgroup+" && cat /run/nvidia-standin.kept/limits")
			var limits map[string][2]uint64
			if err != nil || json.Unmarshal([]byte(text), &limits) != nil {
				return false, fmt.Errorf("%s %v", text, err)
			}
			return limits[is.Card+" "+cgroup] == [2]uint64{0, uint64(memory) << 20}, fmt.Errorf("%s", text)
		})
	}
	return is.Card
}
