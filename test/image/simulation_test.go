package image

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"quartermaster.io/test/faults/kit"
)

const (
	simulated = "sim.quartermaster.io/profile" // label of simulated nodes
	simulator = "quartermaster-simulation"
)

// A cluster without GPUs and without a registry: both images from one archive, as kind takes it, and the chart with simulate.nodes and all three
// switches. The policy is Ready, and pods with cards and with shares run.
func TestSimulatedNodesShowTheProduct(t *testing.T) {
	p := &product{&kit.Scenario{Cluster: cluster}, t}
	t.Cleanup(p.leaveNoSimulation)
	p.hasNoCards()
	both, err := made(filepath.Join(kit.Root(), "image/simulation.sh"))
	must(t, err)
	for _, name := range []string{nodeName, worker} { // as kind does it
		p.script("node-exec", "--node", name, "ctr", "--namespace", "k8s.io", "images", "import", "--all-platforms", "--digests", both.file)
	}
	p.run("helm", "install", "quartermaster", filepath.Join(kit.Root(), "charts/quartermaster"), "--namespace", kit.Namespace, "--create-namespace",
		"--set-literal", "simulate.nodes=a100=2,t4=2", "--set", "pgpu_enable=true,vgpu_enable=true,mps_enable=true,image.pullPolicy=Never,crds.keep=false", "--wait", "--timeout", "180s")
	p.ready()
	p.simulates(4)
	p.run("kubectl", "wait", "node", "-l", simulated, "--for=condition=Ready", "--timeout=60s")
	p.holdTheSimulationToItsNodes()

	p.run("kubectl", "label", "node", "a100-0", "a100-1", kit.AskLabel+"=pgpu")
	p.run("kubectl", "label", "node", "t4-0", kit.AskLabel+"=vgpu")
	p.run("kubectl", "label", "node", "t4-1", kit.AskLabel+"=mps")
	p.run("kubectl", "wait", "apol/default", "--for=condition=Ready", "--timeout=120s")
	p.run("kubectl", "wait", "anode/a100-0", "anode/a100-1", "anode/t4-0", "anode/t4-1", "--for=jsonpath={.status.phase}=Ready", "--timeout=120s")
	p.asksForCards("demo", `"nvidia.com/gpu": "2"`)
	p.run("kubectl", "wait", "pod/demo", "--for=condition=Ready", "--timeout=60s")
	p.asksForCards("too-many", `"nvidia.com/gpu": "9"`)
	p.await(60*time.Second, "the scheduler says why the pod waits", func() (bool, error) {
		pod, err := p.Client.CoreV1().Pods("default").Get(ctx, "too-many", metav1.GetOptions{})
		return err == nil && strings.Contains(fmt.Sprint(pod.Status.Conditions), "Insufficient nvidia.com/gpu"), fmt.Errorf("%+v %v", pod.Status, err)
	})
	p.staysWhereContainersRun()
	p.sharesByTheOwnScheduler()

	p.refuseNextToRealCards()
	p.run("kubectl", "delete", "pod", "demo", "too-many", "share", "mps-share", "--ignore-not-found")
	p.run("helm", "uninstall", "quartermaster", "--namespace", kit.Namespace, "--wait", "--timeout", "180s")
	p.simulates(0)
	p.await(3*time.Minute, "nothing is left", func() (bool, error) {
		left := p.run("kubectl", "get", "pods,clusterroles,clusterrolebindings,validatingadmissionpolicies,crds", "-A", "-o", "name") +
			p.run("kubectl", "get", "leases", "-n", "kube-node-lease", "-o", "name") + p.run("kubectl", "get", "pods", "-A", "-o", "wide")
		return !strings.Contains(left, "quartermaster") && !strings.Contains(left, "a100-") && !strings.Contains(left, "t4-"), fmt.Errorf("%s", left)
	})
}

// sharesByTheOwnScheduler: with mode Dedicated shares on simulated nodes have their cards, written down.
func (p *product) sharesByTheOwnScheduler() {
	p.dedicate()
	for name, of := range map[string]struct{ node, limits string }{
		"share":     {"t4-0", `"tencent.com/vcuda-core": "20", "tencent.com/vcuda-memory": "4"`},
		"mps-share": {"t4-1", `"nvidia.com/mps-core": "20", "nvidia.com/mps-memory": "4"`},
	} {
		p.asksForCards(name, of.limits)
		p.run("kubectl", "wait", "pod/"+name, "--for=condition=Ready", "--timeout=90s")
		pod, err := p.Client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		must(p.t, err)
		if pod.Spec.SchedulerName != "quartermaster" || pod.Spec.NodeName != of.node || pod.Annotations["quartermaster.io/placement"] == "" {
			p.t.Errorf("%s is on %s by %s: %v", name, pod.Spec.NodeName, pod.Spec.SchedulerName, pod.Annotations)
		}
	}
}

// hasNoCards: what other tests of this lane left on the two nodes is taken off.
func (p *product) hasNoCards() {
	for _, name := range []string{nodeName, worker} {
		amounts := map[string]any{gpu: nil}
		p.patchNode(name, map[string]any{"metadata": map[string]any{"labels": map[string]any{kit.AskLabel: nil, kit.ModuleLabel: nil, "nvidia.com/gpu.present": nil}},
			"spec": map[string]any{"taints": []any{}}})
		p.patchNode(name, map[string]any{"status": map[string]any{"capacity": amounts, "allocatable": amounts}}, "status")
	}
}

func (p *product) simulates(count int) {
	p.t.Helper()
	p.await(2*time.Minute, fmt.Sprintf("%d simulated nodes", count), func() (bool, error) {
		nodes, err := p.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: simulated})
		return err == nil && len(nodes.Items) == count, fmt.Errorf("%d, %v", len(nodes.Items), err)
	})
}

// asksForCards makes a pod as people write it. A server that cannot change pods leaves the toleration to them.
func (p *product) asksForCards(name, limits string) {
	p.t.Helper()
	tolerations := ""
	if minor == "1.30" {
		tolerations = `, "tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}]`
	}
	_, err := p.Run(fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q, "namespace": "default"}, "spec": {"terminationGracePeriodSeconds": 0,
		"containers": [{"name": "main", "image": %q, "resources": {"limits": {%s}}}]%s}}`, name, pause, limits, tolerations), "kubectl", "create", "-f", "-")
	must(p.t, err)
}

// holdTheSimulationToItsNodes: its account may change no node that is real, and no pod there.
func (p *product) holdTheSimulationToItsNodes() {
	config := rest.CopyConfig(p.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + kit.Namespace + ":" + simulator}
	client, err := kubernetes.NewForConfig(config)
	must(p.t, err)
	operator, rehearsal := p.operators()[0].Name, []string{metav1.DryRunAll}
	nodes, pods := client.CoreV1().Nodes(), client.CoreV1().Pods(kit.Namespace)
	patch := func(change func([]byte) error) error { return change([]byte(`{"status": {"phase": "Running"}}`)) }
	for name, err := range map[string]error{
		"delete a node": nodes.Delete(ctx, worker, metav1.DeleteOptions{DryRun: rehearsal}),
		"delete a pod":  pods.Delete(ctx, operator, metav1.DeleteOptions{DryRun: rehearsal}),
		"change the status of a node": patch(func(body []byte) error {
			_, err := nodes.Patch(ctx, worker, types.MergePatchType, body, metav1.PatchOptions{DryRun: rehearsal}, "status")
			return err
		}),
		"change the status of a pod": patch(func(body []byte) error {
			_, err := pods.Patch(ctx, operator, types.MergePatchType, body, metav1.PatchOptions{DryRun: rehearsal}, "status")
			return err
		}),
	} {
		if err == nil || !strings.Contains(err.Error(), "the simulation changes ") {
			p.t.Errorf("the simulation may %s that is real: %v", name, err)
		}
	}
}

// staysWhereContainersRun: only plugins, the pod that asks for cards, and what tolerates everything, are on simulated nodes.
func (p *product) staysWhereContainersRun() {
	pods, err := p.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	must(p.t, err)
	found := 0
	for _, pod := range pods.Items {
		if pod.Spec.NodeName == "" || strings.HasPrefix(pod.Spec.NodeName, "real-") {
			continue
		}
		found++
		everywhere := false
		for _, toleration := range pod.Spec.Tolerations {
			everywhere = everywhere || toleration.Key == "" && toleration.Operator == corev1.TolerationOpExists
		}
		if pod.Labels[kit.ModuleLabel] == "" && pod.Name != "demo" && !everywhere {
			p.t.Errorf("%s/%s is on the simulated node %s", pod.Namespace, pod.Name, pod.Spec.NodeName)
		}
	}
	if found < 4 {
		p.t.Errorf("only %d pods are on simulated nodes", found)
	}
}

// refuseNextToRealCards: a node with a card comes, and the simulated ones go until it is gone.
func (p *product) refuseNextToRealCards() {
	p.run("kubectl", "label", "node", worker, "nvidia.com/gpu.present=true")
	p.simulates(0)
	p.await(60*time.Second, "the log says why", func() (bool, error) {
		for _, previous := range []string{"--previous=false", "--previous=true"} {
			said, _ := p.Run("", "kubectl", "logs", "-n", kit.Namespace, "deployment/"+simulator, "-c", "nodes", previous)
			if strings.Contains(said, "node "+worker+" has real cards (label nvidia.com/gpu.present=true)") && strings.Contains(said, "simulate.force") {
				return true, nil
			}
		}
		return false, fmt.Errorf("no such line")
	})
	p.run("kubectl", "label", "node", worker, "nvidia.com/gpu.present-")
	p.simulates(4)
	p.run("kubectl", "wait", "node", "-l", simulated, "--for=condition=Ready", "--timeout=60s")
}

func (p *product) leaveNoSimulation() {
	if p.t.Failed() {
		for _, arguments := range [][]string{{"get", "nodes,pods,events,anode", "-A"}, {"logs", "-n", kit.Namespace, "deployment/" + simulator, "-c", "nodes", "--tail=30"},
			{"logs", "-n", kit.Namespace, "deployment/" + simulator, "-c", "kwok", "--tail=30"},
			{"logs", "-n", kit.Namespace, "-l", "app.kubernetes.io/name=quartermaster", "--tail=30"}} {
			said, err := p.Run("", "kubectl", arguments...)
			p.t.Log(said, err)
		}
		p.Run("", "kubectl", "delete", "pod", "demo", "too-many", "--ignore-not-found", "--wait=false")
		p.Run("", "helm", "uninstall", "quartermaster", "--namespace", kit.Namespace, "--no-hooks", "--ignore-not-found")
		p.Run("", "kubectl", "delete", "nodes", "-l", simulated)
		p.Run("", "kubectl", "delete", "namespace", kit.Namespace, "--ignore-not-found", "--timeout=180s")
	}
	p.Run("", "kubectl", "label", "node", worker, "nvidia.com/gpu.present-")
}
