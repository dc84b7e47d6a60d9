package placements

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"quartermaster.io/test/faults/kit"
)

const gib = 1024

// seats are nodes as the device plugins leave them: what they advertise, and what GPU Feature Discovery says.
var seats = []struct {
	name, mode, product string
	cards, memoryMiB    int64
	offers              map[string]int64
	set                 string
}{
	{"seat-vgpu", "vgpu", "Tesla-T4", 8, 15 * gib, map[string]int64{"tencent.com/vcuda-core": 800, "tencent.com/vcuda-memory": 8 * 60}, ""},
	{"seat-hami", "hami", "NVIDIA-A100-SXM4-40GB", 8, 40 * gib, map[string]int64{"nvidia.com/gpu": 80}, ""},
	{"seat-gpushare", "gpushare", "Tesla-V100-SXM2-16GB", 8, 16 * gib, map[string]int64{"aliyun.com/gpu-mem": 8 * 16, "aliyun.com/gpu-count": 8, "aliyun.com/gpu-core.percentage": 800}, ""},
	// gpushare's own samples ask in MiB: its plugin gets the unit.
	{"seat-mib", "gpushare", "Tesla-P4", 2, 8 * gib, map[string]int64{"aliyun.com/gpu-mem": 2 * 8 * gib, "aliyun.com/gpu-count": 2}, "mib"},
	{"seat-pgpu", "pgpu", "Tesla-T4", 2, 15 * gib, map[string]int64{"nvidia.com/gpu": 2}, ""},
}

const policy = `
apiVersion: quartermaster.io/v1alpha1
kind: AcceleratorPolicy
metadata: {name: default}
spec:
  modules:
    pgpu: {enabled: true}
    vgpu: {enabled: true}
    hami: {enabled: true}
    gpushare:
      enabled: true
      nodeSets: [{name: mib, settings: {memoryUnit: MiB}}]
  enrolment: {maxUnavailable: 100}
  customResources: {publish: false}
`

// house is the operator with the account, the arguments and the certificates of the installed chart.
type house struct {
	t        *testing.T
	dir      string
	operator *kit.Operator
	port     int
}

// secret of the extender, which the operator makes.
func (h *house) secret(name string) (out map[string][]byte) {
	h.t.Helper()
	must(h.t, until(at.ctx, 30*time.Second, "a certificate in Secret "+name, func() (bool, error) {
		is, err := at.Client.CoreV1().Secrets(release).Get(at.ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		out = is.Data
		return len(out["tls.crt"]) > 0, nil
	}))
	return
}

// argumentsOf are the Deployment's, with the pod's ports made ours.
func (h *house) argumentsOf() (out []string) {
	h.t.Helper()
	is, err := at.Client.AppsV1().Deployments(release).Get(at.ctx, "quartermaster", metav1.GetOptions{})
	must(h.t, err)
	of := is.Spec.Template.Spec
	for _, word := range of.Containers[0].Args[1:] {
		switch key, _, _ := strings.Cut(word, "="); key {
		case "--metrics-address", "--log-format", "--webhook-address": // the starter's; a webhook needs a service that leads here
		case "--extender-address":
			out = append(out, fmt.Sprintf("%s=127.0.0.1:%d", key, h.port))
		default:
			out = append(out, word)
		}
	}
	if !slices.ContainsFunc(out, func(word string) bool { return strings.HasPrefix(word, "--extender-address=") }) {
		h.t.Fatalf("the Deployment's arguments have no extender: %q", of.Containers[0].Args)
	}
	return
}

func openHouse(t *testing.T) *house {
	t.Helper()
	if program == "" {
		t.Fatal("no program under test: ./dev build release")
	}
	if out, _ := exec.Command(program, "controller", "--help").CombinedOutput(); !strings.Contains(string(out), "--extender-address") {
		t.Fatalf("%s has no extender", program)
	}
	_, err := at.Run(policy, "kubectl", "apply", "-f", "-")
	must(t, err)
	for _, seat := range seats {
		must(t, at.node(seat.name, seat.mode, seat.product, seat.cards, seat.memoryMiB, seat.offers))
		if seat.set != "" {
			_, err := at.Run("", "kubectl", "label", "--overwrite", "node", seat.name, "quartermaster.io/node-set="+seat.set)
			must(t, err)
		}
	}
	h := &house{t: t, dir: t.TempDir()}
	h.port, err = kit.FreePort()
	must(t, err)
	token, err := at.Client.CoreV1().ServiceAccounts(release).Get(at.ctx, "quartermaster", metav1.GetOptions{})
	must(t, err)
	cmd := exec.Command(filepath.Join(kit.Root(), "test/cluster/cluster.sh"), "sa-kubeconfig", "--name", at.Name, "--namespace", release, "--serviceaccount", token.Name)
	said, err := cmd.Output()
	must(t, err)
	lines := strings.Fields(string(said))
	h.operator, err = kit.StartOperator(kit.OperatorOptions{Name: "house", Program: program, Kubeconfig: lines[len(lines)-1], Namespace: release, Dir: h.dir, Args: h.argumentsOf()})
	must(t, err)
	t.Cleanup(func() {
		h.operator.Terminate(10 * time.Second)
		if t.Failed() {
			t.Log(h.operator.LogTail(15))
		}
	})
	must(t, h.operator.WaitReady(60*time.Second))
	return h
}

// configuration is the document's, with nothing filled in but what only a cluster knows: each of them once.
func (h *house) configuration() string {
	h.t.Helper()
	text, err := document()
	must(h.t, err)
	var found []string
	for _, block := range fenced(text, "yaml") {
		if strings.Contains(block, "kind: KubeSchedulerConfiguration") {
			found = append(found, block)
		}
	}
	if len(found) != 1 {
		h.t.Fatalf("docs/scheduling.md has %d KubeSchedulerConfigurations", len(found))
	}
	out := found[0]
	client := h.secret("quartermaster-extender-client")
	put := func(pattern, with string) {
		h.t.Helper()
		is := regexp.MustCompile(pattern)
		if n := len(is.FindAllString(out, -1)); n != 1 {
			h.t.Fatalf("%q is %d times in the document's configuration", pattern, n)
		}
		out = is.ReplaceAllLiteralString(out, with)
	}
	put(`/etc/kubernetes/scheduler\.conf`, filepath.Join(at.Dir, "certs/kube-scheduler.kubeconfig"))
	put(`https://[0-9.]+/scheduler`, fmt.Sprintf("https://127.0.0.1:%d/scheduler", h.port))
	put(`caData: \.\.\.`, "caData: "+base64.StdEncoding.EncodeToString(client["ca.crt"]))
	put(`certData: \.\.\.`, "certData: "+base64.StdEncoding.EncodeToString(client["tls.crt"]))
	put(`keyData: \.\.\.`, "keyData: "+base64.StdEncoding.EncodeToString(client["tls.key"]))
	return out
}

// schedule starts a kube-scheduler of the cluster's version with this configuration, and waits until it leads.
func (h *house) schedule(configuration string) {
	h.t.Helper()
	port, err := kit.FreePort()
	must(h.t, err)
	file, log := filepath.Join(h.dir, fmt.Sprintf("scheduler-%d.yaml", port)), filepath.Join(h.dir, fmt.Sprintf("scheduler-%d.log", port))
	must(h.t, os.WriteFile(file, []byte(configuration), 0o600))
	out, err := os.Create(log)
	must(h.t, err)
	defer out.Close()
	kubeconfig := filepath.Join(at.Dir, "certs/kube-scheduler.kubeconfig")
	cmd := exec.Command(at.Tool("kube-scheduler"), "--config="+file, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port), "--cert-dir="+h.dir)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	_ = at.Client.CoordinationV1().Leases("kube-system").Delete(at.ctx, "quartermaster-scheduler", metav1.DeleteOptions{})
	began := time.Now()
	must(h.t, cmd.Start())
	h.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if h.t.Failed() {
			text, _ := os.ReadFile(log)
			all := strings.Split(strings.TrimSpace(string(text)), "\n")
			h.t.Log(strings.Join(all[max(0, len(all)-12):], "\n"))
		}
	})
	must(h.t, until(at.ctx, 40*time.Second, "a kube-scheduler that leads", func() (bool, error) {
		text, _ := os.ReadFile(log)
		lease, err := at.Client.CoordinationV1().Leases("kube-system").Get(at.ctx, "quartermaster-scheduler", metav1.GetOptions{})
		if err != nil {
			return false, fmt.Errorf("%w; its log: %s", err, regexp.MustCompile(`.*forbidden.*`).Find(text))
		}
		return lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" && lease.Spec.RenewTime.After(began), nil
	}))
}

// share of a card in a placement.
type share struct {
	Card      string
	Cores     int64
	MemoryMiB int64
	Whole     bool
}

type placement struct {
	Node, Source string
	Containers   map[string][]share
}

func placementOf(pod *corev1.Pod) (out placement, err error) {
	text := pod.Annotations["quartermaster.io/placement"]
	if text == "" {
		return out, fmt.Errorf("no placement")
	}
	err = json.Unmarshal([]byte(text), &out)
	return
}

// emptied takes all pods of people away.
func emptied(t *testing.T) {
	t.Helper()
	for _, what := range []string{"deployment,job,statefulset,replicaset", "pod"} {
		_, err := at.Run("", "kubectl", "delete", what, "-n", work, "--all", "--ignore-not-found", "--force", "--grace-period=0", "--wait=false")
		must(t, err)
	}
	must(t, until(at.ctx, 30*time.Second, "no pods", func() (bool, error) {
		is, err := at.Client.CoreV1().Pods(work).List(at.ctx, metav1.ListOptions{})
		return err == nil && len(is.Items) == 0, err
	}))
}

// The whole way: the chart's account and rights, the document's configuration, policies on.
func TestAKubeSchedulerConfiguredAsTheDocumentSaysBindsThroughTheExtender(t *testing.T) {
	must(t, at.account(work, "default"))
	emptied(t)
	h := openHouse(t)
	h.schedule(h.configuration())
	_, err := at.Run(`
apiVersion: v1
kind: Pod
metadata: {name: trainer}
spec:
  schedulerName: quartermaster
  containers:
    - name: main
      image: x
      resources: {limits: {tencent.com/vcuda-core: 20, tencent.com/vcuda-memory: 8}}
---
apiVersion: v1
kind: Pod
metadata: {name: greedy}
spec:
  schedulerName: quartermaster
  containers:
    - name: main
      image: x
      resources: {limits: {tencent.com/vcuda-core: 20, tencent.com/vcuda-memory: 61}}
---
apiVersion: v1
kind: Pod
metadata: {name: modest}
spec:
  schedulerName: quartermaster
  containers: [{name: main, image: x}]
`, "kubectl", "apply", "-n", work, "-f", "-")
	must(t, err)
	t.Cleanup(func() { emptied(t) })
	var pod *corev1.Pod
	must(t, until(at.ctx, 30*time.Second, "trainer is bound", func() (bool, error) {
		var err error
		pod, err = at.Client.CoreV1().Pods(work).Get(at.ctx, "trainer", metav1.GetOptions{})
		return err == nil && pod.Spec.NodeName != "", err
	}))
	is, err := placementOf(pod)
	must(t, err)
	want := []share{{"seat-vgpu/0", 20, 2 * gib, false}}
	if pod.Spec.NodeName != "seat-vgpu" || is.Node != "seat-vgpu" || is.Source != "planned" || !slices.Equal(is.Containers["main"], want) ||
		pod.Annotations["quartermaster.io/isolation"] != "soft" {
		t.Errorf("on %s with %v", pod.Spec.NodeName, pod.Annotations)
	}
	for key, want := range map[string]string{"tencent.com/predicate-node": "seat-vgpu", "tencent.com/gpu-assigned": "false", "tencent.com/predicate-gpu-idx-0": "0"} {
		if pod.Annotations[key] != want {
			t.Errorf("%s is %q, not %q", key, pod.Annotations[key], want)
		}
	}
	// One more than a card has: it waits, and an event says so; nothing is written on it.
	must(t, until(at.ctx, 30*time.Second, "an event on greedy", func() (bool, error) {
		events, err := at.Client.EventsV1().Events(work).List(at.ctx, metav1.ListOptions{FieldSelector: "regarding.name=greedy,reason=NoAcceleratorFits"})
		return err == nil && len(events.Items) == 1, err
	}))
	pod, err = at.Client.CoreV1().Pods(work).Get(at.ctx, "greedy", metav1.GetOptions{})
	must(t, err)
	if pod.Spec.NodeName != "" || len(pod.Annotations) > 1 { // kubectl's own
		t.Errorf("greedy is on %q with %v", pod.Spec.NodeName, pod.Annotations)
	}
	must(t, until(at.ctx, 30*time.Second, "modest is bound", func() (bool, error) {
		pod, err := at.Client.CoreV1().Pods(work).Get(at.ctx, "modest", metav1.GetOptions{})
		return err == nil && pod.Spec.NodeName != "" && pod.Annotations["quartermaster.io/placement"] == "", err
	}))
	// The account of the plugin, which the operator made, goes on from here.
	must(t, at.account(release, "gpu-manager"))
	plugin, err := at.token(release, "gpu-manager", "seat-vgpu")
	must(t, err)
	said, err := at.ask(plugin, "PATCH", "/api/v1/namespaces/work/pods/trainer", strategic, `{"metadata":{"annotations":{"tencent.com/gpu-assigned":"true"}}}`)
	must(t, err)
	if said.code != http.StatusOK {
		t.Errorf("gpu-manager: %d %s", said.code, said.message)
	}
	// Without the certificate no one is answered.
	insecure := exec.Command("curl", "-sk", "-m", "5", "-o", "/dev/null", "-w", "%{http_code}", "-d", "{}", fmt.Sprintf("https://127.0.0.1:%d/scheduler/filter", h.port))
	if out, err := insecure.Output(); err == nil && string(out) != "403" && string(out) != "401" {
		t.Errorf("a caller without a certificate is answered: %s", out)
	}
}

// expectation of each pod of the published manifests, by the start of its name.
type expectation struct {
	node  string
	cards int
	cores int64 // of each card; -1: not looked at
	mib   int64 // of each card
	whole bool
	held  string // by which means; empty: not looked at
}

var published = map[string]map[string]expectation{
	"gpu-manager": {
		"vcuda-share":      {"seat-vgpu", 1, 30, 7680, false, ""},
		"vcuda-two-cards":  {"seat-vgpu", 2, 100, 15360, true, ""},
		"vcuda-deployment": {"seat-vgpu", 1, 100, 15360, true, ""},
		"vcuda-one-card":   {"seat-vgpu", 1, 100, 15360, true, ""},
		"vcuda-5gib":       {"seat-vgpu", 1, 30, 5120, false, ""},
	},
	"hami": {
		"gpu-pod-default":   {"seat-hami", 2, 30, 3000, false, ""},
		"gpu-pod-fraction":  {"seat-hami", 2, 30, 20480, false, ""},
		"gpu-pod-exclusive": {"seat-hami", 2, 100, 40960, false, ""}, // a share of all is alone on its card

		"gpu-pod-type":     {"seat-hami", 1, -1, 2000, false, ""},
		"gpu-pod-not-type": {"seat-hami", 1, -1, 2000, false, ""},
		"gpu-pod-policy":   {"seat-hami", 1, -1, 1000, false, ""},
		"gpu-pod-not-uuid": {"seat-hami", 1, -1, 1000, false, ""},
		"engine":           {"seat-hami", 1, 30, 12000, false, ""},
	},
	"gpushare": {
		"binpack-1": {"seat-mib", 1, -1, 8138, false, ""},
		"binpack-2": {"seat-mib", 1, -1, 8138, false, ""},
		"quickmap":  {"seat-gpushare", 1, -1, 3 * gib, false, ""},
	},
	"ack": {
		"memory-only":      {"seat-gpushare", 1, -1, 4 * gib, false, ""},
		"memory-and-cores": {"seat-gpushare", 1, 30, 2 * gib, false, ""},
		"exclusive":        {"seat-pgpu", 1, 100, 15 * gib, true, ""},
	},
}

// expectedName is the name of whose pod this is: the longest that its name begins with.
func expectedName(want map[string]expectation, pod string) (out string) {
	for name := range want {
		if strings.HasPrefix(pod, name) && len(name) > len(out) {
			out = name
		}
	}
	return
}

// arePlaced applies a file of published manifests: each pod is on the node and has the cards that are expected of it, or waits where it is
// expected on none.
func arePlaced(t *testing.T, file, of string, want map[string]expectation) {
	t.Helper()
	// One unit of aliyun.com/gpu-mem is a MiB only where gpushare's samples say so.
	_, err := at.Run("", "kubectl", map[bool]string{true: "uncordon", false: "cordon"}[of == "gpushare"], "seat-mib")
	must(t, err)
	_, err = at.Run("", "kubectl", "apply", "-n", work, "-f", file)
	must(t, err)
	t.Cleanup(func() { emptied(t) })
	seen := map[string]bool{}
	defer func() {
		for name := range want {
			if !seen[name] {
				t.Errorf("no pod %s", name)
			}
		}
	}()
	var pods []corev1.Pod
	err = until(at.ctx, 40*time.Second, "all pods are bound", func() (bool, error) {
		is, err := at.Client.CoreV1().Pods(work).List(at.ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		pods = is.Items
		var waits []string
		for _, pod := range pods {
			if pod.Spec.NodeName == "" && want[expectedName(want, pod.Name)].node != "" {
				waits = append(waits, pod.Name)
			}
		}
		return len(pods) >= len(want) && len(waits) == 0, fmt.Errorf("%d pods, waiting: %v", len(pods), waits)
	})
	if err != nil {
		events, _ := at.Run("", "kubectl", "get", "events", "-n", work, "--field-selector", "reason=NoAcceleratorFits", "-o", "custom-columns=O:.involvedObject.name,M:.message")
		t.Errorf("%v\n%s", err, events)
	}
	for _, pod := range pods {
		name := expectedName(want, pod.Name)
		expected, ok := want[name]
		if !ok {
			t.Errorf("pod %s is not expected", pod.Name)
			continue
		}
		seen[name] = true
		if expected.node == "" && pod.Spec.NodeName == "" {
			continue
		}
		is, err := placementOf(&pod)
		if err != nil {
			t.Errorf("%s on %q: %v", pod.Name, pod.Spec.NodeName, err)
			continue
		}
		var shares []share
		for _, of := range is.Containers {
			shares = append(shares, of...)
		}
		good := pod.Spec.NodeName == expected.node && is.Node == expected.node && len(shares) == expected.cards
		good = good && (expected.held == "" || pod.Annotations["quartermaster.io/isolation"] == expected.held)
		for _, one := range shares {
			good = good && one.MemoryMiB == expected.mib && one.Whole == expected.whole && (expected.cores < 0 || one.Cores == expected.cores)
		}
		if !good {
			t.Errorf("%s on %s: %s", pod.Name, pod.Spec.NodeName, pod.Annotations["quartermaster.io/placement"])
		}
	}
}

// The published examples as they are: they name no scheduler, so the extender is asked by the one with the default's name.
func TestS45_S50_S69_AdaptedPublishedManifestsAreScheduled(t *testing.T) {
	must(t, at.account(work, "default"))
	emptied(t)
	h := openHouse(t)
	configuration := strings.Replace(h.configuration(), "schedulerName: quartermaster\n", "schedulerName: default-scheduler\n", 1)
	h.schedule(configuration)
	files, err := filepath.Glob(filepath.Join(kit.Root(), "test/placements/published/*.yaml"))
	must(t, err)
	if len(files) != len(published) {
		t.Errorf("%d files, %d expected", len(files), len(published))
	}
	for _, file := range files {
		of := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(of, func(t *testing.T) { arePlaced(t, file, of, published[of]) })
	}
	// The same names by our own plugin. MPS holds a container on one card, so those of two cards wait.
	_, err = at.Run("", "kubectl", "patch", "apol", "default", "--type", "merge", "-p",
		`{"spec":{"modules":{"vgpu":{"settings":{"plugin":"quartermaster"}},"gpushare":{"settings":{"plugin":"quartermaster"}},"hami":{"settings":{"plugin":"quartermaster"}}}}}`)
	must(t, err)
	// HAMi's plugin stands for nothing here, so its node does not get Ready, and the operator replaces nothing there: a person does it.
	err = until(at.ctx, time.Minute, "the nodes have our own plugin", func() (bool, error) {
		pods, err := at.Client.CoreV1().Pods(kit.Namespace).List(at.ctx, metav1.ListOptions{LabelSelector: "quartermaster.io/module in (vgpu,gpushare,hami)"})
		if err != nil {
			return false, err
		}
		var others []string
		for _, pod := range pods.Items {
			if !strings.HasSuffix(pod.Annotations["quartermaster.io/template"], ".placement") || pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
				others = append(others, pod.Name)
			}
			if !strings.HasSuffix(pod.Annotations["quartermaster.io/template"], ".placement") && pod.DeletionTimestamp == nil {
				at.Client.CoreV1().Pods(pod.Namespace).Delete(at.ctx, pod.Name, metav1.DeleteOptions{})
			}
		}
		return len(pods.Items) > 0 && len(others) == 0, fmt.Errorf("%d pods, others: %v", len(pods.Items), others)
	})
	must(t, err)
	for _, of := range []string{"gpu-manager", "gpushare", "ack", "hami"} {
		want := map[string]expectation{}
		for name, is := range published[of] {
			if is.cards > 1 {
				is = expectation{}
			} else if is.node != "seat-pgpu" {
				is.held = map[bool]string{true: "exclusive", false: "mps"}[is.whole]
			}
			want[name] = is
		}
		t.Run(of+" by our own plugin", func(t *testing.T) {
			arePlaced(t, filepath.Join(kit.Root(), "test/placements/published", of+".yaml"), of, want)
		})
	}
	// They are as they were published: no one put our scheduler's name into them.
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		for _, one := range strings.Split(string(text), "\n---\n") {
			var object map[string]any
			must(t, yaml.Unmarshal([]byte(one), &object))
			if strings.Contains(one, "schedulerName") || strings.Contains(one, "quartermaster.io/") {
				t.Errorf("%s is made for us", file)
			}
		}
	}
}
