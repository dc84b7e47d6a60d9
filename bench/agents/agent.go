package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const objects = "/apis/quartermaster.io/v1alpha1/acceleratornodes"

const firstBackoff = 800 * time.Millisecond

// agent sends what `quartermaster agent` sends, in its order and with its pauses, over connections of its own: a watch of its own object,
// and writes on a second connection.
type agent struct {
	node, url, token string
	cards, preflight []byte // bodies of its two writes
	http             *http.Client
	fleet            *fleet
	version          string // of the object, as the watch has shown it; empty: none
	backoff          time.Duration
}

// fleet counts what all agents have done.
type fleet struct {
	reported, watching          atomic.Int64 // agents
	requests, refused, failures atomic.Int64 // sent; answered with 4xx or 5xx; without an answer
	lists                       atomic.Int64 // watches that began with a list
	unexpected                  sync.Map     // the first words of what was refused -> one example
}

func newAgent(f *fleet, node, url, token string, roots *tls.Config, cards, preflight []byte) *agent {
	// No HTTP/2, as in ours: two connections for each agent.
	transport := &http.Transport{TLSClientConfig: roots, TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}, ReadBufferSize: 4 << 10, WriteBufferSize: 4 << 10}
	return &agent{node: node, url: url, token: token, cards: cards, preflight: preflight, http: &http.Client{Transport: transport}, fleet: f}
}

func (a *agent) send(ctx context.Context, method, path, kind string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, a.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+a.token)
	request.Header.Set("User-Agent", userAgent)
	request.Header.Set("Accept", "application/json")
	if kind != "" {
		request.Header.Set("Content-Type", kind)
	}
	a.fleet.requests.Add(1)
	answer, err := a.http.Do(request)
	if err != nil {
		a.fleet.failures.Add(1)
	} else if answer.StatusCode >= 400 {
		a.fleet.refused.Add(1)
	}
	return answer, err
}

// write one part; false: to be tried again.
func (a *agent) write(ctx context.Context, method, path, kind string, body []byte, fine ...int) bool {
	deadline, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	answer, err := a.send(deadline, method, path, kind, body)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	for _, code := range fine {
		if answer.StatusCode == code {
			return true
		}
	}
	a.fleet.note("%s %s: %d %s", method, path, answer.StatusCode, text)
	return false
}

// run until the context ends. Constants are those of kube/watch_machine.cpp and agent/cards/driver.cpp.
func (a *agent) run(ctx context.Context) {
	found := make(chan bool, 16) // whether the object is there, as the watch shows it
	go a.report(ctx, found)
	for ctx.Err() == nil {
		began := time.Now()
		if again := a.watch(ctx, found); again {
			continue
		}
		if time.Since(began) > 2*time.Minute || a.backoff == 0 {
			a.backoff = firstBackoff
		}
		pause(ctx, time.Duration(float64(a.backoff)*(1+rand.Float64())))
		a.backoff = min(2*a.backoff, 30*time.Second)
	}
}

// report makes the object where there is none, then applies cards, then checks. Each is tried until it is done.
func (a *agent) report(ctx context.Context, found <-chan bool) {
	const applied = "application/apply-patch+yaml"
	status := objects + "/" + a.node + "/status?force=true&fieldManager=quartermaster-agent"
	retry := time.Second
	until := func(write func() bool) {
		for !write() && ctx.Err() == nil {
			pause(ctx, time.Duration(float64(retry)*(0.5+rand.Float64())))
			retry = min(2*retry, 30*time.Second)
		}
		retry = time.Second
	}
	shown := func() bool {
		select {
		case there := <-found:
			return there
		case <-ctx.Done():
			return true
		}
	}
	if !shown() {
		made := fmt.Appendf(nil, `{"apiVersion":"quartermaster.io/v1alpha1","kind":"AcceleratorNode","metadata":{"name":%q}}`, a.node)
		until(func() bool { return a.write(ctx, http.MethodPost, objects, "application/json", made, 201, 409) })
		for !shown() {
		}
	}
	until(func() bool { return a.write(ctx, http.MethodPatch, status, applied, a.cards, 200) })
	until(func() bool { return a.write(ctx, http.MethodPatch, status+"-preflight", applied, a.preflight, 200) })
	a.fleet.reported.Add(1)
}

// watch until the stream ends; true: ask again at once, because the server ended it in good order.
func (a *agent) watch(ctx context.Context, found chan<- bool) bool {
	timeout := 300 + rand.IntN(300)
	query := fmt.Sprintf("?watch=true&allowWatchBookmarks=true&fieldSelector=metadata.name%%3D%s&timeoutSeconds=%d", a.node, timeout)
	initial := a.version == ""
	if initial {
		query += "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
		a.fleet.lists.Add(1)
	} else {
		query += "&resourceVersion=" + a.version
	}
	answer, err := a.send(ctx, http.MethodGet, objects+query, "", nil)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		if answer.StatusCode == http.StatusGone {
			a.version = ""
			return true
		}
		a.fleet.note("watch: %d %s", answer.StatusCode, text)
		if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil {
			pause(ctx, time.Duration(seconds)*time.Second+time.Duration(rand.Float64()*float64(firstBackoff)))
			return true
		}
		return false
	}
	listed := !initial
	if listed {
		a.fleet.watching.Add(1)
	}
	defer func() {
		if listed {
			a.fleet.watching.Add(-1)
		}
	}()
	lines := bufio.NewReaderSize(answer.Body, 4<<10)
	seen := false
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return err == io.EOF && listed
		}
		var event struct {
			Type   string
			Object struct {
				Code     int
				Metadata struct{ ResourceVersion string }
			}
		}
		if json.Unmarshal(line, &event) != nil {
			return false
		}
		switch event.Type {
		case "ERROR":
			if event.Object.Code == http.StatusGone {
				a.version = ""
				return true
			}
			a.fleet.note("in the watch: %s", line)
			return false
		case "ADDED", "MODIFIED":
			seen = true
			offer(found, true)
		case "DELETED":
			offer(found, false)
		case "BOOKMARK":
			if !listed {
				listed = true
				a.fleet.watching.Add(1)
				if !seen {
					offer(found, false)
				}
			}
		}
		a.version = event.Object.Metadata.ResourceVersion
	}
}

// note keeps one example of each refusal.
func (f *fleet) note(format string, arguments ...any) {
	text := fmt.Sprintf(format, arguments...)
	f.unexpected.LoadOrStore(text[:min(len(text), 60)], text[:min(len(text), 400)])
}

// examples of what was refused.
func (f *fleet) examples() string {
	var out []string
	f.unexpected.Range(func(_, text any) bool { out = append(out, text.(string)); return len(out) < 5 })
	return strings.Join(out, "; ")
}

func offer(found chan<- bool, is bool) {
	select {
	case found <- is:
	default:
	}
}

func pause(ctx context.Context, length time.Duration) {
	select {
	case <-time.After(length):
	case <-ctx.Done():
	}
}
