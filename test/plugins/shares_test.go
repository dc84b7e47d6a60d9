package plugins

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// One node goes from whole cards to HAMi, to gpushare where that is there, back to whole cards and to none. Each time pods of the mode before are still there.
func TestSharesOfCards(t *testing.T) {
	needs(t, "hami/nvidia-device-plugin", "hami/vGPUmonitor", "hami/vgpu-init.sh")
	hasGpushare := isThere("gpushare-device-plugin-v2")
	modules := object{"pgpu": object{}, "hami": object{}, "gpushare": object{}, "vgpu": object{}}
	m := openMachine(t, "t4_pair", nil, modules)
	m.nvidiaImage("nvidia-device-plugin-ds")
	m.hamiImage()
	if hasGpushare {
		m.image("gpushare-device-plugin-ds", "gpushare-device-plugin-v2")
	}
	m.scheduler()

	m.ask("pgpu")
	m.AwaitPhase(ctx, 60*time.Second, real1, "pgpu", "Ready")
	m.offers(30*time.Second, map[string]string{gpu: "2", share: "", memoryUnits: ""})
	m.pod("whole", gpu, runtime)

	m.leavesFor("hami", "whole")
	m.offers(30*time.Second, map[string]string{share: "20", gpu: ""})
	m.sharesByHAMi()

	left := map[string]int64{gpu: 2}
	if hasGpushare {
		m.leavesFor("gpushare", "small", "large", "other")
		m.offers(30*time.Second, map[string]string{memoryUnits: "30", gpuCount: "2", share: ""})
		m.sharesByGpushare()
		left[gpuCount] = 2
	} else {
		t.Log("gpushare did not run: QM_PLUGINS names no folder with gpushare-device-plugin-v2")
	}

	m.leavesFor("")
	m.offers(30*time.Second, map[string]string{gpu: "", memoryUnits: ""})
	m.fromNoneAndBack("hami", map[string]string{share: "20"})
	m.ask("pgpu")
	m.AwaitPhase(ctx, 90*time.Second, real1, "pgpu", "Ready")
	m.offers(30*time.Second, map[string]string{gpu: "2", memoryUnits: "", share: ""})
	m.leftBehind(left)
	m.verifies()
	m.pod("last", gpu, runtime)
	m.leavesFor("", "last")
	m.offers(30*time.Second, map[string]string{gpu: "", share: "", memoryUnits: ""})
	if !isThere("gpu-manager") {
		t.Log("not run: QM_PLUGINS names no folder with gpu-manager")
		return
	}
	m.noGPUManager(modules)
}

// fromNoneAndBack: the node enters a mode, a pod gets a share, and the node leaves for no mode once that pod is gone.
func (m *machine) fromNoneAndBack(mode string, amounts map[string]string) {
	m.t.Helper()
	m.ask(mode)
	m.AwaitPhase(ctx, 90*time.Second, real1, mode, "Ready")
	m.offers(30*time.Second, amounts)
	gone := map[string]string{}
	limits := map[string]string{}
	for key := range amounts {
		gone[key], limits[key] = "", "1"
	}
	name, _ := m.accepted(mode, mode+"-to-none", limits)
	m.leavesFor("", name)
	m.offers(30*time.Second, gone)
}

// needs skips the test where QM_PLUGINS lacks one of these.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if !isThere(program) {
			t.Skip("not run: QM_PLUGINS names no folder with " + program)
		}
	}
}

func isThere(program string) bool {
	_, err := os.Stat(filepath.Join(os.Getenv("QM_PLUGINS"), program))
	return err == nil
}

// leavesFor another mode, or for none: while pods of the mode before are there, that mode stays. Without names: all that are left.
func (m *machine) leavesFor(mode string, names ...string) {
	m.t.Helper()
	pods := m.Client.CoreV1().Pods("default")
	if len(names) == 0 {
		list, err := pods.List(ctx, metav1.ListOptions{})
		must(m.t, err)
		for _, pod := range list.Items {
			names = append(names, pod.Name)
		}
	}
	var running []*corev1.Pod
	for _, name := range names {
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		must(m.t, err)
		running = append(running, pod)
	}
	m.ask(mode)
	m.AwaitPhase(ctx, 30*time.Second, real1, "", "Draining")
	time.Sleep(3 * time.Second)
	for _, pod := range running {
		m.runsStill(pod)
		must(m.t, pods.Delete(ctx, pod.Name, metav1.DeleteOptions{}))
	}
	if mode != "" {
		m.AwaitPhase(ctx, 90*time.Second, real1, mode, "Ready")
	}
}

// leftBehind by the plugins that are gone is what docs/modules.md names, and nothing else.
func (m *machine) leftBehind(resources map[string]int64) {
	m.t.Helper()
	node, err := m.Client.CoreV1().Nodes().Get(ctx, real1, metav1.GetOptions{})
	must(m.t, err)
	var annotations []string
	for key := range node.Annotations {
		if strings.HasPrefix(key, "hami.io/") || strings.HasPrefix(key, "ALIYUN_") {
			annotations = append(annotations, key)
		}
	}
	offered := map[string]int64{}
	for key, amount := range node.Status.Allocatable {
		if strings.Contains(string(key), "/") && !amount.IsZero() {
			offered[string(key)] = amount.Value()
		}
	}
	if !slices.Equal(annotations, []string{registerAs}) || !maps.Equal(offered, resources) {
		m.t.Errorf("the node has the annotations %v and offers %v", annotations, offered)
	}
}
