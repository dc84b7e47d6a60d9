package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
)

// caller has one client a connection, as many as an API server would keep busy.
type caller struct {
	url     string
	body    []byte
	clients []*http.Client
}

func newCaller(trust *x509.CertPool, port string, body []byte, connections int) *caller {
	c := &caller{url: fmt.Sprintf("https://127.0.0.1:%s/mutate/pods", port), body: body}
	for range connections {
		c.clients = append(c.clients, &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxConnsPerHost: 1, MaxIdleConnsPerHost: 1,
			TLSClientConfig: &tls.Config{RootCAs: trust}}})
	}
	return c
}

func (c *caller) close() {
	for _, client := range c.clients {
		client.CloseIdleConnections()
	}
}

func (c *caller) call(ctx context.Context, client *http.Client) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(c.body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	reply, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err == nil && reply.StatusCode != http.StatusOK {
		err = fmt.Errorf("%d %s", reply.StatusCode, text)
	}
	return text, err
}

// right: the answer makes of the pod what the rules want, no matter who gives it.
func (c *caller) right(ctx context.Context) error {
	text, err := c.call(ctx, c.clients[0])
	if err != nil {
		return err
	}
	var asked, answer admissionv1.AdmissionReview
	if err := json.Unmarshal(c.body, &asked); err != nil {
		return err
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return err
	}
	if answer.Response == nil || answer.Response.UID != asked.Request.UID || !answer.Response.Allowed {
		return fmt.Errorf("the answer is %s", text)
	}
	patch, err := jsonpatch.DecodePatch(answer.Response.Patch)
	if err != nil {
		return fmt.Errorf("the patch: %w: %s", err, text)
	}
	raw, err := patch.Apply(asked.Request.Object.Raw)
	if err != nil {
		return fmt.Errorf("the patch: %w", err)
	}
	var pod corev1.Pod
	if err := json.Unmarshal(raw, &pod); err != nil {
		return err
	}
	resources := pod.Spec.Containers[0].Resources
	for what, list := range map[string]corev1.ResourceList{"limits": resources.Limits, "requests": resources.Requests} {
		if amount := list[memory]; amount.Value() != filled {
			return fmt.Errorf("%s of %s are %s, not %d", what, memory, amount.String(), filled)
		}
	}
	if pod.Spec.RuntimeClassName == nil || *pod.Spec.RuntimeClassName != class {
		return fmt.Errorf("the runtime class is not filled in")
	}
	return nil
}

type result struct {
	calls    int
	p50, p99 float64 // ms
}

func resultOf(all []time.Duration) result {
	slices.Sort(all)
	at := func(q float64) float64 {
		return float64(all[min(len(all)-1, int(q*float64(len(all))))].Microseconds()) / 1000
	}
	return result{len(all), at(0.5), at(0.99)}
}

// steadily calls at a rate, whether earlier calls have come back or not; a call's time begins when it is due to be sent, so that waiting for
// a free connection counts.
func (c *caller) steadily(ctx context.Context, rate int, span time.Duration) (result, error) {
	due := make(chan time.Time, rate)
	go func() {
		defer close(due)
		began := time.Now()
		for i := range int(span.Seconds() * float64(rate)) {
			at := began.Add(time.Duration(i) * time.Second / time.Duration(rate))
			time.Sleep(time.Until(at))
			due <- time.Now()
		}
	}()
	return c.all(func(client *http.Client, took func(time.Duration)) error {
		for at := range due {
			if _, err := c.call(ctx, client); err != nil {
				return err
			}
			took(time.Since(at))
		}
		return nil
	})
}

// fully: each connection calls again as soon as it has its answer.
func (c *caller) fully(ctx context.Context, span time.Duration) (result, error) {
	end := time.Now().Add(span)
	return c.all(func(client *http.Client, took func(time.Duration)) error {
		for at := time.Now(); at.Before(end); at = time.Now() {
			if _, err := c.call(ctx, client); err != nil {
				return err
			}
			took(time.Since(at))
		}
		return nil
	})
}

func (c *caller) all(work func(*http.Client, func(time.Duration)) error) (result, error) {
	var mu sync.Mutex
	var all []time.Duration
	var failed error
	var hands sync.WaitGroup
	for _, client := range c.clients {
		hands.Go(func() {
			var mine []time.Duration
			err := work(client, func(d time.Duration) { mine = append(mine, d) })
			mu.Lock()
			defer mu.Unlock()
			all = append(all, mine...)
			if failed == nil {
				failed = err
			}
		})
	}
	hands.Wait()
	if failed != nil || len(all) == 0 {
		return result{}, fmt.Errorf("%d calls, then %v", len(all), failed)
	}
	return resultOf(all), nil
}
