package kit

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func gpuNode(name, module string) corev1.Node {
	out := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{ModuleLabel: module, "nvidia.com/gpu.count": "2", "nvidia.com/gpu.memory": "15360"}},
		Status: corev1.NodeStatus{Allocatable: offered(module)}}
	if module == "hami" {
		out.Annotations = map[string]string{HamiRegisterKey: HamiRegister(name, "Tesla-T4", 2, 15360)}
	}
	return out
}

func offered(module string) corev1.ResourceList {
	out := corev1.ResourceList{"example.com/fpga": resource.MustParse("1")}
	for _, key := range map[string][]string{"vgpu": {"tencent.com/vcuda-core", "tencent.com/vcuda-memory"}, "pgpu": {"nvidia.com/gpu"}, "hami": {"nvidia.com/gpualloc"},
		"gpushare": {"aliyun.com/gpu-mem"}, "mps": {"nvidia.com/mps-core", "nvidia.com/mps-memory"}}[module] {
		out[corev1.ResourceName(key)] = resource.MustParse("100")
	}
	return out
}

var podNumber int

func placedPod(node, placement string, limits map[string]string) *corev1.Pod {
	podNumber++
	list := corev1.ResourceList{}
	for key, amount := range limits {
		list[corev1.ResourceName(key)] = resource.MustParse(amount)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", podNumber), Namespace: "default", UID: types.UID(fmt.Sprint(podNumber))},
		Spec: corev1.PodSpec{SchedulerName: SchedulerName, NodeName: node, Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Limits: list}}}}}
	if placement != "" {
		pod.Annotations = map[string]string{PlacementKey: placement}
	}
	return pod
}

func on(node, shares string) string {
	return fmt.Sprintf(`{"v":1,"node":%q,"source":"planned","containers":{"main":[%s]}}`, node, shares)
}

func vcuda(cores, units string) map[string]string {
	return map[string]string{"tencent.com/vcuda-core": cores, "tencent.com/vcuda-memory": units}
}

// An oracle that finds nothing in these histories would prove nothing.
func TestO2_bad_histories_are_found(t *testing.T) {
	half := on("v", `{"card":"v/0","cores":60,"memoryMiB":1024}`)
	for _, one := range []struct {
		name, says string
		pods       []*corev1.Pod
	}{
		{"cores", "120 of 100 cores", []*corev1.Pod{placedPod("v", half, vcuda("60", "4")), placedPod("v", half, vcuda("60", "4"))}},
		{"memory", "16384 of 15360 MiB", []*corev1.Pod{placedPod("v", on("v", `{"card":"v/0","cores":10,"memoryMiB":8192}`), vcuda("10", "32")),
			placedPod("v", on("v", `{"card":"v/0","cores":10,"memoryMiB":8192}`), vcuda("10", "32"))}},
		{"whole and share", "whole to 1 and in parts to 1", []*corev1.Pod{placedPod("v", half, vcuda("60", "4")),
			placedPod("v", on("v", `{"card":"v/0","whole":true,"cores":100,"memoryMiB":15360}`), vcuda("100", "60"))}},
		{"whole twice", "whole to 2", []*corev1.Pod{placedPod("p", on("p", `{"card":"p/1","whole":true,"cores":100,"memoryMiB":15360}`), map[string]string{"nvidia.com/gpu": "1"}),
			placedPod("p", on("p", `{"card":"p/1","whole":true,"cores":100,"memoryMiB":15360}`), map[string]string{"nvidia.com/gpu": "1"})}},
		{"less than asked", "its limits say 60 cores", []*corev1.Pod{placedPod("v", on("v", `{"card":"v/0","cores":50,"memoryMiB":1024}`), vcuda("60", "4"))}},
		{"one card for two", "has a card twice", []*corev1.Pod{placedPod("h", on("h", `{"card":"h/0","cores":10,"memoryMiB":100},{"card":"h/0","cores":10,"memoryMiB":100}`),
			map[string]string{"nvidia.com/gpualloc": "2", "nvidia.com/gpucores": "10", "nvidia.com/gpumem": "100"})}},
		{"no placement", "without a placement", []*corev1.Pod{placedPod("v", "", vcuda("60", "4"))}},
		{"unbound", "is on no node and has", []*corev1.Pod{placedPod("", half, vcuda("60", "4"))}},
		{"unknown card", "does not have", []*corev1.Pod{placedPod("v", on("v", `{"card":"v/7","cores":60,"memoryMiB":1024}`), vcuda("60", "4"))}},
		{"wrong node", "its placement says", []*corev1.Pod{placedPod("p", half, map[string]string{})}},
		{"other words", "does not know", []*corev1.Pod{placedPod("p", on("p", `{"card":"p/0","cores":60,"memoryMiB":1024}`), vcuda("60", "4"))}},
		{"counts", "given out 2 of 1 example.com/fpga", []*corev1.Pod{placedPod("v", `{"v":1,"node":"v","containers":{},"counts":{"example.com/fpga":2}}`, map[string]string{"example.com/fpga": "2"})}},
		{"counts not said", "has counts", []*corev1.Pod{placedPod("v", `{"v":1,"node":"v","containers":{}}`, map[string]string{"example.com/fpga": "1"})}},
	} {
		b := NewPlacementBook([]corev1.Node{gpuNode("v", "vgpu"), gpuNode("p", "pgpu"), gpuNode("h", "hami")}, nil, "example.com/fpga")
		for _, pod := range one.pods {
			b.See(pod, false)
		}
		if wrong := strings.Join(b.Wrong(), "\n"); !strings.Contains(wrong, one.says) {
			t.Errorf("%s: want %q, have %q", one.name, one.says, wrong)
		}
	}
}

func TestO2_a_placement_that_changes_is_found(t *testing.T) {
	b := NewPlacementBook([]corev1.Node{gpuNode("v", "vgpu")}, nil)
	pod := placedPod("v", on("v", `{"card":"v/0","cores":60,"memoryMiB":1024}`), vcuda("60", "4"))
	b.See(pod, false)
	moved := pod.DeepCopy()
	moved.Annotations[PlacementKey] = on("v", `{"card":"v/1","cores":60,"memoryMiB":1024}`)
	b.See(moved, false)
	if wrong := strings.Join(b.Wrong(), "\n"); !strings.Contains(wrong, "two placements") {
		t.Error(wrong)
	}
}

func TestO2_good_histories_are_good(t *testing.T) {
	b := NewPlacementBook([]corev1.Node{gpuNode("v", "vgpu"), gpuNode("p", "pgpu"), gpuNode("h", "hami"), gpuNode("g", "gpushare"), gpuNode("m", "mps")}, nil, "example.com/fpga")
	share := func() *corev1.Pod {
		return placedPod("v", on("v", `{"card":"v/0","cores":60,"memoryMiB":1024}`), vcuda("60", "4"))
	}
	first := share()
	b.See(first, false)
	b.See(first, true)
	b.See(share(), false) // the first has left
	b.See(placedPod("p", on("p", `{"card":"p/0","whole":true,"cores":100,"memoryMiB":15360}`), map[string]string{"nvidia.com/gpu": "1"}), false)
	b.See(placedPod("h", on("h", `{"card":"h/0","memoryMiB":7680},{"card":"h/1","memoryMiB":7680}`), map[string]string{"nvidia.com/gpualloc": "2", "nvidia.com/gpumem-percentage": "50"}), false)
	b.See(placedPod("g", on("g", `{"card":"g/1","memoryMiB":3072}`), map[string]string{"aliyun.com/gpu-mem": "3"}), false)
	b.See(placedPod("m", on("m", `{"card":"m/1","cores":30,"memoryMiB":3072}`), map[string]string{"nvidia.com/mps-core": "30", "nvidia.com/mps-memory": "3"}), false)
	b.See(placedPod("p", `{"v":1,"node":"p","containers":{},"counts":{"example.com/fpga":1}}`, map[string]string{"example.com/fpga": "1"}), false)
	if wrong := b.Wrong(); len(wrong) > 0 {
		t.Error(strings.Join(wrong, "\n"))
	}
	for _, one := range []struct {
		limits map[string]string
		where  string
	}{{map[string]string{"nvidia.com/gpu": "2"}, ""}, {vcuda("50", "4"), "v"}, {vcuda("50", "99"), ""}, {map[string]string{"nvidia.com/gpu": "1"}, "p"}, {map[string]string{"nvidia.com/gpu": "2"}, ""},
		{map[string]string{"nvidia.com/mps-core": "100", "nvidia.com/mps-memory": "15"}, "m"}, {map[string]string{"nvidia.com/mps-core": "200", "nvidia.com/mps-memory": "30"}, ""}} {
		if where := b.FitsOn(placedPod("", "", one.limits), 8); where != one.where {
			t.Errorf("%v fits on %q, not on %q", one.limits, one.where, where)
		}
	}
}
