package faults

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quartermaster.io/test/faults/kit"
)

// ownIP is an address of this machine that an endpoint may have: not a loopback one.
func ownIP() string {
	all, _ := net.InterfaceAddrs()
	for _, one := range all {
		if at, ok := one.(*net.IPNet); ok && at.IP.To4() != nil && at.IP.IsGlobalUnicast() {
			return at.IP.String()
		}
	}
	return ""
}

// S54: a kube-scheduler that is set up by the manuals of gpu-manager asks at filter, through the API server's service proxy, and binds by itself. Pods
// run with their placements, nothing is given out twice, and a pod that finds no room says why.
func TestS54_a_scheduler_of_the_old_manuals_long(t *testing.T) {
	const service, port = "gpu-quota-admission", 3456
	ip := ownIP()
	if ip == "" || peer() {
		t.Skip("no address of this machine that an endpoint may have, or a program without /scheduler/predicates")
	}
	h := emptyHall(t, map[string]int{"vgpu": 1, "hami/1": 1})
	h.book.AtFilter = true
	free, err := kit.FreePort()
	h.must(err)
	o := h.startExtender(h.proxy("old"), "--predicates-address", fmt.Sprintf("%s:%d", ip, free))
	h.must(o.WaitReady(30 * time.Second))
	h.awaitServing(h.address, 30*time.Second)
	h.enrolled(o)

	services, endpoints, pods := h.Client.CoreV1().Services("kube-system"), h.Client.CoreV1().Endpoints("kube-system"), h.Client.CoreV1().Pods("kube-system")
	clear := func() {
		ctx := context.Background() // the test's own has ended when it is cleaned up
		_ = services.Delete(ctx, service, metav1.DeleteOptions{})
		_ = endpoints.Delete(ctx, service, metav1.DeleteOptions{})
		_ = pods.Delete(ctx, "gpu-quota-admission", metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	}
	clear()
	t.Cleanup(clear)
	// As the chart makes it, but for the selector: none of our pods are here.
	_, err = services.Create(h.ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: service}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: port}}}}, metav1.CreateOptions{})
	h.must(err)
	// The server sends such requests to addresses of pods alone: one that stands for the operator, which is a process here.
	stand := pod("gpu-quota-admission", nil)
	stand.Namespace, stand.Spec.SchedulerName = "kube-system", nobody
	stand, err = pods.Create(h.ctx, stand, metav1.CreateOptions{})
	h.must(err)
	_, err = pods.Patch(h.ctx, stand.Name, types.MergePatchType, fmt.Appendf(nil, `{"status":{"phase":"Running","podIP":%[1]q,"podIPs":[{"ip":%[1]q}]}}`, ip), metav1.PatchOptions{}, "status")
	h.must(err)
	_, err = endpoints.Create(h.ctx, &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: service}, Subsets: []corev1.EndpointSubset{{Ports: []corev1.EndpointPort{{Port: int32(free)}},
		Addresses: []corev1.EndpointAddress{{IP: ip, TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "kube-system", Name: stand.Name, UID: stand.UID}}}}}}, metav1.CreateOptions{})
	h.must(err)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		answer, err := h.Client.CoreV1().RESTClient().Post().AbsPath("/api/v1/namespaces/kube-system/services/"+service+"/proxy/scheduler/predicates").
			SetHeader("Content-Type", "application/json").Body([]byte("{}")).DoRaw(h.ctx)
		if strings.Contains(string(answer), "no Pod") {
			break // it is there, and says what is wrong with the question
		}
		if time.Now().After(deadline) {
			h.must(fmt.Errorf("through the service proxy: %v: %s", err, answer))
		}
	}
	h.sched, err = kit.StartOldScheduler(h.ctx, h.Cluster, h.dir, service)
	h.must(err)
	t.Cleanup(h.sched.Close)

	h.create(pod("first", map[string]string{"tencent.com/vcuda-core": "20", "tencent.com/vcuda-memory": "8"}))
	if got := h.awaitBound("first", 30*time.Second); got.Annotations["tencent.com/predicate-gpu-idx-0"] == "" || h.placementOf(got) == nil {
		t.Errorf("bound without its placement: %v", got.Annotations)
	}
	// Eight cards, twenty pods that each want more than half of one.
	atOnce(20, func(i int) {
		h.create(pod(fmt.Sprintf("half-%d", i), map[string]string{"tencent.com/vcuda-core": "60", "tencent.com/vcuda-memory": "8"}))
	})
	running := func() []string { bound, _ := h.boundOf("half-"); return bound }
	h.eventually(30*time.Second, "eight pods for eight cards are not all on the node", func() bool { return len(running()) >= eight })
	time.Sleep(5 * time.Second)
	winners := running()
	if len(winners) != eight {
		t.Errorf("%d of 20 pods for eight cards run: %v", len(winners), winners)
	}
	loser := 0
	for slices.Contains(winners, fmt.Sprintf("half-%d", loser)) {
		loser++
	}
	h.awaitReason(fmt.Sprintf("half-%d", loser), "cores", 20*time.Second)
	h.remove(winners[0])
	h.eventually(20*time.Second, "no one got the card that was given back", func() bool { return len(running()) == eight })
	// HAMi's plugin must be told before the Binding which pod it serves, and this scheduler binds by itself.
	h.create(pod("card-of-hami", map[string]string{"nvidia.com/gpualloc": "1", "nvidia.com/gpumem-percentage": "60"}))
	h.awaitReason("card-of-hami", "HAMi's plugin needs a scheduler that asks the extender to bind", 20*time.Second)
}
