// A scheduler extender as a careful Go author would write it: client-go informers with a transform, the types of k8s.io/kube-scheduler, and the
// same ledger as ours, kept up to date by events and never rebuilt. It speaks the same protocol and takes the same flags, so benches and
// fault tests can run either. It has no AcceleratorNode cards, no NUMA, no selectors, and places greedily.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

type extender struct {
	client kubernetes.Interface
	book   *ledger
	pods   cache.Indexer
	serves atomic.Bool // leads and has seen everything

	waiting waitingPods
	counted counters
}

func main() {
	arguments := os.Args[1:]
	if len(arguments) > 0 && arguments[0] == "controller" {
		arguments = arguments[1:]
	}
	flags := flag.NewFlagSet("peer-extender", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "")
	flags.String("log-format", "", "taken and not used")
	metrics := flags.String("metrics-address", "127.0.0.1:0", "")
	address := flags.String("extender-address", "", "")
	certificate := flags.String("extender-cert-file", "", "")
	key := flags.String("extender-key-file", "", "")
	authority := flags.String("extender-client-ca", "", "")
	flags.String("predicates-address", "", "taken and not used")
	lease := flags.Int("lease-duration", 15, "")
	renew := flags.Int("renew-deadline", 10, "")
	retry := flags.Int("retry-period", 2, "")
	flags.Parse(arguments)

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	check(err)
	config.QPS, config.UserAgent = -1, "peer-extender"
	config.ContentType, config.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	check(err)
	e := &extender{client: client, book: newLedger()}
	synced := e.watch(ctx)
	go e.observe(*metrics, synced)
	go e.nudge(ctx)
	check(e.listen(ctx, *address, *certificate, *key, *authority))

	name, _ := os.Hostname()
	lock := &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Name: "peer-extender", Namespace: env("POD_NAMESPACE", "default")}, Client: client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: fmt.Sprintf("%s_%s_%d", name, os.Getenv("FAKE_NAME"), os.Getpid())}}
	seconds := func(n int) time.Duration { return time.Duration(n) * time.Second }
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{Lock: lock, LeaseDuration: seconds(*lease), RenewDeadline: seconds(*renew), RetryPeriod: seconds(*retry),
		ReleaseOnCancel: true, Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				if cache.WaitForCacheSync(ctx.Done(), synced...) {
					e.serves.Store(true)
				}
			},
			OnStoppedLeading: func() {
				e.serves.Store(false)
				if ctx.Err() == nil {
					check(fmt.Errorf("lost the lease"))
				}
			}}})
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "peer-extender:", err)
		os.Exit(1)
	}
}

func env(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

// slim keeps of an object what is read here: memory is half of the comparison.
func slim(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Pod:
		kept := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: o.Name, Namespace: o.Namespace, UID: o.UID, ResourceVersion: o.ResourceVersion, DeletionTimestamp: o.DeletionTimestamp,
			Annotations: map[string]string{}}, Spec: corev1.PodSpec{NodeName: o.Spec.NodeName, SchedulerName: o.Spec.SchedulerName}, Status: corev1.PodStatus{Phase: o.Status.Phase}}
		if text := o.Annotations[placementKey]; text != "" {
			kept.Annotations[placementKey] = text
		}
		thin := func(from []corev1.Container) (out []corev1.Container) {
			for i := range from {
				out = append(out, corev1.Container{Name: from[i].Name, RestartPolicy: from[i].RestartPolicy, Resources: corev1.ResourceRequirements{Limits: from[i].Resources.Limits}})
			}
			return
		}
		kept.Spec.Containers, kept.Spec.InitContainers = thin(o.Spec.Containers), thin(o.Spec.InitContainers)
		return kept, nil
	case *corev1.Node:
		kept := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, Labels: map[string]string{}, Annotations: map[string]string{}},
			Status: corev1.NodeStatus{Allocatable: o.Status.Allocatable}}
		for _, key := range []string{moduleLabel, "nvidia.com/gpu.count", "nvidia.com/gpu.memory", "nvidia.com/gpu.product"} {
			if value, there := o.Labels[key]; there {
				kept.Labels[key] = value
			}
		}
		for _, key := range []string{registerKey, cordonKey} {
			if value, there := o.Annotations[key]; there {
				kept.Annotations[key] = value
			}
		}
		return kept, nil
	case *corev1.ConfigMap:
		o.ManagedFields = nil
	}
	return object, nil
}

func (e *extender) watch(ctx context.Context) (synced []cache.InformerSynced) {
	all := informers.NewSharedInformerFactoryWithOptions(e.client, 0, informers.WithTransform(slim))
	maps := informers.NewSharedInformerFactoryWithOptions(e.client, 0, informers.WithNamespace("kube-public"))
	add := func(i cache.SharedIndexInformer, h cache.ResourceEventHandlerFuncs) {
		registered, err := i.AddEventHandler(h)
		check(err)
		synced = append(synced, registered.HasSynced)
	}
	add(all.Core().V1().Nodes().Informer(), cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { e.book.setNode(o.(*corev1.Node)) }, UpdateFunc: func(_, o any) { e.book.setNode(o.(*corev1.Node)) },
		DeleteFunc: func(o any) { e.book.dropNode(nameOf(o)) }})
	pods := all.Core().V1().Pods().Informer()
	e.pods = pods.GetIndexer()
	add(pods, cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { e.seePod(o.(*corev1.Pod)) }, UpdateFunc: func(_, o any) { e.seePod(o.(*corev1.Pod)) },
		DeleteFunc: func(o any) {
			if last, tomb := o.(cache.DeletedFinalStateUnknown); tomb {
				o = last.Obj
			}
			if pod, ok := o.(*corev1.Pod); ok {
				e.lose(pod)
			}
		}})
	configs := maps.Core().V1().ConfigMaps().Informer()
	declare := func(any) {
		keys := map[string]bool{}
		for _, o := range configs.GetStore().List() {
			if m := o.(*corev1.ConfigMap); strings.HasPrefix(m.Name, "cf-crl-") && !knownKeys[corev1.ResourceName(m.Data["key"])] {
				keys[m.Data["key"]] = true
			}
		}
		e.book.declare(keys)
	}
	add(configs, cache.ResourceEventHandlerFuncs{AddFunc: declare, UpdateFunc: func(_, o any) { declare(o) }, DeleteFunc: declare})
	all.Start(ctx.Done())
	maps.Start(ctx.Done())
	return synced
}

func nameOf(o any) string {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o)
	if err != nil {
		return ""
	}
	return key
}

func (e *extender) observe(address string, synced []cache.InformerSynced) {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		for _, seen := range synced {
			if !seen() {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
		}
	})
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) { e.counted.write(w, e.book) })
	check(http.ListenAndServe(address, mux))
}
