package main

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func catalogue(t *testing.T) map[string]module {
	t.Helper()
	modules, err := loadModules()
	if err != nil {
		t.Fatal(err)
	}
	return modules
}

func TestAmountsAreThoseOfTheProduct(t *testing.T) {
	profiles, modules := load(t), catalogue(t)
	for _, test := range []struct {
		profile, module, key string
		amount               int64
	}{
		{"t4", "pgpu", "nvidia.com/gpu", 4},
		{"t4", "vgpu", "tencent.com/vcuda-core", 400},
		{"t4", "vgpu", "tencent.com/vcuda-memory", 240},
		{"t4", "mps", "nvidia.com/mps-core", 400},
		{"t4", "mps", "nvidia.com/mps-memory", 60},
		{"h100", "vgpu", "tencent.com/vcuda-memory", 2548}, // 8 x 81559 MiB in 256 MiB, rounded down
	} {
		if got := modules[test.module].Resources[test.key].of(profiles[test.profile]); got != test.amount {
			t.Errorf("%s on %s: %s is %d, not %d", test.module, test.profile, test.key, got, test.amount)
		}
	}
}

// status with the same amounts in capacity and allocatable
func status(amounts map[string]int64) corev1.NodeStatus {
	list := corev1.ResourceList{"cpu": resource.MustParse("8")}
	for key, amount := range amounts {
		list[corev1.ResourceName(key)] = *resource.NewQuantity(amount, resource.DecimalSI)
	}
	return corev1.NodeStatus{Capacity: list, Allocatable: list}
}

func expect(t *testing.T, what string, got, want map[string]int64) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("%s: %v, not %v", what, got, want)
	}
}

func TestPluginComesServesAndGoes(t *testing.T) {
	t4, modules := load(t)["t4"], catalogue(t)
	vgpu := map[string]int64{"tencent.com/vcuda-core": 400, "tencent.com/vcuda-memory": 240}

	patch, _ := advertise(t4, modules, nil, nil, 0, status(nil), noon)
	if !patch.empty() {
		t.Errorf("nothing runs and nothing was advertised, yet: %v", patch)
	}
	patch, _ = advertise(t4, modules, map[string]bool{"vgpu": true}, nil, 0, status(nil), noon)
	expect(t, "capacity when it comes", patch.Capacity, vgpu)
	expect(t, "allocatable when it comes", patch.Allocatable, vgpu)

	patch, _ = advertise(t4, modules, map[string]bool{"vgpu": true}, nil, 0, status(vgpu), noon)
	if !patch.empty() {
		t.Errorf("a settled node is written again: %v", patch)
	}
	patch, _ = advertise(t4, modules, nil, map[string]time.Time{"vgpu": noon}, 0, status(vgpu), noon)
	expect(t, "capacity when it goes", patch.Capacity, map[string]int64{"tencent.com/vcuda-core": 0, "tencent.com/vcuda-memory": 0})
	expect(t, "allocatable when it goes", patch.Allocatable, map[string]int64{"tencent.com/vcuda-core": 0, "tencent.com/vcuda-memory": 0})
}

func TestCapacityOutlivesThePluginByTheGrace(t *testing.T) {
	t4, modules := load(t)["t4"], catalogue(t)
	shown := status(map[string]int64{"nvidia.com/gpu": 4})
	lost := map[string]time.Time{"pgpu": noon}

	patch, again := advertise(t4, modules, nil, lost, 5*time.Minute, shown, noon.Add(time.Minute))
	expect(t, "allocatable at once", patch.Allocatable, map[string]int64{"nvidia.com/gpu": 0})
	expect(t, "capacity not yet", patch.Capacity, map[string]int64{})
	if again != 4*time.Minute {
		t.Errorf("looks again in %v", again)
	}
	patch, again = advertise(t4, modules, nil, lost, 5*time.Minute, shown, noon.Add(5*time.Minute))
	expect(t, "capacity after the grace", patch.Capacity, map[string]int64{"nvidia.com/gpu": 0})
	if again != 0 {
		t.Errorf("looks again in %v though nothing is left to do", again)
	}
}

func TestHamisPluginListsItsCards(t *testing.T) {
	t4 := load(t)["t4"]
	var list []struct {
		ID     string
		Index  int
		Devmem int64
		Health bool
	}
	if err := json.Unmarshal([]byte(register(t4, "t4-0", map[string]bool{"hami": true})), &list); err != nil || len(list) != 4 {
		t.Fatal(err, list)
	}
	names := map[string]bool{}
	for i, card := range list {
		names[card.ID] = true
		if card.Index != i || card.Devmem != t4.MemoryMiB || !card.Health || len(card.ID) != len("GPU-00000000-0000-0000-0000-000000000000") {
			t.Error(card)
		}
	}
	if len(names) != 4 || strings.Contains(register(t4, "t4-1", map[string]bool{"hami": true}), list[0].ID) {
		t.Error("one name for two cards")
	}
	if text := register(t4, "t4-0", map[string]bool{"vgpu": true}) + register(load(t)["mi300x"], "m", map[string]bool{"hami": true}); text != "" {
		t.Error(text)
	}
}

func TestModulesOfAnotherVendorAdvertiseNothing(t *testing.T) {
	for _, name := range []string{"mi300x", "ascend910b", "cpu"} {
		patch, _ := advertise(load(t)[name], catalogue(t), map[string]bool{"pgpu": true, "vgpu": true, "mps": true}, nil, 0, status(nil), noon)
		if !patch.empty() {
			t.Errorf("%s: %v", name, patch)
		}
	}
}

func TestOnlyAReadyPodThatStaysServes(t *testing.T) {
	ready := []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	unready := []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	now := metav1.NewTime(noon)
	for _, test := range []struct {
		what string
		pod  corev1.Pod
		want bool
	}{
		{"ready", corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: ready}}, true},
		{"not ready", corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: unready}}, false},
		{"of a broken image", corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: "plugin:2-broken"}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: ready}}, false},
		{"pending", corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending}}, false},
		{"deleting", corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: ready}}, false},
	} {
		if serves(&test.pod) != test.want {
			t.Errorf("a pod that is %s serves: %v", test.what, !test.want)
		}
	}
}

func TestWhatAPluginWroteItselfStaysWhenItGoes(t *testing.T) {
	profiles, modules := load(t), catalogue(t)
	is := status(map[string]int64{"aliyun.com/gpu-mem": 60, "aliyun.com/gpu-count": 4})
	patch, _ := advertise(profiles["t4"], modules, nil, nil, 0, is, noon)
	expect(t, "allocatable", patch.Allocatable, map[string]int64{"aliyun.com/gpu-mem": 0})
	expect(t, "capacity", patch.Capacity, map[string]int64{"aliyun.com/gpu-mem": 0})
}

func TestCutCardsAreSlicesAndNoCards(t *testing.T) {
	profiles, modules := load(t), cutByMig(catalogue(t), "1g.10gb")
	patch, _ := advertise(profiles["a100"], modules, map[string]bool{"pgpu": true}, nil, 0, status(nil), noon)
	expect(t, "allocatable", patch.Allocatable, map[string]int64{"nvidia.com/mig-1g.10gb": 56})
	patch, _ = advertise(profiles["a100"], modules, nil, nil, 0, status(map[string]int64{"nvidia.com/mig-1g.10gb": 56, "nvidia.com/gpu": 8}), noon)
	expect(t, "allocatable without the plugin", patch.Allocatable, map[string]int64{"nvidia.com/mig-1g.10gb": 0, "nvidia.com/gpu": 0})
}
