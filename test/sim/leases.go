package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const (
	leaseDuration = 40 * time.Second // a kubelet's, and it renews four times in that time
	renewInterval = leaseDuration / 4
	lifelessLabel = "kwok.x-k8s.io/node" // "ignore": no one plays this node's kubelet
)

// leases renews the Lease of every simulated node, as its kubelet would. KWOK (v0.8.0) could do it, but its queue breaks when a node is
// deleted and made again while its renewal is under way: the name is then in the queue's heap twice, the older entry can no longer be
// removed (pkg/utils/heap, Push), it stays at the head, and no other node's Lease is ever renewed again.
type leases struct {
	client   kubernetes.Interface
	selector string // of the nodes
	queue    workqueue.TypedRateLimitingInterface[string]
	nodes    corelisters.NodeLister

	mutex  sync.Mutex
	stored map[string]*coordinationv1.Lease // by node, as the server last answered
}

func (l *leases) run(ctx context.Context, workers int) error {
	l.stored = map[string]*coordinationv1.Lease{}
	l.queue = workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](100*time.Millisecond, 2*time.Second))
	defer l.queue.ShutDown()
	factory := informers.NewSharedInformerFactoryWithOptions(l.client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = l.selector }))
	informer := factory.Core().V1().Nodes().Informer()
	l.nodes = factory.Core().V1().Nodes().Lister()
	if err := informer.SetTransform(func(object any) (any, error) { // only the name and UID count
		if node, is := object.(*corev1.Node); is {
			return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels}}, nil
		}
		return object, nil
	}); err != nil {
		return err
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { l.queue.Add(object.(*corev1.Node).Name) },
		UpdateFunc: func(before, after any) { // another node of the same name, whose deletion was not seen
			if node := after.(*corev1.Node); node.UID != before.(*corev1.Node).UID {
				l.queue.Add(node.Name)
			}
		},
	}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil // asked to end before the first list came
	}
	slog.Info("renewing leases", "nodes", len(informer.GetStore().ListKeys()))
	for range workers {
		go l.work(ctx)
	}
	<-ctx.Done()
	return nil
}

func (l *leases) work(ctx context.Context) {
	for {
		name, end := l.queue.Get()
		if end {
			return
		}
		again, err := l.renew(ctx, name)
		switch {
		case err != nil && ctx.Err() == nil:
			slog.Warn("will try again", "node", name, "error", err)
			l.queue.AddRateLimited(name)
		case again:
			l.queue.Forget(name)
			l.queue.AddAfter(name, renewInterval)
		default:
			l.queue.Forget(name)
		}
		l.queue.Done(name)
	}
}

// renew writes the Lease of the node of that name, and says whether there is such a node.
func (l *leases) renew(ctx context.Context, name string) (bool, error) {
	node, err := l.nodes.Get(name)
	if apierrors.IsNotFound(err) {
		l.keep(name, nil)
		return false, nil // the garbage collector deletes the Lease
	} else if err != nil {
		return false, err
	}
	api := l.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	lease := l.last(name)
	if lease == nil {
		if lease, err = api.Get(ctx, name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			lease, err = api.Create(ctx, held(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}, node, time.Now()), metav1.CreateOptions{})
			l.keep(name, lease)
			return true, err
		} else if err != nil {
			return true, err
		}
	}
	lease, err = api.Update(ctx, held(lease, node, time.Now()), metav1.UpdateOptions{})
	l.keep(name, lease)
	return true, err
}

// held is the lease as the node's kubelet would write it at that time.
func held(lease *coordinationv1.Lease, node *corev1.Node, now time.Time) *coordinationv1.Lease {
	lease = lease.DeepCopy()
	seconds, renewed := int32(leaseDuration/time.Second), metav1.NewMicroTime(now)
	lease.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &node.Name, LeaseDurationSeconds: &seconds, RenewTime: &renewed}
	return lease
}

func (l *leases) last(name string) *coordinationv1.Lease {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.stored[name]
}

// keep remembers a Lease; one that could not be written is asked for the next time.
func (l *leases) keep(name string, lease *coordinationv1.Lease) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if lease == nil || lease.ResourceVersion == "" {
		delete(l.stored, name)
	} else {
		l.stored[name] = lease
	}
}
