package plugins

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"quartermaster.io/test/faults/kit"
)

const (
	memoryUnits = "aliyun.com/gpu-mem"
	gpuCount    = "aliyun.com/gpu-count"
)

// sharesByGpushare: six pods that ask for as much memory wait at the same time. The plugin tells them apart by the time in their annotations
// alone, and each has to get the card of its own placement.
func (m *machine) sharesByGpushare() {
	m.t.Helper()
	m.record("gpushare", memoryUnits, nil)
	m.offers(60*time.Second, map[string]string{memoryUnits: "30"}) // the recorder had taken the plugin's place at the kubelet
	m.verifies("--allocate-scheduler", kit.SchedulerName)
	limits := map[string]string{memoryUnits: "5"}
	var names []string
	for number := range 6 {
		names = append(names, fmt.Sprintf("fifth-%d", number))
		m.start(probePod(names[number], limits))
	}
	onCard := map[int]int64{}
	var pods []*corev1.Pod
	for _, name := range names {
		pod, found := m.says(name)
		pods = append(pods, pod)
		part := m.placed(pod)
		card := slices.Index(m.uuids(), part.Card)
		if card < 0 {
			card = numberIn(part.Card)
		}
		m.holds(name, found, 1)
		if m.cardOf(found) != card || found.Environment["ALIYUN_COM_GPU_MEM_IDX"] != strconv.Itoa(card) || found.Environment["ALIYUN_COM_GPU_MEM_CONTAINER"] != "5" ||
			found.Environment["ALIYUN_COM_GPU_MEM_DEV"] != "15" || pod.Annotations["ALIYUN_COM_GPU_MEM_ASSIGNED"] != "true" {
			m.t.Errorf("%s is placed as %+v; annotations %v; the container was given %+v", name, part, pod.Annotations, found)
		}
		onCard[card] += part.MemoryMiB
	}
	if onCard[0] != 15360 || onCard[1] != 15360 {
		m.t.Errorf("memory given out, by card: %v", onCard)
	}
	atOnce(m.t, pods)
	pods0 := m.Client.CoreV1().Pods("default")
	must(m.t, pods0.Delete(ctx, names[5], metav1.DeleteOptions{}))

	amounts := map[string]string{memoryUnits: "30", gpuCount: "2"}
	m.killPlugin("gpushare")
	m.comesBack("gpushare", "the plugin was killed", amounts, limits)
	for _, component := range []string{"kubelet", "containerd"} {
		_, err := m.Script("restart", component, "--signal", "KILL")
		must(m.t, err)
		m.comesBack("gpushare", component+" was killed and started", amounts, limits)
	}
	for _, pod := range pods[:5] {
		m.runsStill(pod)
	}
	must(m.t, pods0.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "status.phase=Failed"}))
	time.Sleep(time.Second)
}

// numberIn the name of a card that the extender made up, as "real-1/0"; -1 where there is none.
func numberIn(name string) int {
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] == '/' {
			if number, err := strconv.Atoi(name[i+1:]); err == nil {
				return number
			}
			break
		}
	}
	return -1
}
