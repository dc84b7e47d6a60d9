package faults

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"quartermaster.io/test/faults/kit"
)

// F1, Sieve's "intermediate state": the operator is killed around its k-th write of a whole roll-out, then started again. Whatever was
// half done must be finished, and nothing done twice. Three moments of death: the write never reaches the server; the server has
// applied it and the answer is lost; the answer has arrived.
func TestF1_killed_around_every_write(t *testing.T) {
	b := take(t, "calm")
	o := b.converged("baseline")
	var writes int
	for _, e := range o.Proxy.Log() {
		if e.Write() {
			writes++
		}
	}
	if code := o.Terminate(10 * time.Second); code != 0 {
		t.Errorf("ended with code %d on SIGTERM", code)
	}
	if writes < 8 { // three DaemonSets, three labels, two declarations at the very least
		t.Fatalf("the baseline wrote %d times only: this test would prove nothing", writes)
	}
	moments := []string{"lost", "unanswered", "answered"}
	type death struct {
		k      int
		moment string
	}
	var deaths []death
	if nightly {
		for k := 1; k <= writes; k++ {
			for _, m := range moments {
				deaths = append(deaths, death{k, m})
			}
		}
	} else {
		sample := []int{1, writes / 3, writes * 2 / 3, writes}
		for i, k := range slices.Compact(sample) {
			deaths = append(deaths, death{k, moments[(i+int(seed%3))%3]})
		}
	}
	for i, d := range deaths {
		b.must(b.Prepare(b.ctx))
		b.dieAt(fmt.Sprintf("k%d-%s", d.k, d.moment), d.k, d.moment)
		// The successor has to wait out the dead leader's lease; that wait is F28's subject, so here the lease is taken away.
		b.must(b.ExpireLease(b.ctx))
		successor := b.start(fmt.Sprintf("after-k%d", d.k))
		b.must(wrap(b.Await(b.ctx, 40*time.Second), "killed at write %d (%s)", d.k, d.moment))
		b.rest(successor, 500*time.Millisecond)
		if i == len(deaths)-1 {
			b.stable(successor, 10*time.Second, form(3*time.Second, time.Minute))
		}
		b.clean(b.Differences(b.ctx))
		successor.Terminate(10 * time.Second)
	}
	t.Logf("%d writes in a roll-out, %d deaths", writes, len(deaths))
}

func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}

// killedAt kills the operator behind the proxy, once it is stored, at its k-th such request: before it arrives ("lost"), before its answer
// is sent ("unanswered"), or after that ("answered").
func killedAt(p *kit.Proxy, match kit.Match, k int, moment string) *atomic.Pointer[kit.Operator] {
	victim := &atomic.Pointer[kit.Operator]{}
	kill := func(*kit.Request) { victim.Load().Kill() }
	rule := kit.Rule{Match: match, Skip: k - 1, Times: 1}
	switch moment {
	case "lost":
		rule.Before, rule.Drop = kill, true
	case "unanswered":
		rule.After, rule.EndOnReply = func(r *kit.Request, _ int) { kill(r) }, true
	case "answered":
		rule.Done = kill
	}
	p.Use(kit.Rule{Match: func(*kit.Request) bool { // no request before the victim is known
		for victim.Load() == nil {
			time.Sleep(time.Millisecond)
		}
		return false
	}})
	p.Use(rule)
	return victim
}

// dieAt starts an operator that is killed at its k-th write.
func (b *bench) dieAt(name string, k int, moment string) {
	b.t.Helper()
	p, err := kit.NewProxy(name, b.Config, b.dir)
	b.must(err)
	defer p.Close()
	victim := killedAt(p, kit.Writes, k, moment)
	o := b.startBehind(p)
	victim.Store(o)
	// A roll-out may need fewer writes this time, for events are merged: then it dies at rest.
	if _, gone := o.Exited(20 * time.Second); !gone {
		b.t.Logf("%s: no write number %d came, killed at rest", name, k)
		o.Kill()
	}
}
