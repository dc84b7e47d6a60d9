package plugins

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Whole cards: NVIDIA's plugin registers, a pod gets a card of the fixture, and neither a dead plugin nor a dead kubelet takes it away.
func TestWholeCards(t *testing.T) {
	m := openMachine(t, "t4_pair", nil, object{"pgpu": object{}, "share": object{}})
	m.nvidiaImage("nvidia-device-plugin-ds")
	m.ask("pgpu")
	m.offers(60*time.Second, map[string]string{gpu: "2"})
	m.AwaitPhase(ctx, 60*time.Second, real1, "pgpu", "Ready")

	first, found := m.pod("first", gpu, runtime)
	m.holds("first", found, 1)
	_, second := m.pod("second", gpu, runtime)
	m.holds("second", second, 1)
	if found.Environment[visible] == second.Environment[visible] {
		t.Errorf("both pods have card %s", found.Environment[visible])
	}
	must(t, m.Client.CoreV1().Pods("default").Delete(ctx, "second", metav1.DeleteOptions{}))
	m.record("pgpu", gpu, nil)

	m.killPlugin("pgpu")
	cards, card := map[string]string{gpu: "2"}, map[string]string{gpu: "1"}
	m.comesBack("pgpu", "the plugin was killed", cards, card)
	for _, component := range []string{"kubelet", "containerd"} {
		_, err := m.Script("restart", component, "--signal", "KILL")
		must(t, err)
		m.comesBack("pgpu", component+" was killed and started", cards, card)
	}
	m.runsStill(first)

	m.changeOfMode()
}

// changeOfMode of a node with a pod that has a card, and of one without: pgpu, share, pgpu, none.
func (m *machine) changeOfMode() {
	m.t.Helper()
	pods := m.Client.CoreV1().Pods("default")
	m.ask("share")
	m.AwaitPhase(ctx, 30*time.Second, real1, "", "Draining")
	time.Sleep(5 * time.Second)
	m.offers(time.Second, map[string]string{gpu: "2", shared: ""}) // it waits for the pod
	must(m.t, pods.Delete(ctx, "first", metav1.DeleteOptions{}))
	m.AwaitPhase(ctx, 90*time.Second, real1, "share", "Ready")
	m.offers(30*time.Second, map[string]string{gpu: "", shared: "20"})
	m.record("share", shared, nil)
	_, found := m.pod("sharer", shared, runtime)
	m.holds("sharer", found, 1)

	m.ask("pgpu")
	m.AwaitPhase(ctx, 30*time.Second, real1, "", "Draining")
	must(m.t, pods.Delete(ctx, "sharer", metav1.DeleteOptions{}))
	m.AwaitPhase(ctx, 90*time.Second, real1, "pgpu", "Ready")
	m.offers(30*time.Second, map[string]string{gpu: "2", shared: ""})

	m.ask("share") // no pod has a card
	m.AwaitPhase(ctx, 90*time.Second, real1, "share", "Ready")
	m.ask("")
	m.offers(90*time.Second, map[string]string{gpu: "", shared: ""})
}

// With PASS_DEVICE_SPECS the kubelet gives the device nodes, and no runtime of NVIDIA's is needed in the pod. A card that falls off the bus
// is not offered any more.
func TestDeviceNodesByTheKubeletAndALostCard(t *testing.T) {
	m := openMachine(t, "a100x8", nil, object{"pgpu": object{"settings": object{"PASS_DEVICE_SPECS": "true", "featureDiscovery": "true"}}})
	m.nvidiaImage("nvidia-device-plugin-ds")
	m.ask("pgpu")
	m.offers(60*time.Second, map[string]string{gpu: "8"})
	m.AwaitPhase(ctx, 60*time.Second, real1, "pgpu", "Ready")
	_, found := m.pod("plain", gpu, "")
	card := slices.Index(m.uuids(), found.Environment[visible])
	if path := fmt.Sprintf("/dev/nvidia%d", card); card < 0 || !slices.Contains(found.Devices, path) || !slices.Contains(found.Devices, "/dev/nvidiactl") || found.Library {
		t.Errorf("the container has %+v and no driver of a runtime was to be there", found)
	}
	if numbers := found.cardNodes(); len(numbers) != 1 {
		t.Errorf("the container has device nodes of the cards %v", numbers)
	}
	m.labelsOfFeatureDiscovery()

	broken := func(sequence int, lost bool) func(node object) {
		return func(node object) {
			last := cards(node)[7]
			last["lost"] = lost
			node["events"] = []any{object{"sequence": sequence, "card": last["uuid"], "xid": 79}}
		}
	}
	m.record("pgpu-xid79", gpu, broken(1, false))
	m.offers(60*time.Second, map[string]string{gpu: "8"})
	m.change(broken(1, false))
	m.offers(60*time.Second, map[string]string{gpu: "7"})
	// While a card is lost, waiting for events fails at once, and the plugin calls all cards unhealthy, again and again.
	m.change(broken(2, true))
	m.offers(60*time.Second, map[string]string{gpu: ""})

	m.change(func(node object) { // a new plugin takes the card for healthy again
		delete(cards(node)[7], "lost")
		delete(node, "events")
	})
	m.namedConfigurations()
	m.cdi()
}

// holds: the container was given as many cards as that, with their driver, and no others.
func (m *machine) holds(name string, found given, count int) {
	m.t.Helper()
	numbered := found.cardNodes()
	card := m.cardOf(found)
	if card < 0 || len(numbered) != count || numbered[0] != fmt.Sprint(card) || !found.Library || len(found.Smi) == 0 {
		m.t.Errorf("%s: the node has the cards %v; the container was given %+v", name, m.uuids(), found)
	}
}

// cardNodes are the numbers of the cards whose device nodes a container has.
func (found given) cardNodes() (numbers []string) {
	for _, path := range found.Devices {
		if digits := strings.TrimPrefix(path, "/dev/nvidia"); digits != "" && strings.Trim(digits, "0123456789") == "" {
			numbers = append(numbers, digits)
		}
	}
	return numbers
}

// cardOf a container by its place in the fixture: the plugin names a card by its UUID or by its number. -1: it has none.
func (m *machine) cardOf(found given) int {
	m.t.Helper()
	if number, err := strconv.Atoi(found.Environment[visible]); err == nil && number < len(m.uuids()) {
		return number
	}
	return slices.Index(m.uuids(), found.Environment[visible])
}

// labelsOfFeatureDiscovery are those of the fixture. Node Feature Discovery would make labels of this file.
func (m *machine) labelsOfFeatureDiscovery() {
	m.t.Helper()
	wanted := map[string]string{"gpu.product": "NVIDIA-A100-SXM4-80GB", "gpu.count": "8", "gpu.memory": "81920", "gpu.family": "ampere", "gpu.compute.major": "8",
		"gpu.compute.minor": "0", "gpu.replicas": "1", "cuda.driver-version.full": "550.54.15", "cuda.runtime-version.full": "12.4", "mig.capable": "true",
		"gpu.sharing-strategy": "none", "gpu.mode": "compute"}
	file := filepath.Join(m.Cluster.Dir, "node/etc/kubernetes/node-feature-discovery/features.d/gfd")
	await(m.t, 40*time.Second, "GPU Feature Discovery has written what the fixture has", func() (bool, error) {
		text, err := os.ReadFile(file)
		if err != nil {
			return false, err
		}
		found := map[string]string{}
		for _, line := range strings.Split(string(text), "\n") {
			key, value, _ := strings.Cut(line, "=")
			found[strings.TrimPrefix(key, "nvidia.com/")] = value
		}
		for key, value := range wanted {
			if found[key] != value {
				return false, fmt.Errorf("%s is %q, not %q:\n%s", key, found[key], value, text)
			}
		}
		return true, nil
	})
}
