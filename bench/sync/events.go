package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"quartermaster.io/bench/sync/load"
)

const stampKey = "quartermaster.io/bench-stamp"

// changer changes pods at a steady rate. Each write carries the time it was sent, which the programs subtract from the time their
// handler sees it. Written to etcd: through the API a PATCH of such a pod costs the server 8-10 ms of CPU here, mostly managed
// fields, so one core would take 80 a second and the latency would be the queue in front of it. From etcd on it is the real path.
type changer struct {
	etcd *load.Etcd
	pods []*corev1.Pod
	next int
}

func newChanger(etcd *load.Etcd, content load.Options) *changer {
	c := &changer{etcd: etcd}
	variables := load.Variables(content)
	for i := range min(content.Pods, 2000) {
		c.pods = append(c.pods, load.Pod(content.Seed, i, content.Nodes, variables))
	}
	return c
}

// run changes `rate` pods a second for `length` and returns how many were written.
func (c *changer) run(ctx context.Context, rate int, length time.Duration) (int, error) {
	var written atomic.Int64
	var failed atomic.Value
	work := make(chan *corev1.Pod, 64)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for pod := range work {
				pod.Annotations[stampKey] = fmt.Sprint(time.Now().UnixNano())
				if err := c.etcd.Put(ctx, pod); err != nil {
					failed.Store(err)
				} else {
					written.Add(1)
				}
			}
		})
	}
	tick := time.NewTicker(time.Second / time.Duration(rate))
	for end := time.Now().Add(length); time.Now().Before(end) && ctx.Err() == nil; c.next++ {
		<-tick.C
		work <- c.pods[c.next%len(c.pods)]
	}
	tick.Stop()
	close(work)
	workers.Wait()
	if err, bad := failed.Load().(error); bad {
		return int(written.Load()), err
	}
	return int(written.Load()), ctx.Err()
}
