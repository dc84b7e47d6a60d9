package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

const (
	smallBody = 4 << 20
	mostBody  = 128 << 20
)

func (e *extender) listen(ctx context.Context, address, certificate, key, authority string) error {
	pem, err := os.ReadFile(authority)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return fmt.Errorf("no certificate in %s", authority)
	}
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	few, one := make(chan struct{}, 64), make(chan struct{}, 1)
	for verb, handle := range map[string]func(context.Context, io.Reader) (any, error){"filter": e.filter, "prioritize": e.prioritize, "bind": e.bind, "preempt": e.preempt} {
		mux.HandleFunc("POST /scheduler/"+verb, func(w http.ResponseWriter, r *http.Request) {
			if !e.serves.Load() {
				e.counted.add(verb, "unavailable")
				http.Error(w, "not the leader, or not everything seen yet", http.StatusServiceUnavailable)
				return
			}
			room := few
			if r.ContentLength > smallBody || r.ContentLength < 0 {
				room = one
			}
			select {
			case room <- struct{}{}:
				defer func() { <-room }()
			default:
				e.counted.add(verb, "busy")
				http.Error(w, "busy", http.StatusTooManyRequests)
				return
			}
			answer, err := handle(r.Context(), http.MaxBytesReader(w, r.Body, mostBody))
			if err != nil {
				e.counted.add(verb, "refused")
				status := http.StatusBadRequest
				if big := new(http.MaxBytesError); errors.As(err, &big) {
					status = http.StatusRequestEntityTooLarge
				}
				http.Error(w, strings.ReplaceAll(strconv.Quote(err.Error()), `\"`, `"`), status)
				return
			}
			e.counted.add(verb, "ok")
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(answer)
		})
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	go server.Serve(tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
		NextProtos: []string{"http/1.1"}}))
	go func() { <-ctx.Done(); server.Close() }()
	return nil
}

func (e *extender) filter(_ context.Context, body io.Reader) (any, error) {
	var args extenderv1.ExtenderArgs
	if err := json.NewDecoder(body).Decode(&args); err != nil {
		return nil, err
	}
	if args.Pod == nil || (args.Nodes == nil) == (args.NodeNames == nil) {
		return nil, errors.New("Pod and either Nodes or NodeNames are needed")
	}
	var names []string
	if args.NodeNames != nil {
		names = *args.NodeNames
	} else {
		for i := range args.Nodes.Items {
			names = append(names, args.Nodes.Items[i].Name)
		}
	}
	reasons := make([]string, len(names))
	e.book.filter(args.Pod, names, reasons)
	out := &extenderv1.ExtenderFilterResult{FailedNodes: extenderv1.FailedNodesMap{}, FailedAndUnresolvableNodes: extenderv1.FailedNodesMap{}}
	fits := make([]string, 0, len(names))
	for i, name := range names {
		if reasons[i] == "" {
			fits = append(fits, name)
		} else {
			out.FailedNodes[name] = reasons[i]
		}
	}
	if args.NodeNames != nil {
		out.NodeNames = &fits
	} else {
		out.Nodes = &corev1.NodeList{}
		for i := range args.Nodes.Items {
			if reasons[i] == "" {
				out.Nodes.Items = append(out.Nodes.Items, args.Nodes.Items[i])
			}
		}
	}
	if len(fits) == 0 {
		e.waiting.add(args.Pod)
	}
	return out, nil
}

func (e *extender) prioritize(_ context.Context, body io.Reader) (any, error) {
	var args extenderv1.ExtenderArgs
	if err := json.NewDecoder(body).Decode(&args); err != nil {
		return nil, err
	}
	var names []string
	if args.NodeNames != nil {
		names = *args.NodeNames
	} else if args.Nodes != nil {
		for i := range args.Nodes.Items {
			names = append(names, args.Nodes.Items[i].Name)
		}
	}
	scores := make([]int64, len(names))
	e.book.scores(names, scores)
	out := make(extenderv1.HostPriorityList, len(names))
	for i := range names {
		out[i] = extenderv1.HostPriority{Host: names[i], Score: scores[i]}
	}
	return out, nil
}

func (e *extender) preempt(_ context.Context, body io.Reader) (any, error) {
	var args extenderv1.ExtenderPreemptionArgs
	if err := json.NewDecoder(body).Decode(&args); err != nil {
		return nil, err
	}
	if args.Pod == nil {
		return nil, errors.New("Pod is needed")
	}
	victims := args.NodeNameToMetaVictims
	if victims == nil {
		victims = map[string]*extenderv1.MetaVictims{}
		for name, full := range args.NodeNameToVictims {
			meta := &extenderv1.MetaVictims{NumPDBViolations: full.NumPDBViolations}
			for _, pod := range full.Pods {
				meta.Pods = append(meta.Pods, &extenderv1.MetaPod{UID: string(pod.UID)})
			}
			victims[name] = meta
		}
	}
	out := &extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{}}
	e.book.mu.Lock()
	defer e.book.mu.Unlock()
	for name, of := range victims {
		n := e.book.nodes[name]
		if n == nil {
			continue
		}
		var gone []*placement
		for _, pod := range of.Pods {
			if h := e.book.holdings[types.UID(pod.UID)]; h != nil && h.where.Node == name {
				e.book.charge(h.where, -1)
				gone = append(gone, h.where)
			}
		}
		what := demandOf(args.Pod, n.mode, e.book.declared)
		if !asks(args.Pod, e.book.declared) || n.fit(&what, nil) == "" {
			out.NodeNameToMetaVictims[name] = of
		}
		for _, where := range gone {
			e.book.charge(where, 1)
		}
	}
	return out, nil
}

func (e *extender) bind(ctx context.Context, body io.Reader) (any, error) {
	var args extenderv1.ExtenderBindingArgs
	if err := json.NewDecoder(body).Decode(&args); err != nil {
		return nil, err
	}
	if args.PodName == "" || args.PodNamespace == "" || args.PodUID == "" || args.Node == "" {
		return nil, errors.New("PodName, PodNamespace, PodUID and Node are needed")
	}
	said := func(format string, a ...any) (any, error) {
		return &extenderv1.ExtenderBindingResult{Error: fmt.Sprintf(format, a...)}, nil
	}
	pod, err := e.podOf(ctx, args.PodNamespace, args.PodName, args.PodUID)
	if err != nil {
		return said("pod %s/%s: %v", args.PodNamespace, args.PodName, err)
	}
	if pod.UID != args.PodUID {
		return said("pod %s/%s is another one now", args.PodNamespace, args.PodName)
	}
	if pod.Spec.NodeName != "" {
		if pod.Spec.NodeName == args.Node {
			return said("")
		}
		return said("pod %s/%s is on node %s already", args.PodNamespace, args.PodName, pod.Spec.NodeName)
	}
	where, on, reason := e.book.assume(pod, args.Node, time.Now())
	if reason != "" {
		return said("%s", reason)
	}
	if where.Node != args.Node {
		return said("pod %s/%s is on its way to node %s", args.PodNamespace, args.PodName, where.Node)
	}
	annotations := annotationsOf(pod, where, on)
	for range 3 {
		err = e.client.CoreV1().Pods(args.PodNamespace).Bind(context.WithoutCancel(ctx), &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: args.PodName, Namespace: args.PodNamespace,
			UID: args.PodUID, ResourceVersion: pod.ResourceVersion, Annotations: annotations}, Target: corev1.ObjectReference{Kind: "Node", Name: args.Node}}, metav1.CreateOptions{})
		if !apierrors.IsConflict(err) {
			break
		}
		// The informer is behind: someone wrote to the pod.
		now, e2 := e.client.CoreV1().Pods(args.PodNamespace).Get(ctx, args.PodName, metav1.GetOptions{})
		if e2 != nil || now.UID != args.PodUID || now.Spec.NodeName != "" || now.ResourceVersion == pod.ResourceVersion {
			break
		}
		pod = now
	}
	if err == nil {
		e.book.settle(args.PodUID, true)
		e.waiting.drop(args.PodUID)
		return said("")
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Code < 500 && status.Status().Code != http.StatusTooManyRequests {
		// It says no; but perhaps to a second copy of what it said yes to.
		if now, e2 := e.client.CoreV1().Pods(args.PodNamespace).Get(ctx, args.PodName, metav1.GetOptions{}); e2 == nil && now.UID == args.PodUID && now.Annotations[placementKey] != "" && now.Spec.NodeName == args.Node {
			e.book.settle(args.PodUID, true)
			return said("")
		} else if e2 == nil || apierrors.IsNotFound(e2) {
			e.book.settle(args.PodUID, false)
			return said("%v", err)
		}
	}
	go e.readBack(args.PodNamespace, args.PodName, args.PodUID)
	return said("%v", err)
}

// readBack: whether a Binding whose answer was lost was made. The share stays taken until the API has said so for longer than a request lives.
func (e *extender) readBack(namespace, name string, uid types.UID) {
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(500 * time.Millisecond) {
		now, err := e.client.CoreV1().Pods(namespace).Get(context.Background(), name, metav1.GetOptions{})
		switch {
		case err == nil && now.UID == uid && now.Spec.NodeName != "":
			e.book.settle(uid, true)
			return
		case apierrors.IsNotFound(err) || (err == nil && now.UID != uid) || (err == nil && time.Now().After(end)):
			e.book.settle(uid, false)
			return
		}
	}
}

func (e *extender) podOf(ctx context.Context, namespace, name string, uid types.UID) (*corev1.Pod, error) {
	if found, there, _ := e.pods.GetByKey(namespace + "/" + name); there && found.(*corev1.Pod).UID == uid {
		return found.(*corev1.Pod), nil
	}
	return e.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
}

// counters of requests by verb and result.
type counters struct {
	mu  sync.Mutex
	all map[[2]string]*atomic.Int64
}

func (c *counters) add(verb, result string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[[2]string]*atomic.Int64{}
	}
	if c.all[[2]string{verb, result}] == nil {
		c.all[[2]string{verb, result}] = &atomic.Int64{}
	}
	c.all[[2]string{verb, result}].Add(1)
}

func (c *counters) write(w io.Writer, book *ledger) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, n := range c.all {
		fmt.Fprintf(w, "quartermaster_extender_requests_total{verb=%q,result=%q} %d\n", key[0], key[1], n.Load())
	}
	book.mu.RLock()
	defer book.mu.RUnlock()
	assumed := 0
	for _, h := range book.holdings {
		if !h.assumed.IsZero() {
			assumed++
		}
	}
	fmt.Fprintf(w, "quartermaster_ledger_entries{state=\"assumed\"} %d\nquartermaster_ledger_entries{state=\"confirmed\"} %d\n", assumed, len(book.holdings)-assumed)
}
