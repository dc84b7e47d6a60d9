package faults

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quartermaster.io/test/faults/kit"
)

// version is a program and the chart that installs it.
type version struct{ name, program, chart string }

// versions: the one before is a checkout with its own build (QM_PREVIOUS, or run.sh --previous); without one the program stands for it.
func versions(t *testing.T) (before, after version) {
	t.Helper()
	after = version{"new", program, filepath.Join(kit.Root(), "charts/quartermaster")}
	folder := os.Getenv("QM_PREVIOUS")
	if folder == "" {
		t.Log("no QM_PREVIOUS: the same program and chart stand for the version before")
		return version{"old", after.program, after.chart}, after
	}
	before = version{"old", filepath.Join(folder, "build/release/quartermaster"), filepath.Join(folder, "charts/quartermaster")}
	if _, err := os.Stat(before.program); err != nil {
		t.Fatalf("QM_PREVIOUS is no checkout with a build: %v", err)
	}
	t.Logf("the version before is that of %s", folder)
	return before, after
}

// seat is the time in which no one held the lease, each time it changed hands.
type seat struct {
	mu   sync.Mutex
	gaps []time.Duration
	free bool // of the watcher alone
}

func (s *seat) watch(h *hall) {
	h.t.Helper()
	leases := h.Client.CoordinationV1().Leases(kit.Namespace)
	first, err := leases.Get(h.ctx, "quartermaster", metav1.GetOptions{})
	h.must(err)
	holder, held := holderOf(first), time.Now() // who was seen to hold it last, and when that was
	see := func(lease *coordinationv1.Lease) {
		now, is := time.Now(), holderOf(lease)
		if is == "" {
			if !s.free {
				held = now // it was given back just now
			}
			s.free = true
			return
		}
		if is != holder {
			s.mu.Lock()
			s.gaps = append(s.gaps, now.Sub(held))
			s.mu.Unlock()
		}
		holder, held, s.free = is, now, false
	}
	go func() { // a watch may end before the test does
		for version := first.ResourceVersion; h.ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
			events, err := leases.Watch(h.ctx, metav1.ListOptions{FieldSelector: "metadata.name=quartermaster", ResourceVersion: version})
			if err != nil {
				continue
			}
			for event := range events.ResultChan() {
				if lease, ok := event.Object.(*coordinationv1.Lease); ok {
					version = lease.ResourceVersion
					see(lease)
				}
			}
		}
	}()
}

func holderOf(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// load is one pod a second, each gone again after half a minute.
type load struct {
	*hall
	made    int
	slowest time.Duration
	mu      sync.Mutex
	refused []string
}

func (l *load) run(ctx context.Context) {
	kinds := []map[string]string{{"nvidia.com/gpu": "1"}, {"tencent.com/vcuda-core": "20", "tencent.com/vcuda-memory": "8"},
		{"nvidia.com/gpualloc": "1", "nvidia.com/gpumem": "4000", "nvidia.com/gpucores": "10"}}
	var waits sync.WaitGroup
	for tick := time.NewTicker(time.Second); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			waits.Wait()
			return
		case <-tick.C:
		}
		name := fmt.Sprintf("load-%d", l.made)
		l.made++
		one, err := l.Client.CoreV1().Pods(podsIn).Create(l.ctx, pod(name, kinds[l.made%len(kinds)]), metav1.CreateOptions{})
		if err != nil {
			l.say("%s was refused: %v", name, err)
			continue
		}
		waits.Go(func() { l.follow(one) })
	}
}

func (l *load) say(format string, values ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused = append(l.refused, fmt.Sprintf(format, values...))
}

func (l *load) follow(one *corev1.Pod) {
	began := time.Now()
	for {
		now, err := l.Client.CoreV1().Pods(podsIn).Get(l.ctx, one.Name, metav1.GetOptions{})
		if err == nil && now.Spec.NodeName != "" {
			l.mu.Lock()
			l.slowest = max(l.slowest, time.Since(began))
			l.mu.Unlock()
			break
		}
		if patience := kit.Patient(30 * time.Second); time.Since(began) > patience {
			l.say("%s is on no node after %s: %s", one.Name, patience, whyPending(now))
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	time.Sleep(time.Until(began.Add(30 * time.Second)))
	at := int64(0)
	if err := l.Client.CoreV1().Pods(podsIn).Delete(l.ctx, one.Name, metav1.DeleteOptions{GracePeriodSeconds: &at}); err != nil {
		l.say("%s could not be deleted: %v", one.Name, err)
	}
}

// roll is what a Deployment of two does with its pods, one more and one less at a time. The leader goes first.
func (p *pairOf) roll(to version) {
	p.t.Helper()
	p.program = to.program
	leaves := func(at int) {
		o := p.lives[at]
		if code := o.Terminate(20 * time.Second); code != 0 {
			p.t.Errorf("%s ended with code %d:\n%s", o.Name, code, o.LogTail(5))
		}
		p.lives = append(p.lives[:at:at], p.lives[at+1:]...)
		var left []string
		for _, one := range p.lives {
			left = append(left, p.at[one])
		}
		p.tap.To(left...)
	}
	first := p.start()
	leaves(max(0, min(1, p.leads())))
	second := p.start()
	p.must(first.WaitReady(30 * time.Second))
	leaves(0)
	p.must(second.WaitReady(30 * time.Second))
}

// An upgrade, and the way back, while a pod is made each second. No pod is refused that fits, none gets cards that another has (the hall
// judges every version of every pod), and someone leads again soon.
func TestF58_upgrade_under_load(t *testing.T) {
	before, after := versions(t)
	h := emptyHall(t, map[string]int{"pgpu": 6, "vgpu": 3, "hami": 3})
	apply := func(is version) {
		_, err := h.Run("", "helm", "upgrade", "quartermaster", is.chart, "--namespace", kit.Namespace, "--set", "replicaCount=0,extender.protect=always")
		h.must(err)
	}
	apply(before)
	p := &pairOf{hall: h, at: map[*kit.Operator]string{}}
	p.program = before.program
	p.both()
	h.must(p.lives[1].WaitReady(30 * time.Second))
	s := &seat{}
	s.watch(h)
	pods := &load{hall: h}
	loaded, stop := context.WithCancel(h.ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); pods.run(loaded) }()
	rolls := form(3, 21) // odd, so that the new version is there at the end
	for i := range rolls {
		to := []version{after, before}[i%2]
		time.Sleep(3 * time.Second)
		began := time.Now()
		apply(to)
		p.roll(to)
		t.Logf("roll-out of the %s version: %s", to.name, time.Since(began).Round(100*time.Millisecond))
	}
	time.Sleep(5 * time.Second)
	stop()
	<-ended

	h.clean(pods.refused)
	for _, call := range h.tap.Calls(p.began) {
		if call.Verb == "filter" && call.Status == 200 && call.Names > 0 && call.Fits == 0 && call.Error == "" {
			t.Errorf("a pod that fits was refused: %s: %s", call, call.Reason)
		}
	}
	s.mu.Lock()
	gaps := slices.Sorted(slices.Values(s.gaps))
	s.mu.Unlock()
	if len(gaps) < rolls { // twice in a roll-out where the old one that stays leads next, once where a new one does
		t.Fatalf("the lease changed hands %d times in %d roll-outs", len(gaps), rolls)
	}
	median := gaps[len(gaps)/2]
	t.Logf("%d pods, the slowest was on its node after %s; %d changes of the leader, median gap %s, longest %s", pods.made, pods.slowest.Round(10*time.Millisecond),
		len(gaps), median.Round(10*time.Millisecond), gaps[len(gaps)-1].Round(10*time.Millisecond))
	if median > 3*time.Second {
		t.Errorf("the median gap without a leader is %s, allowed 3 s: %v", median, gaps)
	}
	audit, err := h.Audit(h.opened, nil)
	h.must(err)
	h.clean(kit.OnlyLeaders(audit, p.names, h.renewDeadline()+tolerance))
}
