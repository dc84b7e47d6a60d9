package plugins

import (
	"slices"
	"testing"
	"time"
)

const (
	slice1 = "nvidia.com/mig-1g.10gb"
	slice3 = "nvidia.com/mig-3g.40gb"
)

// MIG_STRATEGY mixed: slices have names of their own, next to the card that is whole.
func TestSlicesNextToAWholeCard(t *testing.T) {
	m := openMachine(t, "a100_mig", nil, object{"pgpu": object{"settings": object{"MIG_STRATEGY": "mixed"}}})
	m.nvidiaImage("nvidia-device-plugin-ds")
	m.ask("pgpu")
	m.offers(60*time.Second, map[string]string{gpu: "1", slice1: "2", slice3: "1"})
	m.AwaitPhase(ctx, 60*time.Second, real1, "pgpu", "Ready")
	_, found := m.pod("slice", slice1, runtime)
	if !slices.Contains(m.slices("1g.10gb"), found.Environment[visible]) || len(found.Devices) != 7 {
		t.Errorf("the slices are %v; the container was given %+v", m.slices("1g.10gb"), found)
	}
	m.record("pgpu-mixed", slice1, nil)
}

// MIG_STRATEGY single: every card is cut alike, and slices are called nvidia.com/gpu.
func TestSlicesUnderTheNameOfCards(t *testing.T) {
	m := openMachine(t, "a100_mig", func(node object) {
		mig := cards(node)[0]["mig"].(object)
		mig["instances"] = mig["instances"].([]any)[1:]
		node["cards"] = node["cards"].([]any)[:1]
	}, object{"pgpu": object{"settings": object{"MIG_STRATEGY": "single"}}})
	m.nvidiaImage("nvidia-device-plugin-ds")
	m.ask("pgpu")
	m.offers(60*time.Second, map[string]string{gpu: "2", slice1: ""})
	m.AwaitPhase(ctx, 60*time.Second, real1, "pgpu", "Ready")
	_, found := m.pod("slice", gpu, runtime)
	if !slices.Contains(m.slices("1g.10gb"), found.Environment[visible]) || len(found.Devices) != 7 {
		t.Errorf("the slices are %v; the container was given %+v", m.slices("1g.10gb"), found)
	}
	m.record("pgpu-single", gpu, nil)
}

// slices of a profile in the fixture, by UUID.
func (m *machine) slices(profile string) (out []string) {
	m.t.Helper()
	for _, card := range m.cards() {
		mig, _ := card["mig"].(object)
		instances, _ := mig["instances"].([]any)
		for _, instance := range instances {
			for _, compute := range instance.(object)["compute"].([]any) {
				if instance.(object)["profile"] == profile {
					out = append(out, compute.(object)["uuid"].(string))
				}
			}
		}
	}
	return out
}
