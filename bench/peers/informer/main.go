// A minimal client-go informer: pods, nodes, and the ConfigMaps of kube-public, as every Go controller holds them. bench/informer is
// the same program on our own runtime; both print the same lines:
//
//	synced <unix ns> objects <n>            once, when all three stores hold the initial list
//	latency <n> <p50 ns> <p99 ns> <max ns>  on SIGUSR1: handler calls for stamped pods since the last such line
//
// Go's collector runs as it comes (GOGC=100, no memory limit); nothing here calls it. Pinned to one core, GOMAXPROCS is 1 by itself.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const stampKey = "quartermaster.io/bench-stamp"

// latencies collects write-to-handler times in nanoseconds.
type latencies struct {
	sync.Mutex
	ns []int64
}

func (l *latencies) add(stamp string) {
	now := time.Now().UnixNano()
	written, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return
	}
	l.Lock()
	l.ns = append(l.ns, now-written)
	l.Unlock()
}

func (l *latencies) print() {
	l.Lock()
	defer l.Unlock()
	slices.Sort(l.ns)
	at := func(q float64) int64 {
		if len(l.ns) == 0 {
			return 0
		}
		return l.ns[min(len(l.ns)-1, int(q*float64(len(l.ns))))]
	}
	fmt.Printf("latency %d %d %d %d\n", len(l.ns), at(0.5), at(0.99), at(1))
	l.ns = l.ns[:0]
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "informer:", err)
	os.Exit(1)
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig file")
	transform := flag.Bool("transform", false, "SetTransform: typed objects cut to the fields our projections keep")
	own := flag.Bool("transform-own", false, "SetTransform: objects replaced by small structs of our own; no typed lister works any more")
	jsonList := flag.Bool("json-list", false, "JSON and paged LIST, the path before protobuf and WatchList")
	floor := flag.Bool("floor", false, "no informer: read the three initial streams and throw them away, then exit")
	flag.Parse()
	if *jsonList { // read by client-go when its first feature gate is asked
		os.Setenv("KUBE_FEATURE_WatchListClient", "false")
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		fail(err)
	}
	if *jsonList {
		config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
	}
	if *floor {
		if err := readAndDiscard(config); err != nil {
			fail(err)
		}
		return
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		fail(err)
	}
	var options []informers.SharedInformerOption
	if *transform {
		options = append(options, informers.WithTransform(trimmed))
	}
	if *own {
		options = append(options, informers.WithTransform(owned))
	}
	all := informers.NewSharedInformerFactoryWithOptions(client, 0, options...)
	public := informers.NewSharedInformerFactoryWithOptions(client, 0, append(options, informers.WithNamespace("kube-public"))...)
	pods := all.Core().V1().Pods().Informer()
	nodes := all.Core().V1().Nodes().Informer()
	maps := public.Core().V1().ConfigMaps().Informer()
	seen := &latencies{}
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
		if stamp := stampOf(after); stamp != "" && stamp != stampOf(before) {
			seen.add(stamp)
		}
	}}); err != nil {
		fail(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	all.Start(ctx.Done())
	public.Start(ctx.Done())
	// WaitFor, not WaitForCacheSync: the latter polls every 100 ms, which would be counted against the peer.
	if !cache.WaitFor(ctx, "", pods.HasSyncedChecker(), nodes.HasSyncedChecker(), maps.HasSyncedChecker()) {
		fail(ctx.Err())
	}
	objects := len(pods.GetStore().ListKeys()) + len(nodes.GetStore().ListKeys()) + len(maps.GetStore().ListKeys())
	fmt.Printf("synced %d objects %d\n", time.Now().UnixNano(), objects)
	for {
		select {
		case <-asked:
			seen.print()
		case <-ctx.Done():
			return
		}
	}
}

func stampOf(object any) string {
	switch o := object.(type) {
	case *corev1.Pod:
		return o.Annotations[stampKey]
	case *ownPod:
		return o.Annotations[stampKey]
	}
	return ""
}
