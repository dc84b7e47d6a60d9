package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	schedulerName = "bench-extender"
	roundLabel    = "bench-round"
)

// startScheduler runs a kube-scheduler of the cluster's version on the control core; `extender` empty: without one.
func (b *bench) startScheduler(ctx context.Context, extender string) (stop func(), err error) {
	program := ""
	for _, folder := range filepath.SplitList(b.facts["PROGRAMS_PATH"]) {
		if path := filepath.Join(folder, "kube-scheduler"); program == "" {
			if _, err := os.Stat(path); err == nil {
				program = path
			}
		}
	}
	if program == "" {
		return nil, errors.New("no kube-scheduler")
	}
	address, _, err := freeAddresses()
	if err != nil {
		return nil, err
	}
	_, port, _ := bytes.Cut([]byte(address), []byte(":"))
	config := fmt.Sprintf("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nleaderElection: {leaderElect: false}\n"+
		"clientConnection: {kubeconfig: %q, qps: 5000, burst: 10000}\nprofiles: [{schedulerName: %s}]\n", b.kubeconfig, schedulerName)
	if extender != "" {
		config += fmt.Sprintf("extenders:\n- {urlPrefix: \"https://%s/scheduler\", filterVerb: filter, prioritizeVerb: prioritize, bindVerb: bind, preemptVerb: preempt, weight: 1, enableHTTPS: true,\n"+
			"   nodeCacheCapable: true, tlsConfig: {caFile: %q, certFile: %q, keyFile: %q},\n   managedResources: [{name: tencent.com/vcuda-core}]}\n", extender,
			filepath.Join(b.keys, "ca.crt"), filepath.Join(b.keys, "client.crt"), filepath.Join(b.keys, "client.key"))
	}
	file := filepath.Join(b.keys, "scheduler.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	said := &bytes.Buffer{}
	command := exec.Command("taskset", "-c", coreList(b.controlCore), program, "--config="+file, "--bind-address=127.0.0.1", "--secure-port="+string(port), "--cert-dir="+b.keys,
		"--authentication-kubeconfig="+b.kubeconfig, "--authorization-kubeconfig="+b.kubeconfig)
	command.Stdout, command.Stderr = said, said
	if err := command.Start(); err != nil {
		return nil, err
	}
	stop = func() { command.Process.Kill(); command.Wait() }
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		if reply, err := client.Get("https://" + address + "/readyz"); err == nil {
			reply.Body.Close()
			if reply.StatusCode == http.StatusOK {
				return stop, nil
			}
		}
	}
	stop()
	return nil, fmt.Errorf("kube-scheduler is not ready: %.800s", said)
}

func (b *bench) pin(control, extender int) {
	b.controlCore, b.extenderCore = control, extender
	pinSelf(control)
	pinPlane(filepath.Dir(b.kubeconfig), control)
}

// throughput, on all cores (what calls cost by themselves has been measured; here the programs work with each other): pods a second from the first create to the last binding, with our extender and with none, the same scheduler.
func (b *bench) throughput(ctx context.Context, pods, rounds int) error {
	config, err := clientcmd.BuildConfigFromFlags("", b.kubeconfig)
	if err != nil {
		return err
	}
	defer b.pin(b.controlCore, b.extenderCore)
	b.pin(anyCore, anyCore)
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for round := range rounds {
		order := []bool{true, false}
		if round%2 != 0 {
			order = []bool{false, true}
		}
		for _, with := range order {
			took, err := b.oneThroughput(ctx, client, pods, fmt.Sprintf("%d-%v", round, with), with)
			if err != nil {
				return err
			}
			name, into := "without an extender", b.peer
			if with {
				name, into = "with ours", b.ours
			}
			into.found.Add("a pod", float64(took.Microseconds())/1000/float64(pods))
			say("%s: %d pods in %s, %.0f a second", name, pods, took.Round(time.Millisecond), float64(pods)/took.Seconds())
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
		defer p.kill()
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
	before := spent(filepath.Dir(b.kubeconfig), b.keys)
	defer func() {
		text := ""
		after := spent(filepath.Dir(b.kubeconfig), b.keys)
		for _, name := range slices.Sorted(maps.Keys(after)) {
			text += fmt.Sprintf(" %s %.1f", name, float64((after[name]-before[name]).Microseconds())/1000/float64(pods))
		}
		say("CPU a pod, ms:%s", text)
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
