package server

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// stream opens a stream and sends its lines, until it ends.
func stream(t *testing.T, port, token string) <-chan string {
	t.Helper()
	request, _ := http.NewRequest("GET", "http://127.0.0.1:"+port+api+"stream", nil)
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil || response.StatusCode != 200 {
		t.Fatal(err, response)
	}
	t.Cleanup(func() { response.Body.Close() })
	lines := make(chan string, 1000)
	go func(body io.Reader) {
		defer close(lines)
		for text := bufio.NewScanner(body); text.Scan(); {
			lines <- text.Text()
		}
	}(response.Body)
	return lines
}

// awaitLine is the line after `wish`; none of `never` may come before.
func awaitLine(t *testing.T, lines <-chan string, wish string, patience time.Duration, never ...string) string {
	t.Helper()
	for end := time.After(patience); ; {
		select {
		case line, isOpen := <-lines:
			if !isOpen {
				t.Fatalf("the stream ended before %q", wish)
			}
			if line == wish {
				return <-lines
			}
			for _, bad := range never {
				if line == bad {
					t.Fatalf("%q before %q", bad, wish)
				}
			}
		case <-end:
			t.Fatalf("%q: not within %s", wish, patience)
		}
	}
}

// An operator that is killed is named on the stream within 20 s after its lease has ended, with the rights that the chart gives; so is its return, and
// the end of one that releases its lease. A person who sees one namespace alone hears it, too.
func TestThatNoOperatorLeadsIsNamedOnTheStream(t *testing.T) {
	cluster(t)
	const lease = 6 * time.Second
	operator := func() func(kill bool) {
		t.Helper()
		process := start(t, []string{"POD_NAMESPACE=" + namespace}, program, "controller", "--kubeconfig", asAccount(t, "quartermaster"), "-n", namespace,
			"--metrics-address", "127.0.0.1:0", "--lease-duration", "6", "--renew-deadline", "4", "--retry-period", "1")
		until(t, 30*time.Second, "the operator leads", func() error {
			if kubectl(t, "", "get", "lease", "-n", namespace, "quartermaster", "-o", "jsonpath={.spec.holderIdentity}", "--ignore-not-found") == "" {
				return errors.New("no one holds the lease")
			}
			return nil
		})
		return func(kill bool) {
			t.Helper()
			if kill {
				process.Process.Kill()
			} else {
				process.Process.Signal(os.Interrupt)
			}
			process.Wait()
		}
	}
	stop := operator()
	port := console(t, "--namespace", namespace)
	lines := stream(t, port, token(t, "red", "red-viewer"))
	awaitLine(t, lines, "event: changed", 10*time.Second)
	// While one leads nothing is said of it, for longer than it takes to notice that none does.
	for end := time.After(15 * time.Second); end != nil; {
		select {
		case line := <-lines:
			if line == "event: leaderless" || line == "event: led" {
				t.Fatalf("%q while one leads", line)
			}
		case <-end:
			end = nil
		}
	}
	killed := time.Now()
	stop(true)
	data := awaitLine(t, lines, "event: leaderless", lease+20*time.Second, "event: led")
	t.Logf("killed: named %.1f s later, %.1f s after the lease's end at the latest: %s", time.Since(killed).Seconds(), (time.Since(killed) - lease).Seconds(), data)
	if !strings.HasPrefix(data, `data: {"seconds":`) || strings.HasPrefix(data, `data: {"seconds":0`) {
		t.Errorf("without an age: %s", data)
	}
	awaitLine(t, stream(t, port, token(t, namespace, "admin")), "event: leaderless", 3*time.Second) // a stream that opens now begins with it
	began := time.Now()
	stop = operator()
	awaitLine(t, lines, "event: led", 30*time.Second)
	t.Logf("back: withdrawn %.1f s after its start", time.Since(began).Seconds())
	released := time.Now()
	stop(false)
	awaitLine(t, lines, "event: leaderless", 20*time.Second)
	t.Logf("stopped: named %.1f s after the signal", time.Since(released).Seconds())
}

// A console that may not list leases says neither, and goes on.
func TestWhereLeasesMayNotBeListedNothingIsSaidOfTheOperator(t *testing.T) {
	cluster(t)
	kubectl(t, "", "delete", "rolebinding", "-n", namespace, "quartermaster-console")
	port := console(t, "--namespace", namespace)
	lines := stream(t, port, token(t, namespace, "admin"))
	awaitLine(t, lines, "event: changed", 10*time.Second)
	awaitLine(t, lines, ": still here", 20*time.Second, "event: leaderless", "event: led")
}
