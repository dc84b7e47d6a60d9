package faults

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"quartermaster.io/test/faults/kit"
)

// agentOn is the program's agent on a node of the hall, with the stand-in for the card as its driver.
type agentOn struct {
	h       *hall
	node    string
	folder  string
	root    string // of the node's file system; empty: the machine's own
	fixture map[string]any
	process *os.Process
	exited  chan struct{}
}

func (h *hall) startAgent(node, fixture string) *agentOn {
	h.t.Helper()
	return h.startAgentIn(node, fixture, "")
}

func (h *hall) startAgentIn(node, fixture, root string) *agentOn {
	h.t.Helper()
	driver := filepath.Join(kit.Root(), "build/dev/nvml")
	if _, err := os.Stat(filepath.Join(driver, "libnvidia-ml.so.1")); err != nil {
		h.must(fmt.Errorf("no stand-in for the card: ./dev build dev nvml_standin"))
	}
	fixtures := filepath.Join(kit.Root(), "test/nvml/fixtures")
	a := &agentOn{h: h, node: node, folder: h.t.TempDir(), root: root}
	models, err := os.ReadFile(filepath.Join(fixtures, "models.json"))
	h.must(err)
	h.must(os.WriteFile(filepath.Join(a.folder, "models.json"), models, 0o600))
	text, err := os.ReadFile(filepath.Join(fixtures, fixture+".json"))
	h.must(err)
	h.must(json.Unmarshal(text, &a.fixture))
	a.replace()
	a.start()
	return a
}

func (a *agentOn) start() {
	h := a.h
	h.t.Helper()
	driver := filepath.Join(kit.Root(), "build/dev/nvml")
	cmd := exec.Command(program, "agent", "--kubeconfig", h.Kubeconfig, "--node-name", a.node)
	if a.root != "" {
		cmd.Args = append(cmd.Args, "--node-root", a.root)
	}
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+driver, "QM_NVML_FIXTURE="+filepath.Join(a.folder, "node.json"))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	h.must(cmd.Start())
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }()
	a.process, a.exited = cmd.Process, exited
	h.t.Cleanup(func() { _ = cmd.Process.Kill(); <-exited })
}

// replace gives the driver the fixture as it is now.
func (a *agentOn) replace() {
	a.h.t.Helper()
	text, err := json.Marshal(a.fixture)
	a.h.must(err)
	file := filepath.Join(a.folder, "new.json")
	a.h.must(os.WriteFile(file, text, 0o600))
	a.h.must(os.Rename(file, filepath.Join(a.folder, "node.json")))
}

func (a *agentOn) xid(sequence int, card, xid int) {
	a.h.t.Helper()
	uuid := a.fixture["cards"].([]any)[card].(map[string]any)["uuid"]
	events, _ := a.fixture["events"].([]any)
	a.fixture["events"] = append(events, map[string]any{"sequence": sequence, "card": uuid, "xid": xid})
	a.replace()
}

// card is what the AcceleratorNode says of one card.
func (h *hall) card(node string, index int) (uuid, health string) {
	h.t.Helper()
	object, err := h.Dynamic.Resource(kit.AccelNodes).Get(h.ctx, node, metav1.GetOptions{})
	h.must(err)
	cards, _, _ := unstructured.NestedSlice(object.Object, "status", "cards")
	if index >= len(cards) {
		return "", ""
	}
	card := cards[index].(map[string]any)
	uuid, _ = card["uuid"].(string)
	health, _ = card["health"].(string)
	return
}

// report plays the agent of a node with so many cards.
func (h *hall) report(node string, health ...string) {
	h.t.Helper()
	h.must(h.reported(node, health...))
}

func (h *hall) reported(node string, health ...string) error {
	var cards []string
	for i, is := range health {
		cards = append(cards, fmt.Sprintf(`{"uuid": "GPU-%s-%d", "index": %d, "memoryMiB": %d, "health": %q}`, node, i, i, cardMiB, is))
	}
	body := fmt.Sprintf(`{"status": {"cards": [%s]}}`, strings.Join(cards, ", "))
	_, err := h.Dynamic.Resource(kit.AccelNodes).Patch(h.ctx, node, types.MergePatchType, []byte(body), metav1.PatchOptions{}, "status")
	return err
}

// knowCards: from now on the checker of placements knows the cards that agents report.
func (h *hall) knowCards() {
	h.t.Helper()
	var err error
	h.book, err = h.PlacementBook(h.ctx, fpga)
	h.must(err)
	h.must(h.book.Follow(h.ctx, h.Cluster))
}

// told are the notes of events with this reason on an object.
func (h *hall) told(kind, name, reason string) string {
	h.t.Helper()
	var notes []string
	list, err := h.Client.EventsV1().Events("default").List(h.ctx, metav1.ListOptions{})
	h.must(err)
	for _, e := range list.Items {
		if e.Regarding.Kind == kind && e.Regarding.Name == name && e.Reason == reason {
			notes = append(notes, e.Note)
		}
	}
	return strings.Join(notes, "\n")
}

func (h *hall) annotate(node, key, value string) {
	h.t.Helper()
	_, err := h.Client.CoreV1().Nodes().Patch(h.ctx, node, types.MergePatchType, fmt.Appendf(nil, `{"metadata": {"annotations": {%q: %q}}}`, key, value), metav1.PatchOptions{})
	h.must(err)
}

func (h *hall) annotation(node, key string) (string, bool) {
	h.t.Helper()
	n, err := h.Client.CoreV1().Nodes().Get(h.ctx, node, metav1.GetOptions{})
	h.must(err)
	value, has := n.Annotations[key]
	return value, has
}

// S20: a driver reports a fatal XID. The agent withdraws the card, the operator names the pods on it, a person restores it without a restart of
// anything, and the next XID counts again.
func TestS20_a_sick_card_names_its_pods_and_a_person_restores_it(t *testing.T) {
	h := followedHall(t, "dedicated", map[string]int{"vgpu/2": 1})
	h.open(h.proxy("first"))
	a := h.startAgent("vgpu-0", "t4_pair")
	healthy := func(index int, wanted string) func() bool {
		return func() bool { _, is := h.card("vgpu-0", index); return is == wanted }
	}
	h.eventually(20*time.Second, "the agent reports", healthy(1, "Healthy"))
	h.knowCards()
	share := map[string]string{"tencent.com/vcuda-core": "60", "tencent.com/vcuda-memory": "8"}
	h.create(pod("one", share))
	p := h.awaitBound("one", 20*time.Second)
	uuid := h.placementOf(p).Containers["main"][0].Card
	index := 0
	if first, _ := h.card("vgpu-0", 0); uuid != first {
		index = 1
	}
	a.xid(1, index, 79)
	h.eventually(10*time.Second, "the card is withdrawn", healthy(index, "XID 79"))
	h.eventually(10*time.Second, "an event on the pod", func() bool {
		return strings.Contains(h.told("Pod", "one", "CardUnhealthy"), "card "+uuid+" (XID 79) of node vgpu-0, which this pod uses, is sick.")
	})
	h.eventually(10*time.Second, "an event on the node", func() bool {
		return strings.Contains(h.told("Node", "vgpu-0", "PodsOnSickCard"), "On it: pod default/one.")
	})
	if is := h.get("one"); is.DeletionTimestamp != nil {
		t.Error("the pod was not left alone")
	}
	// One card is left for two pods of 60.
	h.create(pod("two", share))
	h.awaitBound("two", 20*time.Second)
	h.remove("one")
	h.create(pod("three", share))
	h.awaitReason("three", "cores", 20*time.Second)

	const restore = "quartermaster.io/restore"
	h.annotate("vgpu-0", restore, "GPU-none")
	h.eventually(10*time.Second, "a card that is not there is refused", func() bool {
		_, has := h.annotation("vgpu-0", restore)
		return !has && strings.Contains(h.told("Node", "vgpu-0", "RestoreRefused"), "card GPU-none cannot be restored: this node has the cards GPU-")
	})
	began := time.Now()
	h.annotate("vgpu-0", restore, uuid)
	h.eventually(10*time.Second, "the card is in order again", healthy(index, "Healthy"))
	h.awaitBound("three", 20*time.Second)
	t.Logf("from the annotation to the next pod on the card: %.2f s", time.Since(began).Seconds())
	h.eventually(10*time.Second, "the annotation is gone", func() bool { _, has := h.annotation("vgpu-0", restore); return !has })
	a.xid(2, index, 48)
	h.eventually(10*time.Second, "a later XID counts again", healthy(index, "XID 48"))

	// A driver that hangs: nothing is known of any card.
	a.fixture["hangs"] = true
	a.replace()
	began = time.Now()
	h.eventually(60*time.Second, "the driver does not answer", healthy(1-index, "NotAnswering"))
	t.Logf("from the first hung call to the report: %.1f s", time.Since(began).Seconds())
	// Nor does the agent hang: it ends when it is asked to, and the next one waits for the driver.
	h.must(a.process.Signal(syscall.SIGTERM))
	select {
	case <-a.exited:
	case <-time.After(10 * time.Second):
		t.Error("the agent has not ended 10 s after SIGTERM, because its driver hangs")
	}
	a.start()
	time.Sleep(2 * time.Second)
	if _, is := h.card("vgpu-0", 1-index); is != "NotAnswering" {
		t.Errorf("a new agent, which knows nothing yet, reports %s", is)
	}
	a.fixture["hangs"] = false
	a.replace()
	h.eventually(10*time.Second, "the driver answers again", healthy(1-index, "Healthy"))
	if _, is := h.card("vgpu-0", index); is != "XID 48" {
		t.Errorf("the sick card is %s after the driver has answered again, expected XID 48", is)
	}
}

// S20: the control daemon of a card dies, with clients. The program that keeps MPS (its daemons are stand-ins) writes that down, the agent withdraws
// the card and no other, the operator names its pods with what to do, and says so when the last client has left and MPS is back.
func TestS20_a_card_whose_mps_has_failed_names_its_pods_until_it_is_back(t *testing.T) {
	h := followedHall(t, "dedicated", map[string]int{"vgpu/2": 1})
	h.open(h.proxy("first"))
	root, err := os.MkdirTemp("/tmp", "m-") // short: sockets of MPS are in it
	h.must(err)
	t.Cleanup(func() { os.RemoveAll(root) })
	a := h.startAgentIn("vgpu-0", "t4_pair", root)
	healthy := func(index int, wanted string) func() bool {
		return func() bool { _, is := h.card("vgpu-0", index); return is == wanted }
	}
	h.eventually(20*time.Second, "the agent reports", healthy(1, "Healthy"))
	h.knowCards()
	share := map[string]string{"tencent.com/vcuda-core": "60", "tencent.com/vcuda-memory": "8"}
	of := map[string]string{} // the card of each pod
	for _, name := range []string{"one", "two"} {
		h.create(pod(name, share))
		of[name] = h.placementOf(h.awaitBound(name, 20*time.Second)).Containers["main"][0].Card
	}
	if of["one"] == of["two"] {
		t.Fatalf("two pods of 60 on one card: %v", of)
	}
	failing := 0
	if first, _ := h.card("vgpu-0", 0); of["one"] != first {
		failing = 1
	}
	folder := filepath.Join(root, "run/quartermaster/mps")
	driver := filepath.Join(kit.Root(), "build/dev/nvml")
	keeper := exec.Command(program, "agent", "mps", "--folder", folder)
	keeper.Env = append(os.Environ(), "LD_LIBRARY_PATH="+driver, "PATH="+driver+":"+os.Getenv("PATH"), "QM_NVML_FIXTURE="+filepath.Join(a.folder, "node.json"))
	keeper.Stderr = os.Stderr
	keeper.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	h.must(keeper.Start())
	t.Cleanup(func() { _ = keeper.Process.Signal(syscall.SIGTERM); _ = keeper.Wait() })
	daemon := func() int {
		text, _ := os.ReadFile(filepath.Join(folder, of["one"], "pipe/nvidia-cuda-mps-control.pid"))
		pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		return pid
	}
	asks := func(command string) string {
		cmd := exec.Command(filepath.Join(driver, "nvidia-cuda-mps-control"))
		cmd.Env = append(os.Environ(), "CUDA_MPS_PIPE_DIRECTORY="+filepath.Join(folder, of["one"], "pipe"))
		cmd.Stdin = strings.NewReader(command + "\n")
		said, _ := cmd.Output()
		return strings.TrimSpace(string(said))
	}
	h.eventually(20*time.Second, "the card has a server", func() bool {
		return daemon() > 0 && asks("get_default_device_pinned_mem_limit 0") == "15360M" && asks("get_server_list") != ""
	})
	time.Sleep(2 * time.Second)
	if _, is := h.card("vgpu-0", failing); is != "Healthy" {
		t.Fatalf("a card whose MPS is in order is %s", is)
	}
	card := a.fixture["cards"].([]any)[failing].(map[string]any)
	card["processes"] = []any{map[string]any{"pid": os.Getpid(), "memory_mib": 168}}
	a.replace()
	began := time.Now()
	h.must(syscall.Kill(daemon(), syscall.SIGKILL))
	h.eventually(20*time.Second, "the card is withdrawn", healthy(failing, "MpsFailed"))
	h.eventually(10*time.Second, "an event on its pod", func() bool {
		note := h.told("Pod", "one", "CardUnhealthy")
		return strings.Contains(note, "card "+of["one"]+" (MpsFailed) of node vgpu-0, which this pod uses, is sick.") && strings.Contains(note, "MPS starts again when the last program has left the card")
	})
	t.Logf("from the daemon's end to the pod's event: %.1f s", time.Since(began).Seconds())
	h.eventually(10*time.Second, "events on the node", func() bool {
		return strings.Contains(h.told("Node", "vgpu-0", "PodsOnSickCard"), "On it: pod default/one.") &&
			strings.Contains(h.told("Node", "vgpu-0", "CardUnhealthy"), "is sick: MpsFailed: the MPS control daemon was killed by signal 9")
	})
	if _, is := h.card("vgpu-0", 1-failing); is != "Healthy" {
		t.Errorf("the other card is %s", is)
	}
	if note := h.told("Pod", "two", "CardUnhealthy"); note != "" {
		t.Errorf("a pod on the other card is told %q", note)
	}
	delete(card, "processes")
	a.replace()
	h.eventually(30*time.Second, "MPS is back", healthy(failing, "Healthy"))
	h.eventually(10*time.Second, "an event that says so", func() bool {
		return strings.Contains(h.told("Pod", "one", "CardHealthy"), "card "+of["one"]+" of node vgpu-0 is in order again")
	})
	if note := h.told("Pod", "two", "CardHealthy"); note != "" {
		t.Errorf("a pod on the other card is told %q", note)
	}
	// What no one keeps true any more is not believed: the file of a program that has ended in order is gone.
	h.must(keeper.Process.Signal(syscall.SIGTERM))
	h.eventually(20*time.Second, "its file is gone", func() bool {
		_, err := os.Stat(filepath.Join(folder, "state/cards.json"))
		return os.IsNotExist(err)
	})
}

// A new driver reports XIDs on every node: two nodes of five lose their cards, and three keep them.
func TestS20_a_brake_keeps_a_fleet_alive_long(t *testing.T) {
	h := holdHall(t, map[string]int{"vgpu/2": 5})
	o := h.ops[0]
	h.must(h.patchPolicy(map[string]any{"health": map[string]any{"maxWithdrawn": "40%"}}))
	t.Cleanup(func() { h.must(h.patchPolicy(map[string]any{"health": nil})) })
	for i := range 5 {
		h.report(fmt.Sprintf("vgpu-%d", i), "Healthy", "Healthy")
	}
	h.knowCards()
	condition := func() (status, message string) {
		p, err := h.Dynamic.Resource(kit.Policies).Get(h.ctx, "default", metav1.GetOptions{})
		h.must(err)
		conditions, _, _ := unstructured.NestedSlice(p.Object, "status", "conditions")
		for _, one := range conditions {
			if c := one.(map[string]any); c["type"] == "WithdrawalsHeldBack" {
				return c["status"].(string), c["message"].(string)
			}
		}
		return
	}
	h.eventually(20*time.Second, "no card is held back", func() bool { status, _ := condition(); return status == "False" })
	for i := range 5 {
		h.report(fmt.Sprintf("vgpu-%d", i), "XID 119", "XID 119")
	}
	h.eventually(20*time.Second, "the condition", func() bool {
		status, message := condition()
		return status == "True" && strings.Contains(message, "5 nodes of 5 have sick cards, and spec.health.maxWithdrawn lets 2 withdraw them: 6 sick cards of 3 nodes still get pods")
	})
	if held, _ := o.Metric("quartermaster_held_back_nodes"); held != 3 {
		t.Errorf("quartermaster_held_back_nodes is %v, expected 3", held)
	}
	whole := map[string]string{"tencent.com/vcuda-core": "100", "tencent.com/vcuda-memory": "60"}
	for i := range 6 {
		h.create(pod(fmt.Sprintf("on-%d", i), whole))
		h.awaitBound(fmt.Sprintf("on-%d", i), 20*time.Second)
	}
	h.create(pod("late", whole))
	h.awaitReason("late", "card", 20*time.Second)
	h.must(h.patchPolicy(map[string]any{"health": map[string]any{"maxWithdrawn": 1}}))
	h.awaitBound("late", 20*time.Second)
}
