package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// decoded is JSON that a command or the console printed.
func decoded[T any](t *testing.T, text string) T {
	t.Helper()
	var out T
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}

type firstScreen struct {
	Health  *struct{ Problems int }
	Gpus    *struct{ Total, AllocatedCores, Free, WithoutMode, Cordoned, Unhealthy int }
	Waiting struct{ Pods int }
}

// verified is what `quartermaster verify` counts. It ends with 3 where something is wrong.
func verified(t *testing.T) int {
	t.Helper()
	out, err := exec.Command(program, "verify", "-o", "json", "--kubeconfig", kubeconfig, "-n", namespace).Output()
	var failed *exec.ExitError
	if err != nil && !(errors.As(err, &failed) && failed.ExitCode() == 3) {
		t.Fatal(err)
	}
	return decoded[struct{ Problems int }](t, string(out)).Problems
}

// Every number of the first screen is what the commands say of the same cluster.
func TestTheFirstScreenHasTheNumbersOfTheCommands(t *testing.T) {
	cluster(t)
	kubectl(t, "", "wait", "--for=create", "pod/red-runs", "-n", "red", "--timeout=10s")
	kubectl(t, `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-idle", "labels": {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.count": "2"}}}`, "apply", "-f", "-")
	t.Cleanup(func() { kubectl(t, "", "delete", "node", "gpu-idle") })
	admin := token(t, namespace, "admin")
	port := console(t, "--namespace", namespace)
	type node struct {
		Mode                  string
		Cordoned              bool
		Cards, UnhealthyCards int
	}
	list := decoded[struct{ Nodes []node }](t, call(t, "", program, "inspect", "nodes", "-o", "json", "--kubeconfig", kubeconfig, "-n", namespace))
	cards := decoded[struct{ Cards []struct{ UsedCores int } }](t, call(t, "", program, "top", "cards", "-o", "json", "--kubeconfig", kubeconfig))
	var total, withoutMode, unhealthy, cores int
	for _, row := range list.Nodes {
		total += row.Cards
		unhealthy += row.UnhealthyCards
		if row.Mode == "none" {
			withoutMode += row.Cards
		}
	}
	for _, row := range cards.Cards {
		cores += row.UsedCores
	}
	until(t, 20*time.Second, "the first screen has the numbers of the commands", func() error {
		got := ask(t, port, "GET", api+"overview", admin)
		seen := decoded[firstScreen](t, got.body)
		if seen.Gpus == nil || seen.Health == nil {
			return errors.New(got.body)
		}
		if seen.Gpus.Total != total || seen.Gpus.WithoutMode != withoutMode || seen.Gpus.Unhealthy != unhealthy || seen.Gpus.AllocatedCores != cores || seen.Waiting.Pods != 2 {
			return errors.New(got.body)
		}
		if problems := verified(t); seen.Health.Problems != problems {
			return errors.New(got.body)
		}
		return nil
	})
	if total < 6 || withoutMode < 2 || cores != 60 {
		t.Errorf("the cluster has nothing to compare: %d GPUs, %d without a mode, %d cores", total, withoutMode, cores)
	}
	// Who sees one namespace sees its waiting pods, and neither nodes nor what is wrong with them.
	red := decoded[firstScreen](t, ask(t, port, "GET", api+"overview", token(t, "red", "red-viewer")).body)
	if red.Health != nil || red.Gpus != nil || red.Waiting.Pods != 1 {
		t.Errorf("%+v", red)
	}
}

// session sends a request about the cookie, as a page of `site` does.
func session(t *testing.T, port, method, path, token, cookie, site string) *http.Response {
	t.Helper()
	request, _ := http.NewRequest(method, "http://127.0.0.1:"+port+api+path, nil)
	request.Header.Set("Sec-Fetch-Site", site)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	if cookie != "" {
		request.Header.Set("Cookie", cookie)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response
}

// A real token becomes a cookie that is of use to this console alone and ends with the token.
func TestACookieEndsWithItsToken(t *testing.T) {
	cluster(t)
	port := console(t)
	kubectl(t, `{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "leaves", "namespace": "red"}}`, "apply", "-f", "-")
	leaves := token(t, "red", "leaves")
	response := session(t, port, "POST", "session", leaves, "", "same-origin")
	set := response.Header.Get("Set-Cookie")
	for _, word := range []string{"; HttpOnly", "; SameSite=Strict", "; Path=/console/"} {
		if !strings.Contains(set, word) {
			t.Errorf("%d: no %q in %q", response.StatusCode, word, set)
		}
	}
	cookie, _, _ := strings.Cut(set, ";")
	for _, part := range strings.Split(leaves, ".") {
		if strings.Contains(cookie, part) {
			t.Error("the token can be read in the cookie")
		}
	}
	if got := session(t, port, "GET", "me", "", cookie, "same-origin"); got.StatusCode != 200 {
		t.Errorf("%d", got.StatusCode)
	}
	for _, site := range []string{"cross-site", "same-site"} {
		if got := session(t, port, "GET", "me", "", cookie, site); got.StatusCode != 401 {
			t.Errorf("a page of another origin reads by the cookie: %d", got.StatusCode)
		}
	}
	if got := session(t, console(t), "GET", "me", "", cookie, "same-origin"); got.StatusCode != 401 {
		t.Errorf("another console takes the cookie: %d", got.StatusCode)
	}
	kubectl(t, "", "delete", "serviceaccount", "-n", "red", "leaves")
	until(t, 45*time.Second, "the cookie of a token that has ended is refused", func() error {
		if got := session(t, port, "GET", "me", "", cookie, "same-origin"); got.StatusCode != 401 {
			return errors.New(got.Status)
		}
		return nil
	})
}
