package server

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"quartermaster.io/test/chart"
)

const (
	views       = "/apis/view.quartermaster.io/v1alpha1"
	viewService = "v1alpha1.view.quartermaster.io"
)

// withViews has the chart with the aggregated API, an operator that keeps its certificate, and the console that serves it behind the real
// aggregator. It returns the port of the API and a function that ends the console.
func withViews(t *testing.T) string {
	t.Helper()
	cluster(t)
	call(t, "", chart.Tool("kubernetes-*", "helm"), "upgrade", "quartermaster", chart.Chart(), "-n", namespace, "--reuse-values", "--set", "console.views.enabled=true")
	t.Cleanup(func() { kubectl(t, "", "delete", "apiservice", viewService, "--ignore-not-found") }) // one that does not answer holds up the end of namespaces
	port := freePort(t)
	kubectl(t, "", "delete", "service", "-n", namespace, "quartermaster-views")
	kubectl(t, fmt.Sprintf(`{apiVersion: v1, kind: Service, metadata: {name: quartermaster-views, namespace: %s}, spec: {type: ExternalName, externalName: localhost, ports: [{port: %s}]}}`,
		namespace, port), "create", "-f", "-")
	kubectl(t, "", "patch", "apiservice", viewService, "--type=merge", "-p", `{"spec":{"service":{"port":`+port+`}}}`)
	start(t, []string{"POD_NAMESPACE=" + namespace}, program, "controller", "--kubeconfig", asAccount(t, "quartermaster"), "--metrics-address", "127.0.0.1:0",
		"--extender-address=", "--view-certificate")
	files := t.TempDir()
	until(t, 60*time.Second, "the operator has made the certificate", func() error {
		var secret struct{ Data map[string]string }
		text := kubectl(t, "", "get", "secret", "-n", namespace, "quartermaster-views", "--ignore-not-found", "-o", "json")
		if json.Unmarshal([]byte(text), &secret); secret.Data["tls.crt"] == "" {
			return errors.New("no certificate: " + kubectl(t, "", "get", "apiservice", viewService, "-o", "jsonpath={.spec.caBundle}"))
		}
		for _, name := range []string{"tls.crt", "tls.key"} {
			bytes, err := base64.StdEncoding.DecodeString(secret.Data[name])
			if err == nil {
				err = os.WriteFile(filepath.Join(files, name), bytes, 0o600)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	console(t, "--view-address", ":"+port, "--view-cert-file", filepath.Join(files, "tls.crt"), "--view-key-file", filepath.Join(files, "tls.key"))
	until(t, 60*time.Second, "the API server finds the views", func() error {
		state := kubectl(t, "", "get", "apiservice", viewService, "-o", `jsonpath={range .status.conditions[*]}{.status} {.reason} {.message}{end}`)
		if !strings.HasPrefix(state, "True") {
			return errors.New(state)
		}
		return nil
	})
	return port
}

// askServer asks kube-apiserver itself.
func askServer(t *testing.T, method, path, token string, header http.Header) answer {
	t.Helper()
	return askURL(t, method, server(t)+path, token, header, nil)
}

func askURL(t *testing.T, method, url, token string, header http.Header, certificates []tls.Certificate) answer {
	t.Helper()
	got, err := tryURL(method, url, token, header, certificates)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func tryURL(method, url, token string, header http.Header, certificates []tls.Certificate) (answer, error) {
	request, err := http.NewRequest(method, url, nil)
	if err != nil {
		return answer{}, err
	}
	if header != nil {
		request.Header = header.Clone()
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certificates}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Timeout: 20 * time.Second, Transport: transport}).Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, string(body), response.Header}, err
}

// eventually asks until the answer has this status: roles are put together, and the authorizer keeps what it said, for some seconds.
func eventually(t *testing.T, path, token string, status int) answer {
	t.Helper()
	var got answer
	until(t, 30*time.Second, fmt.Sprintf("%s says %d", path, status), func() error {
		if got = askServer(t, "GET", path, token, nil); got.status != status {
			return fmt.Errorf("%d %s", got.status, got.body)
		}
		return nil
	})
	return got
}

// With the role view in one namespace, and no other right: what is there of it, and nothing of the other namespace by any path.
func TestViewsOfOneNamespaceBehindTheAggregator(t *testing.T) {
	port := withViews(t)
	red := token(t, "red", "red-viewer")
	for path, parts := range map[string][]string{
		"nodeviews":                    {`"kind":"NodeViewList"`, `"name":"gpu-1"`, `"mode":"vgpu"`, `"tencent.com/vcuda-core"`},
		"nodeviews/gpu-1":              {`"kind":"NodeView"`, `"name":"gpu-1"`},
		"podviews":                     {`"name":"red-runs"`, `"name":"red-waits"`},
		"podviews/red-runs":            {`"node":"gpu-1"`},
		"holdings":                     {`"name":"red-runs"`, `"cores":30`},
		"nodeviews?form=table":         {`"kind":"Answer"`, "gpu-1", "vcuda-core 0/400"}, // it is not ready
		"podviews/red-waits?form=text": {"red/red-waits"},
		"bills?form=table":             {`"kind":"Answer"`},
	} {
		got := eventually(t, views+"/namespaces/red/"+path, red, 200)
		for _, part := range parts {
			if !strings.Contains(got.body, part) {
				t.Errorf("%s says without %s: %s", path, part, got.body)
			}
		}
		if strings.Contains(got.body, "blue") {
			t.Errorf("%s names the other namespace: %s", path, got.body)
		}
	}
	forged := http.Header{"X-Remote-User": {"system:serviceaccount:blue:blue-viewer"}, "X-Remote-Group": {"system:masters"}, "X-Remote-Extra-Scopes": {"all"},
		"X-Remote-Uid": {"0"}}
	for _, path := range []string{"nodeviews", "podviews", "podviews/blue-runs", "holdings", "bills", "simulations"} {
		for _, header := range []http.Header{nil, forged} {
			if got := askServer(t, "GET", views+"/namespaces/blue/"+path, red, header); got.status != 403 || strings.Contains(got.body, "gpu-1") {
				t.Errorf("%s of the other namespace, forged %v: %d %s", path, header != nil, got.status, got.body)
			}
		}
	}
	for _, path := range []string{"/podviews", "/holdings", "/nodeviews", "/namespaces/red/podviews?watch=true", "/watch/namespaces/red/podviews", "/namespaces/red%2F..%2Fblue/podviews",
		"/namespaces/red/../blue/podviews", "/namespaces/red/podviews/..%2F..%2Fblue%2Fpodviews%2Fblue-runs", "/namespaces/red/secrets"} {
		if got := askServer(t, "GET", views+path, red, nil); got.status < 300 || strings.Contains(got.body, "blue-runs") || strings.Contains(got.body, "red-runs") {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		if got := askServer(t, method, views+"/namespaces/red/podviews/red-runs", red, nil); got.status != 403 {
			t.Errorf("%s: %d %s", method, got.status, got.body)
		}
	}
	// A pod of the other namespace is as unknown as one that no one has made.
	for name, query := range map[string]string{"blue-runs": "", "blue-none": ""} {
		if got := askServer(t, "GET", views+"/namespaces/red/podviews/"+name+query, red, nil); got.status != 404 || !strings.Contains(got.body, "there is no pod "+name) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	pods := base64.StdEncoding.EncodeToString([]byte(`[{"name": "blue-runs", "namespace": "blue", "pod": {"metadata": {"name": "blue-runs", "namespace": "blue"}}}]`))
	if got := askServer(t, "GET", views+"/namespaces/red/simulations?pods="+strings.ReplaceAll(pods, "+", "%2B"), red, nil); got.status != 400 || strings.Contains(got.body, "gpu-1") {
		t.Errorf("a pod of the other namespace is tried: %d %s", got.status, got.body)
	}
	onlyTheAggregator(t, port, red)
	forgedRequests(t, red)
	withoutTheKey(t, port)
}

// certificate is one of the control plane's.
func certificate(t *testing.T, name string) []tls.Certificate {
	t.Helper()
	base := filepath.Join(filepath.Dir(kubeconfig), "certs", name)
	out, err := tls.LoadX509KeyPair(base+".crt", base+".key")
	if err != nil {
		t.Fatal(err)
	}
	return []tls.Certificate{out}
}

// Who is not the API server is not answered, and what the API server passes on is judged again.
func onlyTheAggregator(t *testing.T, port, token string) {
	t.Helper()
	url := "https://127.0.0.1:" + port + views + "/namespaces/red/podviews"
	asAdmin := http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}}
	for name, certificates := range map[string][]tls.Certificate{"no certificate": nil, "an administrator's": certificate(t, "kwok")} {
		if got, err := tryURL("GET", url, token, asAdmin, certificates); err == nil {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	proxy := certificate(t, "front-proxy")
	for name, row := range map[string]struct {
		path   string
		header http.Header
		status int
	}{
		"as an administrator":        {"/namespaces/blue/podviews", asAdmin, 200},
		"as red in red":              {"/namespaces/red/podviews", http.Header{"X-Remote-User": {"system:serviceaccount:red:red-viewer"}, "X-Remote-Group": {"system:serviceaccounts:red"}}, 200},
		"as red in blue":             {"/namespaces/blue/podviews", http.Header{"X-Remote-User": {"system:serviceaccount:red:red-viewer"}}, 403},
		"as red, one pod of blue":    {"/namespaces/blue/podviews/blue-runs", http.Header{"X-Remote-User": {"system:serviceaccount:red:red-viewer"}}, 403},
		"as two people":              {"/namespaces/red/podviews", http.Header{"X-Remote-User": {"admin", "system:serviceaccount:red:red-viewer"}}, 401},
		"as no one":                  {"/namespaces/red/podviews", http.Header{}, 401},
		"as an administrator, watch": {"/namespaces/red/podviews?watch=1", asAdmin, 405},
	} {
		if got := askURL(t, "GET", "https://127.0.0.1:"+port+views+row.path, "", row.header, proxy); got.status != row.status {
			t.Errorf("%s: %d, not %d: %s", name, got.status, row.status, got.body)
		}
	}
	for _, method := range []string{"POST", "DELETE"} {
		if got := askURL(t, method, url, "", asAdmin, proxy); got.status != 405 {
			t.Errorf("%s as an administrator: %d %s", method, got.status, got.body)
		}
	}
	straightToTheServer(t, port)
}

// Every command of docs/ask-for-a-card.md answers a person with edit in one namespace as it answers an administrator, from the API.
func TestCommandsAnswerWithEditInOneNamespace(t *testing.T) {
	withViews(t)
	kubectl(t, "", "create", "rolebinding", "edit", "-n", "red", "--clusterrole=edit", "--serviceaccount=red:red-viewer")
	t.Cleanup(func() { kubectl(t, "", "delete", "rolebinding", "edit", "-n", "red", "--ignore-not-found") })
	eventually(t, views+"/namespaces/red/nodeviews", token(t, "red", "red-viewer"), 200)
	own := filepath.Join(t.TempDir(), "kubeconfig")
	text, err := os.ReadFile(kubeconfig)
	if err == nil {
		err = os.WriteFile(own, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	kubectl(t, "", "--kubeconfig", own, "config", "set-credentials", "red", "--token", token(t, "red", "red-viewer"))
	kubectl(t, "", "--kubeconfig", own, "config", "set-context", "--current", "--user", "red", "--namespace", "red")
	file := filepath.Join(t.TempDir(), "pod.yaml")
	if err := os.WriteFile(file, []byte(`{apiVersion: v1, kind: Pod, metadata: {name: red-new, namespace: red}, spec: {containers: [{name: c, image: x, env: [{name: SECRET, value: s3cret}],
		resources: {limits: {tencent.com/vcuda-core: 20, tencent.com/vcuda-memory: 8}}}]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	output := func(config string, words ...string) (string, int) {
		out, rc := testCluster.Output("", "sh", append([]string{"-c", `"$@" 2>"$0.err"`, filepath.Join(t.TempDir(), "all"), program}, append(words, "--kubeconfig", config)...)...)
		return out, rc
	}
	// same compares the answer to red with the administrator's. The operator counts the time of cards twice a minute, so the administrator is asked
	// before and after, again where these two differ.
	same := func(command string, words, ofAll []string) {
		t.Helper()
		for try := 0; ; try++ {
			before, _ := output(kubeconfig, ofAll...)
			mine, rc := output(own, words...)
			all, code := output(kubeconfig, ofAll...)
			if before != all && try < 5 {
				continue
			}
			if rc != code || mine != all || strings.Contains(mine, "blue") {
				t.Errorf("%s: exit code %d, of an administrator %d:\n%s\n%s", command, rc, code, mine, all)
			}
			return
		}
	}
	for _, words := range []string{"inspect nodes", "inspect nodes gpu-1", "inspect pods -n red", "explain pod red-runs -n red", "explain pod red-waits -n red", "explain pod red-waits -n red -o json",
		"explain pod red-waits -n red --lang zh", "top pods -n red", "top pods -n red -o json", "simulate -f " + file, "report chargeback -n red"} {
		same(words, strings.Fields(words), strings.Fields(words))
	}
	// The operator's message names pods that hold up a change, and how many.
	if mine, _ := output(own, "inspect", "nodes", "-o", "wide"); !strings.Contains(mine, "MESSAGE") || strings.Contains(mine, "2 pods") {
		t.Errorf("a message that names pods:\n%s", mine)
	}
	// Without -n the context's namespace, and one line says so.
	for _, words := range []string{"inspect pods", "top pods", "top pods -o json", "report chargeback"} {
		same(words+", with -n red", strings.Fields(words), append(strings.Fields(words), "-n", "red"))
		out, _ := testCluster.Output("", program, append(strings.Fields(words), "--kubeconfig", own)...)
		if !strings.Contains(out, "you may not see all namespaces, so this is red,") {
			t.Errorf("%s: no word of the namespace:\n%s", words, out)
		}
	}
	// What suffices in another namespace is the role view there.
	out, _ := testCluster.Output("", program, "top", "pods", "-n", "blue", "--kubeconfig", own)
	for i, command := range []string{"kubectl create rolebinding view-system-serviceaccount-red-red-viewer --namespace=blue --clusterrole=view --serviceaccount=red:red-viewer",
		"kubectl create clusterrolebinding quartermaster-user-system-serviceaccount-red-red-viewer --clusterrole=quartermaster-user --serviceaccount=red:red-viewer"} {
		if lines := strings.Split(out, "\n"); len(lines) < 5 || strings.TrimSpace(lines[2*i+2]) != command || len(lines[0]) > 160 {
			t.Errorf("line %d is not %s:\n%s", 2*i+2, command, out)
		}
	}
	for _, words := range []string{"inspect pods -n blue", "top pods -n blue", "explain pod blue-runs -n blue", "report chargeback -n blue", "inspect pods -A", "top pods -A", "report chargeback -A"} {
		out, rc := testCluster.Output("", program, append(strings.Fields(words), "--kubeconfig", own)...)
		if rc != 1 || !strings.Contains(out, "403") || strings.Contains(out, "gpu-1") {
			t.Errorf("%s: exit code %d:\n%s", words, rc, out)
		}
	}
	out, _ = testCluster.Output("", program, "top", "pods", "-n", "red", "--kubeconfig", own)
	if !strings.Contains(out, "view.quartermaster.io") {
		t.Errorf("no word of where the answer comes from:\n%s", out)
	}
	out, rc := testCluster.Output("", chart.Tool("kubernetes-*", "kubectl"), "--kubeconfig", own, "get", "nodeviews,podviews,bills")
	if rc != 0 || !strings.Contains(out, "gpu-1") || !strings.Contains(out, "red-waits") || strings.Contains(out, "blue") {
		t.Errorf("kubectl get: exit code %d:\n%s", rc, out)
	}
	declarationsForAll(t, own)
	watchesThroughTheView(t, own)
	// Where the API does not answer, a command says what the person's own rights show, and does not wait.
	kubectl(t, "", "patch", "apiservice", viewService, "--type=merge", "-p", `{"spec":{"service":{"port":1}}}`)
	until(t, 60*time.Second, "the API is gone", func() error {
		if got := askServer(t, "GET", views+"/namespaces/red/nodeviews", token(t, "red", "red-viewer"), nil); got.status != 503 {
			return fmt.Errorf("%d %s", got.status, got.body)
		}
		return nil
	})
	began := time.Now()
	out, rc = testCluster.Output("", program, "explain", "pod", "red-waits", "--kubeconfig", own)
	if rc != 3 || !strings.Contains(out, "red/red-waits waits") || !strings.Contains(out, "403") || strings.Contains(out, "gpu-1") || time.Since(began) > 15*time.Second {
		t.Errorf("without the API: exit code %d after %s:\n%s", rc, time.Since(began), out)
	}
	if out, rc := testCluster.Output("", program, "inspect", "nodes", "--kubeconfig", own); rc != 1 || !strings.Contains(out, "403") {
		t.Errorf("nodes without the API: exit code %d:\n%s", rc, out)
	}
}

// --watch has the table of the console's server, and says so.
func watchesThroughTheView(t *testing.T, own string) {
	t.Helper()
	process := start(t, nil, program, "inspect", "nodes", "--watch", "--kubeconfig", own)
	printed := func() string { text, _ := os.ReadFile(process.Log); return string(text) }
	until(t, 20*time.Second, "the table", func() error {
		if text := printed(); !strings.Contains(text, "gpu-1") || !strings.Contains(text, "view.quartermaster.io") {
			return errors.New(text)
		}
		return nil
	})
	kubectl(t, "", "cordon", "gpu-1")
	t.Cleanup(func() { kubectl(t, "", "uncordon", "gpu-1") })
	until(t, 20*time.Second, "its four cards are cordoned", func() error {
		if text := printed(); !regexp.MustCompile(`(?m)^gpu-1 .*  4  +[A-Z]`).MatchString(text) {
			return errors.New(text)
		}
		return nil
	})
}
