package realnode

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"quartermaster.io/test/faults/kit"
)

const (
	ownCores, ownMemory = "own.test/core", "own.test/memory"
	mpsFolder           = "/run/quartermaster/mps"
	cardA, cardB        = "GPU-74200000-0000-4000-8000-000000000000", "GPU-74200000-0000-4000-8000-000000000001" // t4_pair.json
)

// mps is `quartermaster agent mps` on a node whose two cards are stand-ins, and so is NVIDIA's control daemon (test/nvml/mps).
type mps struct {
	*nodeProgram
	control string
}

func startMps(t *testing.T) *mps {
	t.Helper()
	return startMpsWith(t, filepath.Join(kit.Root(), "test/nvml/fixtures/t4_pair.json"), "")
}

// startMpsWith a fixture of the driver, and flags.
func startMpsWith(t *testing.T, fixture, flags string) *mps {
	t.Helper()
	control := os.Getenv("QM_MPS_CONTROL")
	if control == "" {
		t.Fatal("QM_MPS_CONTROL does not name the stand-in for nvidia-cuda-mps-control")
	}
	folder := filepath.Dir(control)
	return &mps{startOnNode(t, "mps", fmt.Sprintf("env LD_LIBRARY_PATH=%s PATH=%s:$PATH QM_NVML_FIXTURE=%s QM_NVML_LIMITS=%s.limits %s agent mps --folder %s %s",
		folder, folder, fixture, fixture, kit.Program(), mpsFolder, flags)), control}
}

func startSharePlugin(t *testing.T) *cardPlugin {
	t.Helper()
	return startPlugin(t, 2, fmt.Sprintf("--kubeconfig %s --node-name %s --share %s=cores --share %s=memory:1024 --mps-folder %s %s", nodeKubeconfig(t), real1, ownCores, ownMemory, mpsFolder, probed))
}

// asks a card's control daemon.
func (m *mps) asks(card, command string) string {
	out, _ := cluster.Script("node-exec", "sh", "-c", fmt.Sprintf("echo '%s' | CUDA_MPS_PIPE_DIRECTORY=%s/%s/pipe %s", command, mpsFolder, card, m.control))
	return strings.TrimSpace(out)
}

// ceilings of the card's server, as its daemon says them.
func (m *mps) ceilings(card string) string {
	server := m.asks(card, "get_server_list")
	return m.asks(card, "get_active_thread_percentage "+server) + " % " + m.asks(card, "get_device_pinned_mem_limit "+server+" 0")
}

func (m *mps) does(card, fault string) {
	m.t.Helper()
	_, err := cluster.Script("node-exec", "sh", "-c", fmt.Sprintf("echo %s >%s/%s/faults", fault, mpsFolder, card))
	must(m.t, err)
}

// hasClients: from now on the card's daemon has these processes as clients.
func (m *mps) hasClients(card string, processes ...string) {
	m.t.Helper()
	_, err := cluster.Script("node-exec", "sh", "-c", fmt.Sprintf("echo %s >%s/%s/clients", strings.Join(processes, " "), mpsFolder, card))
	must(m.t, err)
}

func (m *mps) clients(card string) []string {
	return strings.Fields(m.asks(card, "get_client_list "+m.asks(card, "get_server_list")))
}

// processOf the pod's first container, by its number on the node.
func processOf(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	is, err := cluster.Client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	must(t, err)
	_, id, _ := strings.Cut(is.Status.ContainerStatuses[0].ContainerID, "://")
	said, err := cluster.Script("node-exec", "sh", "-c", "for p in /proc/[0-9]*; do grep -qs "+id+" $p/cgroup && echo ${p#/proc/}; done | head -1")
	if process := strings.TrimSpace(said); err == nil && process != "" {
		return process
	}
	t.Fatalf("no process of %s: %q %v", pod.Name, said, err)
	return ""
}

type share struct {
	card       string
	cores, gib int64
}

// onShares is a pod that was placed on these shares, a container for each. An init container asks for the first one's.
func onShares(name string, init bool, shares ...share) *corev1.Pod {
	pod := adding(name, real1)
	first := pod.Spec.Containers[0]
	pod.Spec.Containers = nil
	containers := map[string]any{}
	asking := func(name string, is share) corev1.Container {
		out := first
		out.Name = name
		out.Resources.Limits = corev1.ResourceList{ownCores: *resource.NewQuantity(is.cores, resource.DecimalSI), ownMemory: *resource.NewQuantity(is.gib, resource.DecimalSI)}
		return out
	}
	for i, is := range shares {
		container := asking(fmt.Sprint("c", i), is)
		pod.Spec.Containers = append(pod.Spec.Containers, container)
		containers[container.Name] = []any{map[string]any{"card": is.card, "cores": is.cores, "memoryMiB": is.gib * 1024, "whole": is.cores == 100}}
	}
	if init {
		container := asking("first", shares[0])
		container.Args = []string{"0"}
		pod.Spec.InitContainers = []corev1.Container{container}
	}
	text, _ := json.Marshal(map[string]any{"v": 1, "node": real1, "source": "planned", "containers": containers})
	pod.Annotations = map[string]string{"quartermaster.io/placement": string(text)}
	return pod
}

// seen is what a container with the share prints.
func (s share) seen() []string { return seenOf(s.card, s.cores, s.gib*1024) }

const reachesDaemon = "reaches the control daemon: true"

func seenOf(card string, threads, mib int64) []string {
	return []string{"on cards " + card, fmt.Sprintf("with threads %d and memory 0=%dM", threads, mib), reachesDaemon, "may write there: false"}
}

func hasShare(t *testing.T, pod *corev1.Pod, container string, is share) {
	t.Helper()
	sees(t, pod, container, is.seen())
}

func sees(t *testing.T, pod *corev1.Pod, container string, lines []string) {
	t.Helper()
	log := logWith(t, pod, container, lines)
	for _, line := range lines {
		if !strings.Contains(log, line+"\n") {
			t.Errorf("%s of %s sees from inside not %q: %q", container, pod.Name, line, log)
		}
	}
}

// Shares by MPS at a real kubelet and containerd: from inside each container sees the card and the limits of its placement, and reaches the
// daemon of its card alone, whose server lets no client have more than the largest share of the card. The daemons are stand-ins that answer
// as a real one did: no kernel runs here, so what a limit holds back is not seen.
func TestEachContainerHasTheShareOfItsPlacement(t *testing.T) {
	haveReport(t, []string{cardA, cardB})
	plugin := startSharePlugin(t)
	plugin.awaitTaken(1)
	offers(t, ownCores, 0) // nothing before limits were read back
	m := startMps(t)
	offers(t, ownCores, 200)
	offers(t, ownMemory, 30)
	if is := m.ceilings(cardA); is != "100.0 % 15360M" {
		t.Errorf("the server of a card without shares has the ceilings %q", is)
	}

	t.Run("each its own, and the server the largest", func(t *testing.T) {
		small, large := onShares("small", true, share{cardA, 20, 4}), onShares("large", false, share{cardA, 50, 8}, share{cardB, 30, 2})
		for _, pod := range []*corev1.Pod{small, large} {
			create(t, cluster, pod)
		}
		for _, pod := range []*corev1.Pod{small, large} {
			ends(t, pod)
		}
		hasShare(t, small, "first", share{cardA, 20, 4})
		hasShare(t, small, "c0", share{cardA, 20, 4})
		hasShare(t, large, "c0", share{cardA, 50, 8})
		hasShare(t, large, "c1", share{cardB, 30, 2})
	})
	holder := onShares("share-holder", false, share{cardA, 60, 10})
	holder.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "QM_SLEEP", Value: "10m"}}
	create(t, cluster, holder)
	runs(t, holder)
	if is := m.ceilings(cardA); is != "60.0 % 10240M" {
		t.Errorf("the largest share is of 60 and 10 GiB, and the server has the ceilings %q", is)
	}
	t.Run("a client that stays is ended before its pod is killed, and no other", func(t *testing.T) {
		stays := onShares("stays", false, share{cardA, 20, 1})
		stays.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "QM_SLEEP", Value: "10m"}, {Name: "QM_STAYS", Value: "1"}}
		grace := int64(8)
		stays.Spec.TerminationGracePeriodSeconds = &grace
		create(t, cluster, stays)
		runs(t, stays)
		its, other := processOf(t, stays), processOf(t, holder)
		m.hasClients(cardA, its, other)
		must(t, cluster.Client.CoreV1().Pods("default").Delete(ctx, stays.Name, metav1.DeleteOptions{}))
		began := time.Now()
		var ended time.Duration
		await(t, 30*time.Second, "the pod is gone", func() (bool, error) {
			if ended == 0 && len(m.clients(cardA)) == 1 {
				ended = time.Since(began)
			}
			_, err := cluster.Client.CoreV1().Pods("default").Get(ctx, stays.Name, metav1.GetOptions{})
			return apierrors.IsNotFound(err), fmt.Errorf("clients %v", m.clients(cardA))
		})
		if is := m.clients(cardA); len(is) != 1 || is[0] != other {
			t.Errorf("process %s was of the pod, and of %s and %s the clients left are %v: %s", its, its, other, is, m.said.text())
		}
		gone := time.Since(began)
		t.Logf("its client was ended after %.1f s, and the pod was gone after %.1f s", ended.Seconds(), gone.Seconds())
		if ended < 4*time.Second || ended > gone {
			t.Errorf("the client was ended %s after the pod was deleted with a grace of 8 s, and the pod was gone after %s", ended, gone)
		}
		m.hasClients(cardA)
	})
	t.Run("what is refused says why", func(t *testing.T) {
		for name, pod := range map[string]*corev1.Pod{
			"of which pod default/share-holder": onShares("too-much", false, share{cardA, 50, 2}),
			"was not placed":                    onShares("unplaced-share", false, share{cardB, 50, 2}),
			"its placement comes to 40":         onShares("forged-share", false, share{cardB, 40, 2}),
			"MPS serves one":                    onShares("two-cards", false, share{cardB, 20, 2}),
		} {
			switch pod.Name {
			case "unplaced-share":
				pod.Annotations = nil
			case "forged-share":
				pod.Spec.Containers[0].Resources.Limits[ownCores] = resource.MustParse("30")
			case "two-cards":
				pod.Annotations["quartermaster.io/placement"] = fmt.Sprintf(
					`{"v":1,"node":"%s","containers":{"c0":[{"card":"%s","cores":10,"memoryMiB":1024},{"card":"%s","cores":10,"memoryMiB":1024}]}}`, real1, cardA, cardB)
			}
			create(t, cluster, pod)
			if text := saysWaiting(t, pod.Name, "CreateContainerConfigError"); !strings.Contains(text, name) {
				t.Errorf("%s says %q, not %q", pod.Name, text, name)
			}
			cluster.Client.CoreV1().Pods("default").Delete(ctx, pod.Name, metav1.DeleteOptions{})
		}
	})
	t.Run("a daemon that ignores a limit takes its card out and no other", func(t *testing.T) {
		m.does(cardB, "ignores_memory")
		pod := onShares("ignored", false, share{cardB, 20, 3})
		create(t, cluster, pod)
		if text := saysWaiting(t, pod.Name, "CreateContainerConfigError"); !strings.Contains(text, "has limits of 20 % and") {
			t.Errorf("it says %q", text)
		}
		offers(t, ownCores, 100)
		offers(t, ownMemory, 15)
		m.does(cardB, "")
		offers(t, ownCores, 200)
		ends(t, pod)
		hasShare(t, pod, "c0", share{cardB, 20, 3})
	})
	t.Run("a daemon that dies takes its card out and comes back", func(t *testing.T) {
		_, err := cluster.Script("node-exec", "sh", "-c", fmt.Sprintf("kill -9 $(cat %s/%s/pipe/nvidia-cuda-mps-control.pid)", mpsFolder, cardB))
		must(t, err)
		await(t, 30*time.Second, "the log says so", func() (bool, error) {
			return strings.Contains(m.said.text(), "was killed by signal 9"), fmt.Errorf("%s", m.said.text())
		})
		offers(t, ownCores, 200)
		if is := m.ceilings(cardA); is != "60.0 % 10240M" {
			t.Errorf("its neighbour has the ceilings %q now", is)
		}
	})
	m.end("TERM")
	offers(t, ownCores, 0)
	if said := m.asks(cardA, "get_server_list"); !strings.Contains(said, "Cannot find MPS control daemon process") {
		t.Errorf("the daemon is there still: %q", said)
	}
	plugin.end("TERM")
}

func runs(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	await(t, time.Minute, pod.Name+" runs", func() (bool, error) {
		is, err := cluster.Client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		return err == nil && is.Status.Phase == corev1.PodRunning, err
	})
}
