package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// annotationsOf is what the pod gets with its Binding: our placement, and what the node's plugin reads.
func annotationsOf(pod *corev1.Pod, where *placement, on *node) map[string]string {
	text, _ := json.Marshal(where)
	out := map[string]string{placementKey: string(text)}
	now := strconv.FormatInt(time.Now().UnixNano(), 10)
	grants := func(i int) []grant { return where.Containers[pod.Spec.Containers[i].Name] }
	switch on.mode {
	case "vgpu":
		out["tencent.com/predicate-time"], out["tencent.com/predicate-node"], out["tencent.com/gpu-assigned"] = now, where.Node, "false"
		for i := range pod.Spec.Containers {
			var cards []string
			for _, g := range grants(i) {
				cards = append(cards, strconv.Itoa(on.cardAt(g.Card)))
			}
			if len(cards) > 0 {
				out[fmt.Sprintf("tencent.com/predicate-gpu-idx-%d", i)] = strings.Join(cards, ",")
			}
		}
	case "hami", "hami-gpu":
		var devices strings.Builder
		for i := range pod.Spec.Containers {
			for _, g := range grants(i) {
				fmt.Fprintf(&devices, "%s,NVIDIA,%d,%d:", g.Card, g.MemoryMiB, g.Cores)
			}
			devices.WriteByte(';')
		}
		seconds := strconv.FormatInt(time.Now().Unix(), 10)
		out["hami.io/vgpu-node"], out["hami.io/vgpu-time"], out["hami.io/bind-time"], out["hami.io/bind-phase"] = where.Node, seconds, seconds, "allocating"
		out["hami.io/vgpu-devices-to-allocate"], out["hami.io/vgpu-devices-allocated"] = devices.String(), devices.String()
	case "gpushare":
		for i := range pod.Spec.Containers {
			for _, g := range grants(i) {
				at := on.cardAt(g.Card)
				out["ALIYUN_COM_GPU_MEM_IDX"], out["ALIYUN_COM_GPU_MEM_ASSIGNED"], out["ALIYUN_COM_GPU_MEM_ASSUME_TIME"] = strconv.Itoa(at), "false", now
				out["ALIYUN_COM_GPU_MEM_POD"], out["ALIYUN_COM_GPU_MEM_DEV"] = strconv.FormatInt(g.MemoryMiB/1024, 10), strconv.FormatInt(on.cards[at].memoryMiB/1024, 10)
			}
		}
	}
	return out
}

// seePod takes in what the API says of a pod.
func (e *extender) seePod(pod *corev1.Pod) {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		e.lose(pod)
		return
	}
	if pod.Spec.NodeName == "" {
		return
	}
	e.waiting.drop(pod.UID)
	e.book.mu.Lock()
	defer e.book.mu.Unlock()
	if h := e.book.holdings[pod.UID]; h != nil && h.assumed.IsZero() && h.where.Node == pod.Spec.NodeName {
		return
	}
	if text := pod.Annotations[placementKey]; text != "" {
		var where placement
		if json.Unmarshal([]byte(text), &where) == nil && where.Node == pod.Spec.NodeName {
			e.book.book(pod.UID, &holding{where: &where})
			return
		}
	}
	n := e.book.nodes[pod.Spec.NodeName]
	if n == nil || !asks(pod, e.book.declared) {
		return
	}
	d := demandOf(pod, n.mode, e.book.declared) // bound by someone else: booked where it would have been put
	where := &placement{V: 1, Node: n.name, Source: "guessed", Containers: map[string][]grant{}, Counts: d.counts}
	if n.fit(&d, where) == "" {
		e.book.book(pod.UID, &holding{where: where})
	}
}

func (e *extender) lose(pod *corev1.Pod) {
	e.waiting.drop(pod.UID)
	e.book.mu.Lock()
	freed := e.book.release(pod.UID)
	e.book.mu.Unlock()
	if freed {
		e.waiting.wake()
	}
}

// waitingPods are pods for which the scheduler got the answer that they fit nowhere.
type waitingPods struct {
	mu   sync.Mutex
	all  map[types.UID]*corev1.Pod
	call chan struct{}
}

func (w *waitingPods) start() chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.call == nil {
		w.call = make(chan struct{}, 1)
	}
	return w.call
}

func (w *waitingPods) add(pod *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[types.UID]*corev1.Pod{}
	}
	if len(w.all) < 10_000 {
		thin, _ := slim(pod)
		w.all[pod.UID] = thin.(*corev1.Pod)
	}
}

func (w *waitingPods) drop(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.all, uid)
}

func (w *waitingPods) wake() {
	select {
	case w.start() <- struct{}{}:
	default:
	}
}

// nudge: the scheduler may have asked for a waiting pod before we heard of a release. An annotation on a pod that now fits makes it ask again.
func (e *extender) nudge(ctx context.Context) {
	for call := e.waiting.start(); ; {
		select {
		case <-ctx.Done():
			return
		case <-call:
		}
		if !e.serves.Load() {
			continue
		}
		time.Sleep(200 * time.Millisecond) // several releases, one look
		e.waiting.mu.Lock()
		var some []*corev1.Pod
		for _, pod := range e.waiting.all {
			if len(some) == 50 {
				break
			}
			some = append(some, pod)
		}
		e.waiting.mu.Unlock()
		e.book.mu.RLock()
		names := make([]string, 0, len(e.book.nodes))
		for name := range e.book.nodes {
			names = append(names, name)
		}
		e.book.mu.RUnlock()
		told := 0
		for _, pod := range some {
			reasons := make([]string, len(names))
			e.book.filter(pod, names, reasons)
			for _, reason := range reasons {
				if reason != "" {
					continue
				}
				e.waiting.drop(pod.UID)
				patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{"quartermaster.io/nudge":"%d"}}}`, pod.UID, time.Now().UnixMilli())
				_, _ = e.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
				told++
				break
			}
			if told == 4 {
				break
			}
		}
	}
}
