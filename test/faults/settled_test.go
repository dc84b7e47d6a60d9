package faults

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quartermaster.io/test/faults/kit"
)

// A settled cluster: no input, hence no write but the upkeep of the lease. Judged from the server's own audit log, over all writers
// that came through our proxy, and from the resource versions of what we own.
func TestT17_settled_cluster_is_not_written_to(t *testing.T) {
	b := take(t, "pair")
	o := b.converged("settled")
	b.must(b.AwaitPolicyReady(b.ctx, 30*time.Second))
	b.rest(o, time.Second)
	window := form(20*time.Second, 5*time.Minute)
	since := time.Now()
	b.clean(b.watchNodes(window)) // a simulated kubelet that loses its node is a fault of the harness
	log, err := b.Audit(since, func(e kit.AuditEvent) bool { return e.By("settled") })
	b.must(err)
	b.clean(kit.SilentAudit(log))
	if len(log) < int(window/(10*time.Second)) {
		t.Errorf("only %d requests of the operator in the audit log in %s: the lease at least must be there", len(log), window)
	}
	b.clean(kit.ListBudget(o.Proxy.Since(since, nil), 0))
	b.clean(b.Differences(b.ctx))
}

// watchNodes says at which moments a node was ready or not, and what it offered, where that was not as in the beginning.
func (b *bench) watchNodes(window time.Duration) (happened []string) {
	b.t.Helper()
	state := func(n *corev1.Node) string {
		out := string(n.UID)
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				out += " ready " + string(c.Status)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(n.Status.Allocatable)) {
			if strings.Contains(string(name), "/") {
				amount := n.Status.Allocatable[name]
				out += fmt.Sprintf(" %s %s", name, amount.String())
			}
		}
		return out
	}
	list, err := b.Client.CoreV1().Nodes().List(b.ctx, metav1.ListOptions{})
	b.must(err)
	before := map[string]string{}
	for _, n := range list.Items {
		before[n.Name] = state(&n)
	}
	for end, version := time.After(window), list.ResourceVersion; ; {
		changes, err := b.Client.CoreV1().Nodes().Watch(b.ctx, metav1.ListOptions{ResourceVersion: version})
		b.must(err)
		for open := true; open; { // the server ends a watch when it likes, and the next goes on from there
			select {
			case <-end:
				changes.Stop()
				return happened
			case change, more := <-changes.ResultChan():
				n, is := change.Object.(*corev1.Node)
				if open = more && is; !open {
					continue
				}
				version = n.ResourceVersion
				if state(n) != before[n.Name] {
					happened = append(happened, fmt.Sprintf("%s %s: %s", time.Now().Format("15:04:05.000"), n.Name, state(n)))
				}
			}
		}
		changes.Stop()
	}
}
