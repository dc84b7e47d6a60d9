package faults

import (
	"testing"
	"time"

	"quartermaster.io/test/faults/kit"
)

// A settled cluster: no input, hence no write but the upkeep of the lease. Judged from the server's own audit log, over all writers
// that came through our proxy, and from the resource versions of what we own.
func TestT17_settled_cluster_is_not_written_to(t *testing.T) {
	b := take(t, "pair")
	o := b.converged("settled")
	b.must(b.AwaitPolicyReady(b.ctx, 30*time.Second))
	b.rest(o, time.Second)
	since := time.Now()
	window := form(30*time.Second, 5*time.Minute)
	time.Sleep(window)
	log, err := b.Audit(since, func(e kit.AuditEvent) bool { return e.By("settled") })
	b.must(err)
	b.clean(kit.SilentAudit(log))
	if len(log) < int(window/(10*time.Second)) {
		t.Errorf("only %d requests of the operator in the audit log in %s: the lease at least must be there", len(log), window)
	}
	b.clean(kit.ListBudget(o.Proxy.Since(since, nil), 0))
	b.clean(b.Differences(b.ctx))
}
