package image

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"quartermaster.io/test/faults/kit"
)

const (
	nodeName = kit.RealNode // the one with cards
	registry = "quartermaster.test"
	pause    = registry + "/pause:1" // the plugin of these tests does nothing but wait
	gpu      = "nvidia.com/gpu"
)

// product is the chart on the cluster, with the image.
type product struct {
	*kit.Scenario
	t *testing.T
}

func (p *product) await(patience time.Duration, what string, done func() (bool, error)) (took time.Duration) {
	p.t.Helper()
	began := time.Now()
	must(p.t, kit.Until(ctx, patience, what, done))
	took = time.Since(began)
	p.t.Logf("%s: after %.1f s", what, took.Seconds())
	return took
}

// run a program of the cluster, and return what it says.
func (p *product) run(program string, args ...string) string {
	p.t.Helper()
	began := time.Now()
	said, err := p.Run("", program, args...)
	must(p.t, err)
	p.t.Logf("%s %s: %.1f s", program, args[0], time.Since(began).Seconds())
	return said
}

// script is cluster.sh with a verb about our cluster.
func (p *product) script(verb string, args ...string) {
	p.t.Helper()
	said, err := exec.Command(filepath.Join(kit.Root(), "test/cluster/cluster.sh"), append([]string{verb, "--name", p.Name}, args...)...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("cluster.sh %s: %v\n%s", verb, err, said)
	}
}

// operators are the pods of the Deployment that are not on their way out.
func (p *product) operators() (pods []corev1.Pod) {
	p.t.Helper()
	list, err := p.Client.CoreV1().Pods(kit.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=quartermaster"})
	must(p.t, err)
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			pods = append(pods, pod)
		}
	}
	return pods
}

// leader is the holder of the lease, and the name of its pod; empty when there is none.
func (p *product) leader() (holder, pod string) {
	lease, err := p.Client.CoordinationV1().Leases(kit.Namespace).Get(ctx, "quartermaster", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return "", ""
	}
	holder = *lease.Spec.HolderIdentity
	pod, _, _ = strings.Cut(holder, "_")
	return holder, pod
}

// metric is the sum of the series that begin with this in what a pod says at /metrics, asked through the API server.
func (p *product) metric(pod, series string) (sum float64) {
	p.t.Helper()
	text, err := p.Client.CoreV1().Pods(kit.Namespace).ProxyGet("http", pod, "8080", "metrics", nil).DoRaw(ctx)
	must(p.t, err)
	sum, err = kit.SumOf(text, series)
	must(p.t, err)
	return sum
}

func (p *product) metrics(series string) (sum float64) {
	p.t.Helper()
	for _, pod := range p.operators() {
		sum += p.metric(pod.Name, series)
	}
	return sum
}

// patch the node, or what its kubelet says of it.
func (p *product) patch(what map[string]any, subresources ...string) {
	p.t.Helper()
	p.patchNode(nodeName, what, subresources...)
}

func (p *product) patchNode(name string, what map[string]any, subresources ...string) {
	p.t.Helper()
	body, err := (&unstructured.Unstructured{Object: what}).MarshalJSON()
	must(p.t, err)
	_, err = p.Client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{}, subresources...)
	must(p.t, err)
}

// offers so many cards, written in the place of a plugin. The kubelet leaves them as they are.
func (p *product) offers(cards string) {
	p.t.Helper()
	amounts := map[string]any{gpu: cards}
	p.patch(map[string]any{"status": map[string]any{"capacity": amounts, "allocatable": amounts}}, "status")
}

// becomes waits for the phase and reason of the AcceleratorNode.
func (p *product) becomes(patience time.Duration, phase, reason string) {
	p.t.Helper()
	p.await(patience, nodeName+" is "+phase+" "+reason, func() (bool, error) {
		node, err := p.Dynamic.Resource(kit.AccelNodes).Get(ctx, nodeName, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		isPhase, _, _ := unstructured.NestedString(node.Object, "status", "phase")
		conditions, _, _ := unstructured.NestedSlice(node.Object, "status", "conditions")
		return isPhase == phase && strings.Contains(fmt.Sprint(conditions), "reason:"+reason), fmt.Errorf("%v", node.Object["status"])
	})
}

// plugins are the pods of the module pgpu.
func (p *product) plugins() (pods []corev1.Pod, err error) {
	list, err := p.Client.CoreV1().Pods(kit.Namespace).List(ctx, metav1.ListOptions{LabelSelector: kit.ModuleLabel})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// step of a life of the product on the cluster.
type step struct {
	name string
	run  func(p *product)
}

// The chart with our image, as people install it: the operator runs as pods, schedules, hands over, is upgraded, and goes.
func TestTheProductRunsAsPods(t *testing.T) {
	lives(t, []step{{"install", install}, {"node", (*product).enrolTheNode}, {"leader deleted", (*product).handOver},
		{"upgrade", (*product).upgradeUnderLoad}, {"uninstall", (*product).goWithoutATrace}})
}

// Every other part runs as a pod under its own account and does its work, and the operator survives what happens to pods.
func TestTheProductInEveryOtherPart_long(t *testing.T) {
	lives(t, []step{{"install", install}, {"rights", (*product).runWithFewRights}, {"metrics", (*product).answerScrapes},
		{"node", (*product).enrolTheNode}, {"webhook", (*product).answerTheWebhook}, {"helm test", (*product).passHelmTest},
		{"dedicated scheduler", (*product).runTheScheduler}, {"static pod", (*product).runTheStaticPod}, {"agent for cards", (*product).reportTheNode},
		{"container runtime", (*product).fixTheRuntime}, {"leader killed", (*product).takeOver}, {"leader frozen", (*product).freezeTheLeader},
		{"webhook gone", (*product).loseTheWebhook}, {"uninstall", (*product).goWithoutATrace}})
}

func lives(t *testing.T, steps []step) {
	p := &product{&kit.Scenario{Cluster: cluster}, t}
	t.Cleanup(func() {
		if t.Failed() {
			for _, args := range [][]string{{"get", "pods,events", "-A"}, {"logs", "-n", kit.Namespace, "-l", "app.kubernetes.io/name=quartermaster", "--tail=30"}} {
				said, _ := p.Run("", "kubectl", args...)
				t.Log(said)
			}
		}
	})
	for _, step := range steps {
		if !t.Run(strings.ReplaceAll(step.name, " ", "_"), func(t *testing.T) { step.run(&product{p.Scenario, t}) }) {
			return
		}
	}
}

func install(p *product) {
	image := theImage(p.t)
	p.script("node-image", registry+"/quartermaster:"+image.tag, "--archive", first.file)
	p.run("helm", "install", "quartermaster", filepath.Join(kit.Root(), "charts/quartermaster"), "--namespace", kit.Namespace, "--create-namespace",
		"--set", "image.registry="+registry+",image.pullPolicy=Never,pgpu_enable=true,policy.modules.pgpu.image="+pause, "--wait", "--timeout", "180s")
	p.ready() // helm waits for one of the two
	pods := p.operators()
	if len(pods) != 2 || pods[0].Spec.NodeName == pods[1].Spec.NodeName {
		p.t.Fatalf("%d pods of the operator, not one on each node:\n%s", len(pods), p.run("kubectl", "get", "pods", "-A", "-o", "wide"))
	}
	for _, pod := range pods {
		status := pod.Status.ContainerStatuses[0]
		if id := status.ImageID; id != image.manifest.Config.Digest && !strings.HasSuffix(id, "@"+image.digest) {
			p.t.Errorf("%s runs the image %s, not %s", pod.Name, id, image.digest)
		}
		if status.RestartCount != 0 || pod.Spec.ServiceAccountName != kit.ServiceAccount {
			p.t.Errorf("%s was restarted %d times and runs as %s", pod.Name, status.RestartCount, pod.Spec.ServiceAccountName)
		}
	}
	p.controlPlaneAgents(0)
	p.await(30*time.Second, "one leads", func() (bool, error) { holder, _ := p.leader(); return holder != "", nil })
}

// controlPlaneAgents waits until so many pods are root with /etc/kubernetes, wanted and there.
func (p *product) controlPlaneAgents(count int) {
	p.t.Helper()
	const name = "quartermaster-static-pod"
	p.await(60*time.Second, fmt.Sprintf("%d agents of control-plane nodes", count), func() (bool, error) {
		set, err := p.Client.AppsV1().DaemonSets(kit.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		pods, err := p.Client.CoreV1().Pods(kit.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + name})
		is := set.Status
		return err == nil && is.ObservedGeneration == set.Generation && int(is.DesiredNumberScheduled) == count && int(is.NumberReady) == count &&
			len(pods.Items) == count, fmt.Errorf("%+v", is)
	})
}

// runWithFewRights looks at the processes of the operator: they have what the chart says, and no agent runs that the mode does not need.
func (p *product) runWithFewRights() { p.processes(0) }

// processes of our image: two operators, and the agents that there should be.
func (p *product) processes(agents int) {
	p.t.Helper()
	found := map[string]int{}
	all, _ := filepath.Glob("/proc/[0-9]*")
	ours := map[string]bool{}
	for _, node := range []string{"node-init", "node-2-init"} {
		first, err := p.PID(node)
		must(p.t, err)
		namespace, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", first))
		must(p.t, err)
		ours[namespace] = true
	}
	for _, process := range all {
		command, _ := os.ReadFile(process + "/cmdline")
		part := strings.SplitN(string(command), "\x00", 3)
		if len(part) < 2 || part[0] != "/quartermaster" {
			continue
		}
		if !ours[pidNamespaceOfParent(process)] {
			continue // of another cluster
		}
		found[part[1]]++
		status, err := os.ReadFile(process + "/status")
		must(p.t, err)
		user := map[string]string{"controller": "65532", "agent": "0"}[part[1]]
		for _, wanted := range []string{"CapEff:\t0000000000000000\n", "CapBnd:\t0000000000000000\n", "NoNewPrivs:\t1\n", "Seccomp:\t2\n",
			strings.Repeat("\t"+user, 4) + "\n"} {
			if !strings.Contains(string(status), wanted) {
				p.t.Errorf("%s may do more than the chart says, no %q:\n%s", part[1], wanted, status)
			}
		}
		mounts, err := os.ReadFile(process + "/mountinfo")
		must(p.t, err)
		if !regexp.MustCompile(`(?m)^\S+ \S+ \S+ \S+ / ro[ ,]`).Match(mounts) {
			p.t.Errorf("%s may write to its root file system:\n%s", part[1], mounts)
		}
	}
	if found["controller"] != 2 || found["agent"] != agents {
		p.t.Errorf("these processes run: %v", found)
	}
}

// pidNamespaceOfParent is that of the process which started it: the shim, which is in the node's.
func pidNamespaceOfParent(process string) string {
	status, _ := os.ReadFile(process + "/status")
	parent := regexp.MustCompile(`(?m)^PPid:\t(\d+)$`).FindSubmatch(status)
	if parent == nil {
		return ""
	}
	namespace, _ := os.Readlink(fmt.Sprintf("/proc/%s/ns/pid", parent[1]))
	return namespace
}

func (p *product) answerScrapes() {
	leads := 0.0
	for _, pod := range p.operators() {
		leads += p.metric(pod.Name, "quartermaster_leader ")
		if synced := p.metric(pod.Name, "quartermaster_cache_synced{"); synced < 10 {
			p.t.Errorf("%s has %.0f synced caches", pod.Name, synced)
		}
	}
	if leads != 1 {
		p.t.Errorf("%.0f pods lead", leads)
	}
	for _, path := range []string{"metrics", "readyz", "healthz"} {
		if _, err := p.Client.CoreV1().Services(kit.Namespace).ProxyGet("http", "quartermaster", "8080", path, nil).DoRaw(ctx); err != nil {
			p.t.Errorf("Service quartermaster at /%s: %v", path, err)
		}
	}
}

// enrolTheNode asks for whole cards: the operator starts the plugin, says that it finds no card, and then that all is well.
func (p *product) enrolTheNode() {
	p.offers("0")
	p.patch(map[string]any{"spec": map[string]any{"taints": []any{}}}) // of the control plane, which a plugin does not tolerate
	p.patch(map[string]any{"metadata": map[string]any{"labels": map[string]any{kit.AskLabel: "pgpu", "nvidia.com/gpu.product": "Tesla-T4",
		"nvidia.com/gpu.count": "8", "nvidia.com/gpu.memory": "15360"}}})
	p.await(3*time.Minute, "the plugin runs", func() (bool, error) {
		pods, err := p.plugins()
		return err == nil && len(pods) == 1 && pods[0].Status.Phase == corev1.PodRunning, err
	})
	p.becomes(60*time.Second, "Verifying", "NothingAdvertised")
	p.offers("8")
	p.becomes(30*time.Second, "Ready", "Enrolled")
}

// asks makes pods that no node can run, which the API server asks the webhook about by its Service. No pod is stored.
func (p *product) asks(count int) {
	p.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "asks", Namespace: "default", Annotations: map[string]string{"quartermaster.io/cuda": ">=12.4"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: pause,
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{gpu: resource.MustParse("1")}}}}}}
	for range count {
		_, err := p.Client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		must(p.t, err)
	}
}

func (p *product) answerTheWebhook() {
	const calls = `quartermaster_http_requests_total{server="webhook",path="/mutate/compatibility",status="200"}`
	const count = 4
	before := p.metrics(calls)
	p.asks(count)
	if answered := p.metrics(calls) - before; answered != count {
		p.t.Errorf("the webhook answered %.0f calls, not %d", answered, count)
	}
}

// passHelmTest: `quartermaster verify` runs as a pod with rights of its own.
func (p *product) passHelmTest() {
	said := p.run("helm", "test", "quartermaster", "--namespace", kit.Namespace, "--timeout", "180s")
	if strings.Contains(said, "Phase:          Failed") || !strings.Contains(said, "Phase:          Succeeded") {
		p.t.Error(said)
	}
}

// reportTheNode: the agent for cards runs as a pod on the node that asks for a mode. It finds no driver here, and says what it found else.
func (p *product) reportTheNode() {
	p.run("helm", "upgrade", "quartermaster", filepath.Join(kit.Root(), "charts/quartermaster"), "--namespace", kit.Namespace, "--reset-then-reuse-values",
		"--set", "agent.enabled=true", "--wait", "--timeout", "180s")
	p.await(3*time.Minute, "the agent reports the node", func() (bool, error) {
		node, err := p.Dynamic.Resource(kit.AccelNodes).Get(ctx, nodeName, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		rows, _, _ := unstructured.NestedSlice(node.Object, "status", "preflight")
		conditions, _, _ := unstructured.NestedSlice(node.Object, "status", "conditions")
		said := fmt.Sprint(conditions)
		return len(rows) >= 8 && strings.Contains(said, "reason:NoDriver") && strings.Contains(said, "type:PreflightPassed"), fmt.Errorf("%v", node.Object["status"])
	})
	p.await(3*time.Minute, "the agent's pod is ready", func() (bool, error) {
		set, err := p.Client.AppsV1().DaemonSets(kit.Namespace).Get(ctx, "quartermaster-agent", metav1.GetOptions{})
		return err == nil && set.Status.NumberReady == 1 && set.Status.DesiredNumberScheduled == 1, err
	})
	p.ready()
}

// successor waits until another than this leads, and the Deployment is whole again.
func (p *product) successor(patience time.Duration, before string) (took time.Duration) {
	p.t.Helper()
	took = p.await(patience, "another leads", func() (bool, error) {
		holder, _ := p.leader()
		return holder != "" && holder != before, fmt.Errorf("%s leads", holder)
	})
	p.whole()
	return took
}

// ready waits until both pods of the operator are.
func (p *product) ready() {
	p.t.Helper()
	p.await(3*time.Minute, "two are ready", func() (bool, error) {
		deployment, err := p.Client.AppsV1().Deployments(kit.Namespace).Get(ctx, "quartermaster", metav1.GetOptions{})
		return err == nil && deployment.Status.ReadyReplicas == 2, err
	})
}

// whole waits until both pods are ready and all is well.
func (p *product) whole() {
	p.t.Helper()
	p.ready()
	p.becomes(30*time.Second, "Ready", "Enrolled")
}

// handOver: a pod that is asked to end gives the lease away.
func (p *product) handOver() {
	holder, pod := p.leader()
	must(p.t, p.Client.CoreV1().Pods(kit.Namespace).Delete(ctx, pod, metav1.DeleteOptions{}))
	p.successor(5*time.Second, holder)
}

// takeOver: the lease of a process that was killed ends by itself after 15 s, and the other pod looks every 2 s.
func (p *product) takeOver() {
	holder, name := p.leader()
	pod, err := p.Client.CoreV1().Pods(kit.Namespace).Get(ctx, name, metav1.GetOptions{})
	must(p.t, err)
	container := strings.TrimPrefix(pod.Status.ContainerStatuses[0].ContainerID, "containerd://")
	p.script("node-exec", "--node", pod.Spec.NodeName, "ctr", "-n", "k8s.io", "tasks", "kill", "--signal", "SIGKILL", container)
	p.successor(30*time.Second, holder)
	after, err := p.Client.CoreV1().Pods(kit.Namespace).Get(ctx, name, metav1.GetOptions{})
	must(p.t, err)
	if restarts := after.Status.ContainerStatuses[0].RestartCount; restarts != 1 {
		p.t.Errorf("%s was restarted %d times", name, restarts)
	}
}

// upgradeUnderLoad: pods with cards come every second, and go to the operator's kube-scheduler and to the extender behind its Service.
func (p *product) upgradeUnderLoad() {
	p.dedicate()
	p.underLoad(p.upgradeAndRollBack)
	p.dedicateNone()
}

// upgradeAndRollBack rolls both pods twice. The longest time without a leader is the gap.
func (p *product) upgradeAndRollBack() {
	for _, args := range [][]string{
		{"upgrade", "quartermaster", filepath.Join(kit.Root(), "charts/quartermaster"), "--reset-then-reuse-values", "--set", "log.level=debug"},
		{"rollback", "quartermaster", "1"},
	} {
		before, _ := p.leader()
		ended, gap := make(chan struct{}), make(chan time.Duration)
		go func() {
			var longest time.Duration
			since := time.Now()
			for {
				select {
				case <-ended:
					gap <- longest
					return
				case <-time.After(50 * time.Millisecond):
				}
				if holder, _ := p.leader(); holder != "" {
					since = time.Now()
				}
				longest = max(longest, time.Since(since))
			}
		}()
		p.run("helm", append(args, "--namespace", kit.Namespace, "--wait", "--timeout", "180s")...)
		p.successor(10*time.Second, before)
		close(ended)
		longest := <-gap
		p.t.Logf("helm %s: at most %.1f s without a leader", args[0], longest.Seconds())
		if longest > 5*time.Second {
			p.t.Errorf("helm %s: %.1f s without a leader", args[0], longest.Seconds())
		}
	}
}

// goWithoutATrace: helm alone takes everything away. Its Job runs as a pod with rights of its own, while the operator still works.
func (p *product) goWithoutATrace() {
	p.run("helm", "upgrade", "quartermaster", filepath.Join(kit.Root(), "charts/quartermaster"), "--namespace", kit.Namespace, "--reset-then-reuse-values",
		"--set", "crds.keep=false", "--wait", "--timeout", "180s")
	type answer struct {
		said string
		err  error
	}
	began, ended := time.Now(), make(chan answer)
	go func() {
		said, err := p.Run("", "helm", "uninstall", "quartermaster", "--namespace", kit.Namespace, "--wait", "--timeout", "180s")
		ended <- answer{said, err}
	}()
	p.await(3*time.Minute, "the plugin is gone", func() (bool, error) { pods, err := p.plugins(); return err == nil && len(pods) == 0, err })
	p.offers("0")
	if is := <-ended; is.err != nil {
		p.t.Fatalf("helm uninstall: %v\n%s", is.err, is.said)
	}
	p.t.Logf("helm uninstall: %.1f s", time.Since(began).Seconds())
	p.await(3*time.Minute, "no pod is left", func() (bool, error) {
		pods, err := p.Client.CoreV1().Pods(kit.Namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 0, err
	})
	if types := p.run("kubectl", "get", "crd,clusterrole,mutatingwebhookconfiguration,validatingadmissionpolicy", "-o", "name"); strings.Contains(types, "quartermaster") {
		p.t.Errorf("left behind:\n%s", types)
	}
	node, err := p.Client.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
	must(p.t, err)
	if node.Labels[kit.ModuleLabel] != "" || len(node.Spec.Taints) > 0 {
		p.t.Errorf("the node keeps %v and %v", node.Labels, node.Spec.Taints)
	}
}
