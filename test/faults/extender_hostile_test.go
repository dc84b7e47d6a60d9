package faults

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quartermaster.io/test/faults/kit"
)

func asked(pod, names string) string {
	return `{"Pod":` + pod + `,"Nodes":null,"NodeNames":` + names + `}`
}

func podText(name, annotations, limits string) string {
	return `{"metadata":{"name":` + name + `,"namespace":"default","uid":"5a1f0d0e-0000-4000-8000-000000000001","annotations":` + annotations +
		`},"spec":{"containers":[{"name":"main","image":"x","resources":{"limits":` + limits + `}}]}}`
}

const one = `{"nvidia.com/gpualloc":"1","nvidia.com/gpumem":"100"}`

// answersRightly: one ordinary question gets the right answer.
func (h *hall) answersRightly() {
	h.t.Helper()
	p := pod("ordinary", map[string]string{"nvidia.com/gpualloc": "1", "nvidia.com/gpumem": "100"})
	p.UID = "5a1f0d0e-0000-4000-8000-000000000002"
	var answer kit.FilterAnswer
	var err error
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		answer, err = h.direct.Filter(h.ctx, p, []string{"hami-0", "no-such-node"})
		if err == nil || time.Now().After(deadline) {
			break
		}
	}
	if err != nil || answer.Error != "" || answer.NodeNames == nil || !slices.Equal(*answer.NodeNames, []string{"hami-0"}) || len(answer.FailedNodes)+len(answer.FailedAndUnresolvableNodes) != 1 {
		h.t.Errorf("an ordinary question is answered with %+v, %v", answer, err)
	}
}

// logIsWhole: every line of the log is one JSON object, so nothing of a request was written as it came.
func (h *hall) logIsWhole() {
	h.t.Helper()
	if peer() {
		return // client-go's klog is no JSON
	}
	for line := range strings.Lines(h.ops[0].Log()) {
		if strings.HasSuffix(line, "\n") && !json.Valid([]byte(line)) {
			h.t.Errorf("a line of the log is no JSON: %.300q", line)
		}
	}
}

// F37: strings that no API server would let through, and some that it does.
func TestF37_odd_strings_at_the_extender(t *testing.T) {
	h := holdHall(t, map[string]int{"hami": 1})
	deep := strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000)
	many := strings.Repeat(`{"name":"c","resources":{"limits":`+one+`}},`, 10_000)
	refuse, either := func(s int) bool { return s >= 400 && s < 500 }, func(s int) bool { return s == 200 || (s >= 400 && s < 500) }
	for name, c := range map[string]struct {
		body string
		ok   func(int) bool
	}{
		"nothing":           {"", refuse},
		"no JSON":           {"not json", refuse},
		"half JSON":         {asked(podText(`"p"`, `{}`, one), `["hami-0"]`)[:80], refuse},
		"an array":          {"[]", refuse},
		"null":              {"null", refuse},
		"no pod":            {`{"Pod":null,"NodeNames":["hami-0"]}`, refuse},
		"a pod of text":     {`{"Pod":"p","NodeNames":["hami-0"]}`, refuse},
		"no names":          {`{"Pod":` + podText(`"p"`, `{}`, one) + `,"Nodes":null,"NodeNames":null}`, either},
		"names of numbers":  {asked(podText(`"p"`, `{}`, one), `[1,2]`), refuse},
		"names in a map":    {asked(podText(`"p"`, `{}`, one), `{"a":1}`), refuse},
		"empty name":        {asked(podText(`"p"`, `{}`, one), `["","hami-0"]`), either},
		"the same name":     {asked(podText(`"p"`, `{}`, one), `[`+strings.Repeat(`"hami-0",`, 10_000)+`"hami-0"]`), either},
		"not UTF-8":         {asked(podText("\"p\xff\xfe\"", "{\"a\":\"\xc3\x28\"}", one), "[\"n\xff\",\"hami-0\"]"), either},
		"NUL":               {asked(podText(`"p\u0000q"`, `{"a\u0000":"\u0000"}`, one), `["hami-0\u0000","hami-0"]`), either},
		"raw NUL":           {asked(podText("\"p\x00q\"", `{}`, one), `["hami-0"]`), either},
		"bidi":              {asked(podText("\"p\u202egnp\"", "{\"a\":\"\u2066\u202e\"}", one), "[\"\u202ehami-0\",\"hami-0\"]"), either},
		"newlines":          {asked(podText(`"p\n{\"level\":\"error\"}\r\n"`, `{"a":"\n\nx"}`, one), `["n\nm","hami-0"]`), either},
		"lone surrogate":    {asked(podText(`"p\ud800"`, `{}`, one), `["\udfff","hami-0"]`), either},
		"long name":         {asked(podText(`"`+strings.Repeat("p", 253)+`"`, `{}`, one), `["`+strings.Repeat("n", 253)+`","hami-0"]`), either},
		"1 MiB name":        {asked(podText(`"`+strings.Repeat("p", 1<<20)+`"`, `{}`, one), `["hami-0"]`), either},
		"deep":              {asked(podText(`"p"`, deep, one), `["hami-0"]`), either},
		"deep, unread":      {`{"Other":` + deep + `,` + asked(podText(`"p"`, `{}`, one), `["hami-0"]`)[1:], either},
		"said twice":        {`{"NodeNames":["a"],` + asked(podText(`"p"`, `{}`, one), `["hami-0"]`)[1:], either},
		"10,000 containers": {`{"Pod":{"metadata":{"name":"p","namespace":"default","uid":"5a1f0d0e-0000-4000-8000-000000000001"},"spec":{"containers":[` + many[:len(many)-1] + `]}},"NodeNames":["hami-0"]}`, either},
		"negative":          {asked(podText(`"p"`, `{}`, `{"nvidia.com/gpualloc":"-1"}`), `["hami-0"]`), either},
		"beyond 64 bits":    {asked(podText(`"p"`, `{}`, `{"nvidia.com/gpualloc":"99999999999999999999999"}`), `["hami-0"]`), either},
		"exponent":          {asked(podText(`"p"`, `{}`, `{"nvidia.com/gpumem":"1e18","nvidia.com/gpualloc":"1"}`), `["hami-0"]`), either},
		"a half":            {asked(podText(`"p"`, `{}`, `{"nvidia.com/gpualloc":"0.5"}`), `["hami-0"]`), either},
		"no quantity":       {asked(podText(`"p"`, `{}`, `{"nvidia.com/gpualloc":"many"}`), `["hami-0"]`), either},
		"quantity a map":    {asked(podText(`"p"`, `{}`, `{"nvidia.com/gpualloc":{}}`), `["hami-0"]`), either},
	} {
		for _, verb := range []string{"filter", "prioritize", "preempt", "bind"} {
			ctx, cancel := context.WithTimeout(h.ctx, 10*time.Second)
			status, answer, err := h.direct.Post(ctx, verb, []byte(c.body))
			cancel()
			ok := c.ok
			if verb != "filter" {
				ok = either
			}
			if err != nil || !ok(status) {
				t.Errorf("%s, %s: %d %.200s %v", verb, name, status, answer, err)
			}
			if status == 200 && !json.Valid(answer) {
				t.Errorf("%s, %s: the answer is no JSON: %.200q", verb, name, answer)
			}
			if status != 200 && bytes.Count(bytes.TrimSpace(answer), []byte("\n")) > 0 {
				t.Errorf("%s, %s: the answer has more than one line: %.300q", verb, name, answer)
			}
		}
		if !h.ops[0].Alive() {
			h.must(fmt.Errorf("after %s the operator does not answer", name))
		}
	}
	// What does not fit must not be said to fit.
	for _, limits := range []string{`{"nvidia.com/gpualloc":"99999999999999999999999"}`, `{"nvidia.com/gpualloc":"1","nvidia.com/gpumem":"1e18"}`} {
		status, answer, _ := h.direct.Post(h.ctx, "filter", []byte(asked(podText(`"p"`, `{}`, limits), `["hami-0"]`)))
		var said kit.FilterAnswer
		if status == 200 && (json.Unmarshal(answer, &said) != nil || said.NodeNames != nil && len(*said.NodeNames) > 0) {
			t.Errorf("the answer says that limits %s fit: %s", limits, answer)
		}
	}
	for _, bad := range []struct {
		method, path string
	}{{"GET", "filter"}, {"DELETE", "filter"}, {"POST", "no-such-verb"}, {"POST", "filter/../../metrics"}, {"POST", "%00"}} {
		request, err := http.NewRequestWithContext(h.ctx, bad.method, h.direct.Base+"/"+bad.path, nil)
		h.must(err)
		reply, err := h.direct.Client.Do(request)
		if err == nil {
			reply.Body.Close()
		}
		if err != nil || reply.StatusCode < 400 || reply.StatusCode >= 500 {
			t.Errorf("%s %s: %v %v", bad.method, bad.path, reply, err)
		}
	}
	h.answersRightly()
	// Through the API, as far as it lets them.
	odd := pod("a"+strings.Repeat(".0123456789abcdef", 14)+".end", map[string]string{"nvidia.com/gpualloc": "1", "nvidia.com/gpumem": "100"})
	odd.Annotations = map[string]string{"example.com/note": "line\nline\u202e\u0000 \"}{"}
	odd.Spec.Containers[0].Name = strings.Repeat("c", 63)
	h.create(odd)
	h.awaitBound(odd.Name, 20*time.Second)
	h.logIsWhole()
}

// socket speaks TLS as the scheduler does, byte by byte.
func (h *hall) socket() (*tls.Conn, error) {
	with, err := kit.ClientTLS(h.keys.ServerCA, h.keys.ClientCert, h.keys.ClientKey)
	if err != nil {
		return nil, err
	}
	with.ServerName = "localhost"
	c, err := net.DialTimeout("tcp", h.address, 5*time.Second)
	if err != nil {
		return nil, err
	}
	s := tls.Client(c, with)
	c.SetDeadline(time.Now().Add(10 * time.Second))
	err = s.Handshake()
	c.SetDeadline(time.Time{})
	return s, err
}

// p99 of so many ordinary filter calls one after another.
func (h *hall) p99(calls int) time.Duration {
	h.t.Helper()
	p := pod("ordinary", map[string]string{"nvidia.com/gpualloc": "1", "nvidia.com/gpumem": "100"})
	p.UID = "5a1f0d0e-0000-4000-8000-000000000003"
	var all []time.Duration
	for range calls {
		at := time.Now()
		if _, err := h.direct.Filter(h.ctx, p, []string{"hami-0"}); err != nil {
			h.t.Errorf("a healthy call: %v", err)
			return 0
		}
		all = append(all, time.Since(at))
	}
	slices.Sort(all)
	return all[len(all)*99/100]
}

// F39: clients that connect and say nothing, say it slowly, say half of it, or do not listen; and strangers. Those who behave are answered as
// before, and the others are shown out.
func TestF39_slow_clients_and_strangers_at_the_extender_long(t *testing.T) {
	h := holdHall(t, map[string]int{"hami": 1})
	for name, files := range map[string][2]string{"nobody": {}, "signed by a stranger": {h.keys.AlienCert, h.keys.AlienKey}} {
		with, err := kit.ClientTLS(h.keys.ServerCA, files[0], files[1])
		h.must(err)
		stranger := &kit.Extender{Base: h.direct.Base, Client: &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: with}}}
		if status, answer, err := stranger.Post(h.ctx, "filter", []byte(asked(podText(`"p"`, `{}`, one), `["hami-0"]`))); err == nil {
			t.Errorf("%s was answered: %d %s", name, status, answer)
		}
	}
	h.p99(100)
	quiet := h.p99(400)
	each := form(40, 1000)
	type slow struct {
		kind   string
		c      net.Conn
		closed chan struct{}
	}
	var all []*slow
	add := func(kind string, c net.Conn) {
		s := &slow{kind, c, make(chan struct{})}
		all = append(all, s)
		if kind == "does not listen" {
			return
		}
		go func() { io.Copy(io.Discard, c); close(s.closed) }()
	}
	defer func() {
		for _, s := range all {
			s.c.Close()
		}
	}()
	head := "POST /scheduler/filter HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
	body := asked(podText(`"p"`, `{}`, one), `["hami-0"]`)
	began := time.Now()
	stop := make(chan struct{})
	defer close(stop)
	drip := func(c net.Conn, text string) {
		for i := range len(text) {
			select {
			case <-stop:
				return
			case <-time.After(time.Second):
			}
			if _, err := c.Write([]byte{text[i]}); err != nil {
				return
			}
		}
	}
	for range each {
		if c, err := net.Dial("tcp", h.address); err == nil {
			add("no TLS", c)
		}
		for _, kind := range []string{"half a head", "slow head", "slow body", "half closed", "does not listen"} {
			c, err := h.socket()
			if err != nil {
				continue // all places are taken: those who wait longest make room
			}
			switch kind {
			case "half a head":
				fmt.Fprint(c, head)
			case "slow head":
				go drip(c, head)
			case "slow body":
				fmt.Fprintf(c, "%sContent-Length: %d\r\n\r\n", head, len(body))
				go drip(c, body)
			case "half closed":
				fmt.Fprintf(c, "%sContent-Length: %d\r\n\r\n%s", head, len(body), body[:20])
				c.CloseWrite()
			case "does not listen":
				fmt.Fprintf(c, "%sContent-Length: %d\r\n\r\n%s", head, len(body), body)
			}
			add(kind, c)
		}
	}
	loud := h.p99(400)
	t.Logf("p99 of healthy calls: %s before, %s together with %d others", quiet, loud, len(all))
	if loud > 2*quiet+30*time.Millisecond {
		t.Errorf("p99 of healthy calls was %s and is %s together with %d others", quiet, loud, len(all))
	}
	h.create(pod("meanwhile", map[string]string{"nvidia.com/gpualloc": "1", "nvidia.com/gpumem": "100"}))
	h.awaitBound("meanwhile", 20*time.Second)
	left := map[string]int{}
	for _, s := range all {
		if s.kind == "does not listen" {
			continue
		}
		select {
		case <-s.closed:
		case <-time.After(time.Until(began.Add(50 * time.Second))):
			left[s.kind]++
		}
	}
	if len(left) > 0 {
		t.Errorf("after %s these have not been shown out: %v", time.Since(began).Round(time.Second), left)
	}
	h.answersRightly()
}

// leaseOf the operator that leads: its version moves with each renewal.
func (h *hall) leases() (renewed string, transitions int) {
	h.t.Helper()
	list, err := h.Client.CoordinationV1().Leases(kit.Namespace).List(h.ctx, metav1.ListOptions{})
	h.must(err)
	for _, l := range list.Items {
		if l.Spec.LeaseTransitions != nil {
			transitions += int(*l.Spec.LeaseTransitions)
		}
		renewed += l.ResourceVersion + " "
	}
	return
}

// wholeNodes is a body with so many nodes in it, of about `size` bytes each; the first is hami-0.
func wholeNodes(count, size int) []byte {
	var out bytes.Buffer
	out.WriteString(`{"Pod":` + podText(`"p"`, `{}`, one) + `,"NodeNames":null,"Nodes":{"metadata":{},"items":[`)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "NAME", Labels: map[string]string{"kubernetes.io/hostname": "NAME"}, Annotations: map[string]string{"filler": strings.Repeat("x", size)}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"nvidia.com/gpualloc": resource.MustParse("80"), "cpu": resource.MustParse("32")}}}
	text, _ := json.Marshal(node)
	for i := range count {
		if i > 0 {
			out.WriteByte(',')
		}
		name := "hami-0"
		if i > 0 {
			name = fmt.Sprintf("elsewhere-%05d", i)
		}
		out.Write(bytes.ReplaceAll(text, []byte("NAME"), []byte(name)))
	}
	out.WriteString(`]}}`)
	return out.Bytes()
}

// F40: 64 questions at once with 5,000 names each, then whole nodes, then bodies that never end. Everything is answered, with 200 or early with
// 429 or 503; the lease is kept, memory has a bound, and a pod that comes meanwhile is bound.
func TestF40_a_flood_at_the_extender_long(t *testing.T) {
	h := holdHall(t, map[string]int{"hami": 1})
	o := h.ops[0]
	_, before := h.leases()
	base, err := o.Footprint()
	h.must(err)
	names := []string{`"hami-0"`}
	for i := range 4_999 {
		names = append(names, fmt.Sprintf(`"elsewhere-%05d"`, i))
	}
	body := []byte(asked(podText(`"p"`, `{}`, one), "["+strings.Join(names, ",")+"]"))
	var mu sync.Mutex
	statuses := map[string]int{}
	flood := func(what string, callers, rounds int, body []byte, right func([]byte) bool) {
		t.Helper()
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for range rounds {
					ctx, cancel := context.WithTimeout(h.ctx, 30*time.Second)
					status, answer, err := h.direct.Post(ctx, "filter", body)
					cancel()
					mu.Lock()
					switch {
					case err != nil && strings.Contains(err.Error(), "reset") || err != nil && strings.Contains(err.Error(), "broken pipe"):
						statuses[what+" closed"]++ // refused while the body was on its way
					case err != nil:
						statuses[what+" "+err.Error()]++
						t.Errorf("%s: %v", what, err)
					case status == 200 && !right(answer):
						t.Errorf("%s: a wrong answer of %d bytes: %.200s", what, len(answer), answer)
					case status != 200 && status != 429 && status != 503:
						t.Errorf("%s: %d %.200s", what, status, answer)
					}
					statuses[fmt.Sprint(what, " ", status)]++
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if statuses[what+" 200"] == 0 {
			t.Errorf("%s: nothing was answered with 200: %v", what, statuses)
		}
	}
	h.create(pod("meanwhile", map[string]string{"nvidia.com/gpualloc": "1", "nvidia.com/gpumem": "100"}))
	flood("names", 64, form(5, 50), body, func(answer []byte) bool {
		var said kit.FilterAnswer
		return json.Unmarshal(answer, &said) == nil && said.NodeNames != nil && slices.Equal(*said.NodeNames, []string{"hami-0"}) &&
			len(said.FailedNodes)+len(said.FailedAndUnresolvableNodes) == 4_999
	})
	whole := wholeNodes(5_000, form(4_000, 19_000))
	flood("whole nodes", 4, form(2, 5), whole, func(answer []byte) bool {
		var said struct{ Nodes *corev1.NodeList }
		return json.Unmarshal(answer, &said) == nil && said.Nodes != nil && len(said.Nodes.Items) == 1 && said.Nodes.Items[0].Name == "hami-0"
	})
	t.Logf("answers: %v; whole nodes were %d MiB", statuses, len(whole)>>20)
	// A body that says it is too long, and one that does not say it.
	c, err := h.socket()
	h.must(err)
	fmt.Fprintf(c, "POST /scheduler/filter HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n{", 1<<32)
	c.SetReadDeadline(time.Now().Add(30 * time.Second))
	if line, err := bufio.NewReader(c).ReadString('\n'); err == nil && !strings.Contains(line, " 4") {
		t.Errorf("4 GiB announced: %q", line)
	} else if err != nil && err != io.EOF {
		t.Logf("4 GiB announced: %v", err)
	}
	c.Close()
	c, err = h.socket()
	h.must(err)
	fmt.Fprint(c, "POST /scheduler/filter HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
	part := append([]byte("100000\r\n"), bytes.Repeat([]byte(" "), 1<<20)...)
	part = append(part, '\r', '\n')
	c.SetDeadline(time.Now().Add(60 * time.Second))
	sent := 0
	for ; sent < 400; sent++ {
		if _, err := c.Write(part); err != nil {
			break
		}
	}
	c.Close()
	if sent >= 300 {
		t.Errorf("%d MiB of a body without end were taken", sent)
	}
	t.Logf("%d MiB of a body without end were taken", sent)
	h.awaitBound("meanwhile", 20*time.Second)
	h.answersRightly()
	renewed, after := h.leases()
	if after != before {
		t.Errorf("the lease changed hands %d times", after-before)
	}
	for deadline := time.Now().Add(12 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		if now, _ := h.leases(); now != renewed {
			break
		}
		if time.Now().After(deadline) {
			t.Error("the lease is not renewed any more")
			break
		}
	}
	if f, err := o.Footprint(); err == nil && !kit.Sanitized(program) {
		t.Logf("memory %d MiB, before %d MiB", f.RSSKiB>>10, base.RSSKiB>>10)
		if !peer() && f.RSSKiB > base.RSSKiB+(200<<10) {
			t.Errorf("after the flood %d MiB are kept, before it were %d", f.RSSKiB>>10, base.RSSKiB>>10)
		}
	}
	h.logIsWhole()
}
