package faults

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quartermaster.io/test/faults/kit"
)

// whole of a HAMi card's memory: the scheduler's own arithmetic has ten slots a card and lets ten such pods through, so only the extender
// keeps them apart.
var allMemory = map[string]string{"nvidia.com/gpualloc": "1", "nvidia.com/gpumem": "15000"}

const nobody = "nobody" // a scheduler that does not exist: such a pod is bound by the test's own calls

func unclaimed(name string, limits map[string]string) *corev1.Pod {
	p := pod(name, limits)
	p.Spec.SchedulerName = nobody
	return p
}

func bindings(r *kit.Request) bool {
	return r.Verb == "create" && r.Resource == "pods" && r.Subresource == "binding"
}
func podWatches(r *kit.Request) bool { return r.Verb == "watch" && r.Resource == "pods" }

// boundOf says which of the pods of this prefix are on a node.
func (h *hall) boundOf(prefix string) (bound []string, waiting int) {
	h.t.Helper()
	list, err := h.Client.CoreV1().Pods(podsIn).List(h.ctx, metav1.ListOptions{})
	h.must(err)
	for _, p := range list.Items {
		switch {
		case !strings.HasPrefix(p.Name, prefix):
		case p.Spec.NodeName != "":
			bound = append(bound, p.Name)
		default:
			waiting++
		}
	}
	return
}

func (h *hall) awaitOneBound(prefix string, patience time.Duration) string {
	h.t.Helper()
	patience = kit.Patient(patience)
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if bound, _ := h.boundOf(prefix); len(bound) > 0 {
			return bound[0]
		}
		if time.Now().After(deadline) {
			h.must(fmt.Errorf("none of the pods %s* is on a node after %s", prefix, patience))
		}
	}
}

// F42: 100 pods and one free card, two schedulers that know nothing of each other, then 64 calls of bind at once: one winner each time.
func TestF42_one_winner_among_100_pods_for_one_card(t *testing.T) {
	h := holdHall(t, map[string]int{"hami/1": 1})
	h.openScheduler()
	atOnce(100, func(i int) { h.create(pod(fmt.Sprintf("racer-%d", i), allMemory)) })
	winner := h.awaitOneBound("racer-", 20*time.Second)
	for i := range 100 {
		if name := fmt.Sprintf("racer-%d", i); name != winner {
			h.awaitReason(name, "memory", 40*time.Second)
			if t.Failed() {
				return
			}
		}
	}
	if bound, _ := h.boundOf("racer-"); len(bound) != 1 {
		t.Fatalf("one card, and these are bound: %v", bound)
	}
	h.remove(winner)
	second := h.awaitOneBound("racer-", 10*time.Second)
	time.Sleep(2 * time.Second)
	if bound, _ := h.boundOf("racer-"); len(bound) != 1 {
		t.Fatalf("one card, and after %s had left, these are bound: %v", winner, bound)
	}
	_ = second
	now := int64(0)
	h.must(h.Client.CoreV1().Pods(podsIn).DeleteCollection(h.ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{}))

	const callers = 64
	made := make([]*corev1.Pod, callers)
	atOnce(callers, func(i int) { made[i] = h.create(unclaimed(fmt.Sprintf("caller-%d", i), allMemory)) })
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline) && len(h.book.Holders()) > 0; {
		time.Sleep(20 * time.Millisecond)
	}
	// HAMi's plugin takes the lock off once the pod has its cards. No plugin runs here, and the lock of a pod that has just gone is left for 3 s.
	_, err := h.Client.CoreV1().Nodes().Patch(h.ctx, "hami-0", types.MergePatchType, []byte(`{"metadata":{"annotations":{"hami.io/mutex.lock":null}}}`), metav1.PatchOptions{})
	h.must(err)
	time.Sleep(500 * time.Millisecond) // the operator has seen it, and the last one leave
	var mu sync.Mutex
	var won []string
	said := map[string]int{}
	var all sync.WaitGroup
	for _, p := range made {
		all.Go(func() {
			refused, err := h.direct.Bind(h.ctx, p.Namespace, p.Name, p.UID, "hami-0")
			// A leader whose lease is not confirmed for the moment says 503. kube-scheduler comes again.
			for deadline := time.Now().Add(20 * time.Second); err != nil && strings.Contains(err.Error(), "503") && time.Now().Before(deadline); {
				time.Sleep(200 * time.Millisecond)
				refused, err = h.direct.Bind(h.ctx, p.Namespace, p.Name, p.UID, "hami-0")
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				said[err.Error()]++
			case refused == "":
				won = append(won, p.Name)
			default:
				said[refused]++
			}
		})
	}
	all.Wait()
	bound, _ := h.boundOf("caller-")
	if len(won) != 1 || !slices.Equal(bound, won) {
		t.Errorf("64 calls of bind for one card: answered as bound: %v, bound: %v; the others got %v", won, bound, said)
	}
	t.Logf("the others got: %v", said)
}

// F42b: the operator hears 200 ms late of a pod that has left. The scheduler asks for the waiting one before that and is refused; only the
// operator's own nudge makes it ask again. Five seconds are allowed.
func TestF42b_a_waiting_pod_is_bound_soon_after_a_release_long(t *testing.T) {
	h := emptyHall(t, map[string]int{"hami/1": 1})
	p := h.proxy("late")
	p.Use(kit.Rule{Match: podWatches, Lag: 200 * time.Millisecond})
	h.open(p)
	rounds := form(4, 40)
	h.create(pod("holder-0", allMemory))
	h.awaitBound("holder-0", 20*time.Second)
	for i := range rounds {
		next := fmt.Sprintf("holder-%d", i+1)
		h.create(pod(next, allMemory))
		h.awaitReason(next, "memory", 20*time.Second)
		time.Sleep(3 * time.Second) // past the scheduler's back-off: nothing but an event brings the pod back
		left := time.Now()
		h.remove(fmt.Sprintf("holder-%d", i))
		h.awaitBound(next, 15*time.Second)
		took := time.Since(left)
		t.Logf("round %d: bound %s after the release", i, took.Round(10*time.Millisecond))
		if took > 5*time.Second {
			t.Errorf("round %d: the waiting pod was bound %s after the release, allowed 5 s", i, took.Round(10*time.Millisecond))
		}
	}
}

// F41: the calls of a scheduler that forgets, repeats itself, comes late, or takes one pod for another.
func TestF41_calls_that_do_not_fit_together(t *testing.T) {
	h := holdHall(t, map[string]int{"hami/1": 1, "vgpu": 2})
	must := func(refused string, err error) {
		t.Helper()
		h.must(err)
		if refused != "" {
			t.Errorf("refused: %s", refused)
		}
	}
	mustNot := func(what string, refused string, err error) {
		t.Helper()
		if refused == "" && err == nil {
			t.Errorf("%s was answered as if it were done", what)
		}
	}
	still := func(what string, name string) {
		t.Helper()
		if p := h.get(name); p.Spec.NodeName != "" {
			t.Errorf("%s: pod %s is on node %s", what, name, p.Spec.NodeName)
		}
	}
	ours := []string{"hami-0"}

	// filter without bind: nothing is kept for those who only asked.
	for i := range 10 {
		p := h.create(unclaimed(fmt.Sprintf("asks-only-%d", i), allMemory))
		if answer, err := h.direct.Filter(h.ctx, typed(p), ours); err != nil || answer.NodeNames == nil || !slices.Equal(*answer.NodeNames, ours) {
			t.Fatalf("filter %d without bind: %+v %v", i, answer, err)
		}
	}
	// bind without filter.
	first := h.create(unclaimed("first", allMemory))
	refused, err := h.direct.Bind(h.ctx, podsIn, "first", first.UID, "hami-0")
	must(refused, err)
	has := h.placementOf(h.awaitBound("first", 2*time.Second))
	// bind twice: the same answer, the same place.
	refused, err = h.direct.Bind(h.ctx, podsIn, "first", first.UID, "hami-0")
	must(refused, err)
	if again := h.placementOf(h.get("first")); fmt.Sprint(again) != fmt.Sprint(has) {
		t.Errorf("bound twice, and the placement was %v and is %v", has, again)
	}
	// bind of a bound pod to another node.
	refused, err = h.direct.Bind(h.ctx, podsIn, "first", first.UID, "vgpu-0")
	mustNot("bind of a bound pod to another node", refused, err)
	// bind where there is no room.
	second := h.create(unclaimed("second", allMemory))
	refused, err = h.direct.Bind(h.ctx, podsIn, "second", second.UID, "hami-0")
	mustNot("bind to a full card", refused, err)
	still("bind to a full card", "second")
	// bind to nodes that do not serve the words, or are not there.
	for _, node := range []string{"vgpu-0", "no-such-node", ""} {
		refused, err = h.direct.Bind(h.ctx, podsIn, "second", second.UID, node)
		mustNot("bind to node "+node, refused, err)
		still("bind to node "+node, "second")
	}
	// bind with the UID of an earlier pod of that name.
	h.remove("second")
	newer := h.create(unclaimed("second", map[string]string{"tencent.com/vcuda-core": "10", "tencent.com/vcuda-memory": "4"}))
	for range 3 {
		refused, err = h.direct.Bind(h.ctx, podsIn, "second", second.UID, "vgpu-0")
		mustNot("bind with an old UID", refused, err)
		still("bind with an old UID", "second")
	}
	// bind after the pod was deleted.
	h.remove("first")
	time.Sleep(time.Second) // until the operator has heard: before that, that it is bound is no lie
	refused, err = h.direct.Bind(h.ctx, podsIn, "first", first.UID, "hami-0")
	mustNot("bind of a deleted pod", refused, err)
	refused, err = h.direct.Bind(h.ctx, podsIn, "never-was", "7c1f0d0e-0000-4000-8000-000000000000", "hami-0")
	mustNot("bind of a pod that never was", refused, err)
	// None of it keeps anything: the card is free for the next.
	third := h.create(unclaimed("third", allMemory))
	deadline := time.Now().Add(15 * time.Second)
	for refused, err = h.direct.Bind(h.ctx, podsIn, "third", third.UID, "hami-0"); (refused != "" || err != nil) && time.Now().Before(deadline); {
		time.Sleep(100 * time.Millisecond)
		refused, err = h.direct.Bind(h.ctx, podsIn, "third", third.UID, "hami-0")
	}
	must(refused, err)
	// one pod bound to two nodes at once: one of them.
	var both sync.WaitGroup
	answers := make([]string, 8)
	for i := range answers {
		both.Go(func() {
			refused, err := h.direct.Bind(h.ctx, podsIn, "second", newer.UID, fmt.Sprintf("vgpu-%d", i%2))
			if answers[i] = refused; err != nil {
				answers[i] = err.Error()
			}
		})
	}
	both.Wait()
	p := h.get("second")
	if p.Spec.NodeName == "" {
		t.Errorf("bound to two nodes at once, it is on none: %q", answers)
	}
	for i, answer := range answers {
		if node := fmt.Sprintf("vgpu-%d", i%2); answer == "" && node != p.Spec.NodeName {
			t.Errorf("the call for %s was answered as done, and the pod is on %s", node, p.Spec.NodeName)
		}
	}
	// The other node has all its cards: eight whole ones fit.
	other := map[string]string{"vgpu-0": "vgpu-1", "vgpu-1": "vgpu-0"}[p.Spec.NodeName]
	eighth := h.create(unclaimed("eight-cards", map[string]string{"tencent.com/vcuda-core": "800", "tencent.com/vcuda-memory": "480"}))
	deadline = time.Now().Add(15 * time.Second)
	for refused, err = h.direct.Bind(h.ctx, podsIn, "eight-cards", eighth.UID, other); (refused != "" || err != nil) && time.Now().Before(deadline); {
		time.Sleep(100 * time.Millisecond)
		refused, err = h.direct.Bind(h.ctx, podsIn, "eight-cards", eighth.UID, other)
	}
	must(refused, err)
}

// typed is the pod as a scheduler sends it.
func typed(p *corev1.Pod) *corev1.Pod {
	p = p.DeepCopy()
	p.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	return p
}

// lateBinding is past the scheduler's patience with us; in the nightly form also past ours with the server.
var lateBinding = form(7*time.Second, 20*time.Second)

// F43: a Binding that the server makes although we heard nothing of it, and one that arrives when the scheduler waits no longer. The pod is bound
// once, and what it leaves is free for the next: nothing is kept for a Binding that was not made.
func TestF43_bindings_with_an_unknown_end(t *testing.T) {
	unknownEnds(t, map[string]kit.Rule{
		"answer lost":  {EndOnReply: true},
		"request late": {Delay: lateBinding, Insist: true},
	})
}

// F43: the other ends: lost on the way, refused, answered late, lost twice.
func TestF43_bindings_with_every_other_end_long(t *testing.T) {
	unknownEnds(t, map[string]kit.Rule{
		"request lost":       {Drop: true},
		"refused 500":        {Status: 500},
		"refused 429":        {Status: 429, Header: map[string]string{"Retry-After": "1"}},
		"answer late":        {After: func(*kit.Request, int) { time.Sleep(lateBinding) }},
		"conflict 409":       {Status: 409},
		"answer lost, twice": {EndOnReply: true, Times: 2},
	})
}

func unknownEnds(t *testing.T, ends map[string]kit.Rule) {
	for name, rule := range ends {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			h := emptyHall(t, map[string]int{"hami/1": 1})
			p := h.proxy("unsure")
			if rule.Match = bindings; rule.Times == 0 {
				rule.Times = 1
			}
			p.Use(rule)
			h.open(p)
			h.create(pod("either-0", allMemory))
			h.create(pod("either-1", allMemory))
			began := time.Now()
			first := h.awaitOneBound("either-", 60*time.Second)
			t.Logf("%s was bound after %s", first, time.Since(began).Round(10*time.Millisecond))
			time.Sleep(2 * time.Second)
			if bound, _ := h.boundOf("either-"); len(bound) != 1 {
				t.Errorf("one card, and these are bound: %v", bound)
			}
			h.remove(first)
			left := time.Now()
			h.awaitOneBound("either-", 45*time.Second)
			t.Logf("the other was bound %s after the first had left", time.Since(left).Round(10*time.Millisecond))
		})
	}
}

// F43 across a change of leader: the old leader's Binding is held back on its way while a new one leads, which knows nothing of it and gives the
// card to another pod. When the Binding lands at last it must not be taken.
func TestF43_a_binding_held_back_across_a_change_of_leader_long(t *testing.T) {
	h := emptyHall(t, map[string]int{"hami/1": 1})
	old := h.proxy("old")
	old.Use(kit.Rule{Match: bindings, Times: 1, Insist: true, Delay: form(15*time.Second, 25*time.Second)})
	first := h.startExtender(old)
	h.must(first.WaitReady(30 * time.Second))
	h.awaitServing(h.address, 30*time.Second)
	h.enrolled(first)
	held, other := h.create(unclaimed("either-0", allMemory)), h.create(unclaimed("either-1", allMemory))
	go h.direct.Bind(h.ctx, podsIn, held.Name, held.UID, "hami-0") // no one hears the answer
	of := func() []kit.Entry { return old.Since(h.opened, bindings) }
	for deadline := time.Now().Add(20 * time.Second); len(of()) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			h.must(fmt.Errorf("no Binding was sent"))
		}
	}
	first.Kill()
	h.must(h.ExpireLease(h.ctx))
	heir := h.startExtender(h.proxy("heir"))
	h.must(heir.WaitReady(30 * time.Second))
	h.awaitServing(h.address, 30*time.Second)
	refused, err := "", error(nil)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if refused, err = h.direct.Bind(h.ctx, podsIn, other.Name, other.UID, "hami-0"); (refused == "" && err == nil) || time.Now().After(deadline) {
			break
		}
	}
	if of()[0].Took != 0 {
		t.Fatalf("the Binding landed before the new leader had given the card away: this proved nothing; it got %q, %v", refused, err)
	}
	if refused != "" || err != nil {
		t.Errorf("the new leader does not give the free card away: %q, %v", refused, err)
	}
	for deadline := time.Now().Add(40 * time.Second); of()[0].Took == 0 && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
	time.Sleep(time.Second)
	t.Logf("the old leader's: %s", of()[0])
	if status := of()[0].Status; status < 400 {
		t.Errorf("the old leader's Binding was taken: %d", status)
	}
	if bound, _ := h.boundOf("either-"); len(bound) != 1 {
		t.Errorf("one card, and these are bound: %v", bound)
	}
	audit, err := h.Audit(h.opened, nil)
	h.must(err)
	h.clean(kit.OnlyLeaders(audit, []string{"heir"}, h.renewDeadline()+tolerance))
}

// F44: the operator stands still. Pods that ask for cards wait, the others are scheduled; afterwards all goes on, with the same scheduler.
func TestF44_the_operator_stands_still(t *testing.T) {
	h := holdHall(t, map[string]int{"hami": 1})
	h.create(pod("before", map[string]string{"nvidia.com/gpualloc": "1", "nvidia.com/gpumem": "1000"}))
	h.awaitBound("before", 20*time.Second)
	o := h.ops[0]
	o.Stop()
	stopped := time.Now()
	h.create(pod("with-cards", map[string]string{"nvidia.com/gpualloc": "1", "nvidia.com/gpumem": "1000"}))
	time.Sleep(300 * time.Millisecond)
	for i := range 3 {
		h.create(pod(fmt.Sprintf("plain-%d", i), map[string]string{"cpu": "1"}))
	}
	for i := range 3 {
		h.awaitBound(fmt.Sprintf("plain-%d", i), 20*time.Second) // one call of the extender is waited for, 5 s
	}
	t.Logf("plain pods were bound %s after the operator stopped", time.Since(stopped).Round(10*time.Millisecond))
	time.Sleep(time.Until(stopped.Add(form(8*time.Second, 60*time.Second))))
	if p := h.get("with-cards"); p.Spec.NodeName != "" {
		t.Errorf("pod %s was put on node %s while no one could say which card", p.Name, p.Spec.NodeName)
	}
	thawed := time.Now()
	o.Cont()
	if nightly { // its lease has passed: it ends, and a kubelet starts it again
		time.Sleep(2 * time.Second)
		if _, gone := o.Exited(0); gone {
			h.must(h.ExpireLease(h.ctx))
			o = h.startExtender(o.Proxy)
		}
	}
	h.awaitBound("with-cards", 30*time.Second)
	t.Logf("the pod with cards was bound %s after it went on", time.Since(thawed).Round(10*time.Millisecond))
	if !h.sched.Running() {
		t.Error("the scheduler had to end")
	}
}
