package realnode

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"quartermaster.io/test/faults/kit"
)

const (
	agents   = "quartermaster-static-pod"
	checksum = "quartermaster.io/scheduler-config"

	// Behind the name of kube-scheduler's image: another that works, and one that ends when it is given a configuration.
	next, breaks = "-next", "-breaks"
)

// controlPlaneNode is the real node as a control-plane node, with the agent of the chart on it.
type controlPlaneNode struct {
	*product
	original, image string // kubeadm's manifest, and the image in it
	held            string // the lease's holder before the last change
}

func (m *controlPlaneNode) file(name string) string {
	return filepath.Join(m.Dir, "node/etc/kubernetes", name)
}

// read is empty where there is no such file.
func (m *controlPlaneNode) read(name string) string {
	text, _ := os.ReadFile(m.file(name))
	return string(text)
}

// kubeadm writes the manifest: next to its place, and renamed in.
func (m *controlPlaneNode) kubeadm(manifest string) {
	m.t.Helper()
	temporary := m.file("kube-scheduler.new")
	must(m.t, os.WriteFile(temporary, []byte(manifest), 0o600))
	must(m.t, os.Rename(temporary, m.file("manifests/kube-scheduler.yaml")))
}

// leads waits until the kube-scheduler of this image runs on the control-plane node, and another than before leads.
func (m *controlPlaneNode) leads(what, image string) {
	m.t.Helper()
	await(m.t, 60*time.Second, what+": its kube-scheduler leads", func() (bool, error) {
		pod, err := m.Client.CoreV1().Pods("kube-system").Get(ctx, "kube-scheduler-"+real1, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		if pod.Annotations[corev1.MirrorPodAnnotationKey] == "" || pod.Spec.NodeName != real1 || pod.Spec.Containers[0].Image != image {
			return false, fmt.Errorf("%s is no mirror of a static pod on %s with the image %s", pod.Name, real1, image)
		}
		lease, err := m.Client.CoordinationV1().Leases("kube-system").Get(ctx, "kube-scheduler", metav1.GetOptions{})
		if err != nil || lease.Spec.HolderIdentity == nil {
			return false, err
		}
		is := *lease.Spec.HolderIdentity
		if is == m.held || !strings.HasPrefix(is, real1+"_") {
			return false, fmt.Errorf("%s leads", is)
		}
		m.held = is
		return true, nil
	})
}

type row struct {
	State, Checksum, Version, Reason string
	Generation                       int
}

// becomes waits for a state of the control-plane node's row, and for the number of its change.
func (m *controlPlaneNode) becomes(patience time.Duration, state string, generation int) (is row) {
	m.t.Helper()
	await(m.t, patience, state, func() (bool, error) {
		rows, err := m.Client.CoreV1().ConfigMaps(kit.Namespace).Get(ctx, agents, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		is = row{}
		json.Unmarshal([]byte(rows.Data[real1]), &is)
		return is.State == state && is.Generation == generation, fmt.Errorf("%+v", is)
	})
	return is
}

// applied: the row, the files and the pod say the same.
func (m *controlPlaneNode) applied(what, image string, generation int) {
	m.t.Helper()
	is := m.becomes(120*time.Second, "Applied", generation)
	m.leads(what, image)
	config := m.read("scheduler-config.yaml")
	pod, err := m.Client.CoreV1().Pods("kube-system").Get(ctx, "kube-scheduler-"+real1, metav1.GetOptions{})
	must(m.t, err)
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(config)))
	if is.Reason != "" || !strings.HasPrefix(is.Version, "v"+minor+".") || is.Checksum != sum || pod.Annotations[checksum] != sum {
		m.t.Errorf("%s: the row says %+v, the configuration has %s and the pod %v", what, is, sum, pod.Annotations)
	}
	await(m.t, 20*time.Second, what+": the policy says so", func() (bool, error) {
		policy, err := m.Dynamic.Resource(kit.Policies).Get(ctx, "default", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		rows, _, _ := unstructured.NestedSlice(policy.Object, "status", "schedulers")
		for _, row := range rows {
			if told := row.(map[string]any); told["name"] == real1 && told["reason"] == "Applied" && told["checksum"] == sum && told["version"] == is.Version {
				return true, nil
			}
		}
		return false, fmt.Errorf("%v", rows)
	})
	client, err := os.Stat(m.file("scheduler.conf"))
	must(m.t, err)
	if ours, err := os.Stat(m.file("scheduler-config.yaml")); err != nil || ours.Mode() != client.Mode() {
		m.t.Errorf("%s: the configuration has the mode %v, scheduler.conf has %v: %v", what, ours.Mode(), client.Mode(), err)
	}
}

// asKubeadmWrote: byte for byte, and nothing else that we wrote next to it.
func (m *controlPlaneNode) asKubeadmWrote(what, manifest string, others ...string) {
	m.t.Helper()
	if m.read("manifests/kube-scheduler.yaml") != manifest {
		m.t.Errorf("%s: the manifest has other bytes:\n%s", what, m.read("manifests/kube-scheduler.yaml"))
	}
	for _, name := range append(others, "scheduler-config.yaml") {
		if _, err := os.Stat(m.file(name)); err == nil {
			m.t.Errorf("%s: there is %s", what, name)
		}
	}
}

// reachable: the extender's Service leads to the tap, which an endpoint outside the cluster stands for.
func (m *controlPlaneNode) reachable() {
	m.t.Helper()
	service, err := m.Client.CoreV1().Services(kit.Namespace).Get(ctx, "quartermaster-extender", metav1.GetOptions{})
	must(m.t, err)
	const outside, port = "192.0.2.1", 9443
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "tap", Namespace: service.Namespace, Labels: map[string]string{
		discoveryv1.LabelServiceName: service.Name, discoveryv1.LabelManagedBy: "test"}}, AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{outside}}}, Ports: []discoveryv1.EndpointPort{{Name: new(service.Spec.Ports[0].Name), Port: new(int32(port))}}}
	_, err = m.Client.DiscoveryV1().EndpointSlices(slice.Namespace).Create(ctx, slice, metav1.CreateOptions{})
	must(m.t, err)
	forward := exec.Command(filepath.Join(kit.Root(), "test/cluster/cluster.sh"), "node-forward", "--name", m.Name, fmt.Sprintf("%s:%d=%s", outside, port, m.tap.Address()))
	out, err := forward.StdoutPipe()
	must(m.t, err)
	must(m.t, forward.Start())
	m.t.Cleanup(func() { forward.Process.Kill(); forward.Wait() })
	line := make([]byte, 10)
	if _, err := out.Read(line); err != nil || string(line) != "forwarding" {
		m.t.Fatalf("node-forward says %q: %v", line, err)
	}
}

// agent waits for the pod of the chart's DaemonSet, and looks at its process.
func (m *controlPlaneNode) agent() {
	m.t.Helper()
	await(m.t, 60*time.Second, "the agent runs", func() (bool, error) {
		set, err := m.Client.AppsV1().DaemonSets(kit.Namespace).Get(ctx, agents, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return set.Status.NumberReady == 1 && set.Status.DesiredNumberScheduled == 1, fmt.Errorf("%+v", set.Status)
	})
	in, found := tracesOf(m.t, m.Cluster), 0
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range all {
		command, _ := os.ReadFile(process + "/cmdline")
		if !strings.Contains(string(command), "agent\x00--static-pod") || namespace(filepath.Base(process), "net") != in.net {
			continue
		}
		found++
		status, err := os.ReadFile(process + "/status")
		must(m.t, err)
		for _, wanted := range []string{"CapEff:\t0000000000000000\n", "CapBnd:\t0000000000000000\n", "NoNewPrivs:\t1\n", "Seccomp:\t2\n"} {
			if !strings.Contains(string(status), wanted) {
				m.t.Errorf("the agent may do more than the chart says, no %q:\n%s", wanted, status)
			}
		}
	}
	if found != 1 {
		m.t.Errorf("%d processes of the agent are in the node's network", found)
	}
}

// said of the control-plane node by the agent, as events, and in its log.
func (m *controlPlaneNode) said() (events, log string) {
	m.t.Helper()
	list, err := m.Client.EventsV1().Events("default").List(ctx, metav1.ListOptions{})
	must(m.t, err)
	for _, event := range list.Items {
		if event.Regarding.Name == real1 {
			events += event.Reason + " " + event.Note + "\n"
		}
	}
	pods, err := m.Client.CoreV1().Pods(kit.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + agents})
	must(m.t, err)
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp != nil {
			continue // its node is out
		}
		text, err := m.Client.CoreV1().Pods(kit.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
		log += string(text)
		if err != nil || len(pod.Status.ContainerStatuses) != 1 || pod.Status.ContainerStatuses[0].RestartCount != 0 {
			m.t.Errorf("the agent has not run all the time: %v %+v", err, pod.Status.ContainerStatuses)
		}
	}
	return
}

// openControlPlaneNode is the real node of a cluster: kubeadm's kube-scheduler, with this behind its image's name, leads, and the agent runs.
func openControlPlaneNode(t *testing.T, c *kit.Cluster, suffix string) *controlPlaneNode {
	t.Helper()
	text, err := kit.KubeadmScheduler(minor)
	must(t, err)
	m := &controlPlaneNode{product: &product{Product: &kit.Product{Scenario: &kit.Scenario{Cluster: c}, T: t}, t: t}, original: string(text)}
	m.image = regexp.MustCompile(`image: (\S+)`).FindStringSubmatch(m.original)[1]
	t.Cleanup(func() {
		for _, name := range []string{"manifests/kube-scheduler.yaml", "scheduler-config.yaml", "quartermaster"} {
			os.RemoveAll(m.file(name))
		}
	})
	program := c.Tool("kube-scheduler")
	for _, tag := range []string{m.image, m.image + next} {
		_, err = c.Script("node-image", tag, program+":/usr/local/bin/kube-scheduler")
		must(t, err)
	}
	must(t, c.CompileImage(m.image+breaks, "breaks", "/usr/local/bin/kube-scheduler", program+":/bin/kube-scheduler"))
	_, err = c.Script("node-image", "quartermaster.test/quartermaster:test", kit.ProgramUnderTest(t)+":/quartermaster")
	must(t, err)
	m.kubeadm(m.manifest(suffix))
	m.leads("kubeadm's", m.image+suffix)
	m.product = install(t, c, "staticPod.patienceSeconds=45", "image.registry=quartermaster.test", "image.tag=test")
	t.Cleanup(func() {
		if t.Failed() {
			events, log := m.said()
			t.Logf("%s%s", events, log)
		}
	})
	m.cards()
	m.reachable()
	m.places("by-kubeadms", false)
	m.scheduler(map[string]any{"mode": "StaticPod"})
	m.agent()
	return m
}

// manifest as kubeadm writes it for an image with this behind its name.
func (m *controlPlaneNode) manifest(suffix string) string {
	return strings.ReplaceAll(m.original, m.image, m.image+suffix)
}

// tells: there are events of the control-plane node that begin so.
func (m *controlPlaneNode) tells(begins ...string) {
	m.t.Helper()
	events, _ := m.said()
	for _, wanted := range begins {
		if !strings.Contains("\n"+events, "\n"+wanted) {
			m.t.Errorf("no event %q:\n%s", wanted, events)
		}
	}
}

// The chart's DaemonSet on a real kubelet: kubeadm's kube-scheduler takes our configuration, an upgrade's manifest does again, and mode
// None leaves what kubeadm wrote, byte for byte.
func TestS7_TheAgentOfTheChartOnARealControlPlaneNode_long(t *testing.T) {
	t.Parallel() // most of it is waiting for a kubelet
	m := openControlPlaneNode(t, cluster, "")
	m.applied("kubeadm's, with ours", m.image, 1)
	m.places("by-ours", true)
	m.kubeadm(m.manifest(next)) // `kubeadm upgrade` writes the manifest again, without our flag
	m.applied("the upgrade's, with ours", m.image+next, 2)
	m.places("by-ours-again", true)
	m.scheduler(map[string]any{"mode": "None"})
	m.becomes(120*time.Second, "Off", 0)
	m.asKubeadmWrote("taken out", m.manifest(next), "quartermaster/record.json")
	m.leads("taken out", m.image+next)
	m.places("taken-out", false)
	m.tells("SchedulerConfigApplied ", "SchedulerConfigOff ")
}

// A kube-scheduler that ends when it is given a configuration gets back what kubeadm wrote, and works again; the next upgrade's is tried.
func TestF51_WhatARealControlPlaneNodeCannotWorkWithIsTakenBack_long(t *testing.T) {
	t.Parallel()
	own := &kit.Cluster{Name: cluster.Name + "-back"}
	t.Cleanup(func() { own.Down() })
	own, err := kit.Up(ctx, own.Name, minor, "--real-node", "--no-scheduler", "--no-kwok")
	must(t, err)
	must(t, own.CompileImage(sum, "sum", "/bin/sum"))
	m := openControlPlaneNode(t, own, breaks)
	back := m.becomes(150*time.Second, "RolledBack", 0)
	if !strings.HasPrefix(back.Reason, "after 45 s kube-scheduler-"+real1+" is not ready (") {
		t.Errorf("rolled back because %q", back.Reason)
	}
	m.asKubeadmWrote("rolled back", m.manifest(breaks))
	m.leads("rolled back", m.image+breaks)
	m.places("by-rolled-back", false)
	m.kubeadm(m.original)
	m.applied("the next upgrade's, with ours", m.image, 2)
	m.places("by-ours", true)
	m.tells("SchedulerConfigRolledBack kube-scheduler of this node: after 45 s", "SchedulerConfigApplied ")
}
