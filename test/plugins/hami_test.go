package plugins

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"quartermaster.io/test/faults/kit"
)

const (
	share        = "nvidia.com/gpualloc"
	memory       = "nvidia.com/gpumem"
	cores        = "nvidia.com/gpucores"
	registerAs   = "hami.io/node-nvidia-register"
	memoryLimit  = "CUDA_DEVICE_MEMORY_LIMIT_0"
	computeLimit = "CUDA_DEVICE_SM_LIMIT"
)

// sharesByHAMi: three pods that wait at the same time get the card and the limits of their own placements.
func (m *machine) sharesByHAMi() {
	m.t.Helper()
	m.registersCards()
	m.verifies("--allocate-scheduler", kit.SchedulerName)
	wanted := map[string]map[string]string{"small": {share: "1", memory: "3000", cores: "20"}, "large": {share: "1", memory: "9000", cores: "60"},
		"other": {share: "1", memory: "9000", cores: "60"}}
	for name, limits := range wanted {
		m.start(probePod(name, limits))
	}
	onCard := map[string]int64{}
	var pods []*corev1.Pod
	for name, limits := range wanted {
		pod, found := m.says(name)
		pods = append(pods, pod)
		part := m.placed(pod)
		m.holds(name, found, 1)
		if found.Environment[visible] != part.Card || found.Environment[memoryLimit] != fmt.Sprintf("%dm", part.MemoryMiB) ||
			found.Environment[computeLimit] != fmt.Sprint(part.Cores) || found.Preload == "" {
			m.t.Errorf("%s is placed as %+v; the container was given %+v", name, part, found)
		}
		if limits[memory] != fmt.Sprint(part.MemoryMiB) || limits[cores] != fmt.Sprint(part.Cores) {
			m.t.Errorf("%s asks for %v and is placed as %+v", name, limits, part)
		}
		onCard[part.Card] += part.MemoryMiB
	}
	for card, mib := range onCard {
		if mib > 15360 {
			m.t.Errorf("%d MiB are given out on card %s", mib, card)
		}
	}
	m.t.Logf("memory given out, by card: %v", onCard)
	atOnce(m.t, pods)
	m.killPlugin("hami")
	m.offers(60*time.Second, map[string]string{share: "20"})
	m.record("hami", share, nil)
	for _, pod := range pods {
		m.runsStill(pod)
	}
}

// atOnce: all of them waited before the first of them ran.
func atOnce(t *testing.T, pods []*corev1.Pod) {
	t.Helper()
	for _, waits := range pods {
		for _, runs := range pods {
			if started := runs.Status.ContainerStatuses[0].State.Running.StartedAt; started.Before(&waits.CreationTimestamp) {
				t.Errorf("%s ran at %s, before %s was there", runs.Name, started, waits.Name)
			}
		}
	}
}

// hamiImage has what HAMi's has, except the library that it cannot build here: an empty file.
func (m *machine) hamiImage() {
	m.t.Helper()
	// It writes to these folders of the machine, so the node gets a layer of its own over them.
	for _, folder := range []string{"/usr/local", "/tmp"} {
		layer := "/run/layers" + folder
		_, err := m.Script("node-exec", "mkdir", "-p", layer+"/upper", layer+"/work")
		must(m.t, err)
		_, err = m.Script("node-exec", "mount", "-n", "-t", "overlay", "-o", fmt.Sprintf("lowerdir=%s,upperdir=%s/upper,workdir=%s/work", folder, layer, layer), "overlay", folder)
		must(m.t, err)
	}
	folder := m.t.TempDir()
	for name, content := range map[string]string{"libvgpu.so.v2.10.0": "", "ld.so.preload": "/usr/local/vgpu/libvgpu.so\n"} {
		must(m.t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644))
	}
	programs := []string{"hami/nvidia-device-plugin:/k8s-vgpu/bin/nvidia-device-plugin", "hami/nvidia-device-plugin:/usr/bin/nvidia-device-plugin",
		"hami/vGPUmonitor:/usr/bin/vGPUmonitor", "hami/vgpu-init.sh:/k8s-vgpu/bin/vgpu-init.sh",
		folder + "/libvgpu.so.v2.10.0:/k8s-vgpu/lib/nvidia/libvgpu.so.v2.10.0", folder + "/ld.so.preload:/k8s-vgpu/lib/nvidia/ld.so.preload"}
	for _, tool := range []string{"/bin/sh", "/usr/bin/find", "/usr/bin/md5sum", "/usr/bin/cut", "/bin/cp", "/bin/mkdir", "/usr/bin/dirname"} {
		programs = append(programs, tool+":"+tool)
	}
	m.image("hami-device-plugin", programs...)
}

// registersCards: HAMi's plugin has written the fixture's cards to the node, as every run of the simulator does.
func (m *machine) registersCards() {
	m.t.Helper()
	await(m.t, 60*time.Second, "the plugin writes "+registerAs, func() (bool, error) {
		node, err := m.Client.CoreV1().Nodes().Get(ctx, real1, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		text := node.Annotations[registerAs]
		var written []struct {
			ID     string
			Count  int
			Devmem int64
		}
		if err := json.Unmarshal([]byte(text), &written); err != nil || len(written) != 2 {
			return false, fmt.Errorf("%q: %v", text, err)
		}
		m.annotations = map[string]string{registerAs: inOrder(m.t, text)}
		return true, nil
	})
}

// inOrder of the cards' names; the plugin has them in any order.
func inOrder(t *testing.T, text string) string {
	t.Helper()
	var list []json.RawMessage
	must(t, json.Unmarshal([]byte(text), &list))
	slices.SortFunc(list, func(a, b json.RawMessage) int { return bytes.Compare(a, b) })
	sorted, err := json.Marshal(list)
	must(t, err)
	return string(sorted)
}

// probePod asks for these and is the extender's.
func probePod(name string, limits map[string]string) *corev1.Pod {
	pod := podOf(name, runtime)
	pod.Spec.SchedulerName = kit.SchedulerName
	for key, amount := range limits {
		pod.Spec.Containers[0].Resources.Limits[corev1.ResourceName(key)] = resource.MustParse(amount)
	}
	return pod
}
