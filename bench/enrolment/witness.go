package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

const switchingTaint = "quartermaster.io/switching"

// advertised are the resources of the two modes nodes change between.
var advertised = map[string]corev1.ResourceName{"pgpu": "nvidia.com/gpu", "vgpu": "tencent.com/vcuda-core"}

// witness watches all nodes by itself, in the order in which they were written, so it knows the fleet as it was at every instant.
type witness struct {
	plugins bool // device plugins are played: a node is done when it shows its mode's cards

	mu       sync.Mutex
	nodes    map[string]standing
	done     map[string]int // mode -> nodes that are in it and not on their way
	tainted  int
	bare     int // nodes that show cards of no mode
	mostAway int // the most that were tainted at once
	mostBare int
	lost     error
	changed  chan struct{}
	stop     context.CancelFunc
	finished sync.WaitGroup
}

// standing is what counts of a node.
type standing struct {
	module        string
	tainted, bare bool
}

func standingOf(node *corev1.Node) standing {
	s := standing{module: node.Labels[moduleLabel], bare: true}
	for _, taint := range node.Spec.Taints {
		s.tainted = s.tainted || taint.Key == switchingTaint
	}
	for _, name := range advertised {
		amount := node.Status.Allocatable[name]
		s.bare = s.bare && amount.Sign() <= 0
	}
	return s
}

func newWitness(plugins bool) *witness {
	return &witness{plugins: plugins, nodes: map[string]standing{}, done: map[string]int{}, changed: make(chan struct{})}
}

// follow lists, then watches until close.
func (w *witness) follow(ctx context.Context, c *plane) error {
	list, err := c.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		w.see(watch.Event{Type: watch.Added, Object: &list.Items[i]})
	}
	w.forget()
	ctx, w.stop = context.WithCancel(ctx)
	events, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion,
		cache.NewListWatchFromClient(c.Client.CoreV1().RESTClient(), "nodes", "", fields.Everything()))
	if err != nil {
		return err
	}
	w.finished.Go(func() {
		for e := range events.ResultChan() {
			w.see(e)
		}
		w.see(watch.Event{Type: watch.Error})
	})
	return nil
}

func (w *witness) close() {
	if w.stop != nil {
		w.stop()
		w.finished.Wait()
	}
}

// forget the maxima so far.
func (w *witness) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mostAway, w.mostBare = w.tainted, w.bare
}

func (w *witness) see(e watch.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	node, ok := e.Object.(*corev1.Node)
	switch {
	case ok:
		w.count(w.nodes[node.Name], -1)
		delete(w.nodes, node.Name)
		if e.Type != watch.Deleted {
			w.nodes[node.Name] = standingOf(node)
			w.count(w.nodes[node.Name], +1)
		}
		w.mostAway, w.mostBare = max(w.mostAway, w.tainted), max(w.mostBare, w.bare)
	case e.Type == watch.Error:
		w.lost = errors.New("the witness lost its watch")
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

// count a node in, or out again. One that was not known is nothing of all this.
func (w *witness) count(s standing, by int) {
	if s.tainted {
		w.tainted += by
	}
	if s.bare {
		w.bare += by
	}
	if s.module != "" && (!w.plugins || (!s.tainted && !s.bare)) {
		w.done[s.module] += by
	}
}

// until so many nodes are done with their change to a mode. `seen` is told each time how many are.
func (w *witness) until(ctx context.Context, mode string, count int, patience time.Duration, alive func() error, seen func(int)) error {
	quiet := time.NewTimer(patience)
	defer quiet.Stop()
	last := -1
	for {
		w.mu.Lock()
		done, changed, lost := w.done[mode], w.changed, w.lost
		away, bare := w.tainted, w.bare
		w.mu.Unlock()
		if seen != nil {
			seen(done)
		}
		switch {
		case done >= count:
			return nil
		case lost != nil:
			return lost
		case done != last:
			last = done
			quiet.Reset(patience)
		}
		select {
		case <-changed:
		case <-quiet.C:
			return errors.Join(fmt.Errorf("no node came to mode %s for %s: %d of %d are there, %d tainted, %d without cards", mode, patience, done, count, away, bare), alive())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (w *witness) most() (away, bare int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mostAway, w.mostBare, w.lost
}
