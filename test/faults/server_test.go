package faults

import (
	"math/rand"
	"syscall"
	"testing"
	"time"

	"quartermaster.io/test/faults/kit"
)

// survives asks one thing of an operator that went through a fault: it serves a new wish within `patience`. An operator that chose to
// end, with a reason (O7), is started again, as a kubelet would. Returns the operator that runs.
func (b *bench) survives(o *kit.Operator, patience time.Duration) *kit.Operator {
	b.t.Helper()
	began := time.Now()
	// A wish that leads through all of it: node t4-0 changes between pgpu and vgpu.
	mode := map[string]string{"pgpu": "vgpu", "vgpu": "pgpu"}[b.Expected.Nodes["t4-0"]]
	b.must(b.Ask(b.ctx, "t4-0", mode))
	o = b.awaitAlive(o, patience)
	b.t.Logf("%s served a new wish in %s", o.Name, time.Since(began).Round(10*time.Millisecond))
	return o
}

// judges is a smaller wish, which no one but the operator has a part in: a declaration is broken, or put in order. After a restart of
// the API server the controller manager needs up to a minute to see again, which is not what is tested here.
func (b *bench) judges(o *kit.Operator, patience time.Duration) *kit.Operator {
	b.t.Helper()
	began := time.Now()
	const name = "cf-crl-nvidia-gpu"
	limits, verdict := "perhaps", "refused"
	if b.Expected.Declarations[name] == verdict {
		limits, verdict = "optional", "good"
	}
	b.must(b.Declare(b.ctx, name, map[string]string{"key": "nvidia.com/gpu", "dataType": "integer", "defaultValue": "1", "group": "nvidia-gpu",
		"descriptionEn": "whole cards", "descriptionZh": "gpu", "limits": limits, "requests": "disabled"}))
	b.Expected.Declarations[name] = verdict
	o = b.awaitAlive(o, patience)
	b.t.Logf("%s judged a declaration again in %s", o.Name, time.Since(began).Round(10*time.Millisecond))
	return o
}

func (b *bench) revive(o *kit.Operator) *kit.Operator {
	b.t.Helper()
	code, gone := o.Exited(0)
	if !gone {
		return o
	}
	b.t.Logf("%s ended with code %d: %s", o.Name, code, o.LogTail(1))
	b.revived++
	if !b.productLease {
		b.must(kit.Until(b.ctx, 20*time.Second, "its lease is freed", func() (bool, error) {
			err := b.ExpireLease(b.ctx)
			return err == nil, err
		}))
	}
	return b.startBehind(o.Proxy)
}

// F4: the API server is restarted, with and without warning, at random moments.
func TestF4_apiserver_restarted(t *testing.T) {
	b := take(t, "calm")
	b.lane.hurt = true
	o := b.converged("restarts")
	random := rand.New(rand.NewSource(seed))
	times := form(3, 20)
	since := time.Now()
	for i := range times {
		signal := []string{"KILL", "TERM"}[i%2]
		time.Sleep(time.Duration(random.Intn(1000)) * time.Millisecond)
		watched := watches(o.Proxy, time.Time{})
		away := time.Now()
		b.must(b.Cluster.Stop("kube-apiserver", signal))
		b.must(b.Cluster.Start("kube-apiserver"))
		back := time.Now()
		// Whoever was refused for longer waits longer. A version that the server does not know any more costs a list.
		allowed := max(10*time.Second, 2*back.Sub(away)) + 2*time.Second
		revived := b.revived
		o = b.judges(o, 40*time.Second)
		b.must(o.WaitReady(10 * time.Second))
		if revived == b.revived {
			slowest, of := b.lastWatchBack(o.Proxy, watched, away, back)
			t.Logf("restart %d (%s): the last watch (%s) was back %s after the server", i, signal, of, slowest.Round(10*time.Millisecond))
			if slowest > allowed+tolerance {
				t.Errorf("restart %d (%s): %s was watched again %s after the server was back, allowed %s", i, signal, of, slowest, allowed)
			}
		}
	}
	log := o.Proxy.Since(since, nil)
	// A restarted server may not know old versions any more: one re-list per restart. A restarted operator lists once.
	b.clean(kit.ListBudget(log, times+b.revived))
	b.clean(kit.RateBudget(log, 150))
	b.stable(o, 10*time.Second, 2*time.Second)
}

// watches: the last of each resource since a moment.
func watches(p *kit.Proxy, since time.Time) map[string]kit.Entry {
	out := map[string]kit.Entry{}
	for _, e := range p.Since(since, kit.Verb("watch")) {
		out[e.Resource+"?"+e.Query.Get("labelSelector")] = e
	}
	return out
}

// lastWatchBack: of all resources, the one whose watch came last that was not ended at once, as a restarted server ends those of versions that it
// does not know any more.
func (b *bench) lastWatchBack(p *kit.Proxy, before map[string]kit.Entry, away, back time.Time) (slowest time.Duration, of string) {
	b.t.Helper()
	b.eventuallySo(30*time.Second, func() string {
		now := watches(p, away) // the server answers a moment before it is known to be back
		slowest, of = 0, "none"
		for key := range before {
			e, there := now[key]
			if !there {
				return "no watch of " + key
			}
			if e.Status != 200 || e.Took != 0 || time.Since(e.At) < time.Second {
				return e.String()
			}
			if took := e.At.Sub(back); took >= slowest {
				slowest, of = took, key
			}
		}
		return ""
	})
	return
}

// F5: the API server hangs with its sockets open. The leader must know that it leads no longer, stay alive, and go on afterwards.
func TestF5_apiserver_hung_long(t *testing.T) {
	b := take(t, "storm")
	b.productLease = true
	o := b.converged("hung")
	since := time.Now()
	b.must(b.Signal("kube-apiserver", syscall.SIGSTOP))
	thawed := false
	defer func() {
		if !thawed {
			b.Signal("kube-apiserver", syscall.SIGCONT)
		}
	}()
	freeze := form(25*time.Second, 5*time.Minute)
	for end := time.Now().Add(freeze); time.Now().Before(end); time.Sleep(time.Second) {
		if _, gone := o.Exited(0); !gone && !o.Alive() {
			t.Fatal("O9 liveness fails though only the API server hangs: a kubelet would restart it for nothing")
		}
	}
	log := o.Proxy.Since(since, nil)
	b.clean(kit.RateBudget(log, 60))
	b.clean(tookTooLong(log, 40*time.Second))
	b.must(b.Signal("kube-apiserver", syscall.SIGCONT))
	thawed = true
	o = b.survives(o, 60*time.Second)
	audit, err := b.Audit(since.Add(-time.Minute), nil)
	b.must(err)
	b.clean(kit.OnlyLeaders(audit, []string{"hung"}, b.renewDeadline()+tolerance))
	b.stable(o, 10*time.Second, 2*time.Second)
}

// tolerance of the moment at which the server books a request.
const tolerance = 500 * time.Millisecond

func tookTooLong(log []kit.Entry, limit time.Duration) (wrong []string) {
	for _, e := range log {
		if e.Verb != "watch" && e.Took > limit {
			wrong = append(wrong, "F5 a request without a deadline: "+e.String())
		}
	}
	return
}

// F6: etcd dies and comes back, then hangs. The API server answers with errors meanwhile.
func TestF6_etcd_down_and_hung_long(t *testing.T) {
	b := take(t, "storm")
	b.productLease = true
	o := b.converged("etcd")
	for _, fault := range []string{"KILL", "STOP"} {
		since := time.Now()
		if fault == "KILL" {
			b.must(b.Cluster.Stop("etcd", "KILL"))
		} else {
			b.must(b.Signal("etcd", syscall.SIGSTOP))
		}
		down := form(6*time.Second, time.Minute)
		time.Sleep(down)
		if _, gone := o.Exited(0); !gone && !o.Alive() {
			t.Error("O9 liveness fails though only etcd is away")
		}
		b.clean(kit.RateBudget(o.Proxy.Since(since, nil), 100))
		if fault == "KILL" {
			b.must(b.Cluster.Start("etcd"))
		} else {
			b.must(b.Signal("etcd", syscall.SIGCONT))
		}
		b.must(b.AwaitServing(b.ctx, 30*time.Second))
		o = b.survives(o, 60*time.Second)
	}
	b.stable(o, 10*time.Second, 2*time.Second)
}
