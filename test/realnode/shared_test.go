package realnode

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"quartermaster.io/test/faults/kit"
)

// shared is a cluster with two kube-schedulers: its own, and the operator's with the file the operator has made. Nodes: real-1 with cards,
// and one as large without. What three pods ask for fills a node, but for less than one more.
type shared struct {
	*product
	each resource.Quantity
}

func openShared(t *testing.T) *shared {
	t.Helper()
	own := &kit.Cluster{Name: cluster.Name + "-shared"}
	t.Cleanup(func() { own.Down() })
	own, err := kit.Up(ctx, own.Name, minor, "--real-node")
	must(t, err)
	s := &shared{product: install(t, own)}
	node, err := s.Client.CoreV1().Nodes().Get(ctx, real1, metav1.GetOptions{})
	must(t, err)
	room := node.Status.Allocatable.Cpu().MilliValue()
	s.each = *resource.NewMilliQuantity((room-100)/3, resource.DecimalSI) // the module's plugin asks for 50m
	amounts := corev1.ResourceList{"cpu": *resource.NewMilliQuantity(room+200, resource.DecimalSI), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110")}
	plain := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "plain-0", Labels: map[string]string{"kubernetes.io/hostname": "plain-0", "kubernetes.io/os": "linux"}},
		Status: corev1.NodeStatus{Capacity: amounts, Allocatable: amounts}}
	_, err = s.Client.CoreV1().Nodes().Create(ctx, plain, metav1.CreateOptions{})
	must(t, err)
	s.cards()
	// The Deployment's pods are KWOK's.
	s.patch(map[string]any{"spec": map[string]any{"unschedulable": true}})
	s.isolate(false)
	s.patch(map[string]any{"spec": map[string]any{"unschedulable": nil}})
	return s
}

// isolate nodes with accelerators, or not, and wait until that is so.
func (s *shared) isolate(is bool) {
	s.t.Helper()
	s.scheduler(map[string]any{"mode": "Dedicated", "isolateNodes": is})
	await(s.t, 60*time.Second, fmt.Sprintf("isolateNodes %v", is), func() (bool, error) {
		policy, err := s.Dynamic.Resource(kit.Policies).Get(ctx, "default", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		node, err := s.Client.CoreV1().Nodes().Get(ctx, real1, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		rows, _, _ := unstructured.NestedSlice(policy.Object, "status", "schedulers")
		taints := fmt.Sprint(node.Spec.Taints)
		ready := len(rows) == 1 && rows[0].(map[string]any)["reason"] == "Dedicated"
		return ready && strings.Contains(taints, kit.IsolationTaint) == is, fmt.Errorf("%v %s", rows, taints)
	})
}

// load of a round: three pods with a card and six without, together more than both nodes have, made at once.
func (s *shared) load() (pods []*corev1.Pod) {
	for i := range 9 {
		pod := adding(fmt.Sprintf("web-%d", i), "")
		pod.Spec.NodeSelector, pod.Spec.Tolerations = nil, nil
		if i < 3 {
			pod = asksFor(pod)
			pod.Name, pod.Spec.SchedulerName = fmt.Sprintf("card-%d", i), "quartermaster"
			pod.Spec.Tolerations = []corev1.Toleration{{Key: kit.IsolationTaint, Operator: corev1.TolerationOpExists}}
		}
		pod.Spec.Containers[0].Image, pod.Spec.Containers[0].Args = pause, nil
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": s.each}
		pods = append(pods, pod)
	}
	return
}

// make them at once.
func (s *shared) make(pods []*corev1.Pod) {
	s.t.Helper()
	var all sync.WaitGroup
	for _, pod := range pods {
		all.Go(func() {
			if _, err := s.Client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
				s.t.Error(err)
			}
		})
	}
	all.Wait()
}

// round makes a load, waits until it is at rest and takes it away. Slow: the cluster's own kube-scheduler has its turn while Bindings of
// pods with cards are on their way, which are decided then and not to be seen.
func (s *shared) round(slow bool) (refused, cards, plain int) {
	s.t.Helper()
	if load := s.load(); slow {
		s.tap.Delay("bind", 3*time.Second)
		s.make(load[:3])
		time.Sleep(time.Second)
		s.make(load[3:])
	} else {
		s.make(load)
	}
	// At rest: no pod has been starting on a node, for longer than a kube-scheduler takes to try again, or a Binding.
	pods := s.Client.CoreV1().Pods("default")
	said, since := "", time.Now()
	quiet := 1500 * time.Millisecond
	if slow {
		quiet = 4 * time.Second
	}
	for deadline := time.Now().Add(30 * time.Second); time.Since(since) < quiet; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatal("no rest: " + said)
		}
		list, err := pods.List(ctx, metav1.ListOptions{})
		must(s.t, err)
		now, starting := "", false
		refused, cards, plain = 0, 0, 0
		for _, pod := range list.Items {
			now += fmt.Sprintln(pod.Name, pod.Spec.NodeName, pod.Status.Phase, pod.Status.Reason)
			starting = starting || pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodPending
			switch {
			case pod.Status.Reason == "OutOfcpu":
				refused++
			case pod.Status.Phase == corev1.PodRunning && pod.Spec.SchedulerName == "quartermaster":
				cards++
			case pod.Status.Phase == corev1.PodRunning:
				plain++
			case pod.Status.Phase == corev1.PodFailed:
				s.t.Errorf("%s is refused for something else: %s %s", pod.Name, pod.Status.Reason, pod.Status.Message)
			}
		}
		if starting || now != said {
			said, since = now, time.Now()
		}
	}
	s.tap.Delay("bind", 0)
	second := int64(1)
	must(s.t, pods.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &second}, metav1.ListOptions{}))
	deadline := time.Now().Add(30 * time.Second)
	for left := 1; left > 0; time.Sleep(50 * time.Millisecond) {
		list, err := pods.List(ctx, metav1.ListOptions{})
		must(s.t, err)
		if left = len(list.Items); time.Now().After(deadline) {
			s.t.Fatalf("%d pods do not go", left)
		}
	}
	return
}

// Two kube-schedulers count the same CPU, each without what the other has just given away: the kubelet refuses what is too much. On
// isolated nodes there is no one else's pod to count. The last round, slow, makes that certain.
func TestS54_OutOfcpuOnNodesOfTwoSchedulers_long(t *testing.T) {
	t.Parallel()
	s := openShared(t)
	own, err := kit.RunDedicated(ctx, s.Cluster, "kube-scheduler", s.Work, s.tap.Address())
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(own.Tail(10))
		}
		own.Close()
	})
	const rounds = 6
	refused := map[bool]int{}
	for _, isolated := range []bool{false, true} {
		if isolated {
			s.isolate(true)
		}
		for i := range rounds + 1 {
			slow := i == rounds
			out, cards, plain := s.round(slow)
			t.Logf("isolated %v, slow %v, round %d: %d OutOfcpu, %d with a card and %d without run", isolated, slow, i, out, cards, plain)
			if !slow {
				refused[isolated] += out
			}
			switch {
			case !isolated && slow && out == 0:
				t.Error("no pod is OutOfcpu where both kube-schedulers must have given out the same CPU: this test proves nothing")
			case isolated && out > 0:
				t.Errorf("%d pods are OutOfcpu on an isolated node", out)
			case isolated && (cards != 3 || plain != 3):
				t.Errorf("%d pods with a card run on %s, and %d without a card next to it; there is room for three and three", cards, real1, plain)
			}
		}
	}
	t.Logf("of %d pods OutOfcpu: %d with isolateNodes false, %d with true", 9*rounds, refused[false], refused[true])
}
