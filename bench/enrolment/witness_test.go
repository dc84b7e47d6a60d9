package main

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func node(name, module string, tainted bool, cards corev1.ResourceName) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{moduleLabel: module}}}
	if tainted {
		n.Spec.Taints = []corev1.Taint{{Key: "other"}, {Key: switchingTaint}}
	}
	if cards != "" {
		n.Status.Allocatable = corev1.ResourceList{cards: resource.MustParse("8"), "nvidia.com/other": resource.MustParse("1")}
	}
	return n
}

func told(w *witness, kind watch.EventType, nodes ...*corev1.Node) {
	for _, n := range nodes {
		w.see(watch.Event{Type: kind, Object: n})
	}
}

func TestTheWitnessKeepsTheMostThatWereAwayAtOnce(t *testing.T) {
	w := newWitness(true)
	told(w, watch.Added, node("a", "pgpu", false, "nvidia.com/gpu"), node("b", "pgpu", false, "nvidia.com/gpu"), node("c", "pgpu", false, "nvidia.com/gpu"))
	told(w, watch.Modified, node("a", "pgpu", true, "nvidia.com/gpu"), node("b", "pgpu", true, "nvidia.com/gpu"), node("b", "", true, ""))
	told(w, watch.Modified, node("b", "vgpu", false, "tencent.com/vcuda-core"), node("c", "pgpu", true, "nvidia.com/gpu"), node("c", "", true, ""))
	told(w, watch.Deleted, node("c", "", true, ""))
	told(w, watch.Modified, node("a", "vgpu", true, "tencent.com/vcuda-core"))
	if away, bare, err := w.most(); away != 2 || bare != 1 || err != nil {
		t.Fatalf("two were away and one bare at once, seen %d, %d, %v", away, bare, err)
	}
	if w.tainted != 1 || w.bare != 0 || w.done["vgpu"] != 1 || w.done["pgpu"] != 0 {
		t.Fatalf("a is on its way and b is done: %+v", w)
	}
	w.forget()
	if away, bare, _ := w.most(); away != 1 || bare != 0 {
		t.Fatalf("after forgetting it is what it is now, seen %d, %d", away, bare)
	}
}

func TestAWitnessThatLostItsWatchProvesNothing(t *testing.T) {
	w := newWitness(false)
	w.see(watch.Event{Type: watch.Error})
	if _, _, err := w.most(); err == nil {
		t.Fatal("a gap must be told")
	}
	if err := w.until(context.Background(), "vgpu", 1, time.Second, func() error { return nil }, nil); err == nil || !strings.Contains(err.Error(), "lost") {
		t.Fatalf("waiting must end with it: %v", err)
	}
}

func TestABoundThatDoesNotHoldFailsTheBench(t *testing.T) {
	o := options{nodes: 45, percent: 10}
	if allowed(o) != 5 {
		t.Fatalf("10 %% of 45 is 5, rounded up, not %d", allowed(o))
	}
	for _, c := range []struct {
		away, bare int
		most       float64
		says       string
	}{{5, 5, mostWrites, ""}, {6, 5, 1, "on their way"}, {5, 6, 1, "no cards"}, {5, 5, mostWrites + 1, "writes"}, {0, 0, 1, "proves nothing"}} {
		err := violations(o, c.away, c.bare, c.most)
		if (err == nil) != (c.says == "") || (err != nil && !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
