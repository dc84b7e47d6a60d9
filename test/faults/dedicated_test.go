package faults

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"quartermaster.io/test/faults/kit"
)

// The scheduler next to the cluster's own (spec.scheduler.mode Dedicated). KWOK runs no processes, so the test is the kubelet: it starts
// the real kube-scheduler with the very file that the operator has made, as the chart's ServiceAccount.
const (
	ownScheduler = "quartermaster"
	ownObjects   = "quartermaster-scheduler"
	sendsLabel   = "quartermaster.io/scheduler"
)

// den is a hall with an operator whose extender has the chart's certificates, and a node without cards.
type den struct {
	*hall
	port  int
	args  []string
	fills bool // pods are given the name by someone: the server's policy, or our webhook
}

func openDen(t *testing.T, nodes map[string]int) *den {
	t.Helper()
	d := &den{hall: followedHall(t, "dedicated", nodes), fills: minor != "1.30"}
	if peer() {
		t.Skip("the peer has no scheduler of its own")
	}
	d.must(d.KeysOfTheCluster(d.ctx, d.dir, &d.keys))
	var err error
	d.port, err = kit.FreePort()
	d.must(err)
	d.args = d.keys.ExtenderArgs(fmt.Sprintf("127.0.0.1:%d", d.port))
	amounts := corev1.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi"), "pods": resource.MustParse("500")}
	plain := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "plain-0", Labels: map[string]string{"kubernetes.io/hostname": "plain-0", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}},
		Status: corev1.NodeStatus{Capacity: amounts, Allocatable: amounts}}
	_, err = d.Client.CoreV1().Nodes().Create(d.ctx, plain, metav1.CreateOptions{})
	d.must(err)
	return d
}

// answer pods by the webhook, where the server cannot fill them in itself.
func (d *den) webhook() {
	d.t.Helper()
	if d.fills {
		return
	}
	port, err := kit.FreePort()
	d.must(err)
	at := fmt.Sprintf("127.0.0.1:%d", port)
	upgrade := func(url string) error {
		_, err := d.Run("", "helm", "upgrade", "quartermaster", filepath.Join(kit.Root(), "charts/quartermaster"), "--namespace", kit.Namespace, "--reset-then-reuse-values",
			"--set", "admission.url="+url)
		return err
	}
	d.must(upgrade("https://" + at))
	d.t.Cleanup(func() { d.must(upgrade("")) })
	d.args = append(d.args, "--webhook-address", at, "--webhook-url", "https://"+at)
	d.fills = true
}

func (d *den) mode(mode string, more map[string]any) {
	d.t.Helper()
	spec := map[string]any{"mode": mode, "isolateNodes": true, "replicas": 2}
	for key, value := range more {
		spec[key] = value
	}
	d.must(d.patchPolicy(map[string]any{"scheduler": spec}))
}

// deployment of the operator's; nil: there is none.
func (d *den) deployment() *appsv1.Deployment {
	d.t.Helper()
	is, err := d.Client.AppsV1().Deployments(kit.Namespace).Get(d.ctx, ownObjects, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	d.must(err)
	return is
}

// sends is what the chart's policies read; empty: there is no such object.
func (d *den) sends() string {
	d.t.Helper()
	is, err := d.Dynamic.Resource(kit.ResourceRules).Get(d.ctx, "default", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	d.must(err)
	return is.GetLabels()[sendsLabel]
}

func (d *den) isolated() (names []string) {
	d.t.Helper()
	list, err := d.Client.CoreV1().Nodes().List(d.ctx, metav1.ListOptions{})
	d.must(err)
	for _, n := range list.Items {
		if slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
			return t.Key == kit.IsolationTaint && t.Effect == corev1.TaintEffectNoSchedule
		}) {
			names = append(names, n.Name)
		}
	}
	return
}

// row of the policy's status about the scheduler, and the condition; nil: there is none.
func (d *den) row() (row, condition map[string]any) {
	d.t.Helper()
	p, err := d.Dynamic.Resource(kit.Policies).Get(d.ctx, "default", metav1.GetOptions{})
	d.must(err)
	rows, _, _ := unstructured.NestedSlice(p.Object, "status", "schedulers")
	for _, r := range rows {
		row = r.(map[string]any)
	}
	conditions, _, _ := unstructured.NestedSlice(p.Object, "status", "conditions")
	for _, c := range conditions {
		if m := c.(map[string]any); m["type"] == "SchedulerReady" {
			condition = m
		}
	}
	return
}

// on says what is missing until pods are sent to a scheduler of two replicas and these nodes are isolated.
func (d *den) on(isolated ...string) string {
	set := d.deployment()
	row, condition := d.row()
	switch {
	case set == nil || set.Status.AvailableReplicas != 2:
		return "its Deployment is not available"
	case d.sends() != "Dedicated":
		return "pods are not sent to it"
	case !slices.Equal(d.isolated(), isolated):
		return fmt.Sprintf("isolated are %v, not %v", d.isolated(), isolated)
	case row == nil || row["reason"] != "Dedicated" || row["ready"] != int64(2):
		return fmt.Sprintf("the status says %v", row)
	case condition == nil || condition["status"] != "True":
		return fmt.Sprintf("the condition is %v", condition)
	}
	return ""
}

// off says what is left of it.
func (d *den) off() string {
	row, condition := d.row()
	_, err := d.Client.CoreV1().ConfigMaps(kit.Namespace).Get(d.ctx, ownObjects, metav1.GetOptions{})
	switch {
	case d.deployment() != nil:
		return "its Deployment is still there"
	case !apierrors.IsNotFound(err):
		return fmt.Sprintf("its ConfigMap is still there: %v", err)
	case d.sends() != "None":
		return "pods are sent to it: " + d.sends()
	case len(d.isolated()) > 0:
		return fmt.Sprintf("isolated are %v", d.isolated())
	case row != nil || condition != nil:
		return fmt.Sprintf("the status says %v, %v", row, condition)
	}
	return ""
}

// kubelet starts what the Deployment's pod would run.
func (d *den) kubelet() *kit.Scheduler { return d.kubeletOf("kube-scheduler") }

func (d *den) kubeletOf(program string) *kit.Scheduler {
	d.t.Helper()
	s, err := kit.RunDedicated(d.ctx, d.Cluster, program, d.dir, fmt.Sprintf("127.0.0.1:%d", d.port))
	d.must(err)
	d.t.Cleanup(s.Close)
	return s
}

// gpu is a pod as its owner writes it: where the server fills in, he writes nothing of a scheduler.
func (d *den) gpu(name string, limits map[string]string) *corev1.Pod {
	p := pod(name, limits)
	p.Spec.SchedulerName = ""
	if !d.fills {
		p.Spec.SchedulerName = ownScheduler
		p.Spec.Tolerations = []corev1.Toleration{{Key: kit.IsolationTaint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
	}
	return p
}

func plainPod(name string) *corev1.Pod {
	p := pod(name, map[string]string{"cpu": "100m"})
	p.Spec.SchedulerName = ""
	return p
}

// sent waits until the API server acts on the label.
func (d *den) sent(is bool) {
	d.t.Helper()
	d.eventuallySo(20*time.Second, func() string {
		p := pod("probe", map[string]string{"nvidia.com/gpu": "1"})
		p.Spec.SchedulerName = ""
		made, err := d.Client.CoreV1().Pods(podsIn).Create(d.ctx, p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if !d.fills {
			if (err != nil) != is {
				return fmt.Sprintf("a pod that names no scheduler: %v", err)
			}
			return ""
		}
		if err != nil {
			return err.Error() // the webhook may not be there yet
		}
		if (made.Spec.SchedulerName == ownScheduler) != is {
			return "a pod that names no scheduler gets " + made.Spec.SchedulerName
		}
		return ""
	})
}

func (d *den) unbound(name string, during time.Duration) {
	d.t.Helper()
	for deadline := time.Now().Add(during); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if p := d.get(name); p.Spec.NodeName != "" {
			d.t.Errorf("pod %s is on node %s", name, p.Spec.NodeName)
			return
		}
	}
}

// S7, S54: on, the death of the replica that leads, and off, with the real kube-scheduler of the server's version.
func TestS54_pods_that_ask_for_cards_have_a_scheduler_of_their_own(t *testing.T) {
	d := openDen(t, map[string]int{"pgpu": 2, "vgpu": 1})
	d.webhook()
	d.mode("Dedicated", nil)
	o := d.startBehind(d.proxy("first"), d.args...)
	d.must(o.WaitReady(30 * time.Second))
	d.eventuallySo(60*time.Second, func() string { return d.on("pgpu-0", "pgpu-1", "vgpu-0") })
	d.leaderDies(d.serves(o))

	d.mode("None", nil)
	d.eventuallySo(40*time.Second, d.off)
	d.sent(false)
	d.goesToTheDefault()
	d.rest(o, time.Second)
}

// serves: two replicas run, and pods of each kind are bound where they belong.
func (d *den) serves(o *kit.Operator) (one, two *kit.Scheduler) {
	d.t.Helper()
	one, two = d.kubelet(), d.kubelet()
	d.sent(true)
	d.create(d.gpu("card", map[string]string{"nvidia.com/gpu": "2"}))
	d.create(d.gpu("share", map[string]string{"tencent.com/vcuda-core": "30", "tencent.com/vcuda-memory": "8"}))
	d.create(d.gpu("declared", map[string]string{fpga: "1"}))
	d.create(plainPod("web"))
	for name, node := range map[string]string{"card": "pgpu", "share": "vgpu", "declared": "pgpu"} {
		p := d.awaitBound(name, 30*time.Second)
		d.placementOf(p)
		if p.Spec.SchedulerName != ownScheduler || !strings.HasPrefix(p.Spec.NodeName, node) {
			d.t.Errorf("pod %s is of scheduler %s, on node %s", name, p.Spec.SchedulerName, p.Spec.NodeName)
		}
	}
	if p := d.awaitBound("web", 30*time.Second); p.Spec.NodeName != "plain-0" {
		d.t.Errorf("pod web is on node %s, which is kept for accelerators", p.Spec.NodeName)
	}
	d.bindsCounted(o, 3)
	return one, two
}

// bindsCounted waits until the extender has counted so many calls of bind: it does so after its answer, and the pod is bound before that.
func (d *den) bindsCounted(o *kit.Operator, wanted float64) {
	d.t.Helper()
	d.eventuallySo(10*time.Second, func() string {
		if binds, _ := o.Metric("quartermaster_extender_seconds_count", `verb="bind"`); binds != wanted {
			return fmt.Sprintf("the extender was asked to bind %v times, not %v", binds, wanted)
		}
		return ""
	})
}

// leaderDies: the one of two replicas that leads is killed, and the other goes on. It returns that one.
func (d *den) leaderDies(one, two *kit.Scheduler) (other *kit.Scheduler) {
	d.t.Helper()
	leader, other := one, two
	if strings.Contains(two.Log(), "successfully acquired lease") {
		leader, other = two, one
	}
	leader.Close()
	d.create(d.gpu("moved", map[string]string{"nvidia.com/gpu": "1"}))
	d.awaitBound("moved", 40*time.Second) // the lease lasts 15 s
	return other
}

// goesToTheDefault: a pod that asks for a card is the default scheduler's again.
func (d *den) goesToTheDefault() {
	d.t.Helper()
	after := pod("after", map[string]string{"nvidia.com/gpu": "1"})
	after.Spec.SchedulerName = ""
	d.create(after)
	if p := d.awaitBound("after", 30*time.Second); p.Spec.SchedulerName != corev1.DefaultSchedulerName {
		d.t.Errorf("pod after is of scheduler %s", p.Spec.SchedulerName)
	}
}

// S7, S54: the same, and what is so while no replica is available: before the first, after the last, and with a pod that waits when it is off.
func TestS54_pods_wait_while_their_scheduler_is_away_long(t *testing.T) {
	d := openDen(t, map[string]int{"pgpu": 2, "vgpu": 1})
	d.webhook()
	accelerated := []string{"pgpu-0", "pgpu-1", "vgpu-0"}
	// Without a kubelet no replica becomes available, and no pod is sent.
	frozen := false
	freeze := func() {
		frozen = true
		d.must(d.Signal("kwok", syscall.SIGSTOP))
	}
	thaw := func() {
		if frozen {
			frozen = false
			d.must(d.Signal("kwok", syscall.SIGCONT))
		}
	}
	t.Cleanup(thaw)
	freeze()
	d.mode("Dedicated", nil)
	o := d.startBehind(d.proxy("first"), d.args...)
	d.must(o.WaitReady(30 * time.Second))
	d.eventuallySo(20*time.Second, func() string {
		if d.deployment() == nil {
			return "there is no Deployment"
		}
		return ""
	})
	server, err := d.Client.Discovery().ServerVersion()
	d.must(err)
	if image := d.deployment().Spec.Template.Spec.Containers[0].Image; image != "registry.k8s.io/kube-scheduler:"+server.GitVersion {
		t.Errorf("the server is %s and the scheduler %s", server.GitVersion, image)
	}
	time.Sleep(2 * time.Second)
	if d.sends() != "None" || len(d.isolated()) > 0 {
		t.Errorf("no replica is available, but pods are sent: %q, isolated: %v", d.sends(), d.isolated())
	}
	thaw()
	d.eventuallySo(60*time.Second, func() string { return d.on(accelerated...) })
	row, _ := d.row()
	if row["version"] != server.GitVersion || len(row["checksum"].(string)) != 64 || row["mode"] != "Dedicated" {
		t.Errorf("the status says %v", row)
	}
	if value, ok := o.Metric("quartermaster_scheduler_switched_on"); !ok || value != 1 {
		t.Errorf("quartermaster_scheduler_switched_on is %v", value)
	}

	other := d.leaderDies(d.serves(o))
	// None is left: everything else is scheduled, pods that ask for cards wait and go to no one else.
	other.Close()
	d.create(d.gpu("waits", map[string]string{"nvidia.com/gpu": "1"}))
	for began, i := time.Now(), 0; time.Since(began) < form(10*time.Second, time.Minute); i++ {
		name := fmt.Sprintf("web-%d", i)
		d.create(plainPod(name))
		d.awaitBound(name, 10*time.Second)
		time.Sleep(500 * time.Millisecond)
	}
	d.unbound("waits", 100*time.Millisecond)
	// And the API says so: pods are sent to it all the same.
	freeze()
	replicas := metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + ownObjects}
	d.must(d.Client.CoreV1().Pods(kit.Namespace).DeleteCollection(d.ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, replicas))
	d.eventuallySo(20*time.Second, func() string {
		if row, _ := d.row(); d.deployment().Status.AvailableReplicas > 0 || row["reason"] != "RollingOut" {
			return fmt.Sprintf("a replica is available, and the status says %v", row)
		}
		return ""
	})
	time.Sleep(2 * time.Second)
	if !slices.Equal(d.isolated(), accelerated) {
		t.Errorf("no replica is available, and isolated are %v", d.isolated())
	}
	d.sent(true)
	thaw()
	last := d.kubelet()
	d.awaitBound("waits", 40*time.Second)

	// Off, with a pod that waits.
	d.create(d.gpu("large", map[string]string{"nvidia.com/gpu": "99"}))
	d.mode("None", nil)
	d.eventuallySo(20*time.Second, func() string {
		row, _ := d.row()
		message, _ := row["message"].(string)
		if row["reason"] != "PodsWait" || !strings.Contains(message, "1 pod waits") || !strings.Contains(message, podsIn+"/large") {
			return fmt.Sprintf("the status says %v", row)
		}
		if d.sends() != "None" || len(d.isolated()) > 0 {
			return fmt.Sprintf("pods are sent: %q, isolated: %v", d.sends(), d.isolated())
		}
		return ""
	})
	d.sent(false)
	d.goesToTheDefault()
	time.Sleep(form(12*time.Second, 30*time.Second))
	if d.deployment() == nil || !last.Running() {
		t.Errorf("a pod waits for a scheduler that is gone")
	}
	d.remove("large")
	d.eventuallySo(40*time.Second, d.off)
	d.rest(o, time.Second)
}

// S54: one minor older than the server, because the policy's image is, and because the server has only just been upgraded.
func TestS54_a_scheduler_one_minor_older_than_the_server_long(t *testing.T) {
	if minor != "1.37" {
		t.Skip("there is a kube-scheduler one minor older than the newest server")
	}
	const older, pinned, usual = "kube-scheduler-1.36", "registry.local:5000/kube-scheduler:", "registry.k8s.io/kube-scheduler:"
	d := openDen(t, map[string]int{"pgpu": 1, "vgpu": 1})
	said, err := exec.Command(d.Tool(older), "--version").Output()
	d.must(err)
	version := strings.TrimPrefix(strings.TrimSpace(string(said)), "Kubernetes ")
	told := func(name string) string {
		set := d.deployment()
		if set == nil {
			return "there is no Deployment"
		}
		row, _ := d.row()
		if image := set.Spec.Template.Spec.Containers[0].Image; image != name+version || row["version"] != version {
			return fmt.Sprintf("the image is %s, and the status says %v", image, row)
		}
		return d.on("pgpu-0", "vgpu-0")
	}
	d.mode("Dedicated", map[string]any{"image": pinned + version})
	o := d.startBehind(d.proxy("pinned"), d.args...)
	d.must(o.WaitReady(30 * time.Second))
	d.eventuallySo(60*time.Second, func() string { return told(pinned) })
	own := d.kubeletOf(older)
	d.sent(true)
	d.create(d.gpu("card", map[string]string{"nvidia.com/gpu": "2"}))
	d.create(d.gpu("share", map[string]string{"tencent.com/vcuda-core": "30", "tencent.com/vcuda-memory": "8"}))
	for pod, node := range map[string]string{"card": "pgpu-0", "share": "vgpu-0"} {
		p := d.awaitBound(pod, 30*time.Second)
		d.placementOf(p)
		if p.Spec.NodeName != node {
			t.Errorf("pod %s is on node %s", pod, p.Spec.NodeName)
		}
	}
	d.bindsCounted(o, 2)
	if !own.Running() {
		t.Errorf("kube-scheduler has ended:\n%s", own.Tail(10))
	}
	o.Terminate(10 * time.Second)

	// What an operator left when the server was of that version: it is held until the upgrade is through.
	left := []byte(`{"metadata": {"annotations": {"state.quartermaster.io/server-version": "` + version + `"}}}`)
	_, err = d.Client.AppsV1().Deployments(kit.Namespace).Patch(d.ctx, ownObjects, types.MergePatchType, left, metav1.PatchOptions{})
	d.must(err)
	d.mode("Dedicated", map[string]any{"image": nil})
	o = d.startBehind(d.proxy("upgraded"), d.args...)
	d.must(o.WaitReady(30 * time.Second))
	d.eventuallySo(60*time.Second, func() string { return told(usual) })
}

// F36: the operator is killed around every write of switching on and off, then another goes on from what the API shows.
func TestS54_killed_around_every_write_of_switching_it_on_and_off_long(t *testing.T) {
	d := openDen(t, map[string]int{"pgpu": 2})
	nodes := []string{"pgpu-0", "pgpu-1"}
	phases := []struct {
		mode string
		so   func() string
	}{{"Dedicated", func() string { return d.on(nodes...) }}, {"None", d.off}}
	d.mode("None", nil)
	o := d.startBehind(d.proxy("baseline"), d.args...)
	d.must(o.WaitReady(30 * time.Second))
	d.eventuallySo(60*time.Second, d.off)
	d.rest(o, time.Second)
	writes := map[string]int{}
	for _, phase := range phases {
		since := time.Now()
		d.mode(phase.mode, nil)
		d.eventuallySo(60*time.Second, phase.so)
		d.rest(o, time.Second)
		for _, e := range o.Proxy.Since(since, scheduling) {
			if e.Write() {
				writes[phase.mode]++
			}
		}
	}
	o.Terminate(10 * time.Second)
	if writes["Dedicated"] < 5 || writes["None"] < 5 { // ConfigMap, Deployment, the label, a taint on each node; and back
		t.Fatalf("the baseline wrote %v times: this test would prove nothing", writes)
	}
	moments := []string{"lost", "unanswered", "answered"}
	deaths := 0
	for round := range form(1, 3) {
		for i, phase := range phases {
			for k := 1; k <= writes[phase.mode]; k++ {
				if !nightly && k%3 != int(seed%3) {
					continue
				}
				// Back to where the phase begins.
				d.mode(phases[1-i].mode, nil)
				d.settled(fmt.Sprintf("to-%s-%d-%d", phase.mode, round, k), phases[1-i].so)
				d.mode(phase.mode, nil)
				moment := moments[(k+round+int(seed%3))%3]
				d.dies(fmt.Sprintf("%s-%d-%d-%s", phase.mode, round, k, moment), k, moment, phase.so)
				d.settled(fmt.Sprintf("after-%s-%d-%d", phase.mode, round, k), phase.so)
				deaths++
			}
		}
	}
	t.Logf("%v writes, %d deaths", writes, deaths)
}

// scheduling is what is written for it.
func scheduling(r *kit.Request) bool {
	return kit.Writes(r) && slices.Contains([]string{"deployments", "configmaps", "resourcerules", "nodes"}, r.Resource)
}

// settled runs an operator until all is so.
func (d *den) settled(name string, so func() string) {
	d.t.Helper()
	d.must(d.ExpireLease(d.ctx))
	p := d.proxy(name)
	o := d.startBehind(p, d.args...)
	d.must(wrap(o.WaitReady(30*time.Second), "%s", name))
	d.eventuallySo(60*time.Second, func() string {
		if why := so(); why != "" {
			return name + ": " + why
		}
		return ""
	})
	o.Terminate(10 * time.Second)
}

// dies runs one that is killed at its k-th write for the scheduler, or when all is so.
func (d *den) dies(name string, k int, moment string, so func() string) {
	d.t.Helper()
	p := d.proxy(name)
	victim := killedAt(p, scheduling, k, moment)
	d.must(d.ExpireLease(d.ctx))
	o := d.startBehind(p, d.args...)
	victim.Store(o)
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if _, gone := o.Exited(0); gone {
			return
		}
		if so() == "" {
			break
		}
	}
	d.t.Logf("%s: no such write came, killed at rest", name)
	o.Kill()
}
