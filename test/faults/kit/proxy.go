package kit

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Rule is one way to misbehave towards the requests it matches. Fields left at zero do nothing.
type Rule struct {
	Match Match         // nil: every request
	Skip  int           // let the first so many matches pass
	Times int           // act on so many; 0: on all that follow
	Delay time.Duration // before forwarding

	Before func(*Request)               // before forwarding; the operator is still waiting
	After  func(r *Request, status int) // the server has answered, the operator has not heard it yet
	Done   func(*Request)               // the operator has been sent the whole answer
	Chunk  func(*Request, []byte)       // the operator has been sent a part of the answer, as it came from the server

	Status     int               // answer this instead of forwarding
	Header     map[string]string // with Status
	Body       func(*Request) (contentType string, body []byte)
	Drop       bool                 // instead of forwarding, close the connection
	CutAfter   func(*Request) int64 // close the connection after so many bytes of the body; negative: do not
	HoldBody   <-chan struct{}      // not a byte of the body passes until it is closed
	Repeat     int                  // each frame of a protobuf watch is sent so many times; 0: once
	EndOnReply bool                 // the server's answer is swallowed: the connection closes instead
	Lag        time.Duration        // every part of the answer is so much late
	Insist     bool                 // forward also when the operator has given up waiting
}

type activeRule struct {
	Rule
	seen, acted int
}

// Entry is one line of the proxy's log.
type Entry struct {
	*Request
	Status int // 0: the connection was closed without an answer
	Bytes  int64
	Took   time.Duration // until the end of the body
	Note   string        // what a rule did
}

func (e Entry) String() string {
	return fmt.Sprintf("%s #%d %s %s?%s -> %d %dB %s %s", e.At.Format("15:04:05.000"), e.Number, e.Method, e.Path, e.Query.Encode(),
		e.Status, e.Bytes, e.Took.Round(time.Millisecond), e.Note)
}

// Proxy ends TLS between one operator and the API server. HTTP/1.1 only: one connection is one request at a time, so closing it hurts
// no one else. Bearer tokens pass through untouched, hence the API server sees the operator's own identity; the User-Agent gets the
// proxy's name appended, by which the audit log tells two operators apart.
type Proxy struct {
	Name   string
	URL    string
	Ahead  time.Duration // of the server's clock is the operator's day, in whole seconds (time_shift.go); to be set before it starts
	caFile string

	upstream *url.URL
	forward  http.RoundTripper
	server   *http.Server
	gate     *gate

	mu      sync.Mutex
	rules   []*activeRule
	entries []*Entry
	number  int
}

// NewProxy listens on a free port of loopback and forwards to the API server of `to`. `dir` gets its CA.
func NewProxy(name string, to *rest.Config, dir string) (*Proxy, error) {
	upstream, err := url.Parse(to.Host)
	if err != nil {
		return nil, err
	}
	tlsConfig, err := rest.TLSConfigFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: to.CAData, CAFile: to.CAFile}})
	if err != nil {
		return nil, err
	}
	pair, caPEM, err := selfSigned(name)
	if err != nil {
		return nil, err
	}
	p := &Proxy{Name: name, upstream: upstream, caFile: filepath.Join(dir, "proxy-"+name+"-ca.crt")}
	if err := os.WriteFile(p.caFile, caPEM, 0o644); err != nil {
		return nil, err
	}
	p.forward = &http.Transport{
		TLSClientConfig: tlsConfig, TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}, // no HTTP/2
		MaxIdleConnsPerHost: 64, DisableCompression: true, IdleConnTimeout: 30 * time.Second,
		DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p.gate = newGate()
	p.URL = "https://" + listener.Addr().String()
	p.server = &http.Server{Handler: http.HandlerFunc(p.serve), ErrorLog: log.New(io.Discard, "", 0)}
	secure := tls.NewListener(&gatedListener{listener, p.gate}, &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}})
	go p.server.Serve(secure)
	return p, nil
}

// Close ends all connections.
func (p *Proxy) Close() { p.gate.set(open); p.server.Close() }

// Use adds a rule; the returned function takes it away again. The first rule that matches acts.
func (p *Proxy) Use(r Rule) (remove func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := &activeRule{Rule: r}
	p.rules = append(p.rules, a)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for i := range p.rules {
			if p.rules[i] == a {
				p.rules = append(p.rules[:i:i], p.rules[i+1:]...)
				return
			}
		}
	}
}

// Refuse(true): connections that are open are reset and new ones closed at once, as if the server's port were shut.
func (p *Proxy) Refuse(yes bool) {
	if yes {
		p.gate.set(refusing)
	} else {
		p.gate.set(open)
	}
}

// Freeze(true): connections stay open and new ones are accepted, but no byte moves either way, as behind a firewall that drops.
func (p *Proxy) Freeze(yes bool) {
	if yes {
		p.gate.set(frozen)
	} else {
		p.gate.set(open)
	}
}

// Log is a copy of what came through so far, in order of arrival. Entries of requests still under way have Took 0.
func (p *Proxy) Log() []Entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]Entry, len(p.entries))
	for i, e := range p.entries {
		out[i] = *e
	}
	return out
}

// Since is the log from a moment on, of requests that match.
func (p *Proxy) Since(t time.Time, m Match) []Entry {
	var out []Entry
	for _, e := range p.Log() {
		if !e.At.Before(t) && (m == nil || m(e.Request)) {
			out = append(out, e)
		}
	}
	return out
}

func (p *Proxy) serve(w http.ResponseWriter, in *http.Request) {
	r := parseRequest(in.Method, in.URL)
	r.Header = in.Header.Clone()
	body, err := io.ReadAll(in.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // half a request is none
	}
	if p.Ahead != 0 {
		shiftTexts(body, -p.Ahead)
	}
	r.Body = body
	entry := &Entry{Request: r}
	p.mu.Lock()
	p.number++
	r.Number = p.number
	p.entries = append(p.entries, entry)
	rule := p.pick(r)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		entry.Took = max(time.Since(r.At), 1)
		p.mu.Unlock()
	}()
	note := func(status int, what string) {
		p.mu.Lock()
		entry.Status, entry.Note = status, what
		p.mu.Unlock()
	}
	if rule.Delay > 0 {
		time.Sleep(rule.Delay)
	}
	if rule.Before != nil {
		rule.Before(r)
	}
	switch {
	case rule.Drop:
		note(0, "dropped")
		panic(http.ErrAbortHandler)
	case rule.Status != 0:
		note(rule.Status, "canned")
		answer(w, r, rule)
		return
	}
	with := in.Context()
	if rule.Insist {
		with = context.WithoutCancel(with)
	}
	out := in.Clone(with)
	out.RequestURI, out.URL.Scheme, out.URL.Host, out.Host = "", p.upstream.Scheme, p.upstream.Host, p.upstream.Host
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	out.Header.Set("User-Agent", in.Header.Get("User-Agent")+" proxy/"+p.Name)
	reply, err := p.forward.RoundTrip(out)
	if err != nil { // the server is not there: the operator sees a connection that closes
		note(0, "server unreachable")
		panic(http.ErrAbortHandler)
	}
	defer reply.Body.Close()
	note(reply.StatusCode, "")
	if rule.After != nil {
		rule.After(r, reply.StatusCode)
	}
	if rule.EndOnReply {
		note(reply.StatusCode, "answer swallowed")
		panic(http.ErrAbortHandler)
	}
	for k, v := range reply.Header {
		w.Header()[k] = v
	}
	told := io.Reader(reply.Body)
	if p.Ahead != 0 {
		shiftHeader(w.Header(), p.Ahead)
		told = newShiftedBody(told, reply.Header, r.Verb == "watch", p.Ahead)
	}
	w.WriteHeader(reply.StatusCode)
	p.copyBody(w, told, entry, rule, in)
	if rule.Done != nil {
		rule.Done(r)
	}
}

// pick finds the rule for a request; the lock is held.
func (p *Proxy) pick(r *Request) Rule {
	for _, a := range p.rules {
		if a.Match != nil && !a.Match(r) {
			continue
		}
		a.seen++
		if a.seen <= a.Skip || (a.Times > 0 && a.acted >= a.Times) {
			continue
		}
		a.acted++
		return a.Rule
	}
	return Rule{}
}

func (p *Proxy) copyBody(w http.ResponseWriter, from io.Reader, entry *Entry, rule Rule, in *http.Request) {
	limit := int64(-1)
	if rule.CutAfter != nil {
		limit = rule.CutAfter(entry.Request)
	}
	flush := func() { _ = http.NewResponseController(w).Flush() }
	flush()
	if rule.HoldBody != nil {
		select {
		case <-rule.HoldBody:
		case <-in.Context().Done():
			return
		}
	}
	if rule.Repeat > 1 && strings.HasPrefix(w.Header().Get("Content-Type"), "application/vnd.kubernetes.protobuf;stream=watch") {
		p.repeat(w, bufio.NewReader(from), entry, rule.Repeat)
		return
	}
	buffer, sent := make([]byte, 32<<10), int64(0)
	for {
		n, err := from.Read(buffer)
		cut := limit >= 0 && sent+int64(n) >= limit
		if cut {
			n = int(limit - sent)
		}
		if n > 0 {
			time.Sleep(rule.Lag)
			if _, e := w.Write(buffer[:n]); e != nil {
				return
			}
			flush()
			if rule.Chunk != nil {
				rule.Chunk(entry.Request, buffer[:n])
			}
			sent += int64(n)
			p.mu.Lock()
			entry.Bytes = sent
			p.mu.Unlock()
		}
		if cut {
			p.mu.Lock()
			entry.Note = fmt.Sprintf("cut after %d bytes", sent)
			p.mu.Unlock()
			panic(http.ErrAbortHandler)
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler) // the server broke off: so do we
		}
	}
}

// repeat forwards a watch frame by frame: four bytes of length, then an event.
func (p *Proxy) repeat(w http.ResponseWriter, from *bufio.Reader, entry *Entry, times int) {
	for {
		frame, err := readFrame(from)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		if _, err := w.Write(bytes.Repeat(frame, times)); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		p.mu.Lock()
		entry.Bytes += int64(len(frame) * times)
		p.mu.Unlock()
	}
}

func answer(w http.ResponseWriter, r *Request, rule Rule) {
	contentType := "application/json"
	body := []byte(fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"said by the proxy","code":%d}`, rule.Status))
	if rule.Body != nil {
		contentType, body = rule.Body(r)
	}
	w.Header().Set("Content-Type", contentType)
	for k, v := range rule.Header {
		w.Header().Set(k, v)
	}
	w.WriteHeader(rule.Status)
	w.Write(body)
}

// Dump writes the log to a file, for the reader of a failed test.
func (p *Proxy) Dump(file string) {
	var b strings.Builder
	for _, e := range p.Log() {
		fmt.Fprintln(&b, e)
		if e.Mutating() {
			fmt.Fprintf(&b, "    %.2000s\n", e.Body)
		}
	}
	os.WriteFile(file, []byte(b.String()), 0o644)
}
