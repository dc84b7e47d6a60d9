package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quartermaster.io/test/faults/kit"
)

// fleet makes so many nodes of a profile no one else uses, which ask for a mode; they go with the test.
func (b *bench) fleet(count int, mode string) []string {
	b.t.Helper()
	_, err := b.Run("", "sim", "nodes", "--kubeconfig", b.Kubeconfig, "--profile", fmt.Sprintf("l40s=%d", count))
	b.must(err)
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("l40s-%d", i)
	}
	b.t.Cleanup(func() {
		_ = b.Client.CoreV1().Nodes().DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: profileInSim + "=l40s"})
	})
	b.enrol(map[string]any{"maxUnavailable": 10000})
	b.each(names, func(name string) error { return b.PatchNode(b.ctx, name, asking(name, mode)) })
	for _, name := range names {
		b.Expected.Nodes[name] = mode
	}
	return names
}

// asking: the label, and something of someone else's next to it.
func asking(name, mode string) map[string]any {
	return map[string]any{"metadata": map[string]any{"labels": map[string]any{kit.AskLabel: mode, "team.example.com/rack": "r1"},
		"annotations": map[string]any{foreignNote: name}}}
}

// each does one thing for many nodes, sixteen at a time.
func (b *bench) each(names []string, do func(string) error) {
	b.t.Helper()
	turn := make(chan string)
	var workers sync.WaitGroup
	var failed atomic.Pointer[error]
	for range 16 {
		workers.Go(func() {
			for name := range turn {
				if err := do(name); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	for _, name := range names {
		turn <- name
	}
	close(turn)
	workers.Wait()
	if err := failed.Load(); err != nil {
		b.must(*err)
	}
}

// others is what only the owner of each node may change: O6. Our label is left out, and the taints that the node-lifecycle
// controller writes.
func (b *bench) others() map[string]string {
	b.t.Helper()
	nodes, err := b.Client.CoreV1().Nodes().List(b.ctx, metav1.ListOptions{})
	b.must(err)
	out := map[string]string{}
	for _, n := range nodes.Items {
		labels := maps.Clone(n.Labels)
		for _, ours := range []string{kit.ModuleLabel, "cuda-major-version", "cuda-minor-version"} {
			delete(labels, ours)
		}
		var taints []corev1.Taint
		for _, t := range n.Spec.Taints {
			if t.Key != kit.SwitchingTaint && !strings.HasPrefix(t.Key, "node.kubernetes.io/") {
				taints = append(taints, t)
			}
		}
		annotations := maps.Clone(n.Annotations)
		for key := range annotations {
			if key != foreignNote {
				delete(annotations, key) // of controllers of the control plane
			}
		}
		text, _ := json.Marshal([]any{labels, annotations, taints, n.Spec.Unschedulable, n.Spec.PodCIDRs, n.Finalizers, n.OwnerReferences})
		out[n.Name] = string(text)
	}
	return out
}

// untouched compares two answers of others.
func untouched(before, after map[string]string) (wrong []string) {
	for name, was := range before {
		if is, there := after[name]; there && is != was {
			wrong = append(wrong, fmt.Sprintf("O6 node %s: what is not ours was\n  %s\nand is\n  %s", name, was, is))
		}
	}
	return
}

// F32: nodes flap between Ready and not. No node loses its mode or gets a taint for it, no key is queued twice, a change that waits for a
// pod goes on waiting, and when it is over all is as it was (O1, O6).
func TestF32_nodes_flap_long(t *testing.T) {
	b := take(t, "pair")
	o := b.converged("flap")
	names := b.fleet(form(24, 2000), "pgpu")
	b.must(b.Await(b.ctx, form(2*time.Minute, 20*time.Minute)))
	b.user("holder", names[0], "pgpu")
	b.must(b.Ask(b.ctx, names[0], "vgpu"))
	b.until(names[0], 20*time.Second, inPhase("Draining"))
	b.rest(o, time.Second)
	before, began := b.others(), time.Now()
	footprint, err := o.Footprint()
	b.must(err)
	deadline, rate := time.Now().Add(form(10*time.Second, time.Minute)), form(100, 500)
	var flaps, deepest, slow atomic.Int64
	var workers sync.WaitGroup
	const hands = 16
	for hand := range hands {
		workers.Go(func() {
			chance := rand.New(rand.NewSource(seed + int64(hand)))
			turn := time.NewTicker(time.Second * hands / time.Duration(rate))
			defer turn.Stop()
			for time.Now().Before(deadline) {
				<-turn.C
				// The simulated kubelet makes it Ready again at once, so each of these is a node that goes and comes.
				patch := `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"KubeletNotReady","message":"flapping"}]}}`
				if _, err := b.Client.CoreV1().Nodes().Patch(b.ctx, names[chance.Intn(len(names))], types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err == nil {
					flaps.Add(1)
				}
			}
		})
	}
	workers.Go(func() {
		for ; time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
			depth, ok := o.Metric("quartermaster_queue_depth", `"enrolment"`)
			if !ok || !o.Alive() {
				slow.Add(1)
			}
			deepest.Store(max(deepest.Load(), int64(depth)))
		}
	})
	workers.Wait()
	made := flaps.Load()
	if made < 40 {
		t.Errorf("only %d flaps: this proved nothing", made)
	}
	if keys := int64(len(names) + 3); deepest.Load() > keys {
		t.Errorf("%d keys in the queue, there are %d", deepest.Load(), keys)
	}
	if slow.Load() > 0 {
		t.Errorf("O9 %d times it did not answer within 2 s, or did not call itself alive", slow.Load())
	}
	b.until(names[0], 30*time.Second, inPhase("Draining"))
	b.forget("holder")
	b.must(b.Await(b.ctx, form(2*time.Minute, 20*time.Minute)))
	b.rest(o, time.Second)
	// Of the nodes, only the one that changes is written to.
	written := o.Proxy.Since(began, func(r *kit.Request) bool { return r.Write() && r.Resource == "nodes" && r.Name != names[0] })
	b.clean(kit.Silent(written))
	statuses := o.Proxy.Since(began, func(r *kit.Request) bool { return r.Write() && r.Resource == "acceleratornodes" })
	if most := 4*int(made) + 40; len(statuses) > most {
		t.Errorf("%d writes to AcceleratorNodes in %d flaps of %d nodes, allowed %d", len(statuses), made, len(names), most)
	}
	now := b.others()
	delete(before, names[0]) // someone asked for another mode meanwhile
	b.clean(untouched(before, now))
	after, err := o.Footprint()
	b.must(err)
	if after.FDs > footprint.FDs+8 || after.Threads > footprint.Threads {
		t.Errorf("O4 files %d -> %d, threads %d -> %d", footprint.FDs, after.FDs, footprint.Threads, after.Threads)
	}
	t.Logf("%d flaps of %d nodes, at most %d keys queued, %d writes to AcceleratorNodes, %d -> %d KiB", made, len(names), deepest.Load(), len(statuses), footprint.RSSKiB, after.RSSKiB)
}

// F33: all nodes deleted and made again under their names, and in the end deleted for good. Each time they are new ones to us; nothing of
// the earlier ones is left, in the API or in the process (O1, O4, O6).
func TestF33_nodes_deleted_and_made_again_long(t *testing.T) {
	b := take(t, "pair")
	o := b.converged("again")
	names, patience := b.fleet(form(24, 1000), "pgpu"), form(2*time.Minute, 20*time.Minute)
	b.must(b.Await(b.ctx, patience))
	b.rest(o, time.Second)
	objects := func() int {
		n, _ := o.Metric("quartermaster_cache_objects")
		return int(n)
	}
	footprint, err := o.Footprint()
	b.must(err)
	kept, was := objects(), b.others()
	modes := []string{"vgpu", "pgpu"}
	for _, mode := range modes {
		uids := map[types.UID]bool{}
		olds := map[string]*corev1.Node{}
		list, err := b.Client.CoreV1().Nodes().List(b.ctx, metav1.ListOptions{LabelSelector: profileInSim + "=l40s"})
		b.must(err)
		for _, n := range list.Items {
			uids[n.UID] = true
			olds[n.Name] = n.DeepCopy()
		}
		b.each(names, func(name string) error { return b.Client.CoreV1().Nodes().Delete(b.ctx, name, metav1.DeleteOptions{}) })
		b.each(names, b.forgetLease)
		time.Sleep(form(2*time.Second, 10*time.Second)) // the simulated kubelets have to notice
		b.each(names, func(name string) error {         // a kubelet that registers again knows nothing of labels
			old := olds[name]
			labels := maps.Clone(old.Labels)
			delete(labels, kit.ModuleLabel)
			labels[kit.AskLabel] = mode
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: map[string]string{foreignNote: name}}, Status: old.Status}
			node.Status.Conditions, node.Status.Phase = nil, ""
			for _, list := range []corev1.ResourceList{node.Status.Allocatable, node.Status.Capacity} {
				for resource := range list {
					if strings.Contains(string(resource), "/") {
						delete(list, resource)
					}
				}
			}
			_, err := b.Client.CoreV1().Nodes().Create(b.ctx, node, metav1.CreateOptions{})
			return err
		})
		for _, name := range names {
			b.Expected.Nodes[name] = mode
		}
		b.must(wrap(b.Await(b.ctx, patience), "again in mode %s", mode))
		list, err = b.Client.CoreV1().Nodes().List(b.ctx, metav1.ListOptions{LabelSelector: profileInSim + "=l40s"})
		b.must(err)
		for _, n := range list.Items {
			if uids[n.UID] {
				t.Errorf("node %s is the old one: this proved nothing", n.Name)
			}
		}
	}
	b.rest(o, time.Second)
	now := b.others()
	b.clean(untouched(was, now))
	if left := b.orphans(); len(left) > 0 {
		t.Errorf("AcceleratorNodes without a node of theirs: %v", left)
	}
	again, err := o.Footprint()
	b.must(err)
	if again.FDs > footprint.FDs+8 || again.Threads > footprint.Threads {
		t.Errorf("O4 files %d -> %d, threads %d -> %d", footprint.FDs, again.FDs, footprint.Threads, again.Threads)
	}
	count := objects()
	b.each(names, func(name string) error { return b.Client.CoreV1().Nodes().Delete(b.ctx, name, metav1.DeleteOptions{}) })
	for _, name := range names {
		delete(b.Expected.Nodes, name)
	}
	gone := func() (left []string) {
		for _, name := range names {
			if _, err := b.Dynamic.Resource(kit.AccelNodes).Get(b.ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				left = append(left, name)
			}
		}
		return
	}
	for deadline := time.Now().Add(patience); len(gone()) > 0; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.must(fmt.Errorf("AcceleratorNodes of nodes that are gone: %v", gone()))
		}
	}
	b.rest(o, time.Second)
	t.Logf("%d nodes made again %d times: %d objects known, then %d, after all were gone %d; %d -> %d KiB", len(names), len(modes), kept, count, objects(), footprint.RSSKiB, again.RSSKiB)
	if most := kept - len(names); objects() > most {
		t.Errorf("%d objects are known after all nodes are gone, at most %d should be", objects(), most)
	}
}

// forgetLease deletes the lease of a node that is gone. The simulated kubelet would renew the old one until it is collected with the old
// node, and then be without one for minutes.
func (b *bench) forgetLease(node string) error {
	err := b.Client.CoordinationV1().Leases("kube-node-lease").Delete(b.ctx, node, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// orphans: AcceleratorNodes whose owner is not the node of that name.
func (b *bench) orphans() (names []string) {
	b.t.Helper()
	nodes, err := b.Client.CoreV1().Nodes().List(b.ctx, metav1.ListOptions{})
	b.must(err)
	uid := map[string]types.UID{}
	for _, n := range nodes.Items {
		uid[n.Name] = n.UID
	}
	objects, err := b.Dynamic.Resource(kit.AccelNodes).List(b.ctx, metav1.ListOptions{})
	b.must(err)
	for _, o := range objects.Items {
		if owners := o.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != uid[o.GetName()] {
			names = append(names, o.GetName())
		}
	}
	return
}
