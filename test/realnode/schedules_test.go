package realnode

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
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

// placedPod is a pod with what each of its containers must see of its placement.
type placedPod struct {
	pod  *corev1.Pod
	seen map[string][]string // lines, by container
	// said by the plugin until a control daemon was dead: a container that it had let start by then may come too late for the daemon.
	said string
	// closed says of which cards the program that keeps MPS said, when it was asked to end, that they are closed; nil: it was not asked.
	closed func(card string) bool
	// again: its first program is killed while it runs, and the kubelet starts it again in its pod.
	again bool
}

// mayMiss: the container was let start before a control daemon was dead. One that ended in order has left a card that gives it nothing.
func (p placedPod) mayMiss(container, line string) bool {
	if line != reachesDaemon {
		return false
	}
	if card := strings.TrimPrefix(p.seen[container][0], "on cards "); p.closed != nil && !p.closed(card) {
		return false
	}
	var order []string
	for _, list := range [][]corev1.Container{p.pod.Spec.InitContainers, p.pod.Spec.Containers} {
		for _, is := range list {
			order = append(order, is.Name)
		}
	}
	starts := 0
	for _, line := range strings.Split(p.said, "\n") {
		if strings.Contains(line, "a container may start") && strings.Contains(line, "default/"+p.pod.Name+" ") {
			starts++
		}
	}
	return slices.Index(order, container) < starts
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
		is := placedPod{pod: onCards(fmt.Sprintf("r%d-%d", round, number), withInit, lists...), seen: map[string][]string{}}
		for i, list := range lists {
			is.seen[fmt.Sprint("c", i)] = []string{"on cards " + strings.Join(list, ",")}
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
			is.seen["first"] = []string{"on cards " + next[0]}
		}
		sometimesSlow(rng, is.pod)
		is.sometimesAgain(rng)
		out = append(out, is)
	}
	return out
}

func (p *placedPod) sometimesAgain(rng *rand.Rand) {
	if p.again = rng.IntN(4) == 0; !p.again {
		return
	}
	spec := &p.pod.Spec
	spec.RestartPolicy = corev1.RestartPolicyOnFailure
	for i := range spec.Containers {
		spec.Containers[i].Args = []string{"0"} // it ends with exit code 0
	}
	spec.Containers[0].Env = []corev1.EnvVar{{Name: "QM_SLEEP", Value: "2s"}}
}

func sometimesSlow(rng *rand.Rand, pod *corev1.Pod) {
	if rng.IntN(4) == 0 {
		for i := range pod.Spec.Containers {
			pod.Spec.Containers[i].Env = []corev1.EnvVar{{Name: "QM_SLEEP", Value: fmt.Sprint(rng.IntN(2000), "ms")}}
		}
	}
}

// randomShares cut the cards up. An init container has the share of the container after it.
func randomShares(rng *rand.Rand, round int) (out []placedPod) {
	type left struct{ cores, gib int64 }
	free := map[string]*left{cardA: {100, 15}, cardB: {100, 15}}
	for number := range 2 + rng.IntN(4) {
		var shares []share
		for range 1 + rng.IntN(2) {
			card := []string{cardA, cardB}[rng.IntN(2)]
			of := free[card]
			if of.cores < 1 || of.gib < 1 {
				continue
			}
			is := share{card, 1 + rng.Int64N(min(of.cores, 60)), 1 + rng.Int64N(of.gib)}
			of.cores, of.gib = of.cores-is.cores, of.gib-is.gib
			shares = append(shares, is)
		}
		if len(shares) == 0 {
			continue
		}
		withInit := rng.IntN(3) == 0
		is := placedPod{pod: onShares(fmt.Sprintf("s%d-%d", round, number), withInit, shares...), seen: map[string][]string{}}
		for i, share := range shares {
			is.seen[fmt.Sprint("c", i)] = share.seen()
		}
		if len(shares) > 1 && !withInit && rng.IntN(2) == 0 { // the last container runs before the other begins, and beside it
			spec, always := &is.pod.Spec, corev1.ContainerRestartPolicyAlways
			last := spec.Containers[len(spec.Containers)-1]
			last.RestartPolicy, last.Env = &always, []corev1.EnvVar{{Name: "QM_SLEEP", Value: "10m"}}
			spec.InitContainers, spec.Containers = []corev1.Container{last}, spec.Containers[:len(spec.Containers)-1]
		}
		if withInit {
			is.seen["first"] = shares[0].seen()
		}
		sometimesSlow(rng, is.pod)
		is.sometimesAgain(rng)
		out = append(out, is)
	}
	return out
}

// logWith waits for the lines: containerd may write the last of them after the container has ended.
func logWith(t *testing.T, pod *corev1.Pod, container string, lines []string) (text string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		text = logOf(t, pod, container)
		lacks := func(line string) bool { return !strings.Contains(text, line+"\n") }
		if !slices.ContainsFunc(lines, lacks) || time.Now().After(end) {
			return text
		}
	}
}

// lives until its containers have ended by themselves. rejected: why the kubelet did not admit the pod, which so never began.
func (p placedPod) lives(t *testing.T) (rejected string) {
	t.Helper()
	pods := cluster.Client.CoreV1().Pods("default")
	await(t, 3*time.Minute, p.pod.Name+" ends", func() (bool, error) {
		is, err := pods.Get(ctx, p.pod.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		if is.Status.Reason == "UnexpectedAdmissionError" {
			rejected = is.Status.Message
		}
		return rejected != "" || is.Status.Phase == corev1.PodSucceeded || is.Status.Phase == corev1.PodFailed, fmt.Errorf("%s %+v %+v", is.Status.Phase, is.Status.InitContainerStatuses, is.Status.ContainerStatuses)
	})
	if rejected != "" {
		return rejected
	}
	for container, lines := range p.seen {
		log := logWith(t, p.pod, container, lines)
		for _, line := range lines {
			if !strings.Contains(log, line+"\n") && !p.mayMiss(container, line) {
				t.Errorf("container %s of %s was to see %q: %q", container, p.pod.Name, line, log)
			}
		}
	}
	return ""
}

// machine is what can be disturbed on the node.
type machine struct {
	t      *testing.T
	plugin *cardPlugin
	again  func(*testing.T) *cardPlugin
	mps    *mps   // nil: whole cards
	said   string // by the plugin until a control daemon was dead, in this schedule
	closed func(card string) bool
}

// Pods come in any order, with init containers and sidecars, at random moments, while plugin, kubelet and containerd are killed: each container
// sees the cards of its placement, every time. QM_SCHEDULES says how many schedules, QM_SEED which.
func TestEachContainerHasItsCardsInRandomSchedules_long(t *testing.T) {
	cards := []string{"GPU-a", "GPU-b", "GPU-c", "GPU-d"}
	haveReport(t, cards)
	is := &machine{t: t, again: func(t *testing.T) *cardPlugin { return startCardPlugin(t, nodeKubeconfig(t)) }}
	is.runs(ownCard, int64(len(cards)), func(rng *rand.Rand, round int) []placedPod { return randomPods(rng, round, cards) },
		"nothing", "nothing", "plugin TERM", "plugin KILL", "kubelet", "containerd")
}

// The same of shares; control daemons and the program that keeps them are killed, too.
func TestEachContainerHasItsShareInRandomSchedules_long(t *testing.T) {
	haveReport(t, []string{cardA, cardB})
	is := &machine{t: t, again: startSharePlugin, mps: startMps(t)}
	is.runs(ownCores, 200, randomShares, "nothing", "nothing", "plugin TERM", "plugin KILL", "kubelet", "containerd", "mps TERM", "mps KILL", "daemon")
}

func (m *machine) runs(resource string, amount int64, deal func(*rand.Rand, int) []placedPod, disturbances ...string) {
	t := m.t
	schedules, err := strconv.Atoi(kit.Env("QM_SCHEDULES", "12"))
	must(t, err)
	seed, err := strconv.ParseUint(kit.Env("QM_SEED", strconv.FormatInt(time.Now().Unix(), 10)), 10, 64)
	must(t, err)
	t.Logf("QM_SEED=%d", seed)
	m.plugin = m.again(t)
	m.plugin.awaitTaken(1)
	offers(t, resource, amount)
	began, total, rejected, disturbed, watcher := time.Now(), 0, 0, map[string]int{}, newOracle(t)
	for round := range schedules {
		rng := rand.New(rand.NewPCG(seed, uint64(round)))
		disturbance := disturbances[rng.IntN(len(disturbances))]
		pods, moment := deal(rng, round), rng.IntN(4)
		m.said, m.closed = "", nil
		for i, is := range pods {
			time.Sleep(time.Duration(rng.IntN(400)) * time.Millisecond)
			if i == moment || (i == len(pods)-1 && moment >= len(pods)) {
				m.disturb(disturbance)
			}
			create(t, cluster, is.pod)
		}
		disturbed[disturbance]++
		for _, is := range pods {
			if is.again {
				watcher.restart(is.pod)
			}
			watcher.look()
		}
		for _, is := range pods {
			total++
			is.said, is.closed = m.said, m.closed
			if why := is.lives(t); why != "" {
				rejected++
				if disturbance == "nothing" {
					t.Errorf("%s was rejected although nothing happened: %s", is.pod.Name, why)
				}
			}
		}
		api := cluster.Client.CoreV1().Pods("default")
		for _, is := range pods {
			api.Delete(ctx, is.pod.Name, metav1.DeleteOptions{})
		}
		for _, is := range pods {
			await(t, time.Minute, is.pod.Name+" is gone", func() (bool, error) {
				_, err := api.Get(ctx, is.pod.Name, metav1.GetOptions{})
				return apierrors.IsNotFound(err), err
			})
		}
		if t.Failed() {
			t.Fatalf("in schedule %d of seed %d, disturbed by %s", round, seed, disturbance)
		}
		offers(t, resource, amount)
	}
	m.plugin.end("TERM")
	t.Logf("%d schedules, %d pods, %d rejected by a kubelet that had no plugin, in %.0f s; disturbed by %v; %s", schedules, total, rejected, time.Since(began).Seconds(), disturbed, watcher)
	if watcher.holders == 0 || (schedules > 3 && watcher.reused == 0) {
		t.Errorf("nothing was tried: %s", watcher)
	}
}

// disturb something of the node, and bring it back at once. The node's status still has what a plugin offered before: only the plugin's
// own probe says that the kubelet has its list again.
func (m *machine) disturb(part string) {
	m.t.Helper()
	name, signal, _ := strings.Cut(part, " ")
	switch name {
	case "plugin":
		seen := endsSeen(m.t)
		m.plugin.end(signal)
		m.plugin = m.again(m.t)
		m.plugin.awaitTaken(1)
		// A kubelet before 1.37 that sees the end of a plugin when the next one is there already ends the next one's stream, and that registers
		// again: runClient in k8s.io/kubernetes pkg/kubelet/cm/devicemanager/plugin/v1beta1/handler.go. A container takes longer to start.
		await(m.t, 30*time.Second, "the kubelet has seen the end of the plugin", func() (bool, error) {
			return endsSeen(m.t) >= seen+m.plugin.resources, nil
		})
		m.plugin.awaitReadiness(isReady)
	case "mps":
		before := m.mps
		before.end(signal)
		if signal == "TERM" { // the daemons end with it
			m.said = m.plugin.said.text()
			m.closed = func(card string) bool {
				return regexp.MustCompile(`a card is closed.*` + card).MatchString(before.said.text())
			}
		}
		m.mps = startMps(m.t)
	case "daemon":
		_, err := cluster.Script("node-exec", "sh", "-c", fmt.Sprintf("kill -9 $(cat %s/%s/pipe/nvidia-cuda-mps-control.pid)", mpsFolder, cardB))
		must(m.t, err)
		m.said = m.plugin.said.text()
	case "kubelet", "containerd":
		times := m.plugin.taken()
		_, err := cluster.Script("restart", name, "--signal", "KILL")
		must(m.t, err)
		if name == "kubelet" {
			m.plugin.awaitTaken(times + 1)
			m.plugin.awaitReadiness(isReady)
		}
	}
}

// endsSeen is how often the kubelet has noted the end of a plugin's resource.
func endsSeen(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(cluster.Dir, "logs", "kubelet.log"))
	must(t, err)
	return strings.Count(string(text), "Deregistered client")
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
	await(t, 30*time.Second, "the type is known", func() (bool, error) { // kubectl wait fails while a type has no status yet
		said, err := cluster.Run("", "kubectl", "wait", "crd", "--for=condition=Established", "--timeout=5s", name)
		return err == nil, fmt.Errorf("%s %w", said, err)
	})
	object, _ := json.Marshal(map[string]any{"apiVersion": "quartermaster.io/v1alpha1", "kind": "AcceleratorNode", "metadata": map[string]any{"name": real1}})
	_, err = cluster.Run(string(object), "kubectl", "apply", "-f", "-")
	must(t, err)
}
