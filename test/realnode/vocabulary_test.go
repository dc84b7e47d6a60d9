package realnode

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"quartermaster.io/test/faults/kit"
	"sigs.k8s.io/yaml"
)

const (
	gpuMem, gpuCount = "aliyun.com/gpu-mem", "aliyun.com/gpu-count"
	gpuCores         = "aliyun.com/gpu-core.percentage"
)

const wholeMiB = 15360 // of each card of t4_pair.json

// startVocabulary is the plugin of module gpushare, one unit of whose memory is so many MiB.
func startVocabulary(t *testing.T, unitMiB int) *cardPlugin {
	t.Helper()
	return startPlugin(t, 3, fmt.Sprintf("--kubeconfig %s --node-name %s --share %s=memory:%d --share %s=cores --share %s=slots:1 --mps-folder %s %s",
		nodeKubeconfig(t), real1, gpuMem, unitMiB, gpuCores, gpuCount, mpsFolder, probed))
}

// startSeats is the plugin of module hami under HAMi's own names.
func startSeats(t *testing.T) *cardPlugin {
	t.Helper()
	return startPlugin(t, 1, fmt.Sprintf("--kubeconfig %s --node-name %s --share nvidia.com/gpu=slots:10 --limit nvidia.com/gpumem=memory:1@0 "+
		"--limit nvidia.com/gpumem-percentage=percent --limit nvidia.com/gpucores=cores@0 --mps-folder %s", nodeKubeconfig(t), real1, mpsFolder))
}

// published are the pods of a file of published manifests, by the names of their objects.
func published(t *testing.T, file string) map[string]corev1.PodSpec {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(kit.Root(), "test/placements/published", file))
	must(t, err)
	out := map[string]corev1.PodSpec{}
	for _, document := range strings.Split(string(text), "\n---\n") {
		var object struct {
			Kind     string
			Metadata metav1.ObjectMeta
			Spec     json.RawMessage
		}
		must(t, yaml.Unmarshal([]byte(document), &object))
		var spec corev1.PodSpec
		var workload struct{ Template corev1.PodTemplateSpec }
		if object.Kind == "Pod" {
			must(t, json.Unmarshal(object.Spec, &spec))
		} else {
			must(t, json.Unmarshal(object.Spec, &workload))
			spec = workload.Template.Spec
		}
		out[object.Metadata.Name] = spec
	}
	return out
}

// asPublished is a pod of a published manifest with a placement, as the extender writes it. Its container asks as it was published; the
// program is the one that says what it sees.
func asPublished(name string, spec corev1.PodSpec, card string, cores, mib int64) *corev1.Pod {
	pod := adding(name, real1)
	program := pod.Spec.Containers[0]
	program.Name, program.Resources = spec.Containers[0].Name, *spec.Containers[0].Resources.DeepCopy()
	pod.Spec.Containers = []corev1.Container{program}
	text, _ := json.Marshal(map[string]any{"v": 1, "node": real1, "source": "planned",
		"containers": map[string]any{program.Name: []any{map[string]any{"card": card, "cores": cores, "memoryMiB": mib, "whole": mib == wholeMiB}}}})
	pod.Annotations = map[string]string{"quartermaster.io/placement": string(text)}
	return pod
}

// The published examples of gpushare and of ACK at a real kubelet, by our own plugin and MPS: each container sees the card and the limits of
// its placement, in GiB and in MiB, and a placement that is not that of its limits is refused by the key that differs.
func TestPublishedSharesByMemoryAreThoseOfTheirPlacement(t *testing.T) {
	haveReport(t, []string{cardA, cardB})
	startMps(t)
	gpushare, ack := published(t, "gpushare.yaml"), published(t, "ack.yaml")

	plugin := startVocabulary(t, 1024)
	plugin.awaitTaken(1)
	offers(t, gpuMem, 30)
	offers(t, gpuCount, 2)
	offers(t, gpuCores, 200)
	t.Run("GiB", func(t *testing.T) {
		pods := []*corev1.Pod{
			asPublished("quickmap-0", gpushare["quickmap"], cardA, 0, 3072),
			asPublished("quickmap-1", gpushare["quickmap"], cardB, 0, 3072),
			asPublished("memory-only", ack["memory-only"], cardA, 0, 4096),
			asPublished("memory-and-cores", ack["memory-and-cores"], cardB, 30, 2048),
		}
		for _, pod := range pods {
			create(t, cluster, pod)
		}
		for _, pod := range pods {
			ends(t, pod)
		}
		sees(t, pods[0], "quickmap", seenOf(cardA, 100, 3072))
		sees(t, pods[1], "quickmap", seenOf(cardB, 100, 3072))
		sees(t, pods[2], "tensorflow-mnist", seenOf(cardA, 100, 4096))
		sees(t, pods[3], "cuda-sample", seenOf(cardB, 30, 2048))
	})
	t.Run("a limit of how many cards", func(t *testing.T) {
		pod := asPublished("counted", gpushare["quickmap"], cardB, 0, 3072)
		pod.Spec.Containers[0].Resources.Limits[gpuCount] = resource.MustParse("1")
		create(t, cluster, pod)
		ends(t, pod)
		sees(t, pod, "quickmap", seenOf(cardB, 100, 3072))
	})
	t.Run("what is refused says why", func(t *testing.T) {
		unplaced := asPublished("unplaced-memory", ack["memory-only"], cardA, 0, 4096)
		unplaced.Annotations = nil
		for says, pod := range map[string]*corev1.Pod{
			"was not placed": unplaced,
			"has 4 of aliyun.com/gpu-mem, and its placement comes to 12":             asPublished("more-memory", ack["memory-only"], cardA, 0, 12*1024),
			"has 0 of aliyun.com/gpu-core.percentage, and its placement comes to 90": asPublished("more-cores", ack["memory-only"], cardA, 90, 4096),
			"has 30 of aliyun.com/gpu-core.percentage, and its placement comes to 0": asPublished("all-cores", ack["memory-and-cores"], cardA, 0, 2048),
			"does not have; delete": asPublished("unknown-card", ack["memory-only"], "GPU-of-another-node", 0, 4096),
		} {
			create(t, cluster, pod)
			if text := saysWaiting(t, pod.Name, "CreateContainerConfigError"); !strings.Contains(text, says) {
				t.Errorf("%s says %q, not %q", pod.Name, text, says)
			}
			cluster.Client.CoreV1().Pods("default").Delete(ctx, pod.Name, metav1.DeleteOptions{})
		}
	})
	plugin.end("TERM")

	plugin = startVocabulary(t, 1)
	plugin.awaitTaken(1)
	offers(t, gpuMem, 30720)
	t.Run("MiB", func(t *testing.T) {
		pods := []*corev1.Pod{asPublished("binpack-1", gpushare["binpack-1"], cardA, 0, 8138), asPublished("binpack-2", gpushare["binpack-2"], cardB, 0, 8138)}
		for _, pod := range pods {
			create(t, cluster, pod)
		}
		for i, pod := range pods {
			ends(t, pod)
			sees(t, pod, pod.Name, seenOf([]string{cardA, cardB}[i], 100, 8138))
		}
	})
	plugin.end("TERM")
}

// HAMi's published examples of one card at a real kubelet, by our own plugin and MPS. The kubelet counts seats alone, so what a container has
// of memory and compute is compared with its limits. Those of several cards are refused, because MPS holds a container on one.
func TestPublishedSharesBySeatsAreThoseOfTheirPlacement(t *testing.T) {
	haveReport(t, []string{cardA, cardB})
	startMps(t)
	hami := published(t, "hami.yaml")
	plugin := startSeats(t)
	plugin.awaitTaken(1)
	offers(t, "nvidia.com/gpu", 20)
	t.Run("each its own", func(t *testing.T) {
		pods := []*corev1.Pod{
			asPublished("gpu-pod-type", hami["gpu-pod-type"], cardA, 0, 2000),
			asPublished("gpu-pod-policy", hami["gpu-pod-policy"], cardA, 0, 1000),
			asPublished("engine", hami["engine"], cardB, 30, 12000),
			asPublished("all-memory", hami["gpu-pod-type"], cardB, 0, 3360),
		}
		percent := pods[3].Spec.Containers[0].Resources.Limits
		delete(percent, "nvidia.com/gpumem")
		percent["nvidia.com/gpumem-percentage"] = resource.MustParse("22")
		for _, pod := range pods {
			create(t, cluster, pod)
		}
		for _, pod := range pods {
			ends(t, pod)
		}
		sees(t, pods[0], "ubuntu-container", seenOf(cardA, 100, 2000))
		sees(t, pods[1], "ubuntu-container", seenOf(cardA, 100, 1000))
		sees(t, pods[2], "engine", seenOf(cardB, 30, 12000))
		sees(t, pods[3], "ubuntu-container", seenOf(cardB, 100, 3360))
	})
	t.Run("what is refused says why", func(t *testing.T) {
		unplaced := asPublished("unplaced-seat", hami["engine"], cardA, 30, 12000)
		unplaced.Annotations = nil
		two := asPublished("two-seats", hami["gpu-pod-default"], cardA, 30, 3000)
		two.Annotations["quartermaster.io/placement"] = fmt.Sprintf(
			`{"v":1,"node":"%s","containers":{"ubuntu-container":[{"card":"%s","cores":15,"memoryMiB":1500},{"card":"%s","cores":15,"memoryMiB":1500}]}}`, real1, cardA, cardB)
		for says, pod := range map[string]*corev1.Pod{
			"was not placed": unplaced,
			"has 12000 of nvidia.com/gpumem, and its placement comes to 14000": asPublished("more-mib", hami["engine"], cardA, 30, 14000),
			"has 30 of nvidia.com/gpucores, and its placement comes to 0":      asPublished("all-compute", hami["engine"], cardA, 0, 12000),
			"has 2 of nvidia.com/gpu, and its placement comes to 1":            asPublished("one-of-two", hami["gpu-pod-default"], cardA, 30, 3000),
			"MPS serves one": two,
		} {
			create(t, cluster, pod)
			if text := saysWaiting(t, pod.Name, "CreateContainerConfigError"); !strings.Contains(text, says) {
				t.Errorf("%s says %q, not %q", pod.Name, text, says)
			}
			cluster.Client.CoreV1().Pods("default").Delete(ctx, pod.Name, metav1.DeleteOptions{})
		}
	})
	plugin.end("TERM")
}

// The published examples of GPU-Manager at a real kubelet, by our own plugin and MPS: hundredths of a card, and memory in units of 256 MiB.
func TestPublishedSharesByHundredthsAreThoseOfTheirPlacement(t *testing.T) {
	haveReport(t, []string{cardA, cardB})
	startMps(t)
	manager := published(t, "gpu-manager.yaml")
	plugin := startPlugin(t, 2, fmt.Sprintf("--kubeconfig %s --node-name %s --share tencent.com/vcuda-core=cores --share tencent.com/vcuda-memory=memory:256 --mps-folder %s %s",
		nodeKubeconfig(t), real1, mpsFolder, probed))
	plugin.awaitTaken(1)
	offers(t, "tencent.com/vcuda-core", 200)
	offers(t, "tencent.com/vcuda-memory", 120)
	t.Run("each its own", func(t *testing.T) {
		pods := []*corev1.Pod{asPublished("vcuda-share", manager["vcuda-share"], cardA, 30, 7680), asPublished("vcuda-5gib", manager["vcuda-5gib"], cardA, 30, 5120),
			asPublished("vcuda-deployment", manager["vcuda-deployment"], cardB, 100, wholeMiB)}
		for _, pod := range pods {
			create(t, cluster, pod)
		}
		for _, pod := range pods {
			ends(t, pod)
		}
		sees(t, pods[0], "nvidia", seenOf(cardA, 30, 7680))
		sees(t, pods[1], "gpu", seenOf(cardA, 30, 5120))
		sees(t, pods[2], "vcuda-test", seenOf(cardB, 100, wholeMiB))
		one := asPublished("vcuda-one-card", manager["vcuda-one-card"], cardB, 100, wholeMiB) // without a limit of memory
		create(t, cluster, one)
		ends(t, one)
		sees(t, one, "gpu", seenOf(cardB, 100, wholeMiB))
	})
	t.Run("what is refused says why", func(t *testing.T) {
		for says, pod := range map[string]*corev1.Pod{
			"has 30 of tencent.com/vcuda-core, and its placement comes to 60":   asPublished("more-hundredths", manager["vcuda-share"], cardA, 60, 7680),
			"has 30 of tencent.com/vcuda-memory, and its placement comes to 20": asPublished("less-memory", manager["vcuda-share"], cardA, 30, 5120),
		} {
			create(t, cluster, pod)
			if text := saysWaiting(t, pod.Name, "CreateContainerConfigError"); !strings.Contains(text, says) {
				t.Errorf("%s says %q, not %q", pod.Name, text, says)
			}
			cluster.Client.CoreV1().Pods("default").Delete(ctx, pod.Name, metav1.DeleteOptions{})
		}
	})
	plugin.end("TERM")
}

// Random schedules by the names of ACK: memory is the key that brings the card, and compute stands next to it.
func TestEachContainerHasItsShareByMemoryInRandomSchedules_long(t *testing.T) {
	haveReport(t, []string{cardA, cardB})
	is := &machine{t: t, again: func(t *testing.T) *cardPlugin { return startVocabulary(t, 1024) }, mps: startMps(t)}
	byMemory := func(rng *rand.Rand, round int) []placedPod {
		out := randomShares(rng, round)
		for _, is := range out {
			for _, list := range [][]corev1.Container{is.pod.Spec.InitContainers, is.pod.Spec.Containers} {
				for _, container := range list {
					limits := container.Resources.Limits
					limits[gpuMem], limits[gpuCores] = limits[ownMemory], limits[ownCores]
					delete(limits, ownMemory)
					delete(limits, ownCores)
				}
			}
		}
		return out
	}
	is.runs(gpuMem, 30, byMemory, "nothing", "plugin TERM", "plugin KILL", "kubelet", "containerd", "mps KILL", "daemon")
}
