package faults

import (
	"testing"
	"time"

	"quartermaster.io/test/faults/kit"
)

// pair starts two operators; the first leads. `led` is when the test begins, for the audit log.
func (b *bench) pair(first, second string) (leader, follower *kit.Operator, led time.Time) {
	b.t.Helper()
	led = time.Now()
	leader = b.converged(first)
	follower = b.start(second)
	b.must(follower.WaitReady(20 * time.Second))
	time.Sleep(time.Second)
	if wrote := follower.Proxy.Since(led, kit.Writes); len(wrote) != 0 {
		b.t.Errorf("O3 a follower wrote: %v", wrote)
	}
	return
}

// takeover waits until the follower has written something that is no lease, which only a leader may.
func (b *bench) takeover(follower *kit.Operator, since time.Time, patience time.Duration) time.Duration {
	b.t.Helper()
	for time.Since(since) < patience {
		if wrote := follower.Proxy.Since(since, kit.Writes); len(wrote) > 0 {
			return wrote[0].At.Sub(since)
		}
		time.Sleep(20 * time.Millisecond)
	}
	b.t.Fatalf("no one took over in %s; the follower says:\n%s", patience, follower.LogTail(8))
	return 0
}

// deposed judges a leader that another one followed: since that moment it has written nothing.
func (b *bench) deposed(leader, follower *kit.Operator, led, since time.Time, crime string) {
	b.t.Helper()
	b.must(b.Await(b.ctx, 30*time.Second))
	time.Sleep(3 * time.Second)
	for _, e := range leader.Proxy.Since(since, kit.Writes) {
		b.t.Errorf("O3 %s: %s", crime, e)
	}
	b.clean(kit.AliveOrExplained(leader))
	b.clean(kit.AliveOrExplained(follower))
	b.judgeLeaders(led, leader.Name, follower.Name)
	b.stable(follower, 10*time.Second, time.Second)
}

func (b *bench) judgeLeaders(since time.Time, names ...string) {
	b.t.Helper()
	audit, err := b.Audit(since, nil)
	b.must(err)
	b.clean(kit.OnlyLeaders(audit, names, b.renewDeadline()+tolerance))
}

// F27: the leader is cut off from the API server, the follower is not. Wishes keep coming, so that both have reason to write. The leader
// stops by its renew deadline (10 s), the follower leads by 15 + 2 s; then the line is fixed, and the old leader must not write.
func TestF27_leader_cut_off(t *testing.T) {
	b := take(t, "pair")
	b.productLease = true
	leader, follower, led := b.pair("cut-off", "heir")
	cut := time.Now()
	if nightly {
		leader.Proxy.Freeze(true) // a firewall that drops
	} else {
		leader.Proxy.Refuse(true)
	}
	b.must(b.Ask(b.ctx, "t4-0", "vgpu"))
	t.Logf("the follower led %s after the cut", b.takeover(follower, cut, 22*time.Second).Round(100*time.Millisecond))
	b.must(b.Await(b.ctx, 30*time.Second))
	leader.Proxy.Refuse(false)
	mended := time.Now()
	b.must(b.Ask(b.ctx, "t4-0", "pgpu"))
	b.deposed(leader, follower, led, mended, "the old leader wrote after the line was mended")
}

// F28: the leader is frozen and thawed while wishes come in; a successor leads meanwhile. The thawed one must not write.
func TestF28_leader_frozen_and_thawed_long(t *testing.T) {
	b := take(t, "pair")
	b.productLease = true
	leader, follower, led := b.pair("frozen", "heir")
	frozen := time.Now()
	b.must(b.Ask(b.ctx, "t4-0", "vgpu")) // so that it may freeze in mid-write
	time.Sleep(30 * time.Millisecond)
	leader.Stop()
	b.must(b.Ask(b.ctx, "t4-1", "pgpu"))
	t.Logf("the follower led %s after the freeze", b.takeover(follower, frozen, 22*time.Second).Round(100*time.Millisecond))
	time.Sleep(time.Until(frozen.Add(form(20*time.Second, 60*time.Second))))
	b.must(b.Ask(b.ctx, "t4-0", "pgpu"))
	thawed := time.Now()
	leader.Cont()
	b.must(b.Ask(b.ctx, "t4-1", "vgpu"))
	b.deposed(leader, follower, led, thawed, "the thawed leader wrote")
}

// A leader that ends in good order gives the lease back: the follower leads at once, not after 15 s.
func TestF58_leader_leaves_in_good_order(t *testing.T) {
	b := take(t, "pair")
	b.productLease = true
	leader, follower, led := b.pair("leaving", "heir")
	left := time.Now()
	if code := leader.Terminate(10 * time.Second); code != 0 {
		t.Errorf("ended with code %d on SIGTERM:\n%s", code, leader.LogTail(5))
	}
	if took := time.Since(left); took > 5*time.Second {
		t.Errorf("took %s to end", took)
	}
	b.must(b.Ask(b.ctx, "t4-0", "vgpu"))
	took := b.takeover(follower, left, 10*time.Second)
	t.Logf("the follower led %s after SIGTERM", took.Round(100*time.Millisecond))
	b.must(b.Await(b.ctx, 20*time.Second))
	b.judgeLeaders(led, "leaving", "heir")
}
