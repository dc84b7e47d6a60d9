package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"quartermaster.io/bench/kit"
)

const (
	schedulerName = "bench-extender"
	roundLabel    = "bench-round"
)

// startScheduler runs a kube-scheduler of the cluster's version on the control core; `extender` empty: without one.
func (b *bench) startScheduler(ctx context.Context, extender string) (stop func(), err error) {
	program, err := b.Program("kube-scheduler")
	if err != nil {
		return nil, err
	}
	addresses, err := kit.FreeAddresses(1)
	if err != nil {
		return nil, err
	}
	address := addresses[0]
	_, port, _ := strings.Cut(address, ":")
	config := fmt.Sprintf("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nleaderElection: {leaderElect: false}\n"+
		"clientConnection: {kubeconfig: %q, qps: 5000, burst: 10000}\nprofiles: [{schedulerName: %s}]\n", b.Kubeconfig, schedulerName)
	if extender != "" {
		config += fmt.Sprintf("extenders:\n- {urlPrefix: \"https://%s/scheduler\", filterVerb: filter, prioritizeVerb: prioritize, bindVerb: bind, preemptVerb: preempt, weight: 1, enableHTTPS: true,\n"+
			"   nodeCacheCapable: true, tlsConfig: {caFile: %q, certFile: %q, keyFile: %q},\n   managedResources: [{name: tencent.com/vcuda-core}]}\n", extender,
			filepath.Join(b.keys, "ca.crt"), filepath.Join(b.keys, "client.crt"), filepath.Join(b.keys, "client.key"))
	}
	file := filepath.Join(b.keys, "scheduler.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	scheduler, err := kit.Spawn(b.controlCore, program, "--config="+file, "--bind-address=127.0.0.1", "--secure-port="+port, "--cert-dir="+b.keys,
		"--authentication-kubeconfig="+b.Kubeconfig, "--authorization-kubeconfig="+b.Kubeconfig)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		if reply, err := client.Get("https://" + address + "/readyz"); err == nil {
			reply.Body.Close()
			if reply.StatusCode == http.StatusOK {
				return scheduler.Kill, nil
			}
		}
	}
	scheduler.Kill()
	return nil, fmt.Errorf("kube-scheduler is not ready: %s", scheduler.Tail)
}

func (b *bench) pin(control, extender int) {
	b.controlCore, b.extenderCore = control, extender
	kit.PinSelf(control)
	pinPlane(filepath.Dir(b.Kubeconfig), control)
}

// throughput, on all cores (what calls cost by themselves has been measured; here the programs work with each other): pods a second from the first create to the last binding, with our extender and with none, the same scheduler.
func (b *bench) throughput(ctx context.Context, pods, rounds int) error {
	defer b.pin(b.controlCore, b.extenderCore)
	b.pin(kit.AnyCore, kit.AnyCore)
	config := rest.CopyConfig(b.Config)
	config.ContentType, config.AcceptContentTypes = "", "" // JSON, as most clients
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for round := range rounds {
		for _, with := range kit.InTurn([]bool{true, false}, round) {
			took, err := b.oneThroughput(ctx, client, pods, fmt.Sprintf("%d-%v", round, with), with)
			if err != nil {
				return err
			}
			name, into := "without an extender", b.peer
			if with {
				name, into = "with ours", b.ours
			}
			into.found.Add("a pod", float64(took.Microseconds())/1000/float64(pods))
			kit.Say("%s: %d pods in %s, %.0f a second", name, pods, took.Round(time.Millisecond), float64(pods)/took.Seconds())
		}
	}
	return nil
}

func (b *bench) oneThroughput(ctx context.Context, client *kubernetes.Clientset, pods int, round string, with bool) (time.Duration, error) {
	extender := ""
	if with {
		p, a, _, err := b.begin(ctx, b.ours)
		if err != nil {
			return 0, err
		}
		a.close()
		defer p.Kill()
		extender = p.address
	}
	stop, err := b.startScheduler(ctx, extender)
	if err != nil {
		return 0, err
	}
	defer stop()
	selector := metav1.ListOptions{LabelSelector: roundLabel + "=" + round}
	defer func() {
		_ = client.CoreV1().Pods("default").DeleteCollection(context.Background(), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, selector)
	}()
	watch, err := client.CoreV1().Pods("default").Watch(ctx, selector)
	if err != nil {
		return 0, err
	}
	defer watch.Stop()
	before := spent(filepath.Dir(b.Kubeconfig), b.keys)
	defer func() {
		text := ""
		after := spent(filepath.Dir(b.Kubeconfig), b.keys)
		for _, name := range slices.Sorted(maps.Keys(after)) {
			text += fmt.Sprintf(" %s %.1f", name, float64((after[name]-before[name]).Microseconds())/1000/float64(pods))
		}
		kit.Say("CPU a pod, ms:%s", text)
	}()
	began := time.Now()
	failed := make(chan error, 1)
	var next atomic.Int64
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for i := next.Add(1) - 1; i < int64(pods); i = next.Add(1) - 1 {
				limits := corev1.ResourceList{"tencent.com/vcuda-core": resource.MustParse("5"), "tencent.com/vcuda-memory": resource.MustParse("4")}
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p-%s-%d", round, i), Labels: map[string]string{roundLabel: round}},
					Spec: corev1.PodSpec{SchedulerName: schedulerName, Containers: []corev1.Container{{Name: "main", Image: "x", Resources: corev1.ResourceRequirements{Limits: limits}}}}}
				if _, err := client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
					select {
					case failed <- err:
					default:
					}
					return
				}
			}
		})
	}
	defer writers.Wait()
	bound := map[string]bool{}
	timer := time.NewTimer(5 * time.Minute)
	defer timer.Stop()
	for {
		select {
		case event, open := <-watch.ResultChan():
			if !open {
				return 0, errors.New("the watch of the pods ended")
			}
			if pod, ok := event.Object.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
				bound[pod.Name] = true
			}
			if len(bound) == pods {
				return time.Since(began), nil
			}
		case err := <-failed:
			return 0, err
		case <-timer.C:
			return 0, fmt.Errorf("after 5 minutes %d of %d pods are bound", len(bound), pods)
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}
