package image

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"quartermaster.io/test/faults/kit"
)

// observed waits until the leader has seen the newest policy.
func (p *product) observed() {
	p.t.Helper()
	p.await(30*time.Second, "the policy is observed", func() (bool, error) {
		policy, err := p.Dynamic.Resource(kit.Policies).Get(ctx, "default", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		generation, _, _ := unstructured.NestedInt64(policy.Object, "status", "observedGeneration")
		return generation == policy.GetGeneration(), fmt.Errorf("generation %d, observed %d", policy.GetGeneration(), generation)
	})
}

// freezeTheLeader stops everything on its node where it is: kubelet, containerd, kube-proxy and the pods. The other pod takes over and works.
// When the node goes on, the old leader still has what it was about to do, and does none of it.
func (p *product) freezeTheLeader() {
	holder, name := p.leader()
	pod, err := p.Client.CoreV1().Pods(kit.Namespace).Get(ctx, name, metav1.GetOptions{})
	must(p.t, err)
	p.script("node-freeze", "--node", pod.Spec.NodeName)
	frozen := true
	thaw := func() {
		if frozen {
			p.script("node-thaw", "--node", pod.Spec.NodeName)
			frozen = false
		}
	}
	p.t.Cleanup(thaw)
	since := time.Now()
	successor := ""
	p.await(30*time.Second, "another leads", func() (bool, error) {
		successor, _ = p.leader()
		return successor != "" && successor != holder, fmt.Errorf("%s leads", successor)
	})
	p.schedulerMode(`{"mode": "None", "replicas": 1}`) // the old leader will see that the policy has changed
	p.observed()
	// The API server may have its connection to the pod that does not answer. Then it waits for each webhook for the 5 s that the chart
	// gives it, and admits the pod.
	began := time.Now()
	p.asks(1)
	p.t.Logf("a pod is admitted in %.1f s", time.Since(began).Seconds())

	thaw()
	p.schedulerMode(`{"mode": "None", "replicas": null}`)
	p.whole()
	time.Sleep(5 * time.Second) // the old leader has its chance
	p.ready()                   // it has ended, and a kubelet waits before it starts again what has ended twice
	if now, _ := p.leader(); now != successor {
		p.t.Errorf("%s leads, not %s", now, successor)
	}
	if leads := p.metrics("quartermaster_leader "); leads != 1 {
		p.t.Errorf("%.0f pods lead", leads)
	}
	writes, err := p.Audit(since, func(e kit.AuditEvent) bool { return e.Write() && e.Received.After(since) })
	must(p.t, err)
	written := map[string]int{}
	for _, e := range writes {
		if e.Pod() == name {
			p.t.Errorf("the old leader wrote: %s", e)
		}
		written[e.Pod()]++
	}
	if other, _, _ := strings.Cut(successor, "_"); written[other] == 0 {
		p.t.Errorf("the audit log has no write of %s, but of %v", other, written)
	}
}

// have waits until there are so many pods of the operator, those that are ending among them.
func (p *product) have(count int) {
	p.t.Helper()
	p.await(3*time.Minute, fmt.Sprintf("there are %d pods of the operator", count), func() (bool, error) {
		list, err := p.Client.CoreV1().Pods(kit.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=quartermaster"})
		return err == nil && len(list.Items) == count, err
	})
}

// loseTheWebhook: with no pod of the operator, pods are still admitted, because the chart says so (failurePolicy: Ignore).
func (p *product) loseTheWebhook() {
	scale := func(replicas string) {
		p.run("kubectl", "scale", "deployment/quartermaster", "--namespace", kit.Namespace, "--replicas="+replicas)
	}
	failedOpen := func() (count float64) {
		text, err := p.Client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
		must(p.t, err)
		for _, match := range regexp.MustCompile(`(?m)^apiserver_admission_webhook_fail_open_count\{name="compatibility.quartermaster.io".*\} (\S+)$`).FindAllSubmatch(text, -1) {
			value, err := strconv.ParseFloat(string(match[1]), 64)
			must(p.t, err)
			count += value
		}
		return count
	}
	holder, _ := p.leader()
	scale("0")
	p.have(0)
	before, began := failedOpen(), time.Now()
	p.asks(2)
	p.t.Logf("two pods are admitted in %.1f s", time.Since(began).Seconds())
	if calls := failedOpen() - before; calls != 2 {
		p.t.Errorf("%.0f calls of the webhook failed, not 2", calls)
	}
	scale("2")
	p.successor(60*time.Second, holder)
}

// lagBehind: Services lead to pods that are gone, because no kube-proxy keeps up. A pod with a card waits until they do again.
func (p *product) lagBehind(scheduler string) {
	signal := func(s syscall.Signal) {
		for _, proxy := range []string{"kube-proxy", "kube-proxy-2"} {
			must(p.t, p.Signal(proxy, s))
		}
	}
	p.t.Cleanup(func() { signal(syscall.SIGCONT) })
	signal(syscall.SIGSTOP)
	p.run("kubectl", "rollout", "restart", "deployment/quartermaster", "--namespace", kit.Namespace)
	p.run("kubectl", "rollout", "status", "deployment/quartermaster", "--namespace", kit.Namespace, "--timeout=180s")
	p.have(2)
	p.placesAPod(scheduler, func() {
		time.Sleep(6 * time.Second)
		pod, err := p.Client.CoreV1().Pods("default").Get(ctx, "has-a-card", metav1.GetOptions{})
		must(p.t, err)
		if pod.Spec.NodeName != "" {
			p.t.Errorf("the pod was bound to %s, and no Service leads to the extender", pod.Spec.NodeName)
		}
		signal(syscall.SIGCONT)
	})
}
