package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// moduleLabel is on the pods of a module's DaemonSet; its value is the module's name.
const moduleLabel = "quartermaster.io/module"

// brokenLabel on a node names modules, with dots between, whose plugins run there and never find a card.
const brokenLabel = "sim.quartermaster.io/broken"

// migLabel on a node says into which slices its cards are cut, all of them alike.
const migLabel = "sim.quartermaster.io/mig"

// plugins plays the device plugins of the simulated nodes: a queue of node names, a worker that compares and patches. Everything is
// derived from what the API server shows, so it may be stopped and started at any time. What is advertised stays when it ends.
type plugins struct {
	client   kubernetes.Interface
	profiles map[string]profile
	modules  map[string]module
	grace    time.Duration

	queue workqueue.TypedRateLimitingInterface[string]
	nodes corelisters.NodeLister
	pods  cache.Indexer

	mutex sync.Mutex
	seen  map[string]*past // by node
}

// past is what served a node when it was last looked at, and when a module was lost.
type past struct {
	running map[string]bool
	lost    map[string]time.Time
}

const byNode = "node"

func (p *plugins) run(ctx context.Context, workers int) error {
	p.seen = map[string]*past{}
	p.queue = workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](100*time.Millisecond, 5*time.Second))
	defer p.queue.ShutDown()

	nodeFactory := informers.NewSharedInformerFactoryWithOptions(p.client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = profileLabel }))
	podFactory := informers.NewSharedInformerFactoryWithOptions(p.client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = moduleLabel }))
	nodeInformer := nodeFactory.Core().V1().Nodes().Informer()
	podInformer := podFactory.Core().V1().Pods().Informer()
	p.nodes = nodeFactory.Core().V1().Nodes().Lister()
	if err := podInformer.AddIndexers(cache.Indexers{byNode: func(o any) ([]string, error) {
		return []string{o.(*corev1.Pod).Spec.NodeName}, nil
	}}); err != nil {
		return err
	}
	p.pods = podInformer.GetIndexer()
	if err := p.watch(nodeInformer, func(o any) string { return o.(*corev1.Node).Name }); err != nil {
		return err
	}
	if err := p.watch(podInformer, func(o any) string { return o.(*corev1.Pod).Spec.NodeName }); err != nil {
		return err
	}
	nodeFactory.Start(ctx.Done())
	podFactory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), nodeInformer.HasSynced, podInformer.HasSynced) {
		return nil // asked to end before the first list came
	}
	slog.Info("playing device plugins", "nodes", len(nodeInformer.GetStore().ListKeys()))
	for range workers {
		go p.work(ctx)
	}
	<-ctx.Done()
	return nil
}

func (p *plugins) watch(informer cache.SharedIndexInformer, nodeOf func(any) string) error {
	add := func(o any) {
		if d, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = d.Obj
		}
		if name := nodeOf(o); name != "" {
			p.queue.Add(name)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(_, o any) { add(o) }, DeleteFunc: add,
	})
	return err
}

func (p *plugins) work(ctx context.Context) {
	for {
		name, end := p.queue.Get()
		if end {
			return
		}
		again, err := p.reconcile(ctx, name)
		switch {
		case err != nil && ctx.Err() == nil:
			slog.Warn("will try again", "node", name, "error", err)
			p.queue.AddRateLimited(name)
		case again > 0:
			p.queue.AddAfter(name, again)
		default:
			p.queue.Forget(name)
		}
		p.queue.Done(name)
	}
}

func (p *plugins) reconcile(ctx context.Context, name string) (time.Duration, error) {
	node, err := p.nodes.Get(name)
	if apierrors.IsNotFound(err) {
		p.forget(name)
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	kind, ok := p.profiles[node.Labels[profileLabel]]
	if !ok {
		return 0, nil // a node of a profile this program does not know
	}
	running, err := p.runningOn(name)
	if err != nil {
		return 0, err
	}
	for module := range strings.SplitSeq(node.Labels[brokenLabel], ".") {
		delete(running, module)
	}
	now := time.Now()
	patch, again := advertise(kind, cutByMig(p.modules, node.Labels[migLabel]), running, p.remember(name, running, now), p.grace, node.Status, now)
	metadata := map[string]any{"uid": node.UID}
	list := register(kind, name, running)
	registers := list != "" && node.Annotations[registerKey] != list
	if registers {
		metadata["annotations"] = map[string]string{registerKey: list}
	}
	if patch.empty() && !registers {
		return again, nil
	}
	body, err := json.Marshal(map[string]any{"metadata": metadata, "status": patch})
	if err != nil {
		return 0, err
	}
	_, err = p.client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return 0, nil // deleted, or another node of that name by now: its own event follows
	} else if err != nil {
		return 0, fmt.Errorf("patching status: %w", err)
	}
	slog.Info("advertised", "node", name, "allocatable", patch.Allocatable, "capacity", patch.Capacity)
	return again, nil
}

func (p *plugins) runningOn(name string) (map[string]bool, error) {
	pods, err := p.pods.ByIndex(byNode, name)
	if err != nil {
		return nil, err
	}
	running := map[string]bool{}
	for _, o := range pods {
		if pod := o.(*corev1.Pod); serves(pod) {
			running[pod.Labels[moduleLabel]] = true
		}
	}
	return running, nil
}

// remember compares with the last look at the node and returns when each module was lost. The queue never hands one node to two
// workers, so the returned map is used by one.
func (p *plugins) remember(name string, running map[string]bool, now time.Time) map[string]time.Time {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	before := p.seen[name]
	if before == nil {
		before = &past{lost: map[string]time.Time{}}
		p.seen[name] = before
	}
	for module := range before.running {
		if !running[module] {
			before.lost[module] = now
		}
	}
	for module := range running {
		delete(before.lost, module)
	}
	before.running = running
	return before.lost
}

func (p *plugins) forget(name string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.seen, name)
}
