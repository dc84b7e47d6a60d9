package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// relay is between the console and the API server, and passes no byte while it is frozen.
type relay struct {
	listener net.Listener
	gate     sync.RWMutex
}

func startRelay(t *testing.T, to string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	r := &relay{listener: listener}
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				server, err := net.Dial("tcp", to)
				if err != nil {
					from.Close()
					return
				}
				go r.copy(server, from)
				r.copy(from, server)
			}()
		}
	}()
	return r
}

func (r *relay) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	for piece := make([]byte, 64<<10); ; {
		count, err := from.Read(piece)
		r.gate.RLock()
		r.gate.RUnlock()
		if count > 0 {
			if _, wrong := to.Write(piece[:count]); wrong != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// An API server that answers nothing any more is named on the stream within 20 s, with the age of what is shown, and so is its return.
func TestAnAPIServerThatDoesNotAnswerIsNamedOnTheStream(t *testing.T) {
	cluster(t)
	address, err := url.Parse(server(t))
	if err != nil {
		t.Fatal(err)
	}
	between := startRelay(t, address.Host)
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "kubeconfig")
	moved := strings.ReplaceAll(string(text), address.Host, between.listener.Addr().String())
	if err := os.WriteFile(config, []byte(moved), 0o600); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	process := start(t, nil, program, "console", "--kubeconfig", config, "--listen", "127.0.0.1:"+port)
	var link string
	until(t, 30*time.Second, "the link is printed", func() error {
		log, err := os.ReadFile(process.Log)
		_, found, is := strings.Cut(string(log), "#token=")
		if link = strings.TrimSpace(found); !is || !strings.HasSuffix(string(log), "\n") {
			return fmt.Errorf("%v: %s", err, log)
		}
		return nil
	})
	request, _ := http.NewRequest("GET", "http://127.0.0.1:"+port+api+"stream", nil)
	request.Header.Set("Authorization", "Bearer "+link)
	response, err := http.DefaultClient.Do(request)
	if err != nil || response.StatusCode != 200 {
		t.Fatal(err, response)
	}
	defer response.Body.Close()
	events := make(chan string, 100)
	go func(body io.Reader) {
		defer close(events)
		for lines := bufio.NewScanner(body); lines.Scan(); {
			events <- lines.Text()
		}
	}(response.Body)
	await := func(wish string, patience time.Duration) {
		t.Helper()
		for end := time.After(patience); ; {
			select {
			case line, is := <-events:
				if !is {
					t.Fatalf("the stream ended before %q", wish)
				}
				if line == wish {
					return
				}
			case <-end:
				t.Fatalf("%q: not within %s", wish, patience)
			}
		}
	}
	await("event: changed", 10*time.Second)
	between.gate.Lock()
	began := time.Now()
	await("event: silent", 20*time.Second)
	t.Logf("named after %.1f s", time.Since(began).Seconds())
	if data := <-events; !strings.HasPrefix(data, `data: {"seconds":`) {
		t.Errorf("without an age: %s", data)
	}
	between.gate.Unlock()
	await("event: heard", 30*time.Second)
}
