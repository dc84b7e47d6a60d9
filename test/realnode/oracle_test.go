package realnode

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"quartermaster.io/test/faults/kit"
)

// held is a container of a pod that has cards, as a process of the node shows it.
type held struct {
	pid            int
	pod, container string
	cards          []string
	threads, mib   int64 // -1: without such a limit
}

var ofContainer = regexp.MustCompile(`/pod([0-9a-f-]{36})/([0-9a-f]{64})`)

// holders are the containers with cards on the node at this moment, by /proc alone.
func holders(t *testing.T) (out []held) {
	t.Helper()
	root := filepath.Base(filepath.Dir(cgroupsOfPods(t))) // the node's own cgroup: other clusters may run here
	processes, err := filepath.Glob("/proc/[0-9]*")
	must(t, err)
	for _, process := range processes {
		cgroup, _ := os.ReadFile(process + "/cgroup")
		match := ofContainer.FindStringSubmatch(string(cgroup))
		environment, err := os.ReadFile(process + "/environ")
		if match == nil || err != nil || !strings.Contains(string(cgroup), "/"+root+"/") {
			continue
		}
		is := held{pod: match[1], container: match[2], threads: -1, mib: -1}
		is.pid, _ = strconv.Atoi(filepath.Base(process))
		for _, variable := range strings.Split(string(environment), "\x00") {
			switch name, value, _ := strings.Cut(variable, "="); name {
			case "NVIDIA_VISIBLE_DEVICES":
				if value != "void" {
					is.cards = strings.Split(value, ",")
				}
			case "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE":
				is.threads, _ = strconv.ParseInt(value, 10, 64)
			case "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT":
				is.mib, _ = strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(value, "0="), "M"), 10, 64)
			}
		}
		known := func(other held) bool { return other.container == is.container }
		if is.cards != nil && !slices.ContainsFunc(out, known) {
			out = append(out, is)
		}
	}
	return out
}

// oracle reads the API and the node, and nothing that the schedules know: no card is given twice, and no limit is missing.
type oracle struct {
	t        *testing.T
	moments  int
	holders  int
	used     map[string]string // pod, by resource and ID of a device
	reused   int
	restarts int
}

func newOracle(t *testing.T) *oracle { return &oracle{t: t, used: map[string]string{}} }

// look at this moment. The processes are read before the API, which has their pods until they have ended.
func (o *oracle) look() {
	o.t.Helper()
	found := holders(o.t)
	list, err := cluster.Client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return // the API server does not answer at the moment
	}
	o.moments++
	o.holders += len(found)
	pods := map[string]*corev1.Pod{}
	for i := range list.Items {
		pods[string(list.Items[i].UID)] = &list.Items[i]
	}
	type sum struct {
		threads, mib int64
		pods         map[string]bool
		whole        bool
	}
	sums := map[string]*sum{}
	for _, is := range found {
		pod := pods[is.pod]
		if pod == nil {
			o.t.Errorf("a container of a pod that the API does not have holds cards: %+v", is)
			continue
		}
		placement, err := kit.PlacementOf(pod)
		if err != nil || placement == nil {
			o.t.Errorf("%s holds %v without a placement: %v", pod.Name, is.cards, err)
			continue
		}
		if !covers(placement, is) {
			o.t.Errorf("%s holds %+v, and its placement is %+v", pod.Name, is, placement.Containers)
		}
		for _, card := range is.cards {
			of := sums[card]
			if of == nil {
				of = &sum{pods: map[string]bool{}}
				sums[card] = of
			}
			of.pods[pod.Name] = true
			if is.threads < 0 {
				of.whole = true
			} else {
				of.threads, of.mib = of.threads+is.threads, of.mib+is.mib
			}
		}
	}
	for card, is := range sums {
		if (is.whole && len(is.pods) > 1) || is.threads > 100 || is.mib > 15360 {
			o.t.Errorf("card %s is given twice: %+v", card, *is)
		}
	}
	o.readCheckpoint(pods)
}

// covers: one container of the placement has these cards and limits. An init container may have a part of a later container's cards.
func covers(placement *kit.Placement, is held) bool {
	for _, shares := range placement.Containers {
		var cards []string
		for _, share := range shares {
			cards = append(cards, share.Card)
		}
		missing := func(card string) bool { return !slices.Contains(cards, card) }
		if slices.ContainsFunc(is.cards, missing) {
			continue
		}
		if is.threads < 0 && is.mib < 0 {
			if shares[0].Whole {
				return true
			}
			continue // a share without its limits
		}
		threads := shares[0].Cores
		if threads == 0 {
			threads = 100
		}
		if len(shares) == 1 && is.threads == threads && is.mib == shares[0].MemoryMiB {
			return true
		}
	}
	return false
}

// readCheckpoint of the kubelet: no device is of two pods that have not ended. An ID that a pod before had counts as used again.
func (o *oracle) readCheckpoint(pods map[string]*corev1.Pod) {
	o.t.Helper()
	text, err := os.ReadFile(filepath.Join(cluster.Dir, "node/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"))
	var record struct {
		Data struct {
			PodDeviceEntries []struct {
				PodUID, ContainerName, ResourceName string
				DeviceIDs                           map[string][]string
			}
		}
	}
	if err != nil || json.Unmarshal(text, &record) != nil {
		return // a kubelet that starts writes it anew
	}
	now := map[string]string{}
	for _, entry := range record.Data.PodDeviceEntries {
		pod := pods[entry.PodUID]
		if pod == nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		for _, ids := range entry.DeviceIDs {
			for _, id := range ids {
				device := entry.ResourceName + " " + id
				if other, is := now[device]; is && other != pod.Name {
					o.t.Errorf("device %s is of %s and %s", device, other, pod.Name)
				}
				now[device] = pod.Name
				if before, was := o.used[device]; was && before != pod.Name {
					o.reused++
				}
				o.used[device] = pod.Name
			}
		}
	}
}

// restart a container of the pod in place: its program is killed, once it runs.
func (o *oracle) restart(pod *corev1.Pod) {
	o.t.Helper()
	is, err := cluster.Client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		return
	}
	for until := time.Now().Add(1500 * time.Millisecond); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		for _, holder := range holders(o.t) {
			if holder.pod == string(is.UID) && syscall.Kill(holder.pid, syscall.SIGKILL) == nil {
				o.restarts++
				return
			}
		}
	}
}

func (o *oracle) String() string {
	return fmt.Sprintf("the oracle looked %d times and saw %d containers with cards, %d devices of an earlier pod, %d restarts in place", o.moments, o.holders, o.reused, o.restarts)
}
