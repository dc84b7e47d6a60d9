package realnode

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"quartermaster.io/test/faults/kit"
)

// placedPod is a pod with the cards that each of its containers must see.
type placedPod struct {
	pod   *corev1.Pod
	cards map[string]string // by container, as they see them
}

// randomPods share the cards out: each is in one container of one pod or in none. An init container runs on the first card of the next one.
func randomPods(rng *rand.Rand, round int, cards []string) (out []placedPod) {
	left := slices.Clone(cards)
	rng.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
	for number := 0; len(left) > 0 && number < 4; number++ {
		var lists [][]string
		for len(left) > 0 && (len(lists) == 0 || rng.IntN(3) == 0) {
			take := 1 + rng.IntN(min(2, len(left)))
			lists, left = append(lists, left[:take]), left[take:]
		}
		withInit, sidecar := rng.IntN(3) == 0, len(lists) > 1 && rng.IntN(2) == 0
		is := placedPod{onCards(fmt.Sprintf("r%d-%d", round, number), withInit, lists...), map[string]string{}}
		for i, list := range lists {
			is.cards[fmt.Sprint("c", i)] = strings.Join(list, ",")
		}
		if spec := &is.pod.Spec; sidecar { // the last container runs before the others begin, and beside them
			always, last := corev1.ContainerRestartPolicyAlways, spec.Containers[len(spec.Containers)-1]
			last.RestartPolicy, last.Env = &always, []corev1.EnvVar{{Name: "QM_SLEEP", Value: "10m"}}
			spec.InitContainers, spec.Containers = append(spec.InitContainers, last), spec.Containers[:len(spec.Containers)-1]
		}
		if withInit {
			next := lists[0]
			if sidecar {
				next = lists[len(lists)-1]
			}
			is.cards["first"] = next[0]
		}
		if rng.IntN(4) == 0 {
			for i := range is.pod.Spec.Containers {
				is.pod.Spec.Containers[i].Env = []corev1.EnvVar{{Name: "QM_SLEEP", Value: fmt.Sprint(rng.IntN(2000), "ms")}}
			}
		}
		out = append(out, is)
	}
	return out
}

// lives until its containers have ended by themselves. rejected: the kubelet had no devices when it admitted the pod, so it never began.
func (p placedPod) lives(t *testing.T) (rejected bool) {
	t.Helper()
	pods := cluster.Client.CoreV1().Pods("default")
	await(t, 3*time.Minute, p.pod.Name+" ends", func() (bool, error) {
		is, err := pods.Get(ctx, p.pod.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		rejected = is.Status.Reason == "UnexpectedAdmissionError"
		return rejected || is.Status.Phase == corev1.PodSucceeded || is.Status.Phase == corev1.PodFailed, fmt.Errorf("%s %+v %+v", is.Status.Phase, is.Status.InitContainerStatuses, is.Status.ContainerStatuses)
	})
	if rejected {
		return true
	}
	for container, cards := range p.cards {
		if log := logOf(t, p.pod, container); !strings.Contains(log, "on cards "+cards+"\n") {
			t.Errorf("container %s of %s was placed on %s: %q", container, p.pod.Name, cards, log)
		}
	}
	return false
}

// Pods come in any order, with init containers and sidecars, at random moments, while plugin, kubelet and containerd are killed: each container
// sees the cards of its placement, every time. QM_SCHEDULES says how many schedules, QM_SEED which.
func TestEachContainerHasItsCardsInRandomSchedules_long(t *testing.T) {
	schedules, err := strconv.Atoi(kit.Env("QM_SCHEDULES", "12"))
	must(t, err)
	seed, err := strconv.ParseUint(kit.Env("QM_SEED", strconv.FormatInt(time.Now().Unix(), 10)), 10, 64)
	must(t, err)
	t.Logf("QM_SEED=%d", seed)
	cards := []string{"GPU-a", "GPU-b", "GPU-c", "GPU-d"}
	haveReport(t, cards)
	plugin := startCardPlugin(t, nodeKubeconfig(t))
	plugin.awaitTaken(1)
	offers(t, ownCard, int64(len(cards)))
	began, total, rejected, disturbed := time.Now(), 0, 0, map[string]int{}
	for round := range schedules {
		rng := rand.New(rand.NewPCG(seed, uint64(round)))
		disturbances := []string{"nothing", "nothing", "plugin TERM", "plugin KILL", "kubelet", "containerd"}
		disturbance := disturbances[rng.IntN(len(disturbances))]
		pods, moment := randomPods(rng, round, cards), rng.IntN(4)
		for i, is := range pods {
			time.Sleep(time.Duration(rng.IntN(400)) * time.Millisecond)
			if i == moment || (i == len(pods)-1 && moment >= len(pods)) {
				plugin = disturb(t, plugin, disturbance)
			}
			create(t, cluster, is.pod)
		}
		disturbed[disturbance]++
		for _, is := range pods {
			total++
			if is.lives(t) {
				rejected++
				if disturbance == "nothing" {
					t.Errorf("%s was rejected although nothing happened", is.pod.Name)
				}
			}
		}
		for _, is := range pods {
			pods := cluster.Client.CoreV1().Pods("default")
			pods.Delete(ctx, is.pod.Name, metav1.DeleteOptions{})
			await(t, time.Minute, is.pod.Name+" is gone", func() (bool, error) {
				_, err := pods.Get(ctx, is.pod.Name, metav1.GetOptions{})
				return apierrors.IsNotFound(err), err
			})
		}
		if t.Failed() {
			t.Fatalf("in schedule %d of seed %d, disturbed by %s", round, seed, disturbance)
		}
		offers(t, ownCard, int64(len(cards)))
	}
	plugin.end("TERM")
	if strings.Contains(plugin.said.text(), "AddressSanitizer") {
		t.Errorf("%s", plugin.said.text())
	}
	t.Logf("%d schedules, %d pods, %d rejected by a kubelet that had no plugin, in %.0f s; disturbed by %v", schedules, total, rejected, time.Since(began).Seconds(), disturbed)
}

// disturb something of the node, and bring it back at once.
func disturb(t *testing.T, plugin *cardPlugin, what string) *cardPlugin {
	t.Helper()
	switch what {
	case "plugin TERM", "plugin KILL":
		plugin.end(strings.TrimPrefix(what, "plugin "))
		plugin = startCardPlugin(t, nodeKubeconfig(t))
		plugin.awaitTaken(1)
	case "kubelet", "containerd":
		times := plugin.said.count("the kubelet took the device plugin")
		_, err := cluster.Script("restart", what, "--signal", "KILL")
		must(t, err)
		if what == "kubelet" {
			plugin.awaitTaken(times + 1)
		}
	}
	return plugin
}

// haveReport of this boot, in the place of an agent.
func haveReport(t *testing.T, cards []string) {
	t.Helper()
	haveTypeOfNodes(t)
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	must(t, err)
	report(t, strings.TrimSpace(string(boot)), cards)
}

// haveTypeOfNodes and the object of the node, until the test ends: helm takes over no type that it has not made.
func haveTypeOfNodes(t *testing.T) {
	t.Helper()
	const name = "acceleratornodes.quartermaster.io"
	_, err := cluster.Run("", "kubectl", "apply", "-f", filepath.Join(kit.Root(), "crds", name+".yaml"))
	must(t, err)
	t.Cleanup(func() {
		if said, err := cluster.Run("", "kubectl", "delete", "crd", name, "--timeout=60s"); err != nil {
			t.Error(said, err)
		}
	})
	_, err = cluster.Run("", "kubectl", "wait", "crd", "--for=condition=Established", "--timeout=30s", name)
	must(t, err)
	object, _ := json.Marshal(map[string]any{"apiVersion": "quartermaster.io/v1alpha1", "kind": "AcceleratorNode", "metadata": map[string]any{"name": real1}})
	_, err = cluster.Run(string(object), "kubectl", "apply", "-f", "-")
	must(t, err)
}
