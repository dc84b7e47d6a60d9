package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// statusPatch is what must change in a node's status; amounts by resource name.
type statusPatch struct {
	Capacity    map[string]int64 `json:"capacity,omitempty"`
	Allocatable map[string]int64 `json:"allocatable,omitempty"`
}

func (s statusPatch) empty() bool { return len(s.Capacity) == 0 && len(s.Allocatable) == 0 }

// advertise is the device manager of a kubelet as a pure function: which card resources a node shows while the plugins of the modules in
// running serve it, given what it shows now. The resources of a plugin that left at lost[module] drop to 0 in allocatable at once and
// in capacity after grace (a kubelet keeps capacity for 5 minutes); again says when to look next, 0 for never. A resource no plugin ever
// advertised is absent, not 0.
func advertise(p profile, modules map[string]module, running map[string]bool, lost map[string]time.Time, grace time.Duration,
	status corev1.NodeStatus, now time.Time) (patch statusPatch, again time.Duration) {
	served := map[string]int64{}
	for name := range running {
		if m := modules[name]; m.Vendor == p.Vendor {
			for key, f := range m.Resources {
				served[key] = max(served[key], f.of(p))
			}
		}
	}
	patch = statusPatch{Capacity: map[string]int64{}, Allocatable: map[string]int64{}}
	for key, amount := range served {
		set(patch.Capacity, status.Capacity, key, amount, true)
		set(patch.Allocatable, status.Allocatable, key, amount, true)
	}
	for name, m := range modules {
		for key, f := range m.Resources {
			if _, ok := served[key]; ok || f.Stays {
				continue
			}
			set(patch.Allocatable, status.Allocatable, key, 0, false)
			left := grace - now.Sub(lost[name])
			_, shown := status.Capacity[corev1.ResourceName(key)]
			if shown && !lost[name].IsZero() && left > 0 {
				if again == 0 || left < again {
					again = left
				}
				continue
			}
			set(patch.Capacity, status.Capacity, key, 0, false)
		}
	}
	return patch, again
}

// cutByMig returns the modules as they are on a node whose cards are all cut into slices of this profile ("1g.10gb"): NVIDIA's plugin with
// the strategy mixed registers the slices and no nvidia.com/gpu.
func cutByMig(modules map[string]module, slice string) map[string]module {
	if slice == "" {
		return modules
	}
	out := maps.Clone(modules)
	out["pgpu"] = module{Vendor: "nvidia", Resources: map[string]formula{"nvidia.com/mig-" + slice: {PerCard: 7}}}
	out["pgpu, uncut"] = modules["pgpu"]
	return out
}

// set records the amount when it differs from what is shown; where it is not shown, only when it shall appear.
func set(changes map[string]int64, shown corev1.ResourceList, key string, amount int64, appear bool) {
	quantity, ok := shown[corev1.ResourceName(key)]
	if (ok && quantity.Value() != amount) || (!ok && appear) {
		changes[key] = amount
	}
}

// registerKey is the annotation in which HAMi's device plugin lists its cards; anyone who gives them out has to use its names. The plugin leaves
// it behind when it goes.
const registerKey = "hami.io/node-nvidia-register"

// register is that list; empty for a node on which HAMi's plugin finds no card.
func register(p profile, node string, running map[string]bool) string {
	if !running["hami"] || p.Vendor != "nvidia" {
		return ""
	}
	list := make([]map[string]any, p.Cards)
	for i := range list {
		h := fnv.New64a()
		fmt.Fprintf(h, "%s/%d", node, i)
		sum := h.Sum64()
		list[i] = map[string]any{"id": fmt.Sprintf("GPU-%08x-%04x-%04x-8000-%012x", sum>>32, sum>>16&0xffff, sum&0xffff, i), "count": 10,
			"devmem": p.MemoryMiB, "devcore": 100, "type": "NVIDIA-" + p.Model, "mode": "hami-core", "health": true}
		if i > 0 {
			list[i]["index"] = i // it leaves out what is 0
		}
	}
	text, _ := json.Marshal(list)
	return string(text)
}

// brokenTag ends the images of plugins that run and never find a card.
const brokenTag = "-broken"

// serves says whether a module's pod plays its plugin: it runs, is ready and is not on its way out, and its image is not a broken one.
func serves(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
		return false
	}
	if len(pod.Spec.Containers) > 0 && strings.HasSuffix(pod.Spec.Containers[0].Image, brokenTag) {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
