// Package removal: a cluster that had Quartermaster and has it no more is as it was. Every object of every API group is compared before
// and after, for each combination of the switches, with an upgrade from the first form of the chart on the way.
package removal

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"quartermaster.io/test/faults/kit"
	"sigs.k8s.io/yaml"
)

var modes = []string{"pgpu", "vgpu", "mps"}

// What exists before we install anything: nodes whose owners have labelled them, a declaration and a device plugin of someone else.
const foreign = `
apiVersion: v1
kind: Namespace
metadata: {name: quartermaster}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: cf-crl-example-fpga
  namespace: kube-public
  labels: {features.cpaas.io/type: CustomResourceLimitation, features.cpaas.io/group: example}
  annotations: {example.com/owner: team-fpga}
data:
  key: example.com/fpga
  dataType: integer
  enabled: "true"
  group: example
  limits: required
  requests: disabled
  defaultValue: "1"
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: fpga-plugin, namespace: kube-system}
spec:
  selector: {matchLabels: {app: fpga}}
  template:
    metadata: {labels: {app: fpga}}
    spec:
      nodeSelector: {example.com/fpga: "true"}
      containers: [{name: plugin, image: example.com/fpga:1}]
`

func node(name, mode string) string {
	return fmt.Sprintf(`
---
apiVersion: v1
kind: Node
metadata:
  name: %s
  annotations: {kwok.x-k8s.io/node: fake}
  labels:
    sim.quartermaster.io/profile: t4
    kubernetes.io/hostname: %[1]s
    kubernetes.io/os: linux
    kubernetes.io/arch: amd64
    nvidia.com/gpu.present: "true"
    nvidia.com/gpu.count: "4"
    nvidia.com/gpu.compute.major: "7"
    nvidia.com/gpu.compute.minor: "5"
    nvidia.com/cuda.runtime-version.major: "12"
    nvidia.com/cuda.runtime-version.minor: "4"
    nvidia-device-enable: %[2]s
spec: {taints: [{key: example.com/reserved, value: "yes", effect: PreferNoSchedule}]}
`, name, mode)
}

// everything in the cluster by kind and name, without what moves by itself.
func everything(ctx context.Context, c *kit.Cluster) (map[string]string, error) {
	client := discovery.NewDiscoveryClientForConfigOrDie(c.Config)
	groups, err := client.ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, err
	}
	out := map[string]string{}
	for _, group := range groups {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, kind := range group.APIResources {
			if !strings.Contains(" "+strings.Join(kind.Verbs, " ")+" ", " list ") || kind.Kind == "Event" || kind.Kind == "ComponentStatus" {
				continue
			}
			list, err := c.Dynamic.Resource(version.WithResource(kind.Name)).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("list %s: %w", kind.Name, err)
			}
			for i := range list.Items {
				one := &list.Items[i]
				out[fmt.Sprintf("%s %s %s/%s", group.GroupVersion, kind.Kind, one.GetNamespace(), one.GetName())] = content(one)
			}
		}
	}
	return out, nil
}

func content(of *unstructured.Unstructured) string {
	if of.GetKind() == "Lease" || of.GetKind() == "APIService" {
		return "there"
	}
	object := of.DeepCopy().Object
	delete(object, "status")
	metadata := object["metadata"].(map[string]any)
	for _, moving := range []string{"managedFields", "resourceVersion", "generation"} {
		delete(metadata, moving)
	}
	text, _ := json.Marshal(object)
	return string(text)
}

func differences(before, after map[string]string) (out []string) {
	for name, was := range before {
		if is, there := after[name]; !there {
			out = append(out, "gone: "+name)
		} else if is != was {
			out = append(out, "changed: "+name+"\n  was "+was+"\n  is  "+is)
		}
	}
	for name := range after {
		if _, there := before[name]; !there {
			out = append(out, "left behind: "+name)
		}
	}
	return out
}

var must = kit.Must

func soon(patience time.Duration, what func() error) (err error) {
	for end := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		if err = what(); err == nil || time.Now().After(end) {
			return err
		}
	}
}

type world struct {
	*kit.Cluster
	t       *testing.T
	ctx     context.Context
	program string
	dir     string
}

func (w *world) helm(arguments ...string) {
	w.t.Helper()
	_, err := w.Run("", "helm", append(arguments, "--namespace", kit.Namespace)...)
	must(w.t, err)
}

func (w *world) uninstall(to *kit.Output, arguments ...string) *exec.Cmd {
	w.t.Helper()
	command := exec.Command(w.program, append([]string{"uninstall", "--kubeconfig", w.Kubeconfig}, arguments...)...)
	command.Stdout, command.Stderr = to, to
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(w.t, command.Start())
	return command
}

// operator starts the program as the chart's account, with the policy that the chart's values say.
func (w *world) operator() *kit.Operator {
	w.t.Helper()
	s := kit.Scenario{Cluster: w.Cluster}
	token, err := s.Token(w.ctx, nil)
	must(w.t, err)
	must(w.t, kit.WriteAtomically(filepath.Join(w.dir, "token"), token))
	must(w.t, kit.WriteKubeconfig(filepath.Join(w.dir, "kubeconfig"), w.Config.Host, w.caFile(), filepath.Join(w.dir, "token")))
	policy, err := w.Run("", "kubectl", "get", "configmap", "quartermaster-policy", "--namespace", kit.Namespace, "-o", `jsonpath={.data.policy\.yaml}`)
	must(w.t, err)
	must(w.t, os.WriteFile(filepath.Join(w.dir, "policy.yaml"), []byte(policy), 0o600))
	o, err := kit.StartOperator(kit.OperatorOptions{Name: "operator", Program: w.program, Kubeconfig: filepath.Join(w.dir, "kubeconfig"),
		Namespace: kit.Namespace, Dir: w.dir, Args: []string{"--policy", filepath.Join(w.dir, "policy.yaml")}})
	must(w.t, err)
	return o
}

func (w *world) caFile() string {
	file := filepath.Join(w.dir, "ca.crt")
	data := w.Config.CAData
	if len(data) == 0 {
		data, _ = os.ReadFile(w.Config.CAFile)
	}
	must(w.t, os.WriteFile(file, data, 0o600))
	return file
}

// job is the Job that helm runs before an uninstall, as a process: its rights and its arguments. On these nodes its pod would run nothing.
// The rights are gone after the test's last look, as helm deletes them with the hook.
func (w *world) job(to *kit.Output) (start func() *exec.Cmd, gone func()) {
	w.t.Helper()
	rendered, err := w.Run("", "helm", "template", "quartermaster", filepath.Join(kit.Root(), "charts/quartermaster"), "--namespace", kit.Namespace,
		"--show-only", "templates/uninstall.yaml")
	must(w.t, err)
	var words []string
	rights := ""
	for _, document := range strings.Split("\n"+rendered, "\n---\n") {
		object := unstructured.Unstructured{}
		must(w.t, yaml.Unmarshal([]byte(document), &object.Object))
		if object.GetKind() != "Job" {
			rights += "---\n" + document + "\n"
			continue
		}
		containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		words, _, _ = unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
	}
	_, err = w.Run(rights, "kubectl", "apply", "-f", "-")
	must(w.t, err)
	token, err := w.Run("", "kubectl", "create", "token", "quartermaster-uninstall", "--namespace", kit.Namespace)
	must(w.t, err)
	must(w.t, kit.WriteAtomically(filepath.Join(w.dir, "job-token"), strings.TrimSpace(token)))
	kubeconfig := filepath.Join(w.dir, "job-kubeconfig")
	must(w.t, kit.WriteKubeconfig(kubeconfig, w.Config.Host, w.caFile(), filepath.Join(w.dir, "job-token")))
	start = func() *exec.Cmd {
		command := exec.Command(w.program, append(words, "--kubeconfig", kubeconfig)...)
		command.Stdout, command.Stderr = to, to
		command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		must(w.t, command.Start())
		return command
	}
	return start, func() {
		_, err := w.Run(rights, "kubectl", "delete", "-f", "-")
		must(w.t, err)
	}
}

func (w *world) phase(node string) string {
	o, err := w.Dynamic.Resource(kit.AccelNodes).Get(w.ctx, node, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	mode, _, _ := unstructured.NestedString(o.Object, "status", "actualMode")
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	return mode + " " + phase
}

// round installs, enrols, upgrades and removes; what is different from `before` is returned.
func (w *world) round(on map[string]bool, way string, before map[string]string) []string {
	t := w.t
	here, _ := filepath.Abs("first-chart")
	w.helm("install", "quartermaster", here, "--set", "replicaCount=0")
	arguments := []string{"upgrade", "quartermaster", filepath.Join(kit.Root(), "charts/quartermaster"), "--set", "replicaCount=0", "--set-json", `policy={"customResources":{"enforcement":"Deny"}}`}
	for _, mode := range modes {
		arguments = append(arguments, "--set", fmt.Sprintf("%s_enable=%t", mode, on[mode]))
	}
	w.helm(arguments...)
	_, err := w.Run("", "kubectl", "wait", "crd", "--for=condition=Established", "--timeout=30s", "acceleratorpolicies.quartermaster.io",
		"acceleratornodes.quartermaster.io", "resourcerules.quartermaster.io")
	must(t, err)
	operator := w.operator()
	defer func() { operator.Kill() }()
	must(t, soon(60*time.Second, func() error {
		for _, mode := range modes {
			want := "none Disabled"
			if on[mode] {
				want = mode + " Ready"
			}
			if is := w.phase("removal-" + mode); is != want {
				return fmt.Errorf("node of %s is %q, not %q\n%s", mode, is, want, operator.LogTail(5))
			}
		}
		return nil
	}))
	installed, err := everything(w.ctx, w.Cluster)
	must(t, err)
	if seen := len(differences(before, installed)); seen < 30 { // the comparison would miss what is left
		t.Errorf("installed, only %d objects differ", seen)
	}
	enrolled := on["pgpu"] || on["vgpu"] || on["mps"]
	_, err = w.Run("---\n{apiVersion: quartermaster.io/v1alpha1, kind: AcceleratorQuota, metadata: {namespace: default, name: team}, spec: {hard: [{units: cards, max: 1}]}}",
		"kubectl", "create", "-f", "-")
	must(t, err)
	said := &kit.Output{}
	code := w.uninstall(said, "--check").Wait()
	if (code != nil) != enrolled || (enrolled && !strings.Contains(said.String(), "run `quartermaster uninstall` first")) {
		t.Errorf("--check says %q (%v), enrolled %t", said, code, enrolled)
	}

	switch way {
	case "job":
		w.removeByJob(operator)
		return w.leftOf(before)
	case "hand":
		w.removeByHand(operator)
		return w.leftOf(before)
	}
	if enrolled { // taken back by someone while it watches: it removes nothing, whatever the nodes do afterwards
		operator.Stop()
		first, other := &kit.Output{}, &kit.Output{}
		watching := w.uninstall(first, "--yes")
		must(t, soon(20*time.Second, func() error {
			if !strings.Contains(first.String(), "have left;") {
				return fmt.Errorf("it says %q", first)
			}
			return nil
		}))
		if err := w.uninstall(other, "--cancel").Wait(); err != nil {
			t.Errorf("--cancel: %v, it says %q", err, other)
		}
		if err := watching.Wait(); err == nil || !strings.Contains(first.String(), "someone took it back") {
			t.Errorf("uninstall, taken back by another: %v, it says %q", err, first)
		}
		operator.Cont()
	}

	said = &kit.Output{}
	work := w.uninstall(said, "--yes")
	if enrolled { // called off in the middle, and called again
		must(t, soon(20*time.Second, func() error {
			if !strings.Contains(said.String(), "have left;") {
				return fmt.Errorf("it says %q", said)
			}
			return nil
		}))
		must(t, work.Process.Kill())
		work.Wait()
		said = &kit.Output{}
		work = w.uninstall(said, "--yes")
	}
	must(t, soon(120*time.Second, func() error {
		if !strings.Contains(said.String(), "waiting for the operator to stop") {
			return fmt.Errorf("it says %q\n%s", said, operator.LogTail(5))
		}
		return nil
	}))
	if code := operator.Terminate(20 * time.Second); code != 0 {
		t.Errorf("the operator ended with %d", code)
	}
	if err := work.Wait(); err != nil || !strings.Contains(said.String(), "helm uninstall quartermaster --namespace quartermaster") {
		t.Errorf("uninstall: %v, it says %q", err, said)
	}
	for _, named := range []string{"what people wrote: AcceleratorPolicy default and 1 AcceleratorQuota in 1 namespace:\n  default: team\n", "and with them AcceleratorPolicy default and 1 AcceleratorQuota"} {
		if !strings.Contains(said.String(), named) {
			t.Errorf("uninstall does not say %q, it says %q", named, said)
		}
	}
	w.helm("uninstall", "quartermaster", "--wait")
	return w.leftOf(before)
}

// removeByJob is `helm uninstall` with crds.keep=false for people who have only helm and kubectl: refused while a pod uses a card, begun by
// a word in the policy, ended when the pod has ended.
func (w *world) removeByJob(operator *kit.Operator) {
	t := w.t
	w.helm("upgrade", "quartermaster", filepath.Join(kit.Root(), "charts/quartermaster"), "--reset-then-reuse-values", "--set", "crds.keep=false")
	_, err := w.Run("---\n"+`{apiVersion: v1, kind: Pod, metadata: {name: train, namespace: default}, spec: {nodeName: removal-vgpu, terminationGracePeriodSeconds: 0,
		containers: [{name: c, image: x, resources: {limits: {tencent.com/vcuda-core: 10, tencent.com/vcuda-memory: 4}}}]}}`, "kubectl", "create", "-f", "-")
	must(t, err)
	said := &kit.Output{}
	start, gone := w.job(said)
	refused := start()
	if err := refused.Wait(); refused.ProcessState.ExitCode() != 3 || !strings.Contains(said.String(), "1 pod uses cards (default/train on removal-vgpu): nothing was removed") {
		t.Fatalf("while a pod uses a card: %v, it says %q", err, said)
	}
	if is := w.phase("removal-vgpu"); is != "vgpu Ready" {
		t.Fatalf("refused, and the node is %q", is)
	}
	_, err = w.Run("", "kubectl", "patch", "apol", "default", "--type", "merge", "-p", `{"spec":{"removing":true}}`)
	must(t, err)
	work := start()
	must(t, soon(30*time.Second, func() error {
		if !strings.Contains(said.String(), "have left; removal-vgpu Draining") {
			return fmt.Errorf("it says %q", said)
		}
		return nil
	}))
	_, err = w.Run("", "kubectl", "delete", "pod", "train", "--namespace", "default", "--now")
	must(t, err)
	must(t, soon(60*time.Second, func() error {
		if !strings.Contains(said.String(), "waiting for the operator to stop") {
			return fmt.Errorf("it says %q\n%s", said, operator.LogTail(5))
		}
		return nil
	}))
	if code := operator.Terminate(20 * time.Second); code != 0 {
		t.Errorf("the operator ended with %d", code)
	}
	if err := work.Wait(); err != nil {
		t.Fatalf("the Job: %v, it says %q", err, said)
	}
	w.helm("uninstall", "quartermaster", "--wait")
	gone()
}

// removeByHand is what is left to people when the operator is dead, its image is gone, or pods that use cards do not matter: the commands
// of docs/install.md, "Removing by hand".
func (w *world) removeByHand(operator *kit.Operator) {
	operator.Kill()
	text, err := os.ReadFile(filepath.Join(kit.Root(), "docs/install.md"))
	must(w.t, err)
	_, chapter, found := strings.Cut(string(text), "### Removing by hand")
	_, block, fenced := strings.Cut(chapter, "```sh\n")
	commands, _, ends := strings.Cut(block, "```")
	if !found || !fenced || !ends {
		w.t.Fatal("docs/install.md has no commands for removing by hand")
	}
	said, err := w.Run("", "bash", "-c", commands)
	must(w.t, err)
	w.t.Log(said)
	// The document says that these stay: without the operator nobody knows whose they are. Here they are ours.
	_, err = w.Run("", "kubectl", "label", "nodes", "--all", "cuda-major-version-", "cuda-minor-version-")
	must(w.t, err)
}

// leftOf is what is different from `before` when the garbage collector has had its time.
func (w *world) leftOf(before map[string]string) []string {
	t := w.t
	var left []string
	_ = soon(30*time.Second, func() error { // the garbage collector
		after, err := everything(w.ctx, w.Cluster)
		must(t, err)
		if left = differences(before, after); len(left) > 0 {
			return fmt.Errorf("left")
		}
		return nil
	})
	return left
}

func Test_removal_leaves_nothing_behind(t *testing.T) {
	program := os.Getenv("QM_OPERATOR")
	if program == "" {
		t.Fatal("say QM_OPERATOR=FILE; run.sh does")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	minor := os.Getenv("QM_K8S")
	cluster, err := kit.Up(ctx, fmt.Sprintf("removal-%d", os.Getpid()), minor)
	must(t, err)
	defer cluster.Down()
	w := &world{cluster, t, ctx, program, t.TempDir()}
	input := foreign
	for _, mode := range modes {
		input += node("removal-"+mode, mode)
	}
	_, err = cluster.Run(input, "kubectl", "apply", "-f", "-")
	must(t, err)
	plugins := exec.Command(cluster.Tool("sim"), "plugins", "--kubeconfig", cluster.Kubeconfig)
	plugins.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(t, plugins.Start())
	defer func() { plugins.Process.Kill(); plugins.Wait() }()

	var before map[string]string
	must(t, soon(30*time.Second, func() error { // until the controllers of Kubernetes have made what they make by themselves
		var once map[string]string
		once, err = everything(ctx, cluster)
		must(t, err)
		time.Sleep(2 * time.Second)
		before, err = everything(ctx, cluster)
		must(t, err)
		if d := differences(once, before); len(d) > 0 {
			return fmt.Errorf("still moving: %v", d)
		}
		return nil
	}))
	type round struct {
		combination int // of the switches
		way         string
	}
	rounds := []round{{7, "command"}, {2, "job"}, {1, "hand"}}
	if os.Getenv("QM_NIGHTLY") != "" {
		for combination := range 7 {
			rounds = append(rounds, round{combination, "command"})
		}
	}
	for _, round := range rounds {
		on := map[string]bool{}
		for i, mode := range modes {
			on[mode] = round.combination>>i&1 == 1
		}
		began := time.Now()
		left := w.round(on, round.way, before)
		for i, one := range left {
			if i == 10 {
				t.Errorf("... and %d more", len(left)-10)
				break
			}
			t.Errorf("switches %v, by %s: %s", on, round.way, one)
		}
		t.Logf("switches %v, by %s: %d differences, %s", on, round.way, len(left), time.Since(began).Round(time.Second))
		if t.Failed() {
			return
		}
	}
}
