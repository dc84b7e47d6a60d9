package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"quartermaster.io/bench/kit"
)

const (
	namespace  = "default"
	container  = "main"
	image      = "quartermaster.test/pause:1" // every real node has it
	roundLabel = "round"
	lockKey    = "hami.io/mutex.lock"
)

// share of a card that a pod has.
type share struct {
	Card      string `json:"card"`
	Cores     int64  `json:"cores"`
	MemoryMiB int64  `json:"memoryMiB"`
	Whole     bool   `json:"whole"`
}

// contender is a plugin with what its pods ask for, or none.
type contender struct {
	name     string
	limits   func(share) corev1.ResourceList
	bind     func(context.Context, *corev1.Pod, share) error
	programs []*kit.NodeProcess // that take part in a start
	memory   []*kit.NodeProcess // without which there is no plugin
}

// outcome of a round: from the first create until all run, and of each pod from its create until it runs.
type outcome struct {
	all  time.Duration
	each []float64 // ms
	cpu  time.Duration
}

func limits(amounts map[string]int64) corev1.ResourceList {
	list := corev1.ResourceList{}
	for key, amount := range amounts {
		list[corev1.ResourceName(key)] = *resource.NewQuantity(amount, resource.DecimalSI)
	}
	return list
}

func podOf(name, round string, c *contender, part share) *corev1.Pod {
	second, no := int64(1), false
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{roundLabel: round}}, Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &second, AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers:  []corev1.Container{{Name: container, Image: image, ImagePullPolicy: corev1.PullNever, Resources: corev1.ResourceRequirements{Limits: c.limits(part)}}}}}
}

// bindPod is what a scheduler does last. Annotations of a Binding become the pod's.
func (b *bed) bindPod(ctx context.Context, pod *corev1.Pod, annotations map[string]string) error {
	return b.Client.CoreV1().Pods(namespace).Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID, Annotations: annotations},
		Target: corev1.ObjectReference{Kind: "Node", Name: kit.RealNode}}, metav1.CreateOptions{})
}

func (b *bed) bindPlainly(ctx context.Context, pod *corev1.Pod, _ share) error {
	return b.bindPod(ctx, pod, nil)
}

// bindPlaced as our extender does.
func (b *bed) bindPlaced(ctx context.Context, pod *corev1.Pod, part share) error {
	text, err := json.Marshal(map[string]any{"v": 1, "node": kit.RealNode, "source": "planned", "containers": map[string]any{container: []share{part}}})
	if err != nil {
		return err
	}
	return b.bindPod(ctx, pod, map[string]string{"quartermaster.io/placement": string(text)})
}

// bindLocked as HAMi's scheduler does (v2.10.0, pkg/scheduler/scheduler.go Filter and Bind): it names the card at filter; to bind it takes the
// node's lock, which HAMi's plugin gives back when the pod has its card. While another pod has the lock a Bind fails, and kube-scheduler tries again
// after a second or more. Here the next one binds at once.
func (b *bed) bindLocked(ctx context.Context, pod *corev1.Pod, part share) error {
	list := fmt.Sprintf("%s,NVIDIA,%d,%d:;", part.Card, part.MemoryMiB, part.Cores)
	if err := b.annotate(ctx, pod.Name, map[string]string{"hami.io/vgpu-node": kit.RealNode, "hami.io/vgpu-time": fmt.Sprint(time.Now().Unix()),
		"hami.io/vgpu-devices-to-allocate": list, "hami.io/vgpu-devices-allocated": list}); err != nil {
		return err
	}
	b.hamiLock.Lock()
	defer b.hamiLock.Unlock()
	nodes := b.Client.CoreV1().Nodes()
	node, err := nodes.Get(ctx, kit.RealNode, metav1.GetOptions{})
	for ; err == nil && node.Annotations[lockKey] != ""; node, err = nodes.Get(ctx, kit.RealNode, metav1.GetOptions{}) {
		if err := kit.Pause(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	lock, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		lockKey: time.Now().Format(time.RFC3339) + "," + namespace + "," + pod.Name}}})
	if err != nil {
		return err
	}
	if _, err := nodes.Patch(ctx, kit.RealNode, types.MergePatchType, lock, metav1.PatchOptions{}); err != nil {
		return err
	}
	if err := b.annotate(ctx, pod.Name, map[string]string{"hami.io/bind-phase": "allocating", "hami.io/bind-time": fmt.Sprint(time.Now().Unix())}); err != nil {
		return err
	}
	return b.bindPod(ctx, pod, nil)
}

func (b *bed) annotate(ctx context.Context, name string, annotations map[string]string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err == nil {
		_, err = b.Client.CoreV1().Pods(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	return err
}

// round makes so many pods at once, waits until they run, and takes them away.
func (b *bed) round(ctx context.Context, c *contender, shares []share) (outcome, error) {
	var out outcome
	b.rounds++
	name := fmt.Sprintf("r%d", b.rounds)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	before, err := c.cpu()
	if err != nil {
		return out, err
	}
	pods := b.Client.CoreV1().Pods(namespace)
	watcher := &watched{pods, metav1.ListOptions{LabelSelector: roundLabel + "=" + name}, nil}
	if err := watcher.open(ctx); err != nil {
		return out, err
	}
	defer watcher.Stop()
	made := make([]time.Time, len(shares))
	var all sync.WaitGroup
	failed := make(chan error, len(shares))
	for i, part := range shares {
		all.Go(func() {
			made[i] = time.Now()
			pod, err := pods.Create(ctx, podOf(fmt.Sprintf("%s-%d", name, i), name, c, part), metav1.CreateOptions{})
			if err == nil {
				err = c.bind(ctx, pod, part)
			}
			if err != nil {
				failed <- fmt.Errorf("%s, pod %d: %w", c.name, i, err)
				cancel()
			}
		})
	}
	runs, err := await(ctx, watcher, len(shares))
	all.Wait()
	select {
	case err = <-failed:
	default:
	}
	if err != nil {
		return out, fmt.Errorf("%s: %w; %s", c.name, err, b.tails())
	}
	first, last := made[0], time.Time{}
	for i, began := range made {
		ran := runs[fmt.Sprintf("%s-%d", name, i)]
		out.each = append(out.each, kit.Milliseconds(ran.Sub(began)))
		if began.Before(first) {
			first = began
		}
		if ran.After(last) {
			last = ran
		}
	}
	out.all = last.Sub(first)
	after, err := c.cpu()
	if err != nil {
		return out, err
	}
	out.cpu = after - before
	return out, b.clear(ctx, name)
}

// watched are the pods of a round. An API server may end a watch at any time; the next one begins with all that are there.
type watched struct {
	pods typed.PodInterface
	of   metav1.ListOptions
	watch.Interface
}

func (w *watched) open(ctx context.Context) (err error) {
	w.Interface, err = w.pods.Watch(ctx, w.of)
	return err
}

// await until so many pods run: when each was seen to.
func await(ctx context.Context, watcher *watched, number int) (map[string]time.Time, error) {
	runs := map[string]time.Time{}
	seen := map[string]string{}
	for len(runs) < number {
		select {
		case event, open := <-watcher.ResultChan():
			pod, is := event.Object.(*corev1.Pod)
			if !open && ctx.Err() == nil {
				if err := watcher.open(ctx); err != nil {
					return nil, err
				}
				continue
			}
			if !open || !is {
				return nil, fmt.Errorf("the watch of pods ended: %v %w", event.Object, ctx.Err())
			}
			seen[pod.Name] = stateOf(pod)
			switch pod.Status.Phase {
			case corev1.PodRunning:
				if _, known := runs[pod.Name]; !known {
					runs[pod.Name] = time.Now()
				}
			case corev1.PodFailed, corev1.PodSucceeded:
				return nil, fmt.Errorf("pod %s does not run: %s", pod.Name, stateOf(pod))
			}
		case <-ctx.Done():
			var wait []string
			for name, state := range seen {
				if _, is := runs[name]; !is {
					wait = append(wait, name+" "+state)
				}
			}
			return nil, fmt.Errorf("%d of %d pods run: %w: %s", len(runs), number, ctx.Err(), strings.Join(wait[:min(3, len(wait))], "; "))
		}
	}
	return runs, nil
}

func stateOf(pod *corev1.Pod) string {
	text := fmt.Sprintf("%s %s %s", pod.Status.Phase, pod.Status.Reason, pod.Status.Message)
	for _, status := range pod.Status.ContainerStatuses {
		if waiting := status.State.Waiting; waiting != nil {
			text += " " + waiting.Reason + ": " + waiting.Message
		}
	}
	return text
}

// clear the pods of a round away, until the kubelet has no more of them.
func (b *bed) clear(ctx context.Context, round string) error {
	pods := b.Client.CoreV1().Pods(namespace)
	choice := metav1.ListOptions{LabelSelector: roundLabel + "=" + round}
	if err := pods.DeleteCollection(ctx, metav1.DeleteOptions{}, choice); err != nil {
		return err
	}
	for {
		list, err := pods.List(ctx, choice)
		if err != nil {
			return err
		}
		if len(list.Items) == 0 {
			return kit.Pause(ctx, b.settle)
		}
		if err := kit.Pause(ctx, 200*time.Millisecond); err != nil {
			return fmt.Errorf("%d pods do not go: %w", len(list.Items), err)
		}
	}
}

func (c *contender) cpu() (sum time.Duration, err error) {
	for _, program := range c.programs {
		if err := program.Alive(); err != nil {
			return 0, err
		}
		one, err := program.CPU()
		if err != nil {
			return 0, err
		}
		sum += one
	}
	return sum, nil
}
