package faults

import (
	"fmt"
	"math/rand"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quartermaster.io/test/faults/kit"
)

// S70: a thousand pods wait for cards while ten things a second happen in the cluster: nodes change, small pods come and go, so that something is
// given back each time and all who wait are looked at again. The lease is kept, every question of the scheduler is answered with 200 well within
// its patience, nothing is given out twice, and the operator is not worn out.
func TestS70_a_thousand_waiting_pods_and_ten_events_a_second_long(t *testing.T) {
	// The scheduler tries all of them after every event, and the API server has to keep up: a part of them where other tests run in parallel.
	waiting, span := form(120, 1000), form(20*time.Second, 5*time.Minute)
	// The scheduler's own arithmetic has ten slots a card and lets all of them through: it asks us, again and again.
	h := holdHall(t, map[string]int{"hami": 4})
	o := h.ops[0]
	nodes := h.nodeNames("hami")
	little := map[string]string{"nvidia.com/gpualloc": "1", "nvidia.com/gpumem": "500"}
	for i := range 28 {
		h.create(pod(fmt.Sprintf("wall-%d", i), allMemory))
		h.awaitBound(fmt.Sprintf("wall-%d", i), 20*time.Second)
	}
	for i := range 4 { // more than one card's worth of slots on each of those that are left
		h.create(pod(fmt.Sprintf("seed-%d", i), map[string]string{"nvidia.com/gpualloc": "1", "nvidia.com/gpumem": "9000"}))
		h.awaitBound(fmt.Sprintf("seed-%d", i), 20*time.Second)
	}
	atOnce(waiting, func(i int) {
		h.create(pod(fmt.Sprintf("waits-%d", i), allMemory))
	})
	h.awaitReason("waits-0", "memory", 60*time.Second)
	_, before := h.leases()
	footprint := func() kit.Footprint {
		f, err := o.Footprint()
		h.must(err)
		return f
	}
	began, used := time.Now(), footprint()
	r := rand.New(rand.NewSource(70))
	var small []string
	for i := 0; time.Since(began) < span; i++ {
		time.Sleep(time.Until(began.Add(time.Duration(i) * 100 * time.Millisecond)))
		switch {
		case i%2 == 0:
			_, err := h.Client.CoreV1().Nodes().Patch(h.ctx, nodes[r.Intn(len(nodes))], types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"example.com/seen":"%d"}}}`, i), metav1.PatchOptions{})
			h.must(err)
		case len(small) > 8:
			at := r.Intn(len(small))
			h.remove(small[at])
			small = slices.Delete(small, at, at+1)
		default:
			name := fmt.Sprintf("small-%d", i)
			h.create(pod(name, little))
			small = append(small, name)
		}
	}
	took := time.Since(began)
	_, after := h.leases()
	if after != before {
		t.Errorf("the lease changed hands %d times", after-before)
	}
	var times []time.Duration
	for _, call := range h.tap.Calls(began) {
		if call.Status != 200 {
			t.Errorf("%s was answered with %d", call.Verb, call.Status)
		}
		if call.Verb == "filter" {
			times = append(times, call.Took)
		}
	}
	if len(times) < 10 {
		t.Fatalf("the scheduler asked %d times only: nothing was tried", len(times))
	}
	slices.Sort(times)
	p99 := times[len(times)*99/100]
	t.Logf("%d waiting pods, %d calls of filter, p50 %s, p99 %s, longest %s; CPU of the operator %.2f of a core", waiting, len(times), times[len(times)/2].Round(10*time.Microsecond),
		p99.Round(10*time.Microsecond), times[len(times)-1].Round(10*time.Microsecond), (footprint().CPU-used.CPU).Seconds()/took.Seconds())
	if p99 > 2*time.Second {
		t.Errorf("p99 of filter is %s; the scheduler waits for 5 s at most, allowed here 2 s", p99)
	}
}

// atOnce does it for 0 to n-1, eight at a time.
func atOnce(n int, do func(int)) {
	var all sync.WaitGroup
	turns := make(chan struct{}, 8)
	for i := range n {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			do(i)
		})
	}
	all.Wait()
}
