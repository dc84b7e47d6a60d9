// Package server: the chart on a real API server. Its pods never start (there are no nodes): what is tried is what helm does, what the
// accounts may do, and what becomes of people's objects.
package server

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"quartermaster.io/test/chart"
	"quartermaster.io/test/chart/lane"
)

const namespace = lane.Namespace

var (
	testCluster = lane.New("chart")
	kubeconfig  string
	operator    = lane.Program()

	run, kubectl = testCluster.Output, testCluster.Kubectl
)

func TestMain(m *testing.M) {
	os.Exit(testCluster.Run(func() int { kubeconfig = testCluster.Kubeconfig; return m.Run() }, "--no-kwok"))
}

func helm(t *testing.T, arguments ...string) string {
	t.Helper()
	out, rc := run("", chart.Tool("kubernetes-*", "helm"), append(arguments, "-n", namespace)...)
	if rc != 0 {
		t.Fatalf("helm %v: %s", arguments, out)
	}
	return out
}

// installed is a fresh release, gone with everything of it at the end of the test.
func installed(t *testing.T, values ...string) {
	t.Helper()
	t.Cleanup(func() {
		helm(t, "uninstall", "quartermaster", "--ignore-not-found", "--no-hooks", "--wait")
		emptied(t)
		kubectl(t, "", "delete", "job,pod,serviceaccount,role,rolebinding", "-n", namespace, "--all", "--ignore-not-found", "--grace-period=0", "--force")
		kubectl(t, "", "delete", "clusterrole,clusterrolebinding", "--ignore-not-found", "quartermaster-test", "quartermaster-uninstall")
		kubectl(t, "", "delete", "role,rolebinding", "-n", "kube-public", "--ignore-not-found", "quartermaster-uninstall-declarations", "quartermaster-test-declarations")
	})
	helm(t, "install", "quartermaster", chart.Chart(), "--create-namespace", "--set", strings.Join(values, ","))
}

// emptied: no object of our types is left. The types stay: helm makes those that are missing, and kube-apiserver takes up to a minute to
// delete one that was just made.
func emptied(t *testing.T) {
	t.Helper()
	for _, name := range strings.Fields(kubectl(t, "", "get", "crd", "-o", "name")) {
		kind := strings.TrimPrefix(name, "customresourcedefinition.apiextensions.k8s.io/")
		if strings.HasSuffix(kind, ".quartermaster.io") {
			kubectl(t, "", "delete", kind, "--all", "--all-namespaces", "--ignore-not-found")
		}
	}
}

func upgraded(t *testing.T, values ...string) string {
	t.Helper()
	return helm(t, "upgrade", "quartermaster", chart.Chart(), "--set", strings.Join(values, ","))
}

// client is what a pod of a ServiceAccount has, and the kubeconfig of one.
type client struct {
	http       *http.Client
	url, token string
}

func as(t *testing.T, account string) client {
	t.Helper()
	ca, err := base64.StdEncoding.DecodeString(kubectl(t, "", "config", "view", "--raw", "-o", "jsonpath={.clusters[0].cluster.certificate-authority-data}"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return client{
		http:  &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}, Timeout: 10 * time.Second},
		url:   kubectl(t, "", "config", "view", "--raw", "-o", "jsonpath={.clusters[0].cluster.server}"),
		token: kubectl(t, "", "create", "token", account, "-n", namespace),
	}
}

// call answers the status and the body.
func (c client) call(t *testing.T, method, path, kind, body string) (int, map[string]any) {
	t.Helper()
	request, err := http.NewRequest(method, c.url+path, bytes.NewBufferString(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Content-Type", kind)
	answer, err := c.http.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatalf("%s %s: %d %s", method, path, answer.StatusCode, text)
	}
	return answer.StatusCode, out
}

const policies = "/apis/quartermaster.io/v1alpha1/acceleratorpolicies/"

// apply is the request with which the operator takes over what values say.
func (c client) apply(t *testing.T, name, policy string, more string) (int, map[string]any) {
	t.Helper()
	return c.call(t, "PATCH", policies+name+"?fieldManager=quartermaster-values&force=true"+more, "application/apply-patch+yaml", policy)
}

func given(t *testing.T) string {
	t.Helper()
	return kubectl(t, "", "get", "configmap", "quartermaster-policy", "-n", namespace, "-o", `jsonpath={.data.policy\.yaml}`)
}

func modulesOf(object map[string]any) map[string]any {
	return object["spec"].(map[string]any)["modules"].(map[string]any)
}

// The operator may apply the policy of values, create it too, and no other; without values it may not write one at all. What a person
// wrote next to it stays, and so do their objects through every upgrade.
func TestS2_values_reach_the_policy_with_the_operators_rights(t *testing.T) {
	installed(t, "replicaCount=0")
	account := as(t, "quartermaster")
	if status, _ := account.apply(t, "default", "{apiVersion: quartermaster.io/v1alpha1, kind: AcceleratorPolicy, metadata: {name: default}}", ""); status != 403 {
		t.Errorf("nothing said of the policy: %d, not 403", status)
	}
	kubectl(t, `{apiVersion: quartermaster.io/v1alpha1, kind: AcceleratorPolicy, metadata: {name: default}, spec: {
		modules: {pgpu: {enabled: true, image: "mine:1"}, vgpu: {image: "mine:2"}}, enrolment: {maxUnavailable: 2}}}`, "create", "-f", "-")
	kubectl(t, `{apiVersion: quartermaster.io/v1alpha1, kind: AcceleratorNode, metadata: {name: gpu-1}}`, "create", "-f", "-")
	uids := func() string {
		return kubectl(t, "", "get", "apol,anode", "-o", "jsonpath={.items[*].metadata.uid}")
	}
	before := uids()

	upgraded(t, "replicaCount=0", "vgpu_enable=true", "policy.enrolment.drain.mode=Evict")
	account = as(t, "quartermaster")
	status, policy := account.apply(t, "default", given(t), "")
	if status != 200 {
		t.Fatalf("%d %v", status, policy["message"])
	}
	want := map[string]any{"pgpu": map[string]any{"enabled": true, "adopt": false, "image": "mine:1"},
		"vgpu": map[string]any{"enabled": true, "adopt": false, "image": "mine:2"}}
	if is := modulesOf(policy); !reflect.DeepEqual(is, want) {
		t.Errorf("the modules are %v", is)
	}
	enrolment := policy["spec"].(map[string]any)["enrolment"].(map[string]any)
	if enrolment["maxUnavailable"] != 2.0 || enrolment["drain"].(map[string]any)["mode"] != "Evict" {
		t.Errorf("enrolment is %v", enrolment)
	}
	if now := uids(); now != before {
		t.Errorf("objects were made again: %s, then %s", before, now)
	}
	if status, _ := account.apply(t, "other", strings.Replace(given(t), "name: default", "name: other", 1), ""); status != 403 {
		t.Errorf("another policy: %d, not 403", status)
	}
	if status, _ := account.call(t, "DELETE", policies+"default", "application/json", ""); status != 403 {
		t.Errorf("the operator may delete the policy: %d", status)
	}

	kubectl(t, "", "delete", "apol", "default")
	if status, answer := account.apply(t, "default", given(t), ""); status != 201 {
		t.Errorf("a policy that is not there: %d %v", status, answer["message"])
	}
	upgraded(t, "replicaCount=0")
	if said := kubectl(t, "", "get", "configmap", "-n", namespace, "-o", "name"); strings.Contains(said, "quartermaster-policy") {
		t.Error("the ConfigMap is still there")
	}
	if status, _ := account.apply(t, "default", "{apiVersion: quartermaster.io/v1alpha1, kind: AcceleratorPolicy, metadata: {name: default}}", ""); status != 403 {
		t.Errorf("nothing said of the policy any more: %d, not 403", status)
	}
}

// The operator itself, with the account and the flag of the Deployment: what values say is in force, a hand edit next to it stays, one
// against it is overruled when the operator starts again.
func TestS2_the_operator_applies_what_values_say(t *testing.T) {
	installed(t, "replicaCount=0", "pgpu_enable=true", "policy.customResources.enforcement=Warn")
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(given(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	account := kubeconfigOf(t, "quartermaster")
	life := func() {
		t.Helper()
		var said bytes.Buffer
		one := exec.Command(operator, "controller", "--kubeconfig", account, "--policy", file, "--metrics-address", "127.0.0.1:0")
		one.Env = append(os.Environ(), "POD_NAMESPACE="+namespace)
		one.Stdout, one.Stderr = &said, &said
		if err := one.Start(); err != nil {
			t.Fatal(err)
		}
		ready := func() bool {
			out, _ := run("", lane.Kubectl, "get", "apol", "default", "-o", "jsonpath={.spec.modules.pgpu.enabled} {.spec.customResources.enforcement}")
			return strings.TrimSpace(out) == "true Warn"
		}
		for end := time.Now().Add(30 * time.Second); !ready() && time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		}
		if !ready() {
			t.Error("the policy is not what values say after 30 s")
		}
		_ = one.Process.Signal(os.Interrupt)
		_ = one.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	}
	life()
	kubectl(t, "", "patch", "apol", "default", "--type=merge", "-p", `{"spec":{"modules":{"pgpu":{"enabled":false,"image":"mine:1"},"vgpu":{"enabled":true}}}}`)
	life()
	if is := kubectl(t, "", "get", "apol", "default", "-o", "jsonpath={.spec.modules.pgpu.image} {.spec.modules.vgpu.enabled}"); is != "mine:1 true" {
		t.Errorf("what a person wrote next to it is %q", is)
	}
}

// Every combination of the console's switches is a policy the server accepts.
func TestS2_S57_the_server_accepts_what_the_switches_say(t *testing.T) {
	folder, config, _, err := chart.Package(filepath.Join(t.TempDir(), "package"))
	if err != nil {
		t.Fatal(err)
	}
	installed(t, "replicaCount=0", "pgpu_enable=true")
	account := as(t, "quartermaster")
	judged := 0
	for combination := range 8 {
		answers := map[string]any{"pgpu_enable": combination&4 != 0, "vgpu_enable": combination&2 != 0, "mps_enable": combination&1 != 0}
		values, err := config.Values(answers)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := chart.TemplateOf(folder, values)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range objects {
			data, _ := one.Content["data"].(map[string]any)
			document, is := data["policy.yaml"].(string)
			if !is {
				continue
			}
			status, answer := account.apply(t, "default", document, "&fieldValidation=Strict")
			if status != 200 && status != 201 {
				t.Fatalf("%v: %d %v", answers, status, answer["message"])
			}
			judged++
			for name, on := range answers {
				if is := modulesOf(answer)[strings.TrimSuffix(name, "_enable")].(map[string]any)["enabled"]; is != on {
					t.Errorf("%v: %s is %v", answers, name, is)
				}
			}
		}
	}
	if judged != 8 {
		t.Errorf("%d policies of 8 combinations", judged)
	}
}

// A wrong value is refused before anything is changed.
func TestS2_a_wrong_value_changes_nothing(t *testing.T) {
	installed(t, "replicaCount=0", "pgpu_enable=true")
	before := given(t)
	out, rc := run("", chart.Tool("kubernetes-*", "helm"), "upgrade", "quartermaster", chart.Chart(), "-n", namespace, "--set", "replicaCount=0,policy.modules.pgpu.enable=true")
	if rc == 0 || !strings.Contains(out, "at '/policy/modules/pgpu': additional properties 'enable' not allowed") {
		t.Errorf("exit code %d: %s", rc, out)
	}
	if given(t) != before || !strings.Contains(helm(t, "history", "quartermaster"), "Install complete") {
		t.Error("something was changed")
	}
}

// accountOf makes the ServiceAccount and the rights that a hook brings, as helm would, and answers a kubeconfig of it.
func accountOf(t *testing.T, name string) string {
	t.Helper()
	objects, err := chart.Objects(helm(t, "get", "hooks", "quartermaster"))
	if err != nil {
		t.Fatal(err)
	}
	made := 0
	for _, one := range objects {
		if (one.Name == name || one.Name == name+"-declarations") && one.Kind != "Pod" && one.Kind != "Job" {
			kubectl(t, one.Text, "apply", "-f", "-")
			made++
		}
	}
	if made == 0 {
		t.Fatalf("no hook %s", name)
	}
	return kubeconfigOf(t, name)
}

// kubeconfigOf is a kubeconfig of a ServiceAccount.
func kubeconfigOf(t *testing.T, name string) string {
	t.Helper()
	who := as(t, name)
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl(t, "", "--kubeconfig", file, "config", "set-credentials", "hook", "--token", who.token)
	kubectl(t, "", "--kubeconfig", file, "config", "set-context", "--current", "--user", "hook")
	return file
}

// commandOf is the command line of a hook's container.
func commandOf(t *testing.T, kind, name string) []string {
	t.Helper()
	objects, err := chart.Objects(helm(t, "get", "hooks", "quartermaster"))
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range objects {
		if one.Kind == kind && one.Name == name {
			spec := one.Content["spec"].(map[string]any)
			if template, ok := spec["template"].(map[string]any); ok {
				spec = template["spec"].(map[string]any)
			}
			var out []string
			for _, word := range spec["containers"].([]any)[0].(map[string]any)["args"].([]any) {
				out = append(out, word.(string))
			}
			return out
		}
	}
	t.Fatalf("no hook %s %s", kind, name)
	return nil
}

// A person with `edit` in a namespace reads the quotas there by that alone. Each verb names the role it needs, and works once an
// administrator has bound it.
func TestPeopleReadWithTheRolesOfTheChart(t *testing.T) {
	installed(t, "replicaCount=0")
	const who = "system:serviceaccount:" + namespace + ":scientist"
	kubectl(t, "", "create", "serviceaccount", "scientist", "-n", namespace)
	kubectl(t, "", "create", "namespace", "lab")
	kubectl(t, "", "create", "rolebinding", "scientist", "-n", "lab", "--clusterrole", "edit", "--serviceaccount", namespace+":scientist")
	kubectl(t, `{apiVersion: v1, kind: Node, metadata: {name: gpu-1, labels: {nvidia.com/gpu.present: "true"}}}`, "create", "-f", "-")
	t.Cleanup(func() {
		kubectl(t, "", "delete", "namespace", "lab", "--wait=false")
		kubectl(t, "", "delete", "node", "gpu-1")
		kubectl(t, "", "delete", "clusterrolebinding", "scientist", "--ignore-not-found")
		kubectl(t, "", "delete", "rolebinding", "scientist", "-n", "kube-public", "--ignore-not-found")
	})
	may := func(verb, resource, in string) bool {
		out, _ := run("", lane.Kubectl, "auth", "can-i", verb, resource, "-n", in, "--as", who)
		return strings.HasPrefix(out, "yes")
	}
	for end := time.Now().Add(30 * time.Second); !may("list", "acceleratorquotas.quartermaster.io", "lab"); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) { // kube-controller-manager puts roles together
			t.Fatal("edit does not read AcceleratorQuotas")
		}
	}
	if may("create", "acceleratorquotas.quartermaster.io", "lab") || may("list", "acceleratorquotas.quartermaster.io", "default") {
		t.Error("edit in one namespace gives more than to read quotas there")
	}

	pod := filepath.Join(t.TempDir(), "pod.yaml")
	if err := os.WriteFile(pod, []byte(`{apiVersion: v1, kind: Pod, metadata: {name: one, namespace: lab}, spec: {schedulerName: nobody, containers: [{name: c, image: x,
		resources: {limits: {nvidia.com/gpu: 1}}}]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(200 * time.Millisecond) { // the namespace gets its account a moment later
		out, rc := run("", lane.Kubectl, "create", "-f", pod)
		if rc == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal(out)
		}
	}
	file := kubeconfigOf(t, "scientist")
	verbs := [][]string{
		{"inspect", "nodes"}, {"inspect", "modules"}, {"inspect", "pods"}, {"inspect", "resources"}, {"inspect", "--save", filepath.Join(t.TempDir(), "now.json")}, {"verify"},
		{"explain", "pod", "lab/one"}, {"explain", "compat", "--cuda", "12.4", "--node", "gpu-1"}, {"simulate", "-f", pod}, {"lint", "--cluster", pod}}
	for _, verb := range verbs {
		if strings.Join(verb, " ") == "explain pod lab/one" {
			continue // it shows a part
		}
		expected := 1
		if verb[0] == "lint" {
			expected = 3 // it judges the file, and says that the rules of the cluster were not looked at
		}
		out, rc := run("", operator, append(verb, "--kubeconfig", file)...)
		if rc != expected || !strings.Contains(out, "403") || !strings.Contains(out, "Role quartermaster-user") {
			t.Errorf("%v without a role: exit code %d, not %d with the role to ask for:\n%s", verb, rc, expected, out)
		}
	}
	seesOnlyTheirOwn(t, file, who)
	// Nothing is free on a node that is not ready, and this one has no kubelet.
	kubectl(t, "", "patch", "node", "gpu-1", "--subresource=status", "--type=merge", "-p", `{"status":{"capacity":{"nvidia.com/gpu":"2"},"allocatable":{"nvidia.com/gpu":"2"},
		"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","message":"","lastHeartbeatTime":"`+time.Now().UTC().Format(time.RFC3339)+`"}]}}`)
	kubectl(t, "", "label", "node", "gpu-1", "quartermaster.io/module=pgpu")
	kubectl(t, "", "create", "clusterrolebinding", "scientist-everyone", "--clusterrole", "quartermaster-everyone", "--serviceaccount", namespace+":scientist")
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		out, rc := run("", operator, "inspect", "nodes", "--kubeconfig", file)
		if rc == 0 && regexp.MustCompile(`gpu-1 +pgpu `).MatchString(out) && strings.Contains(out, "gpu ?/2") && strings.Contains(out, "FREE is not") && !strings.Contains(out, "lab/one") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("nodes with the role of everyone: exit code %d:\n%s", rc, out)
		}
	}
	kubectl(t, "", "delete", "clusterrolebinding", "scientist-everyone")
	kubectl(t, "", "create", "clusterrolebinding", "scientist", "--clusterrole", "quartermaster-user", "--serviceaccount", namespace+":scientist")
	kubectl(t, "", "create", "rolebinding", "scientist", "-n", "kube-public", "--role", "quartermaster-user", "--serviceaccount", namespace+":scientist")
	for _, verb := range verbs {
		var out string
		var rc int
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) { // the authorizer's cache
			if out, rc = run("", operator, append(verb, "--kubeconfig", file)...); !strings.Contains(out, "403") {
				break
			}
		}
		if (rc != 0 && rc != 3) || strings.Contains(strings.ToLower(out), "forbidden") {
			t.Errorf("%v with the role: exit code %d:\n%s", verb, rc, out)
		}
	}
}

// With `edit` in namespace lab alone: why its pod waits, as far as the pod, its events and its namespace say it, and nothing of another namespace.
func seesOnlyTheirOwn(t *testing.T, file, who string) {
	t.Helper()
	kubectl(t, `{apiVersion: v1, kind: Event, metadata: {name: one.1, namespace: lab}, involvedObject: {kind: Pod, name: one, namespace: lab}, type: Warning, reason: FailedScheduling,
		message: "0/1 nodes are available", lastTimestamp: "2026-01-02T03:04:05Z"}`, "create", "-f", "-")
	kubectl(t, `{apiVersion: v1, kind: Pod, metadata: {name: secret, namespace: default}, spec: {schedulerName: nobody, containers: [{name: c, image: x}]}}`, "create", "-f", "-")
	t.Cleanup(func() {
		kubectl(t, "", "delete", "pod", "secret", "-n", "default", "--grace-period=0", "--force", "--ignore-not-found")
	})
	for name, flags := range map[string][]string{"own kubeconfig": {"--kubeconfig", file}, "--as": {"--kubeconfig", kubeconfig, "--as", who}} {
		out, rc := run("", operator, append([]string{"explain", "pod", "lab/one"}, flags...)...)
		for _, part := range []string{"lab/one waits", "FailedScheduling: 0/1 nodes are available", "kubectl create clusterrolebinding quartermaster-user-system-serviceaccount-" + namespace + "-scientist --clusterrole=quartermaster-user --serviceaccount=" + namespace + ":scientist"} {
			if rc != 3 || !strings.Contains(out, part) {
				t.Errorf("%s: exit code %d, without %q:\n%s", name, rc, part, out)
			}
		}
		for words, parts := range map[string][]string{"inspect pods -n lab": {"one", "gpu 1", "nodes may not be seen"}} {
			out, rc := run("", operator, append(strings.Fields(words), flags...)...)
			for _, part := range parts {
				if rc != 0 || !strings.Contains(out, part) || strings.Contains(out, "secret") {
					t.Errorf("%s: %s: exit code %d, without %q:\n%s", name, words, rc, part, out)
				}
			}
		}
		if out, rc := run("", operator, append(strings.Fields("inspect pods -n default"), flags...)...); rc != 1 || !strings.Contains(out, "403") {
			t.Errorf("%s: pods of another namespace: exit code %d:\n%s", name, rc, out)
		}
		if out, rc := run("", operator, append([]string{"explain", "pod", "lab/none"}, flags...)...); rc != 1 || !strings.Contains(out, "there is no pod none in namespace lab") {
			t.Errorf("%s: a name with a mistake: exit code %d:\n%s", name, rc, out)
		}
		kubectl(t, `{apiVersion: v1, kind: Pod, metadata: {name: two, namespace: lab, annotations: {quartermaster.io/placement: '{"v":1,"node":"gpu-1","containers":{"c":[{"card":"gpu-1/7"}]}}'}},
			spec: {nodeName: gpu-1, containers: [{name: c, image: x}]}}`, "create", "-f", "-")
		if out, rc := run("", operator, append([]string{"explain", "pod", "lab/two"}, flags...)...); rc != 0 || !strings.Contains(out, "its cards: gpu-1/7") {
			t.Errorf("%s: a pod that runs: exit code %d, without its card:\n%s", name, rc, out)
		}
		kubectl(t, "", "delete", "pod", "two", "-n", "lab", "--grace-period=0", "--force")
		for _, other := range []string{"default/secret", "default/none"} {
			out, rc := run("", operator, append([]string{"explain", "pod", other}, flags...)...)
			if rc != 1 || strings.Contains(out, "waits") || !strings.Contains(out, "403") {
				t.Errorf("%s: of %s: exit code %d:\n%s", name, other, rc, out)
			}
		}
	}
}

// `helm test` runs verify with rights of its own: enough to look, and it finds that no one leads and that types are missing.
func TestS4_helm_test_looks_with_its_own_rights(t *testing.T) {
	installed(t, "replicaCount=1", "pgpu_enable=true")
	file := accountOf(t, "quartermaster-test")
	command := append(commandOf(t, "Pod", "quartermaster-test"), "--kubeconfig", file)
	out, rc := run("", operator, command...)
	if rc != 3 || !strings.Contains(out, "lease") || strings.Contains(strings.ToLower(out), "forbidden") {
		t.Errorf("%v: exit code %d, not 3:\n%s", command, rc, out)
	}
	kubectl(t, "", "delete", "crd", "acceleratornodes.quartermaster.io")
	if out, rc := run("", operator, command...); rc != 3 || !strings.Contains(out, "acceleratornodes") {
		t.Errorf("without a type: exit code %d, not 3:\n%s", rc, out)
	}
	kubectl(t, "", "delete", "clusterrolebinding", "quartermaster-test")
	if out, rc := run("", operator, command...); rc != 1 {
		t.Errorf("without rights: exit code %d, not 1:\n%s", rc, out)
	}
}

// Without an operator in the cluster there may be no image: helm test waits for nothing, and says what to call instead.
func TestS4_helm_test_without_an_operator_says_so_at_once(t *testing.T) {
	installed(t, "replicaCount=0")
	began := time.Now()
	said := helm(t, "test", "quartermaster")
	if took := time.Since(began); took > 20*time.Second || !strings.Contains(said, "quartermaster verify") {
		t.Errorf("after %s it says %s", took, said)
	}
}

// refusedAs is what the API server says no to, for an account that has the rights of its hook and no others.
func refusedAs(t *testing.T, file string, rights ...string) {
	t.Helper()
	for _, right := range rights {
		words := append([]string{"auth", "can-i", "-n", namespace}, strings.Fields(right)...)
		if out, rc := run("", lane.Kubectl, append(words, "--kubeconfig", file)...); rc == 0 {
			t.Errorf("the Job may %s: %s", right, out)
		}
	}
}

// The Job of the pre-delete hook has rights of its own. While a pod uses cards it changes nothing, names the pod, and writes that where
// people look. Without an operator no node can leave, and it says so. Without such a node it takes the operator's objects, and no others.
func TestS2_the_uninstall_job_works_with_its_own_rights(t *testing.T) {
	installed(t, "replicaCount=1")
	file := accountOf(t, "quartermaster-uninstall")
	command := append(commandOf(t, "Job", "quartermaster-uninstall"), "--kubeconfig", file)
	refusedAs(t, file, "get pods", "get secrets", "get secret/sh.helm.release.v1.quartermaster.v1", "list secrets", "list secrets -A", "create pods",
		"patch daemonsets", "list configmaps -A", "patch deployments", "delete nodes", "delete acceleratorpolicies.quartermaster.io",
		"delete acceleratorquotas.quartermaster.io -A", "delete customresourcedefinitions", "delete mutatingwebhookconfigurations", "patch pods -A")

	kubectl(t, `{apiVersion: v1, kind: Node, metadata: {name: gpu-1, labels: {quartermaster.io/module: pgpu}}}`, "create", "-f", "-")
	t.Cleanup(func() {
		kubectl(t, "", "delete", "pod", "train", "-n", "default", "--ignore-not-found", "--grace-period=0", "--force")
		kubectl(t, "", "delete", "node", "gpu-1", "--ignore-not-found")
		kubectl(t, "", "delete", "apol", "default", "--ignore-not-found")
	})
	kubectl(t, `{apiVersion: quartermaster.io/v1alpha1, kind: AcceleratorPolicy, metadata: {name: default}}`, "create", "-f", "-")
	kubectl(t, `{apiVersion: v1, kind: Pod, metadata: {name: train, namespace: default}, spec: {nodeName: gpu-1, containers: [{name: c, image: x,
		resources: {limits: {nvidia.com/gpu: 1}}}]}}`, "create", "-f", "-")
	// Kubernetes itself taints a node that no kubelet renews.
	state := func() string {
		return kubectl(t, "", "get", "node", "gpu-1", "-o", "jsonpath={.metadata.labels}{.metadata.annotations}") + kubectl(t, "", "get", "apol", "default", "-o", "jsonpath={.metadata.resourceVersion}")
	}
	before := state()
	out, rc := run("", operator, command...)
	if rc != 3 || strings.Count(strings.TrimSpace(out), "\n") != 0 || !strings.Contains(out, "1 pod uses cards (default/train on gpu-1): nothing was removed") {
		t.Errorf("%v while a pod uses cards: exit code %d, not 3 with one line:\n%s", command, rc, out)
	}
	if after := state(); after != before {
		t.Errorf("it refused, and changed the node or the policy: %s, before %s", after, before)
	}
	if event := kubectl(t, "", "get", "events", "-n", namespace, "--field-selector", "reason=UninstallRefused",
		"-o", "jsonpath={.items[*].involvedObject.kind} {.items[*].type} {.items[*].message}"); !strings.HasPrefix(event, "Deployment Warning 1 pod uses cards (default/train on gpu-1)") {
		t.Errorf("the event is %q", event)
	}

	// The pod ends, and the operator is dead.
	kubectl(t, "", "delete", "pod", "train", "-n", "default", "--grace-period=0", "--force")
	out, rc = run("", operator, command...)
	if rc != 1 || !strings.Contains(out, "no operator renews the lease quartermaster") {
		t.Errorf("%v without an operator: exit code %d, not 1:\n%s", command, rc, out)
	}

	// No node is in a mode any more: what the operator made goes, also from the namespace of declarations.
	kubectl(t, "", "label", "node", "gpu-1", "quartermaster.io/module-")
	ours := `{name: %s, namespace: %s, labels: {app.kubernetes.io/managed-by: quartermaster}}`
	made := []string{}
	for _, object := range []struct{ version, kind, name, namespace, more string }{
		{"v1", "Secret", "quartermaster-webhook", namespace, ""}, {"v1", "Secret", "quartermaster-extender", namespace, ""},
		{"v1", "ConfigMap", "nvidia-share-device-plugin-config", namespace, ""}, {"v1", "ConfigMap", "cf-crl-ours", "kube-public", ""},
		{"v1", "ServiceAccount", "gpu-manager", namespace, ""},
		{"apps/v1", "DaemonSet", "plugin", namespace, "spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {nodeSelector: {no: node}, containers: [{name: c, image: x}]}}}"},
	} {
		made = append(made, fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: "+ours+", %s}", object.version, object.kind, object.name, object.namespace, object.more))
	}
	theirs := `{apiVersion: v1, kind: Secret, metadata: {name: theirs, namespace: quartermaster}}`
	kubectl(t, strings.Join(append(made, theirs), "\n---\n"), "create", "-f", "-")
	t.Cleanup(func() { kubectl(t, "", "delete", "secret", "theirs", "-n", namespace, "--ignore-not-found") })
	if out, rc := run("", operator, command...); rc != 0 {
		t.Fatalf("%v: exit code %d, not 0:\n%s", command, rc, out)
	}
	if left := kubectl(t, "", "get", "secret,configmap,serviceaccount,daemonset", "-A", "-l", "app.kubernetes.io/managed-by=quartermaster", "-o", "name"); left != "" {
		t.Errorf("left: %s", left)
	}
	kubectl(t, "", "get", "secret/theirs", "deployment/quartermaster", "-n", namespace)
	if is := kubectl(t, "", "get", "deployment", "quartermaster", "-n", namespace, "-o", "jsonpath={.spec.replicas}"); is != "0" {
		t.Errorf("the operator's Deployment has %s replicas", is)
	}
	if is := kubectl(t, "", "get", "apol", "default", "-o", "jsonpath={.spec.removing}"); is != "" {
		t.Errorf("the policy, which stays with its CRD, has removing: %s", is)
	}
}

// finish gives the waiting pod of the Job the phase its container would have reached.
func finish(t *testing.T, phase string) {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		pod := kubectl(t, "", "get", "pod", "-n", namespace, "-l", "job-name=quartermaster-uninstall", "--field-selector", "status.phase=Pending", "-o", "jsonpath={.items[*].metadata.name}")
		if pod != "" && !strings.Contains(pod, " ") {
			kubectl(t, "", "patch", "pod", pod, "-n", namespace, "--subresource=status", "--type=merge", "-p", `{"status":{"phase":"`+phase+`"}}`)
			return
		}
	}
	t.Error("helm made no pod of the Job")
}

func uninstall(t *testing.T, phase string) (string, int) {
	done := make(chan struct{})
	go func() { defer close(done); finish(t, phase) }()
	out, rc := run("", chart.Tool("kubernetes-*", "helm"), "uninstall", "quartermaster", "-n", namespace)
	<-done
	return out, rc
}

// A Job that fails stops helm before anything is taken away, and the release can go on; one that passes leaves what is people's.
func TestS2_helm_uninstall_runs_the_job_first(t *testing.T) {
	installed(t, "replicaCount=1", "mps_enable=true")
	kubectl(t, `{apiVersion: quartermaster.io/v1alpha1, kind: AcceleratorPolicy, metadata: {name: default}}`, "create", "-f", "-")
	out, rc := uninstall(t, "Failed")
	if rc == 0 || !strings.Contains(out, "job quartermaster-uninstall failed") {
		t.Fatalf("exit code %d: %s", rc, out)
	}
	kubectl(t, "", "get", "deployment/quartermaster", "configmap/quartermaster-policy", "serviceaccount/quartermaster", "-n", namespace)
	if left := kubectl(t, "", "get", "clusterrole,clusterrolebinding", "-o", "name"); strings.Contains(left, "quartermaster-uninstall") {
		t.Error("the rights of the Job stay when it fails")
	}

	// Another try is another `helm uninstall`, also of a release that helm calls uninstalling.
	if out, rc := uninstall(t, "Failed"); rc == 0 || !strings.Contains(out, "job quartermaster-uninstall failed") {
		t.Fatalf("the second try: exit code %d: %s", rc, out)
	}

	// Anyone who decides to stay goes back to the revision that is there; docs/install.md says so.
	helm(t, "rollback", "quartermaster", "1")
	upgraded(t, "replicaCount=1", "mps_enable=false")

	if out, rc := uninstall(t, "Succeeded"); rc != 0 {
		t.Fatalf("exit code %d: %s", rc, out)
	}
	if left := kubectl(t, "", "get", "deployment,job,serviceaccount,configmap", "-n", namespace, "-o", "name"); strings.Contains(left, "quartermaster") {
		t.Errorf("left: %s", left)
	}
	kubectl(t, "", "get", "apol", "default")
}

// A Job whose pod does not start, because there is no image or no node, ends by its deadline, and helm with it. Two minutes.
func TestS2_helm_uninstall_ends_when_the_job_cannot_start_long(t *testing.T) {
	installed(t, "replicaCount=1", "uninstall.timeoutSeconds=120")
	began := time.Now()
	out, rc := run("", chart.Tool("kubernetes-*", "helm"), "uninstall", "quartermaster", "-n", namespace)
	if took := time.Since(began); rc == 0 || !strings.Contains(out, "DeadlineExceeded") || took < 110*time.Second || took > 150*time.Second {
		t.Errorf("after %s, exit code %d: %s", took, rc, out)
	}
	kubectl(t, "", "get", "deployment/quartermaster", "-n", namespace)
}

// With no operator in the cluster there may be no image either: nothing is asked.
func TestS2_helm_uninstall_of_rights_alone_asks_nothing(t *testing.T) {
	installed(t, "replicaCount=0")
	helm(t, "uninstall", "quartermaster")
}
