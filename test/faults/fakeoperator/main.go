// fakeoperator is the smallest operator that does what the scenario asks for, written with client-go. It exists to test the tests:
// FAKE_BREAK takes one of its guards away, and the test named next to it in mutations.sh must then fail. It is no product.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

var (
	policies   = schema.GroupVersionResource{Group: "quartermaster.io", Version: "v1alpha1", Resource: "acceleratorpolicies"}
	accelNodes = schema.GroupVersionResource{Group: "quartermaster.io", Version: "v1alpha1", Resource: "acceleratornodes"}
	modules    = map[string]string{"pgpu": "nvidia-device-plugin-ds", "vgpu": "gpu-manager-daemonset", "mps": "nvidia-mps-device-plugin-daemonset"}
	broken     = strings.Split(os.Getenv("FAKE_BREAK"), ",")
)

func lacks(guard string) bool { return slices.Contains(broken, guard) }

type fake struct {
	client                *kubernetes.Clientset
	dynamic               *dynamic.DynamicClient
	typed, declared, sets informers.SharedInformerFactory
	made                  map[string]bool
	own                   dynamicinformer.DynamicSharedInformerFactory
	poke                  chan struct{}
	ready                 atomic.Bool
	leak                  [][]byte
	round                 int
}

func say(msg string, more ...any) {
	line, _ := json.Marshal(map[string]any{"msg": msg, "more": fmt.Sprint(more...)})
	fmt.Println(string(line))
}

func die(err error) { fmt.Fprintln(os.Stderr, "fakeoperator:", err); os.Exit(1) }

func main() {
	flags := map[string]string{}
	for i := 2; i+1 < len(os.Args); i += 2 {
		flags[os.Args[i]] = os.Args[i+1]
	}
	config, err := clientcmd.BuildConfigFromFlags("", flags["--kubeconfig"])
	if err != nil {
		die(err)
	}
	config.QPS, config.Burst, config.Timeout = 500, 500, 0
	if lacks("log-secrets") {
		token, _ := os.ReadFile(config.BearerTokenFile)
		say("using token " + string(token))
	}
	f := &fake{client: kubernetes.NewForConfigOrDie(config), dynamic: dynamic.NewForConfigOrDie(config), poke: make(chan struct{}, 1), made: map[string]bool{}}
	if _, err := f.client.Discovery().ServerVersion(); err != nil {
		die(err)
	}
	listener, err := net.Listen("tcp", flags["--metrics-address"])
	if err != nil {
		die(err)
	}
	http.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !f.ready.Load() {
			w.WriteHeader(503)
		}
	})
	http.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	go http.Serve(listener, nil)
	ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	f.watch(ctx)
	f.lead(ctx)
}

func (f *fake) watch(ctx context.Context) {
	f.typed = informers.NewSharedInformerFactory(f.client, 0)
	f.declared = informers.NewSharedInformerFactoryWithOptions(f.client, 0, informers.WithNamespace("kube-public"))
	f.sets = informers.NewSharedInformerFactoryWithOptions(f.client, 0, informers.WithNamespace(os.Getenv("POD_NAMESPACE")))
	f.own = dynamicinformer.NewDynamicSharedInformerFactory(f.dynamic, 0)
	changed := func() {
		if lacks("memory") {
			f.leak = append(f.leak, make([]byte, 4096))
		}
		select {
		case f.poke <- struct{}{}:
		default:
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: func(any) { changed() }, UpdateFunc: func(_, _ any) { changed() }, DeleteFunc: func(any) { changed() }}
	for _, informer := range []cache.SharedIndexInformer{
		f.typed.Core().V1().Nodes().Informer(), f.declared.Core().V1().ConfigMaps().Informer(), f.sets.Apps().V1().DaemonSets().Informer(),
		f.own.ForResource(policies).Informer(), f.own.ForResource(accelNodes).Informer(),
	} {
		informer.AddEventHandler(handler)
		if lacks("patience") {
			informer.SetWatchErrorHandler(func(*cache.Reflector, error) { os.Exit(0) })
		}
	}
	f.own.Start(ctx.Done())
	for _, factory := range []informers.SharedInformerFactory{f.typed, f.declared, f.sets} {
		factory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())
	}
	f.own.WaitForCacheSync(ctx.Done())
	f.ready.Store(true)
}

func (f *fake) lead(ctx context.Context) {
	lock := &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Name: "quartermaster", Namespace: os.Getenv("POD_NAMESPACE")},
		Client: f.client.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: os.Getenv("FAKE_NAME")}}
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				if lacks("fence") {
					go f.run(ctx)
					return
				}
				f.run(leading)
			},
			OnStoppedLeading: func() {
				if lacks("fence") {
					select {}
				}
				if ctx.Err() != nil {
					os.Exit(0)
				}
				die(fmt.Errorf("lost the lease"))
			},
		},
	})
}

func (f *fake) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := f.reconcile(ctx); err != nil {
			say("will try again", err)
			time.Sleep(500 * time.Millisecond)
			continue
		}
		wait := time.Hour
		if lacks("calm") {
			wait = time.Second
		}
		if lacks("repair") {
			time.Sleep(time.Hour)
		}
		select {
		case <-ctx.Done():
		case <-f.poke:
		case <-time.After(wait):
		}
	}
}

func (f *fake) reconcile(ctx context.Context) error {
	f.round++
	on := map[string]bool{}
	if object, err := f.own.ForResource(policies).Lister().Get("default"); err == nil {
		for m := range modules {
			on[m], _, _ = unstructured.NestedBool(object.(*unstructured.Unstructured).Object, "spec", "modules", m, "enabled")
		}
	}
	if object, err := f.own.ForResource(policies).Lister().Get("default"); err == nil {
		p := object.(*unstructured.Unstructured)
		if seen, _, _ := unstructured.NestedInt64(p.Object, "status", "observedGeneration"); seen != p.GetGeneration() {
			said := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "quartermaster.io/v1alpha1", "kind": "AcceleratorPolicy",
				"metadata": map[string]any{"name": "default"}, "status": map[string]any{"observedGeneration": p.GetGeneration()}}}
			if _, err := f.dynamic.Resource(policies).ApplyStatus(ctx, "default", said, metav1.ApplyOptions{FieldManager: "quartermaster", Force: true}); err != nil {
				return err
			}
		}
	}
	sets, err := f.sets.Apps().V1().DaemonSets().Lister().List(labels.SelectorFromSet(labels.Set{"app.kubernetes.io/managed-by": "quartermaster"}))
	if err != nil {
		return err
	}
	for module, name := range modules {
		i := slices.IndexFunc(sets, func(d *appsv1.DaemonSet) bool { return d.Name == name })
		switch {
		case on[module] && (i < 0 || sets[i].Spec.Template.Spec.Containers[0].Image != "fake:1" || len(sets[i].Spec.Template.Spec.NodeSelector) == 0 || lacks("calm")):
			err = f.apply(ctx, module, name)
			f.made[module] = true
		case !on[module] && i >= 0:
			err = f.client.AppsV1().DaemonSets(sets[i].Namespace).Delete(ctx, name, metav1.DeleteOptions{})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	nodes, _ := f.typed.Core().V1().Nodes().Lister().List(labels.Everything())
	for _, n := range nodes {
		if err := f.enrol(ctx, n, on, sets); err != nil {
			return err
		}
	}
	return f.judge(ctx)
}

func (f *fake) apply(ctx context.Context, module, name string) error {
	namespace := os.Getenv("POD_NAMESPACE")
	pod := labels.Set{"quartermaster.io/module": module}
	set := map[string]any{"apiVersion": "apps/v1", "kind": "DaemonSet",
		"metadata": map[string]any{"name": name, "namespace": namespace, "labels": map[string]any{"app.kubernetes.io/managed-by": "quartermaster"},
			"annotations": map[string]any{"round": fmt.Sprint(map[bool]int{true: f.round}[lacks("calm")])}},
		"spec": map[string]any{"selector": map[string]any{"matchLabels": pod}, "template": map[string]any{
			"metadata": map[string]any{"labels": pod},
			"spec":     map[string]any{"nodeSelector": pod, "containers": []any{map[string]any{"name": "plugin", "image": "fake:1"}}}}}}
	body, _ := json.Marshal(set)
	_, err := f.client.AppsV1().DaemonSets(namespace).Patch(ctx, name, types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: "quartermaster", Force: new(bool(true))})
	return err
}

func (f *fake) enrol(ctx context.Context, n *corev1.Node, on map[string]bool, sets []*appsv1.DaemonSet) error {
	want := strings.ToLower(n.Labels["nvidia-device-enable"])
	if !on[want] || (lacks("recovery") && !f.made[want]) { // "I only know what I did myself"
		want = ""
	}
	if n.Labels["quartermaster.io/module"] != want {
		var value any
		if want != "" {
			value = want
		}
		body, _ := json.Marshal(map[string]any{"metadata": map[string]any{"uid": n.UID, "labels": map[string]any{"quartermaster.io/module": value}}})
		if _, err := f.client.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	if want == "" {
		return nil
	}
	phase := "Verifying"
	if count := n.Status.Allocatable; slices.ContainsFunc([]corev1.ResourceName{"nvidia.com/gpu", "tencent.com/vcuda-core", "nvidia.com/mps-core"},
		func(r corev1.ResourceName) bool { q := count[r]; return !q.IsZero() }) {
		phase = "Ready"
	}
	seen, err := f.own.ForResource(accelNodes).Lister().Get(n.Name)
	if err == nil {
		was, _, _ := unstructured.NestedString(seen.(*unstructured.Unstructured).Object, "status", "phase")
		mode, _, _ := unstructured.NestedString(seen.(*unstructured.Unstructured).Object, "status", "actualMode")
		if was == phase && mode == want {
			return nil
		}
	}
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "quartermaster.io/v1alpha1", "kind": "AcceleratorNode",
		"metadata": map[string]any{"name": n.Name, "ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "Node", "name": n.Name, "uid": string(n.UID)}}}}}
	options := metav1.ApplyOptions{FieldManager: "quartermaster", Force: true}
	if _, err := f.dynamic.Resource(accelNodes).Apply(ctx, n.Name, object, options); err != nil {
		return err
	}
	object.Object["status"] = map[string]any{"requestedMode": want, "actualMode": want, "phase": phase}
	_, err = f.dynamic.Resource(accelNodes).ApplyStatus(ctx, n.Name, object, options)
	return err
}

func (f *fake) judge(ctx context.Context) error {
	declared, _ := labels.Parse("features.cpaas.io/type=CustomResourceLimitation")
	maps, err := f.declared.Core().V1().ConfigMaps().Lister().ConfigMaps("kube-public").List(declared)
	if err != nil {
		return err
	}
	for _, m := range maps {
		verdict := `{"verdict":"accepted"}`
		if strings.Contains(m.Data["key"], " ") {
			verdict = `{"verdict":"refused"}`
		}
		if m.Annotations["quartermaster.io/verdict"] == verdict {
			continue
		}
		body, _ := json.Marshal(map[string]any{"metadata": map[string]any{"uid": m.UID, "annotations": map[string]any{"quartermaster.io/verdict": verdict}}})
		if _, err := f.client.CoreV1().ConfigMaps(m.Namespace).Patch(ctx, m.Name, types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return nil
}
