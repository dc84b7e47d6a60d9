package faults

import (
	"fmt"
	"net"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
func TestS54_a_scheduler_of_the_old_manuals(t *testing.T) {
	const service, port = "gpu-quota-admission", 3456
	ip := ownIP()
	if ip == "" || peer() {
		t.Skip("no address of this machine that an endpoint may have, or a program without /scheduler/predicates")
	}
	h := emptyHall(t, map[string]int{"vgpu": 1, "hami/1": 1})
	free, err := kit.FreePort()
	h.must(err)
	o := h.startExtender(h.proxy("old"), "--predicates-address", fmt.Sprintf("%s:%d", ip, free))
	h.must(o.WaitReady(30 * time.Second))
	h.awaitServing(h.address, 30*time.Second)
	h.enrolled(o)

	services, slices := h.Client.CoreV1().Services("kube-system"), h.Client.DiscoveryV1().EndpointSlices("kube-system")
	endpoints := h.Client.CoreV1().Endpoints("kube-system")
	t.Cleanup(func() {
		_ = services.Delete(t.Context(), service, metav1.DeleteOptions{})
		_ = slices.Delete(t.Context(), service, metav1.DeleteOptions{})
		_ = endpoints.Delete(t.Context(), service, metav1.DeleteOptions{})
	})
	// As the chart makes it, but for the selector: there are no pods of ours here.
	_, err = services.Create(h.ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: service}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: port}}}}, metav1.CreateOptions{})
	h.must(err)
	number, ready := int32(free), true
	_, err = slices.Create(h.ctx, &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: service, Labels: map[string]string{discoveryv1.LabelServiceName: service}}, AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{ip}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}}, Ports: []discoveryv1.EndpointPort{{Port: &number}}}, metav1.CreateOptions{})
	h.must(err)
	// Servers before 1.31 look at Endpoints.
	_, err = endpoints.Create(h.ctx, &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: service}, Subsets: []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: ip}}, Ports: []corev1.EndpointPort{{Port: number}}}}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		h.must(err)
	}
	h.sched, err = kit.StartOldScheduler(h.ctx, h.Cluster, h.dir, service)
	h.must(err)
	t.Cleanup(h.sched.Close)

	h.create(pod("first", map[string]string{"tencent.com/vcuda-core": "20", "tencent.com/vcuda-memory": "8"}))
	if got := h.awaitBound("first", 30*time.Second); got.Annotations["tencent.com/predicate-gpu-idx-0"] == "" || h.placementOf(got) == nil {
		t.Errorf("bound without its placement: %v", got.Annotations)
	}
	// One card, twenty pods that each want more than half of it.
	atOnce(20, func(i int) {
		h.create(pod(fmt.Sprintf("half-%d", i), map[string]string{"nvidia.com/gpualloc": "1", "nvidia.com/gpumem-percentage": "60"}))
	})
	winner := h.awaitOneBound("half-", 30*time.Second)
	time.Sleep(5 * time.Second)
	if bound, waiting := h.boundOf("half-"); len(bound) != 1 || waiting != 19 {
		t.Errorf("%d of 20 pods for one card run: %v", len(bound), bound)
	}
	loser := "half-0"
	if winner == loser {
		loser = "half-1"
	}
	h.awaitReason(loser, "memory", 20*time.Second)
	h.remove(winner)
	if next := h.awaitOneBound("half-", 20*time.Second); next == winner {
		t.Errorf("%s is still there", winner)
	}
}
