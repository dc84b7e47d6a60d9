package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"quartermaster.io/bench/kit"
	"quartermaster.io/bench/sync/load"
)

// lives are whole lives of pods as a ReplicaSet, a scheduler and a kubelet make them: created, bound, and four times the status. They are
// judged with as many declared keys as a cluster with several vendors has. With all of the bench's keys they say how the cost grows.
var lives = []struct {
	name   string
	limits map[string]string
	target float64
}{
	{"a pod without cards", nil, 1.10},
	{"a pod with a card", map[string]string{"nvidia.com/gpu": "1"}, 1.30},
}

const statuses, nodes, usual = 4, 20, 20

// sizes are the numbers of declared keys that lives are measured with.
func sizes(o options) []int { return slices.Compact([]int{o.keys, usual}) }

// row is the name of a life with so many declared keys.
func row(life string, keys int) string { return fmt.Sprintf("%s, %d declared keys", life, keys) }

// declare so many keys in place of those that are there.
func (c *cluster) declare(ctx context.Context, keys int, enforced bool) error {
	labels := map[string]string{"quartermaster.io/enforcement": "Deny"}
	if enforced {
		labels["quartermaster.io/scheduler"] = "Dedicated"
	}
	return c.Run(ctx, rules(keys, labels), "kubectl", "replace", "-f", "-")
}

// settled: what the lives need beside pods.
func (c *cluster) settled(ctx context.Context) error {
	// The rules fill it in for pods with a card.
	if _, err := c.Client.NodeV1().RuntimeClasses().Create(ctx, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "nvidia"}, Handler: "nvidia"}, metav1.CreateOptions{}); err != nil {
		return err
	}
	for i := range nodes {
		if _, err := c.Client.CoreV1().Nodes().Create(ctx, load.Node(1, i), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// profile the CPU of the API server for 10 s, into a file. The function returned waits for its end.
func (c *cluster) profile(ctx context.Context, into string) func() error {
	done := make(chan error, 1)
	go func() {
		text, err := c.Client.CoreV1().RESTClient().Get().AbsPath("/debug/pprof/profile").Param("seconds", "10").DoRaw(ctx)
		if err == nil {
			err = os.WriteFile(into, text, 0o644)
		}
		done <- err
	}()
	return func() error { return <-done }
}

// live takes so many pods through their lives and says what CPU each cost the API server.
func (c *cluster) live(ctx context.Context, o options, prefix string, limits map[string]string) (time.Duration, error) {
	c.made++
	pods := c.Client.CoreV1().Pods(namespace)
	name := func(i int) string { return fmt.Sprintf("%s-life-%d-%d", prefix, c.made, i) }
	create := func(i int) error {
		pod := podOf(i, limits, false)
		pod.Name = name(i)
		_, err := pods.Create(ctx, pod, metav1.CreateOptions{})
		return err
	}
	bind := func(i int) error {
		return pods.Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: name(i)}, Target: corev1.ObjectReference{Kind: "Node", Name: load.NodeName(i % nodes)}}, metav1.CreateOptions{})
	}
	status := func(i int) error {
		changed := time.Unix(1_700_000_000+int64(i)*7919, 0).UTC().Format(time.RFC3339)
		body := fmt.Sprintf(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastTransitionTime":%q}]}}`, changed)
		_, err := pods.Patch(ctx, name(i%o.pods), types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{}, "status")
		return err
	}
	if !o.short {
		if err := c.settle(ctx); err != nil {
			return 0, err
		}
	}
	before, err := kit.CPU(c.PID("kube-apiserver"))
	if err != nil {
		return 0, err
	}
	for _, stage := range []struct {
		count int
		do    func(int) error
	}{{o.pods, create}, {o.pods, bind}, {statuses * o.pods, status}} {
		if err := kit.Each(stage.count, o.workers, stage.do); err != nil {
			return 0, err
		}
	}
	after, err := kit.CPU(c.PID("kube-apiserver"))
	return (after - before) / time.Duration(o.pods), err
}
