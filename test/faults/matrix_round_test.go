package faults

import (
	"context"
	"fmt"
	"math/rand"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"

	"quartermaster.io/test/faults/kit"
)

type round struct {
	*bench
	cells   []*cell
	byNode  map[string]*cell
	proxy   *kit.Proxy
	history *kit.ModeHistory
	profile map[string]string // labels and
	status  corev1.NodeStatus // status of a node as the simulator makes it

	mu     sync.Mutex
	allow  int // writes a cell may have in one life; 0: as many as it likes
	life   int
	last   time.Time // of a write that was let through
	wrong  []string
	deaths int

	strikes, onTheWay int // nodes struck, and those of them that had been written to and had not arrived
}

func (r *round) say(format string, args ...any) {
	r.mu.Lock()
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
	r.mu.Unlock()
}

// round makes the nodes of the cells, brings them to their old modes, and puts pods on those that are to be in use.
func (b *bench) round(name string, cells []*cell, chance *rand.Rand) *round {
	b.t.Helper()
	r := &round{bench: b, cells: cells, byNode: map[string]*cell{}, history: &kit.ModeHistory{Units: unit}}
	like, err := b.Client.CoreV1().Nodes().Get(b.ctx, "t4-0", metav1.GetOptions{})
	b.must(err)
	r.status = *like.Status.DeepCopy()
	for _, list := range []corev1.ResourceList{r.status.Allocatable, r.status.Capacity} {
		for resource := range list {
			if strings.Contains(string(resource), "/") {
				delete(list, resource)
			}
		}
	}
	r.profile = like.Labels
	for _, of := range []string{kit.ModuleLabel, kit.AskLabel} {
		delete(r.profile, of)
	}
	for _, c := range cells {
		c.node, c.pod = c.String()+"."+name, ""
		c.used, c.total, c.more, c.struck, c.ended, c.seenDraining = 0, 0, false, false, false, -1
		c.strikeAt, c.inWrite = 1+chance.Intn(5), chance.Intn(2) == 0
		r.byNode[c.node] = c
	}
	r.proxy, err = kit.NewProxy(name, b.Config, b.dir)
	b.must(err)
	b.t.Cleanup(r.proxy.Close)
	r.proxy.Use(kit.Rule{Match: r.refused, Drop: true})
	r.proxy.Use(kit.Rule{Match: func(q *kit.Request) bool { return r.cellOf(q) != nil }, After: r.answered})

	b.t.Cleanup(r.clear)
	stop := r.record()
	b.t.Cleanup(stop)
	side(cells, func(c *cell) { b.must(r.makeNode(c, c.from)) })
	o := b.startBehind(r.proxy)
	b.must(o.WaitReady(20 * time.Second))
	r.wait("to begin with", 2*time.Minute, func(v *view) (wrong []string) {
		for _, c := range cells {
			began := *c
			began.to, began.fault = c.from, smooth
			wrong = append(wrong, v.check(&began)...)
		}
		return
	})
	side(cells, func(c *cell) {
		if c.held {
			b.must(r.hold(c))
		}
	})
	r.wait("pods to run", time.Minute, func(v *view) (wrong []string) {
		for _, c := range cells {
			if p := v.users[c.pod]; c.held && (p == nil || p.Status.Phase != corev1.PodRunning) {
				wrong = append(wrong, "pod "+c.pod+" does not run")
			}
		}
		return
	})
	b.rest(o, 500*time.Millisecond)
	r.end(o)
	return r
}

// side does one thing for many cells, a few at a time.
func side(cells []*cell, do func(*cell)) {
	turn := make(chan *cell)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for c := range turn {
				do(c)
			}
		})
	}
	for _, c := range cells {
		turn <- c
	}
	close(turn)
	workers.Wait()
}

func (r *round) makeNode(c *cell, asks string) error {
	labels := map[string]string{}
	for k, v := range r.profile {
		labels[k] = v
	}
	labels["kubernetes.io/hostname"], labels[cellLabel] = c.node, "true"
	if asks != "" {
		labels[kit.AskLabel] = asks
	}
	if c.fault == absent {
		labels[brokenInSim] = c.to
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: c.node, Labels: labels, Annotations: map[string]string{foreignNote: c.node}}, Status: r.status,
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: foreignNote, Value: "ours", Effect: corev1.TaintEffectPreferNoSchedule}}}}
	_, err := r.Client.CoreV1().Nodes().Create(r.ctx, node, metav1.CreateOptions{})
	return err
}

// hold puts a pod on the cell's node; the scheduler is not what is tested.
func (r *round) hold(c *cell) error {
	spec := r.podOf(c.node, c.from)
	spec.NodeName = c.node
	r.mu.Lock()
	c.pod = c.node + ".user"
	r.mu.Unlock()
	_, err := r.Client.CoreV1().Pods("default").Create(r.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: c.pod, Labels: map[string]string{cellLabel: "true"}}, Spec: spec}, metav1.CreateOptions{})
	return err
}

// record follows nodes and pods by watches of the witness's own.
func (r *round) record() (stop func()) {
	ctx, cancel := context.WithCancel(r.ctx)
	var done sync.WaitGroup
	follow := func(list func() (metav1.ListInterface, []any), from func(metav1.ListOptions) (watch.Interface, error)) {
		all, items := list()
		for _, o := range items {
			r.history.Note(o, false)
		}
		events, err := watchtools.NewRetryWatcherWithContext(ctx, all.GetResourceVersion(), watcherFunc(from))
		r.must(err)
		done.Go(func() {
			for e := range events.ResultChan() {
				if e.Type == watch.Error {
					r.say("the witness lost its watch: %v", e.Object)
				}
				r.history.Note(e.Object, e.Type == watch.Deleted)
			}
		})
	}
	follow(func() (metav1.ListInterface, []any) {
		all, err := r.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		r.must(err)
		var out []any
		for i := range all.Items {
			out = append(out, &all.Items[i])
		}
		return all, out
	}, func(o metav1.ListOptions) (watch.Interface, error) { return r.Client.CoreV1().Nodes().Watch(ctx, o) })
	follow(func() (metav1.ListInterface, []any) {
		all, err := r.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
		r.must(err)
		var out []any
		for i := range all.Items {
			out = append(out, &all.Items[i])
		}
		return all, out
	}, func(o metav1.ListOptions) (watch.Interface, error) { return r.Client.CoreV1().Pods("").Watch(ctx, o) })
	return func() { cancel(); done.Wait() }
}

type watcherFunc func(metav1.ListOptions) (watch.Interface, error)

func (f watcherFunc) WatchWithContext(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return f(o)
}

// cellOf: the cell whose transaction a request writes.
func (r *round) cellOf(q *kit.Request) *cell {
	if q.Write() && (q.Resource == "nodes" || q.Resource == "acceleratornodes") {
		return r.byNode[q.Name]
	}
	return nil
}

// refused: the cell has had its writes in this life of the operator. From here on nothing of it reaches the server, as if the operator
// had been killed right after the last one; it is killed as soon as all cells have come as far.
func (r *round) refused(q *kit.Request) bool {
	if q.Mutating() && q.Resource == "pods" && q.Namespace != kit.Namespace {
		go r.say("the operator sent %s %s: no one asked for that", q.Method, q.Path)
	}
	c := r.cellOf(q)
	if c == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.allow > 0 && c.used >= r.allow {
		c.more = true
		return true
	}
	c.used++
	c.total++
	r.last = time.Now()
	return false
}

func (r *round) answered(q *kit.Request, _ int) {
	c := r.cellOf(q)
	r.mu.Lock()
	now := r.life > 0 && c.inWrite && c.total >= c.strikeAt
	r.mu.Unlock()
	if now {
		r.strike(c, false)
	}
}

// strike does to the node what the cell is about. Late: it has arrived already.
func (r *round) strike(c *cell, late bool) {
	if c.fault != deleted && c.fault != remade && c.fault != back {
		return
	}
	r.mu.Lock()
	first := !c.struck
	c.struck = true
	if first {
		r.strikes++
	}
	if first && c.total > 0 && !late {
		r.onTheWay++
	}
	if c.fault != back {
		c.ended = true // its pod may go with it
	}
	r.mu.Unlock()
	if !first {
		return
	}
	var err error
	if c.fault == back {
		err = r.PatchNode(r.ctx, c.node, map[string]any{"metadata": map[string]any{"labels": map[string]any{kit.AskLabel: orNil(c.from)}}})
	} else {
		err = r.Client.CoreV1().Nodes().Delete(r.ctx, c.node, metav1.DeleteOptions{})
	}
	if err == nil && c.fault == remade {
		if err = r.forgetLease(c.node); err == nil {
			err = r.makeNode(c, c.to)
		}
	}
	if err != nil {
		r.say("%s: %v", c.node, err)
	}
}

func orNil(mode string) any {
	if mode == "" {
		return nil
	}
	return mode
}
