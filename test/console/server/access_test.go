package server

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quartermaster.io/test/chart"
)

const api = "/console/api/v1/"

// paths are all that the console answers below its API, each with words that name the other namespace where there can be one.
func paths(other string) []string {
	return []string{"me", "overview", "fleet", "measured", "nodes/gpu-1", "waiting", "waiting/reasons", "pods", "pods?namespace=" + other, "waiting?namespace=" + other, "namespaces", "declarations", "capacity",
		"history?chart=utilization", "history?chart=memory&node=gpu-1", "history?chart=cards", "history?chart=namespace_cores",
		"history?chart=namespace_cores&namespace=" + other, "history?chart=namespace_utilization&namespace=" + other, "nowhere"}
}

// cluster has the chart with the console, a node with four cards, and two namespaces. All names of a namespace's objects begin with its name.
func cluster(t *testing.T) {
	t.Helper()
	call(t, "", chart.Tool("kubernetes-*", "helm"), "upgrade", "--install", "quartermaster", chart.Chart(), "-n", namespace, "--create-namespace",
		"--set", "replicaCount=0", "--set", "console.enabled=true")
	kubectl(t, `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-1", "labels": {"quartermaster.io/module": "vgpu"}}}`, "apply", "-f", "-")
	const amounts = `{"tencent.com/vcuda-core": "400", "tencent.com/vcuda-memory": "256"}`
	kubectl(t, "", "patch", "node", "gpu-1", "--subresource=status", "-p", `{"status": {"capacity": `+amounts+`, "allocatable": `+amounts+`}}`)
	for _, team := range []string{"red", "blue"} {
		kubectl(t, fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: %[1]s-viewer, namespace: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: view, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: %[1]s-viewer, namespace: %[1]s}]
---
apiVersion: quartermaster.io/v1alpha1
kind: AcceleratorQuota
metadata: {name: %[1]s-limit, namespace: %[1]s}
spec: {cohort: all, hard: [{units: cores, max: 300}]}
---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s-runs, namespace: %[1]s}
spec:
  nodeName: gpu-1
  containers: [{name: main, image: none.test/none:1, resources: {limits: {tencent.com/vcuda-core: 30, tencent.com/vcuda-memory: 8}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s-waits, namespace: %[1]s}
spec:
  schedulerName: none
  containers: [{name: main, image: none.test/none:1, resources: {limits: {tencent.com/vcuda-core: 80, tencent.com/vcuda-memory: 100}}}]
`, team), "apply", "-f", "-")
	}
	kubectl(t, `
apiVersion: v1
kind: ServiceAccount
metadata: {name: admin, namespace: quartermaster}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: console-test-admin}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: admin, namespace: quartermaster}]
`, "apply", "-f", "-")
}

// console starts the program with the rights of the chart's ServiceAccount, where people sign in by token, and waits until it has read.
func console(t *testing.T, flags ...string) string {
	t.Helper()
	port := freePort(t)
	words := append([]string{"console", "--kubeconfig", asAccount(t, "quartermaster-console"), "--listen", ":" + port}, flags...)
	start(t, nil, program, words...)
	admin := token(t, namespace, "admin", "--audience", "quartermaster-console")
	until(t, 30*time.Second, "the console has read the cluster", func() error {
		request, _ := http.NewRequest("GET", "http://127.0.0.1:"+port+api+"me", nil)
		request.Header.Set("Authorization", "Bearer "+admin)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		response.Body.Close()
		if response.StatusCode != 200 {
			return errors.New(response.Status)
		}
		return nil
	})
	return port
}

func token(t *testing.T, ns, account string, more ...string) string {
	t.Helper()
	return kubectl(t, "", append([]string{"create", "token", "-n", ns, account}, more...)...)
}

func server(t *testing.T) string {
	t.Helper()
	return kubectl(t, "", "config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")
}

// signed is a token of the ServiceAccount as the API server itself would sign it, valid until `end`.
func signed(t *testing.T, ns, account string, end time.Time) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(kubeconfig), "certs/service-account.key"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	const issuer = "https://kubernetes.default.svc.cluster.local"
	uid := kubectl(t, "", "get", "serviceaccount", "-n", ns, account, "-o", "jsonpath={.metadata.uid}")
	claims, _ := json.Marshal(map[string]any{"iss": issuer, "aud": []string{issuer}, "sub": "system:serviceaccount:" + ns + ":" + account,
		"iat": end.Add(-time.Hour).Unix(), "nbf": end.Add(-time.Hour).Unix(), "exp": end.Unix(),
		"kubernetes.io": map[string]any{"namespace": ns, "serviceaccount": map[string]string{"name": account, "uid": uid}}})
	encode := base64.RawURLEncoding.EncodeToString
	content := encode([]byte(`{"alg":"ES256"}`)) + "." + encode(claims)
	sum := sha256.Sum256([]byte(content))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return content + "." + encode(signature)
}

// Neither of two namespaces sees the other by any path, with real tokens.
func TestNoNamespaceSeesTheOther(t *testing.T) {
	cluster(t)
	port := console(t)
	admin := token(t, namespace, "admin")
	for _, path := range []string{"namespaces", "waiting"} {
		if got := ask(t, port, "GET", api+path, admin); got.status != 200 || !strings.Contains(got.body, "red") || !strings.Contains(got.body, "blue") {
			t.Errorf("%s says to the administrator %d %s", path, got.status, got.body)
		}
	}
	if got := ask(t, port, "GET", api+"nodes/gpu-1", admin); got.status != 200 || !strings.Contains(got.body, "blue-runs") {
		t.Errorf("the node says to the administrator %d %s", got.status, got.body)
	}
	if got := ask(t, port, "GET", api+"declarations", admin); got.status != 200 {
		t.Errorf("declarations say to the administrator %d %s", got.status, got.body)
	}
	for _, pair := range [][2]string{{"red", "blue"}, {"blue", "red"}} {
		own, other := pair[0], pair[1]
		viewer := token(t, own, own+"-viewer")
		for _, path := range paths(other) {
			got := ask(t, port, "GET", api+path, viewer)
			if strings.Contains(got.body, other) {
				t.Errorf("%s says to %s: %s", path, own, got.body)
			}
			if strings.Contains(path, other) && got.status != 403 {
				t.Errorf("%s says to %s %d", path, own, got.status)
			}
			if got.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s may be kept by a browser: %v", path, got.header)
			}
		}
		for _, path := range []string{"namespaces", "waiting"} {
			got := ask(t, port, "GET", api+path, viewer)
			if got.status != 200 || !strings.Contains(got.body, own) {
				t.Errorf("%s says to %s %d %s", path, own, got.status, got.body)
			}
		}
		if got := ask(t, port, "GET", api+"namespaces", viewer); !strings.Contains(got.body, `"nominal":300`) {
			t.Errorf("%s does not see its limit: %s", own, got.body)
		}
		if got := ask(t, port, "GET", api+"fleet", viewer); got.status != 403 {
			t.Errorf("%s sees the fleet: %d", own, got.status)
		}
	}
}

// With the right to list nodes and acceleratornodes, and no pods of others, shares of others have no name.
func TestWhoSeesNodesSeesNoPodOfOthers(t *testing.T) {
	cluster(t)
	kubectl(t, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: console-test-nodes}
rules:
  - {apiGroups: [""], resources: [nodes], verbs: [list]}
  - {apiGroups: [quartermaster.io], resources: [acceleratornodes], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: console-test-nodes}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: console-test-nodes}
subjects: [{kind: ServiceAccount, name: red-viewer, namespace: red}]
`, "apply", "-f", "-")
	defer kubectl(t, "", "delete", "clusterrolebinding", "console-test-nodes")
	port := console(t)
	viewer := token(t, "red", "red-viewer")
	for _, path := range paths("blue") {
		if got := ask(t, port, "GET", api+path, viewer); strings.Contains(got.body, "blue") {
			t.Errorf("%s says: %s", path, got.body)
		}
	}
	var fleet struct {
		Namespaces []string
		Nodes      []json.RawMessage
	}
	got := ask(t, port, "GET", api+"fleet", viewer)
	if err := json.Unmarshal([]byte(got.body), &fleet); err != nil || len(fleet.Nodes) != 1 || len(fleet.Namespaces) != 1 || fleet.Namespaces[0] != "red" {
		t.Errorf("%v: %s", err, got.body)
	}
	if !strings.Contains(string(fleet.Nodes[0]), ",-1]") {
		t.Errorf("blue's share is not there at all: %s", got.body)
	}
	if got := ask(t, port, "GET", api+"nodes/gpu-1", viewer); got.status != 200 || !strings.Contains(got.body, "red-runs") ||
		!strings.Contains(got.body, `"pod":null`) {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// What the API server does not take, the console does not take.
func TestForgedAndExpiredTokens(t *testing.T) {
	cluster(t)
	port := console(t)
	good := token(t, namespace, "admin")
	parts := strings.Split(good, ".")
	other := strings.Split(token(t, "red", "red-viewer"), ".")
	if got := ask(t, port, "GET", api+"fleet", signed(t, namespace, "admin", time.Now().Add(time.Hour))); got.status != 200 {
		t.Fatalf("a token that the test signs is not taken, so an expired one shows nothing: %d %s", got.status, got.body)
	}
	kubectl(t, `{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "gone", "namespace": "red"}}`, "apply", "-f", "-")
	gone := token(t, "red", "gone")
	kubectl(t, "", "delete", "serviceaccount", "-n", "red", "gone")
	for name, bad := range map[string]string{
		"none":             "",
		"a word":           "admin",
		"expired":          signed(t, namespace, "admin", time.Now().Add(-time.Minute)),
		"other audience":   token(t, namespace, "admin", "--audience", "vault"),
		"of no account":    gone,
		"other signature":  parts[0] + "." + parts[1] + "." + other[2],
		"other claims":     other[0] + "." + parts[1] + "." + other[2],
		"no signature":     parts[0] + "." + parts[1] + ".",
		"algorithm none":   base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + parts[1] + ".",
		"with an addition": good + "x",
	} {
		for _, path := range append(paths("red"), "stream") {
			got := ask(t, port, "GET", api+path, bad)
			if (got.status != 401 && got.status != 429) || strings.Contains(got.body, "gpu-1") || strings.Contains(got.body, "red") {
				t.Errorf("%s: %s says %d %s", name, path, got.status, got.body)
			}
			if bad != "" && len(bad) > 10 && strings.Contains(got.body, bad) {
				t.Errorf("%s: the token is in the answer", name)
			}
		}
		time.Sleep(250 * time.Millisecond) // 5 new tokens a second from one address
	}
	if got := ask(t, port, "GET", api+"fleet", good); got.status != 200 {
		t.Errorf("the good token is not taken any more: %d %s", got.status, got.body)
	}
}

// A token that the API server itself refuses signs in, and --audience-only takes no other.
func TestTokensForTheConsoleAlone(t *testing.T) {
	cluster(t)
	const ours = "quartermaster-console"
	forConsole := token(t, "red", "red-viewer", "--audience", ours)
	forAPI, forVault := token(t, "red", "red-viewer"), token(t, "red", "red-viewer", "--audience", "vault")
	forAll := token(t, "red", "red-viewer", "--audience", "vault", "--audience", ours)
	out, err := exec.Command(chart.Tool("kubernetes-*", "kubectl"), "--kubeconfig", os.DevNull, "--server", server(t),
		"--insecure-skip-tls-verify", "--token", forConsole, "get", "pods", "-n", "red").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "must be logged in") {
		t.Errorf("the API server itself takes the token for the console: %v %s", err, out)
	}
	both, alone := console(t), console(t, "--audience-only")
	for _, row := range []struct {
		name, port, token, refusal string
	}{
		{"for the console", both, forConsole, ""},
		{"for the API server", both, forAPI, ""},
		{"for two", both, forAll, ""},
		{"for vault", both, forVault, "this token is for another audience; allowed: quartermaster-console, or the API server itself"},
		{"forged", both, forConsole + "x", "the API server does not take it"},
		{"for the console, alone", alone, forConsole, ""},
		{"for two, alone", alone, forAll, ""},
		{"for the API server, alone", alone, forAPI, "this token is for another audience; allowed: quartermaster-console alone"},
		{"for vault, alone", alone, forVault, "this token is for another audience; allowed: quartermaster-console alone"},
		{"forged, alone", alone, forConsole + "x", "the API server does not take it"},
	} {
		got := ask(t, row.port, "GET", api+"waiting", row.token)
		if row.refusal == "" && (got.status != 200 || !strings.Contains(got.body, "red-waits") || strings.Contains(got.body, "blue")) {
			t.Errorf("%s: %d %s", row.name, got.status, got.body)
		}
		if row.refusal != "" && (got.status != 401 || !strings.Contains(got.body, row.refusal) || strings.Contains(got.body, "red")) {
			t.Errorf("%s: %d %s", row.name, got.status, got.body)
		}
	}
}

// Nothing can be written: not by a request, and not by the account of the console.
func TestTheConsoleOnlyReads(t *testing.T) {
	cluster(t)
	port := console(t)
	admin := token(t, namespace, "admin")
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
		for _, path := range append(paths("red"), "stream") {
			if got := ask(t, port, method, api+path, admin); got.status != 405 {
				t.Errorf("%s %s: %d", method, path, got.status)
			}
		}
	}
	for _, line := range strings.Split(kubectl(t, "", "auth", "can-i", "--list", "--as", "system:serviceaccount:"+namespace+":quartermaster-console"), "\n") {
		words := strings.Fields(line)
		verbs := line[strings.LastIndex(line, "[")+1:]
		isReview := strings.Contains(words[0], "reviews") || strings.HasPrefix(words[0], "self")
		for _, verb := range []string{"update", "patch", "delete", "deletecollection", "*", "bind", "escalate", "impersonate"} {
			if strings.Contains(verbs, verb) {
				t.Errorf("it may %s", line)
			}
		}
		if strings.Contains(verbs, "create") && !isReview {
			t.Errorf("it may %s", line)
		}
	}
}

// events reads a stream until `patience` is over, and counts its events.
func events(t *testing.T, port, token string, patience time.Duration, began chan<- struct{}) int {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	request, _ := http.NewRequestWithContext(ctx, "GET", "http://127.0.0.1:"+port+api+"stream", nil)
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil || response.StatusCode != 200 || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%v %v", err, response)
		close(began)
		return 0
	}
	defer response.Body.Close()
	count := 0
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if lines.Text() == "event: changed" {
			if count++; count == 1 {
				close(began)
			}
		}
	}
	return count
}

// A change in one namespace is told to who may see it, and not to the other namespace.
func TestTheStreamTellsOfNoOtherNamespace(t *testing.T) {
	cluster(t)
	port := console(t)
	const patience = 6 * time.Second
	counts := map[string]chan int{}
	for name, held := range map[string]string{"admin": token(t, namespace, "admin"), "red": token(t, "red", "red-viewer")} {
		began := make(chan struct{})
		counts[name] = make(chan int, 1)
		go func() { counts[name] <- events(t, port, held, patience, began) }()
		<-began
	}
	time.Sleep(1500 * time.Millisecond)
	kubectl(t, "", "delete", "pod", "-n", "blue", "blue-runs", "--grace-period=0", "--force")
	if count := <-counts["admin"]; count < 2 {
		t.Errorf("the administrator had %d events", count)
	}
	if count := <-counts["red"]; count != 1 {
		t.Errorf("red had %d events", count)
	}
}

// On a laptop the printed link signs in, and nothing else does.
func TestTheLinkOfALaptop(t *testing.T) {
	cluster(t)
	port := freePort(t)
	process := start(t, nil, program, "console", "--kubeconfig", kubeconfig, "--listen", "127.0.0.1:"+port)
	var link string
	until(t, 30*time.Second, "the link is printed", func() error {
		text, err := os.ReadFile(process.Log)
		_, found, is := strings.Cut(string(text), "#token=")
		if link = strings.TrimSpace(found); !is || !strings.HasSuffix(string(text), "\n") {
			return fmt.Errorf("%v: %s", err, text)
		}
		return nil
	})
	if got := ask(t, port, "GET", api+"fleet", link); got.status != 200 || !strings.Contains(got.body, "gpu-1") {
		t.Errorf("%d %s", got.status, got.body)
	}
	for _, bad := range []string{"", "x", link[1:], token(t, namespace, "admin")} {
		if got := ask(t, port, "GET", api+"fleet", bad); got.status != 401 {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
}

// The verb top has the same rows.
func TestTopHasTheRowsOfTheConsole(t *testing.T) {
	cluster(t)
	kubectl(t, "", "wait", "--for=create", "pod/red-runs", "-n", "red", "--timeout=10s")
	var nodes struct {
		Nodes []struct {
			Node      string
			UsedCores int
			Cards     int
		}
	}
	out := call(t, "", program, "top", "nodes", "-o", "json", "--kubeconfig", kubeconfig)
	if err := json.Unmarshal([]byte(out), &nodes); err != nil || len(nodes.Nodes) != 1 || nodes.Nodes[0].Cards != 4 || nodes.Nodes[0].UsedCores != 60 {
		t.Errorf("%v: %s", err, out)
	}
	if out := call(t, "", program, "top", "pods", "-n", "red", "--kubeconfig", kubeconfig); !strings.Contains(out, "red-runs") || strings.Contains(out, "blue") {
		t.Error(out)
	}
}
