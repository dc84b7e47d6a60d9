package realnode

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"quartermaster.io/test/faults/kit"
)

const ownCard = "own.test/gpu"

// nodeProgram runs in the node's namespaces until end.
type nodeProgram struct {
	t    *testing.T
	said lines
	cmd  *exec.Cmd
	file string // with its process
}

func startOnNode(t *testing.T, name, command string) *nodeProgram {
	t.Helper()
	p := &nodeProgram{t: t, file: "/run/quartermaster-" + name + ".pid"}
	p.cmd = exec.Command(filepath.Join(kit.Root(), "test/cluster/cluster.sh"), "node-exec", "--name", cluster.Name, "sh", "-c",
		fmt.Sprintf("echo $$ >%s; exec %s", p.file, command))
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
	must(t, p.cmd.Start())
	t.Cleanup(func() { p.end("TERM") })
	return p
}

func (p *nodeProgram) end(signal string) {
	if p.cmd == nil {
		return
	}
	cluster.Script("node-exec", "sh", "-c", "kill -"+signal+" $(cat "+p.file+")")
	p.cmd.Wait()
	p.cmd = nil
	if strings.Contains(p.said.text(), "AddressSanitizer") {
		p.t.Errorf("%s", p.said.text())
	}
}

// cardPlugin is `quartermaster agent plugin` on the node.
type cardPlugin struct {
	*nodeProgram
	flags     string
	resources int
}

func startCardPlugin(t *testing.T, kubeconfig string) *cardPlugin {
	t.Helper()
	return startPlugin(t, 1, fmt.Sprintf("--kubeconfig %s --node-name %s --resource %s %s", kubeconfig, real1, ownCard, probed))
}

func startPlugin(t *testing.T, resources int, flags string) *cardPlugin {
	t.Helper()
	return &cardPlugin{startOnNode(t, "plugin", kit.Program()+" agent plugin "+flags), flags, resources}
}

func (p *cardPlugin) taken() int {
	return p.said.count("the kubelet took the device plugin") / p.resources
}

func (p *cardPlugin) awaitTaken(times int) {
	p.t.Helper()
	await(p.t, 30*time.Second, "the kubelet has the plugin", func() (bool, error) {
		return p.taken() >= times, fmt.Errorf("%s", p.said.text())
	})
}

// probed: the flag with which a plugin answers probes.
const probed = "--health-port 18081"

const isReady = "ok\n200" // the kubelet has the plugin's list of devices

// awaitReadiness until the probe's answer begins so; its status follows its text.
func (p *cardPlugin) awaitReadiness(want string) {
	p.t.Helper()
	await(p.t, 30*time.Second, "the plugin says "+want, func() (bool, error) {
		answer, err := cluster.Script("node-exec", "curl", "--silent", "--write-out", "%{http_code}", "http://127.0.0.1:18081/readyz")
		return err == nil && strings.HasPrefix(answer, want), fmt.Errorf("%s %v\n%s", answer, err, p.said.text())
	})
}

// report is what an agent says of the node's cards; those in sick are not in order.
func report(t *testing.T, boot string, cards []string, sick ...string) {
	t.Helper()
	list := []map[string]any{}
	for i, uuid := range cards {
		card := map[string]any{"uuid": uuid, "index": i, "model": "Tesla T4", "memoryMiB": 15360, "health": "Healthy"}
		for _, is := range sick {
			if is == uuid {
				card["health"] = "XID 79"
			}
		}
		list = append(list, card)
	}
	status, err := json.Marshal(map[string]any{"status": map[string]any{"driver": map[string]any{"boot": boot}, "cards": list}})
	must(t, err)
	_, err = cluster.Run("", "kubectl", "patch", "acceleratornode", real1, "--subresource=status", "--type=merge", "-p", string(status))
	must(t, err)
}

// onCards is a pod that was placed on these cards, a container for each list. An init container has no list: it runs first, on the first
// card of the container after it.
func onCards(name string, init bool, lists ...[]string) *corev1.Pod {
	pod := adding(name, real1)
	first := pod.Spec.Containers[0]
	pod.Spec.Containers = nil
	containers := map[string]any{}
	for i, list := range lists {
		container := first
		container.Name = fmt.Sprint("c", i)
		container.Resources.Limits = corev1.ResourceList{ownCard: *resource.NewQuantity(int64(len(list)), resource.DecimalSI)}
		pod.Spec.Containers = append(pod.Spec.Containers, container)
		shares := []any{}
		for _, card := range list {
			shares = append(shares, map[string]any{"card": card, "cores": 100, "memoryMiB": 15360, "whole": true})
		}
		containers[container.Name] = shares
	}
	if init {
		container := first
		container.Name, container.Args = "first", []string{"0"}
		container.Resources.Limits = corev1.ResourceList{ownCard: resource.MustParse("1")}
		pod.Spec.InitContainers = []corev1.Container{container}
	}
	text, _ := json.Marshal(map[string]any{"v": 1, "node": real1, "source": "planned", "containers": containers})
	pod.Annotations = map[string]string{"quartermaster.io/placement": string(text)}
	return pod
}

// logOf asks the kubelet, which may be starting again.
func logOf(t *testing.T, pod *corev1.Pod, container string) string {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		text, err := cluster.Client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container}).DoRaw(ctx)
		if err == nil {
			return string(text)
		}
		if time.Now().After(end) {
			is, _ := cluster.Client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
			status, _ := json.Marshal(is.Status)
			t.Fatalf("%v: %s of %s: %s", err, container, pod.Name, status)
		}
	}
}

// ends waits until all containers of the pod have ended by themselves.
func ends(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	await(t, 2*time.Minute, pod.Name+" ends", func() (bool, error) {
		is, err := cluster.Client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, container := range is.Status.ContainerStatuses {
			if container.State.Terminated == nil {
				return false, fmt.Errorf("%s %+v", is.Status.Message, container.State)
			}
		}
		if is.Status.Reason == "UnexpectedAdmissionError" {
			t.Fatalf("%s was rejected: %s", pod.Name, is.Status.Message)
		}
		has := is.Status.Phase == corev1.PodSucceeded || is.Status.Phase == corev1.PodFailed // from then on its devices are free
		return has && len(is.Status.ContainerStatuses) == len(pod.Spec.Containers), fmt.Errorf("%s", is.Status.Phase)
	})
}

// saysWaiting is why a container of the pod is not started.
func saysWaiting(t *testing.T, name, reason string) (message string) {
	t.Helper()
	await(t, time.Minute, name+" says why it does not start", func() (bool, error) {
		is, err := cluster.Client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, container := range is.Status.ContainerStatuses {
			if waiting := container.State.Waiting; waiting != nil && waiting.Reason == reason {
				message = waiting.Message
				return true, nil
			}
		}
		return false, fmt.Errorf("%s %s %+v", is.Status.Phase, is.Status.Message, is.Status.ContainerStatuses)
	})
	return message
}

// Its pod is ready while the kubelet listens to it: before that the kubelet would reject what is placed on the node.
func TestThePluginIsReadyWhileTheKubeletListens(t *testing.T) {
	haveReport(t, []string{"GPU-a"})
	p := startPlugin(t, 1, fmt.Sprintf("--kubeconfig %s --node-name %s --resource %s %s", nodeKubeconfig(t), real1, ownCard, probed))
	p.awaitReadiness(isReady)
	_, err := cluster.Script("stop", "kubelet")
	must(t, err)
	p.awaitReadiness(ownCard + ": the kubelet does not")
	_, err = cluster.Script("start", "kubelet")
	must(t, err)
	p.awaitReadiness(isReady)
}

// The plugin for whole cards at a real kubelet and containerd: what each container sees from inside is its placement, whatever device IDs the
// kubelet chose; without one, and without the plugin, none starts.
func TestEachContainerHasTheCardsOfItsPlacement(t *testing.T) {
	if kit.Program() == "" {
		t.Fatal("no program under test")
	}
	haveTypeOfNodes(t)
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	must(t, err)
	cards := []string{"GPU-a", "GPU-b", "GPU-c", "GPU-d"}
	this := strings.TrimSpace(string(boot))
	report(t, "of-an-earlier-boot", cards)

	plugin := startCardPlugin(t, nodeKubeconfig(t))
	plugin.awaitTaken(1)
	offers(t, ownCard, 0) // what an agent of another boot said counts for nothing
	report(t, this, cards)
	offers(t, ownCard, 4)

	t.Run("nothing where the operator says that the runtime takes no CDI names", func(t *testing.T) {
		says := func(cause, requested string, offered int64) {
			status := fmt.Sprintf(`{"status": {"cause": %s, "requestedMode": %q, "actualMode": "pgpu"}}`, cause, requested)
			_, err := cluster.Run("", "kubectl", "patch", "acceleratornode", real1, "--subresource=status", "--type=merge", "-p", status)
			must(t, err)
			offers(t, ownCard, offered)
		}
		says(`"intent.no_cdi"`, "pgpu", 0)
		says("null", "pgpu", 4)
		says(`"intent.no_cdi"`, "mps", 4) // it stays in its mode, and cannot have another
		time.Sleep(3 * time.Second)
		offers(t, ownCard, 4)
		says("null", "pgpu", 4)
	})
	t.Run("each its own, in any order", func(t *testing.T) {
		for round, order := range [][]string{{"GPU-d", "GPU-a", "GPU-c"}, {"GPU-b", "GPU-d", "GPU-a"}, {"GPU-c", "GPU-b", "GPU-d"}} {
			var pods []*corev1.Pod
			for i, card := range order {
				pods = append(pods, onCards(fmt.Sprintf("single-%d-%d", round, i), i == 1, []string{card}))
				create(t, cluster, pods[i])
			}
			for i, pod := range pods {
				ends(t, pod)
				if log := logOf(t, pod, "c0"); !strings.Contains(log, "on cards "+order[i]+"\n") {
					t.Errorf("%s was placed on %s: %q", pod.Name, order[i], log)
				}
				cluster.Client.CoreV1().Pods("default").Delete(ctx, pod.Name, metav1.DeleteOptions{})
			}
		}
	})
	t.Run("several containers of a pod", func(t *testing.T) {
		pod := onCards("several", true, []string{"GPU-c"}, []string{"GPU-b", "GPU-a"})
		create(t, cluster, pod)
		ends(t, pod)
		for container, has := range map[string]string{"c0": "GPU-c", "c1": "GPU-b,GPU-a"} {
			if log := logOf(t, pod, container); !strings.Contains(log, "on cards "+has+"\n") {
				t.Errorf("%s was placed on %s: %q", container, has, log)
			}
		}
		if log := logOf(t, pod, "first"); !strings.Contains(log, "on cards GPU-c\n") {
			t.Errorf("the init container runs on cards of the container after it: %q", log)
		}
		cluster.Client.CoreV1().Pods("default").Delete(ctx, pod.Name, metav1.DeleteOptions{})
	})
	t.Run("a pod that was not placed says so", func(t *testing.T) {
		pod := onCards("not-placed", false, []string{"GPU-a"})
		pod.Annotations = nil
		create(t, cluster, pod)
		if text := saysWaiting(t, pod.Name, "CreateContainerConfigError"); !strings.Contains(text, "code = FailedPrecondition desc = pod default/not-placed was not placed") {
			t.Errorf("it says %q", text)
		}
		// Its words are looked up at each try: once it is placed it starts.
		mended := onCards(pod.Name, false, []string{"GPU-a"}).Annotations
		patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": mended}})
		_, err := cluster.Client.CoreV1().Pods("default").Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		must(t, err)
		ends(t, pod)
		cluster.Client.CoreV1().Pods("default").Delete(ctx, pod.Name, metav1.DeleteOptions{})
	})
	t.Run("a card that is given already goes to no other", func(t *testing.T) {
		holder := onCards("holder", false, []string{"GPU-b"})
		holder.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "QM_SLEEP", Value: "10m"}}
		create(t, cluster, holder)
		await(t, time.Minute, "holder runs", func() (bool, error) {
			is, err := cluster.Client.CoreV1().Pods("default").Get(ctx, holder.Name, metav1.GetOptions{})
			return err == nil && is.Status.Phase == corev1.PodRunning, err
		})
		time.Sleep(time.Second) // they differ in the second at which they were bound
		thief := onCards("thief", false, []string{"GPU-b"})
		create(t, cluster, thief)
		if text := saysWaiting(t, thief.Name, "CreateContainerConfigError"); !strings.Contains(text, "pod default/thief was placed on card GPU-b, of which pod default/holder") {
			t.Errorf("it says %q", text)
		}
		report(t, this, cards, "GPU-b")
		offers(t, ownCard, 3)
		report(t, this, cards)
		offers(t, ownCard, 4)
	})
	t.Run("without the plugin nothing starts, also after the kubelet", func(t *testing.T) {
		again := onCards("again", false, []string{"GPU-a"})
		again.Spec.RestartPolicy = corev1.RestartPolicyAlways
		again.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "QM_SLEEP", Value: "20s"}}
		create(t, cluster, again)
		pods := cluster.Client.CoreV1().Pods("default")
		id := ""
		await(t, time.Minute, "it runs", func() (bool, error) {
			is, err := pods.Get(ctx, again.Name, metav1.GetOptions{})
			if err == nil && len(is.Status.ContainerStatuses) > 0 && is.Status.ContainerStatuses[0].State.Running != nil {
				id = strings.TrimPrefix(is.Status.ContainerStatuses[0].ContainerID, "containerd://")
			}
			return id != "", err
		})
		await(t, 30*time.Second, "files of containers that are made are gone", func() (bool, error) {
			left, err := cluster.Script("node-exec", "sh", "-c", "ls /run/cdi")
			return err == nil && !strings.Contains(left, ".json"), fmt.Errorf("%s %v", left, err)
		})
		plugin.end("KILL") // its container ends by itself soon
		_, err := cluster.Script("restart", "kubelet", "--signal", "KILL")
		must(t, err)
		if text := saysWaiting(t, again.Name, "CreateContainerError"); !strings.Contains(text, "unresolvable CDI devices") {
			t.Errorf("it says %q", text)
		}
		plugin = startCardPlugin(t, nodeKubeconfig(t))
		plugin.awaitTaken(1)
		await(t, 2*time.Minute, "it runs again", func() (bool, error) {
			is, err := pods.Get(ctx, again.Name, metav1.GetOptions{})
			return err == nil && len(is.Status.ContainerStatuses) > 0 && is.Status.ContainerStatuses[0].State.Running != nil && !strings.HasSuffix(is.Status.ContainerStatuses[0].ContainerID, id),
				fmt.Errorf("%v %+v", err, is.Status.ContainerStatuses)
		})
	})
	plugin.end("TERM")
}

// nodeKubeconfig reaches the API server from the node's network.
func nodeKubeconfig(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(cluster.Kubeconfig)
	must(t, err)
	of, err := os.ReadFile(filepath.Join(cluster.Dir, "certs/kube-proxy.kubeconfig"))
	must(t, err)
	var server string
	for _, line := range strings.Split(string(of), "\n") {
		if _, after, ok := strings.Cut(line, "server:"); ok {
			server = strings.TrimSpace(after)
		}
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	out := []string{}
	for _, line := range strings.Split(string(text), "\n") {
		if before, _, ok := strings.Cut(line, "server:"); ok {
			line = before + "server: " + server
		}
		out = append(out, line)
	}
	must(t, os.WriteFile(file, []byte(strings.Join(out, "\n")), 0o600))
	return file
}
