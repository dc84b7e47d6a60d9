package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"quartermaster.io/bench/sync/load"
)

// patcher changes pods at a steady rate; each patch carries the time it was sent, which the programs subtract from the time their
// handler sees it.
type patcher struct {
	client *http.Client
	host   string
	pods   []string // "namespaces/x/pods/y"
	next   int
}

func newPatcher(kubeconfig string, content load.Options) (*patcher, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	p := &patcher{client: client, host: config.Host}
	for i := range min(content.Pods, 5000) {
		p.pods = append(p.pods, load.PodPath(content.Seed, i))
	}
	return p, nil
}

// run patches at `rate` a second for `length` and returns how many the server took.
func (p *patcher) run(ctx context.Context, rate int, length time.Duration) (int, error) {
	var taken atomic.Int64
	var failed atomic.Value
	work := make(chan string, 64)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for pod := range work {
				if err := p.patch(ctx, pod); err != nil {
					failed.Store(err)
				} else {
					taken.Add(1)
				}
			}
		})
	}
	tick := time.NewTicker(time.Second / time.Duration(rate))
	for end := time.Now().Add(length); time.Now().Before(end) && ctx.Err() == nil; p.next++ {
		<-tick.C
		work <- p.pods[p.next%len(p.pods)]
	}
	tick.Stop()
	close(work)
	workers.Wait()
	if err, bad := failed.Load().(error); bad {
		return int(taken.Load()), err
	}
	return int(taken.Load()), ctx.Err()
}

func (p *patcher) patch(ctx context.Context, pod string) error {
	body := fmt.Sprintf(`{"metadata":{"annotations":{"bench.quartermaster.io/stamp":"%d"}}}`, time.Now().UnixNano())
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, p.host+"/api/v1/"+pod+"?fieldManager=bench", strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/merge-patch+json")
	request.Header.Set("Accept", "application/vnd.kubernetes.protobuf")
	answer, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		return fmt.Errorf("PATCH %s: %s: %.300q", pod, answer.Status, said)
	}
	return err
}
