package image

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"quartermaster.io/test/faults/kit"
)

// load is one pod with a card per second. Each goes 5 s after its node is known, so at most six of the node's eight cards are in use.
type load struct {
	*product
	mu      sync.Mutex
	made    int
	slowest time.Duration
	wrong   []string
	holders map[string]string // of each card: the pod that was bound to it and is not deleted yet
}

func (l *load) say(format string, values ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, fmt.Sprintf(format, values...))
}

func (l *load) run(until context.Context) {
	var pods sync.WaitGroup
	defer pods.Wait()
	for tick := time.NewTicker(time.Second); ; {
		select {
		case <-until.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
		none := int64(0)
		pod, err := l.Client.CoreV1().Pods("default").Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("load-%d", l.made)},
			Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &none, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
				Containers: []corev1.Container{{Name: "main", Image: pause, ImagePullPolicy: corev1.PullNever,
					Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{gpu: resource.MustParse("1")}}}}}}, metav1.CreateOptions{})
		l.made++
		if err != nil {
			l.say("a pod was refused: %v", err)
			continue
		}
		pods.Go(func() { l.follow(pod.Name) })
	}
}

// follow a pod to its node and its cards, and to its end.
func (l *load) follow(name string) {
	began := time.Now()
	pods := l.Client.CoreV1().Pods("default")
	var pod *corev1.Pod
	for {
		var err error
		if pod, err = pods.Get(ctx, name, metav1.GetOptions{}); err == nil && pod.Spec.NodeName != "" {
			break
		}
		if time.Since(began) > 30*time.Second {
			l.say("%s is on no node after 30 s: %+v %v", name, pod.Status.Conditions, err)
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	cards := l.takes(pod, time.Since(began))
	time.Sleep(5 * time.Second)
	l.mu.Lock()
	for _, card := range cards { // before the pod goes: after it the card may have its next holder at once
		delete(l.holders, card)
	}
	l.mu.Unlock()
	if err := pods.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		l.say("%s could not be deleted: %v", name, err)
	}
}

// takes the cards of its placement, which nobody else may have.
func (l *load) takes(pod *corev1.Pod, took time.Duration) (cards []string) {
	placement, err := kit.PlacementOf(pod)
	if err != nil || placement == nil {
		l.say("%s on %q has the placement %v %v", pod.Name, pod.Spec.NodeName, placement, err)
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slowest = max(l.slowest, took)
	for _, shares := range placement.Containers {
		for _, share := range shares {
			if holder := l.holders[share.Card]; holder != "" {
				l.wrong = append(l.wrong, fmt.Sprintf("%s and %s have card %s", holder, pod.Name, share.Card))
			}
			l.holders[share.Card] = pod.Name
			cards = append(cards, share.Card)
		}
	}
	if len(cards) != 1 {
		l.wrong = append(l.wrong, fmt.Sprintf("%s has the cards %v", pod.Name, cards))
	}
	return cards
}

// underLoad does the work while pods with cards come and go, and says what went wrong with one of them.
func (p *product) underLoad(work func()) {
	p.t.Helper()
	l := &load{product: p, holders: map[string]string{}}
	until, end := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); l.run(until) }()
	defer func() {
		end()
		<-ended
		p.t.Logf("%d pods meanwhile; the slowest was on its node after %.1f s", l.made, l.slowest.Seconds())
		for _, wrong := range l.wrong {
			p.t.Error(wrong)
		}
	}()
	work()
	time.Sleep(3 * time.Second)
}
