package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"quartermaster.io/bench/kit"
	"quartermaster.io/bench/sync/load"
)

// asker is one kept TLS connection, as kube-scheduler keeps it. It writes ready-made requests and reads answers without decoding them, so
// that what is measured is the extender and not this program.
type asker struct {
	connection *tls.Conn
	in         *bufio.Reader
}

func dial(address, keys string) (*asker, error) {
	text, err := os.ReadFile(filepath.Join(keys, "ca.crt"))
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(keys, "client.crt"), filepath.Join(keys, "client.key"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	c, err := tls.Dial("tcp", address, &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}})
	if err != nil {
		return nil, err
	}
	return &asker{c, bufio.NewReaderSize(c, 256<<10)}, nil
}

func (a *asker) close() { a.connection.Close() }

func requestOf(body []byte) []byte {
	return append(fmt.Appendf(nil, "POST /scheduler/filter HTTP/1.1\r\nHost: extender\r\nUser-Agent: bench\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", len(body)), body...)
}

// ask returns the answer's body; keep false: it is read and thrown away.
func (a *asker) ask(request []byte, keep bool) ([]byte, error) {
	if _, err := a.connection.Write(request); err != nil {
		return nil, err
	}
	reply, err := http.ReadResponse(a.in, nil)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(reply.Body, 300))
		return nil, fmt.Errorf("%d %s", reply.StatusCode, text)
	}
	if keep {
		return io.ReadAll(reply.Body)
	}
	_, err = io.Copy(io.Discard, reply.Body)
	return nil, err
}

var questions atomic.Int64

// question is a pod as a scheduler sends it: what the API server has of it, with all its fields. Each is a pod of its own.
func question(limits map[string]string) *corev1.Pod {
	p := load.Pod(1, 7_000_000+int(questions.Add(1)), 1, 5)
	p.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	p.Spec.NodeName, p.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
	list := corev1.ResourceList{"cpu": resource.MustParse("1")}
	for key, amount := range limits {
		list[corev1.ResourceName(key)] = resource.MustParse(amount)
	}
	p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: list, Requests: list}
	return p
}

func filterBody(pod *corev1.Pod, names []string, nodes *corev1.NodeList) []byte {
	args := extenderv1.ExtenderArgs{Pod: pod, Nodes: nodes}
	if nodes == nil {
		args.NodeNames = &names
	}
	text, err := json.Marshal(args)
	if err != nil {
		panic(err) // types of the API that cannot be encoded: a bug
	}
	return text
}

// expectation is a pod that asks, and on which of the names it fits. That follows from podOn alone.
type expectation struct {
	request []byte
	fits    []string
}

// expectations of a right extender: whole cards that are free, one more than that, and a share.
func (c *content) expectations(names []string, indexes []int) (out []expectation) {
	free := func(i int) int { return cards - min(c.onNode[i], cards) }
	among := func(fits func(i int) bool) (all []string) {
		for at, i := range indexes {
			if fits(i) {
				all = append(all, names[at])
			}
		}
		return
	}
	mode := func(i int) string { return modes[i%len(modes)].Name }
	for _, wanted := range []int{cards, cards / 2} {
		out = append(out, expectation{requestOf(filterBody(question(map[string]string{"tencent.com/vcuda-core": fmt.Sprint(100 * wanted)}), names, nil)),
			among(func(i int) bool { return mode(i) == "vgpu" && free(i) >= wanted })})
	}
	// Nine cores of each pod on a card; what asks for 95 fits on untouched cards only.
	out = append(out, expectation{requestOf(filterBody(question(map[string]string{"tencent.com/vcuda-core": "95", "tencent.com/vcuda-memory": "16"}), names, nil)),
		among(func(i int) bool { return mode(i) == "vgpu" && c.onNode[i] < cards })})
	return
}

// fitting are the nodes that the answer names.
func (a *asker) fitting(request []byte) ([]string, error) {
	text, err := a.ask(request, true)
	if err != nil {
		return nil, err
	}
	var said extenderv1.ExtenderFilterResult
	if err := json.Unmarshal(text, &said); err != nil {
		return nil, err
	}
	if said.Error != "" || said.NodeNames == nil {
		return nil, fmt.Errorf("no names of nodes in the answer: %s", said.Error)
	}
	return *said.NodeNames, nil
}

// differ says how two lists of nodes differ, in any order; nil: they do not.
func differ(said, wanted []string) error {
	said, wanted = slices.Sorted(slices.Values(said)), slices.Sorted(slices.Values(wanted))
	for i := range max(len(said), len(wanted)) {
		switch {
		case i >= len(said) || i < len(wanted) && wanted[i] < said[i]:
			return fmt.Errorf("%d nodes are said to fit, %d do: %s is missing", len(said), len(wanted), wanted[i])
		case i >= len(wanted) || said[i] < wanted[i]:
			return fmt.Errorf("%d nodes are said to fit, %d do: %s does not", len(said), len(wanted), said[i])
		}
	}
	return nil
}

// right: every question is answered with the nodes that fit, and no others.
func (a *asker) right(of []expectation) error {
	for at, one := range of {
		said, err := a.fitting(one.request)
		if err != nil {
			return err
		}
		if err := differ(said, one.fits); err != nil {
			return fmt.Errorf("question %d: %w", at, err)
		}
	}
	return nil
}

// firstRight waits for the first right answer of a program that has just been started.
func (p *process) firstRight(ctx context.Context, keys string, of []expectation, patience time.Duration) (*asker, time.Duration, error) {
	var last error
	for time.Since(p.Began) < patience && ctx.Err() == nil && p.Alive() == nil {
		a, err := dial(p.address, keys)
		if err == nil {
			for err = a.right(of); err != nil && time.Since(p.Began) < patience && ctx.Err() == nil; err = a.right(of) {
				last = err
				if _, broken := err.(interface{ Timeout() bool }); broken {
					break
				}
				time.Sleep(2 * time.Millisecond)
			}
			if err == nil {
				return a, time.Since(p.Began), nil
			}
			a.close()
		}
		last = err
		time.Sleep(2 * time.Millisecond)
	}
	if err := p.Alive(); err != nil {
		return nil, 0, err
	}
	return nil, 0, fmt.Errorf("no right answer after %s: %v", time.Since(p.Began).Round(time.Millisecond), last)
}

type timing struct {
	p50, p99 float64 // ms
	cpu      float64 // us a call
}

// time so many calls, one after another.
func (a *asker) time(pid int, request []byte, calls int) (out timing, err error) {
	for range max(3, calls/10) {
		if _, err := a.ask(request, false); err != nil {
			return out, err
		}
	}
	before, err := kit.CPU(pid)
	if err != nil {
		return out, err
	}
	all := make([]time.Duration, 0, calls)
	for range calls {
		at := time.Now()
		if _, err := a.ask(request, false); err != nil {
			return out, err
		}
		all = append(all, time.Since(at))
	}
	after, err := kit.CPU(pid)
	slices.Sort(all)
	at := func(q float64) float64 {
		return float64(all[min(len(all)-1, int(q*float64(len(all))))].Microseconds()) / 1000
	}
	return timing{at(0.5), at(0.99), float64((after - before).Nanoseconds()) / 1000 / float64(calls)}, err
}
