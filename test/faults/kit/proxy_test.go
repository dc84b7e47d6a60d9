package kit

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

func parse(method, target string) *Request {
	u, err := url.Parse(target)
	if err != nil {
		panic(err)
	}
	return parseRequest(method, u)
}

// behind is a proxy in front of a server that answers with `handler`, and a client that trusts it.
func behind(t *testing.T, handler http.HandlerFunc) (*Proxy, *http.Client) {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	p, err := NewProxy("test", &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	pool := x509.NewCertPool()
	trust, _ := os.ReadFile(p.caFile)
	pool.AppendCertsFromPEM(trust)
	return p, &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
}

func tenBytes(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "0123456789") }

func TestProxy_passes_everything_and_writes_it_down(t *testing.T) {
	p, client := behind(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprint(w, r.Method, r.URL.RawQuery, r.Header.Get("Authorization"), string(body), r.Header.Get("User-Agent"))
	})
	request, _ := http.NewRequest("PATCH", p.URL+"/api/v1/nodes/n?fieldManager=q", strings.NewReader("{}"))
	request.Header.Set("Authorization", "Bearer t")
	request.Header.Set("User-Agent", "u")
	reply, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := io.ReadAll(reply.Body)
	if want := "PATCHfieldManager=qBearer t{}u proxy/test"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if log := p.Log(); len(log) != 1 || !log[0].Write() || log[0].Status != 200 {
		t.Errorf("the log is %v", log)
	}
}

func TestProxy_cuts_after_each_byte(t *testing.T) {
	p, client := behind(t, tenBytes)
	for n := range 10 {
		remove := p.Use(Rule{CutAfter: func(*Request) int64 { return int64(n) }})
		reply, err := client.Get(p.URL)
		if err != nil {
			t.Fatalf("cut after %d: %v", n, err)
		}
		got, err := io.ReadAll(reply.Body)
		if string(got) != "0123456789"[:n] || err == nil {
			t.Errorf("cut after %d: got %q and error %v", n, got, err)
		}
		remove()
	}
}

func TestProxy_kills_before_after_and_between(t *testing.T) {
	served := 0
	p, client := behind(t, func(w http.ResponseWriter, r *http.Request) { served++; tenBytes(w, r) })
	var told []string
	remove := p.Use(Rule{Match: Writes, Skip: 1, Times: 1, Drop: true, Before: func(r *Request) { told = append(told, r.Name) }})
	patch := func(name string) error {
		request, _ := http.NewRequest("PATCH", p.URL+"/api/v1/nodes/"+name, nil)
		reply, err := client.Do(request)
		if err == nil {
			_, err = io.ReadAll(reply.Body)
			reply.Body.Close()
		}
		return err
	}
	if patch("a") != nil || patch("b") == nil || patch("c") != nil || served != 2 || strings.Join(told, "") != "b" {
		t.Errorf("the second write only is to be lost: served %d, told of %v", served, told)
	}
	remove()
	p.Use(Rule{EndOnReply: true})
	if patch("d") == nil || served != 3 {
		t.Errorf("the write is to reach the server, the answer is not to come back: served %d", served)
	}
}

func TestProxy_answers_in_the_servers_place(t *testing.T) {
	p, client := behind(t, tenBytes)
	p.Use(Rule{Status: 429, Header: map[string]string{"Retry-After": "1"}, Times: 1})
	reply, err := client.Get(p.URL)
	if err != nil || reply.StatusCode != 429 || reply.Header.Get("Retry-After") != "1" {
		t.Errorf("got %v, %v", reply, err)
	}
	if reply, err = client.Get(p.URL); err != nil || reply.StatusCode != 200 {
		t.Errorf("the rule is spent: got %v, %v", reply, err)
	}
}

func TestProxy_refuses_and_freezes(t *testing.T) {
	p, client := behind(t, tenBytes)
	p.Refuse(true)
	if _, err := client.Get(p.URL); err == nil {
		t.Error("refused, yet answered")
	}
	p.Refuse(false)
	if _, err := client.Get(p.URL); err != nil {
		t.Error(err)
	}
	p.Freeze(true)
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	request, _ := http.NewRequestWithContext(ctx, "GET", p.URL, nil)
	if _, err := client.Do(request); ctx.Err() == nil {
		t.Errorf("frozen, yet it ended before the client gave up: %v", err)
	}
	p.Freeze(false)
	if _, err := client.Get(p.URL); err != nil {
		t.Error(err)
	}
}
