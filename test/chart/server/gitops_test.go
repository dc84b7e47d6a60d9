package server

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"quartermaster.io/test/chart"
	"quartermaster.io/test/chart/lane"
)

// What people set in values, next to nothing at all. A text of extraObjects is a template.
const platformValues = `
pgpu_enable: true
vgpu_enable: true
policy: {customResources: {enforcement: Deny}, scheduler: {mode: Dedicated}}
image: {registry: registry.example:5000/mirror}
imagePullSecrets: [{name: pull}]
commonLabels: {team: platform}
deploymentAnnotations: {reloader: "true"}
podLabels: {tier: gpu}
podAnnotations: {note: x}
serviceAccount: {annotations: {role: gpu}}
extraEnv: [{name: HTTPS_PROXY, value: "http://proxy.example:3128"}]
extraVolumes: [{name: ca, configMap: {name: company-ca}}]
extraVolumeMounts: [{name: ca, mountPath: /etc/ssl/company, readOnly: true}]
topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}]
tolerations: [{key: a, operator: Exists}]
resources: {requests: {cpu: 20m, memory: 64Mi}, limits: {cpu: "1", memory: 1Gi}}
networkPolicy: true
monitoring: {dashboards: {enabled: true}}
metrics: {scrapeAnnotations: true}
extender: {protect: always}
extraObjects:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: mine, namespace: quartermaster}, data: {a: b}}
  - "{apiVersion: v1, kind: ConfigMap, metadata: {name: {{ .Release.Name }}-theirs, namespace: quartermaster}}"
`

// rendered is what Argo CD renders for this server: without hooks, which are no objects of the release.
func rendered(t *testing.T, values string) string {
	t.Helper()
	arguments := []string{"-n", namespace, "-f", values, "--no-hooks"}
	version := regexp.MustCompile(`Server Version: v(\S+)`).FindStringSubmatch(kubectl(t, "", "version"))
	if version == nil {
		t.Fatal("kubectl does not say the server's version")
	}
	arguments = append(arguments, "--kube-version", version[1])
	if strings.Contains(kubectl(t, "", "get", "--raw", "/apis/admissionregistration.k8s.io/v1"), `"mutatingadmissionpolicies"`) {
		arguments = append(arguments, "--api-versions", "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy")
	}
	out, err := chart.Render("quartermaster", chart.Chart(), arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// life of the operator, as the pods of the Deployment would have it: its account, its flags, with ports of this machine.
func life(t *testing.T) (end func()) {
	t.Helper()
	account := kubeconfigOf(t, "quartermaster")
	words := []string{}
	for _, word := range strings.Fields(kubectl(t, "", "get", "deployment", "quartermaster", "-n", namespace, "-o", "jsonpath={.spec.template.spec.containers[0].args[*]}")) {
		flag, _, _ := strings.Cut(word, "=")
		switch {
		case flag == "--policy":
			file := filepath.Join(t.TempDir(), "policy.yaml")
			if err := os.WriteFile(file, []byte(given(t)), 0o600); err != nil {
				t.Fatal(err)
			}
			word = flag + "=" + file
		case strings.HasSuffix(flag, "-address"):
			word = flag + "=127.0.0.1:0"
		}
		words = append(words, word)
	}
	var said bytes.Buffer
	process := exec.Command(operator, append(words, "--kubeconfig", account)...)
	process.Env = append(os.Environ(), "POD_NAMESPACE="+namespace, "QUARTERMASTER_IMAGE=registry.example:5000/mirror/quartermaster:test")
	process.Stdout, process.Stderr = &said, &said
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	return func() {
		_ = process.Process.Signal(os.Interrupt)
		_ = process.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	}
}

func soon(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !done(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not after a minute: %s", what)
		}
	}
}

// webhookCA is what the operator wrote into the webhooks of the chart; empty while one of them has none.
func webhookCA(t *testing.T) string {
	t.Helper()
	bundles := strings.Fields(kubectl(t, "", "get", "mutatingwebhookconfiguration", "quartermaster", "-o", "jsonpath={range .webhooks[*]}{.clientConfig.caBundle}{\" \"}{end}"))
	names := strings.Fields(kubectl(t, "", "get", "mutatingwebhookconfiguration", "quartermaster", "-o", "jsonpath={.webhooks[*].name}"))
	if len(bundles) != len(names) || len(slices.Compact(bundles)) != 1 {
		return ""
	}
	return bundles[0]
}

func exists(names ...string) bool {
	_, rc := run("", lane.Kubectl, append([]string{"get", "-n", namespace}, names...)...)
	return rc == 0
}

// noDrift: GitOps tools that compare on the client's side or on the server's see nothing to do.
func noDrift(t *testing.T, when, manifest string) {
	t.Helper()
	for _, way := range [][]string{{"--server-side=false"}, {"--server-side", "--force-conflicts", "--field-manager=gitops"}} {
		if out, rc := run(manifest, lane.Kubectl, append(append([]string{"diff"}, way...), "-f", "-")...); rc != 0 {
			t.Errorf("%s, kubectl diff %v: exit code %d\n%s", when, way, rc, out)
		}
	}
}

// revisions of all objects of the release.
func revisions(t *testing.T, manifest string) string {
	t.Helper()
	return kubectl(t, manifest, "get", "-f", "-", "-o", "jsonpath={range .items[*]}{.kind}{\" \"}{.metadata.name}{\" \"}{.metadata.resourceVersion}{\"\\n\"}{end}")
}

func same(t *testing.T, what, before, after string) {
	t.Helper()
	was := strings.Split(before, "\n")
	for _, line := range strings.Split(after, "\n") {
		if !slices.Contains(was, line) {
			t.Errorf("%s wrote %s", what, line)
		}
	}
}

// A release that is in use is what the chart says: after the operator has written what it writes, after it has renewed its certificates, and
// after an upgrade that changes nothing, which writes nothing.
func TestGitOpsSeesNoDrift(t *testing.T) { seesNoDrift(t, platformValues, false) }

func TestGitOpsSeesNoDrift_at_any_time_long(t *testing.T) {
	for name, values := range map[string]string{"defaults": "", "platform": platformValues} {
		t.Run(name, func(t *testing.T) { seesNoDrift(t, values, true) })
	}
}

// seesNoDrift where an operator has worked, and after an upgrade; always: also before, with new certificates, and after kubectl apply.
func seesNoDrift(t *testing.T, values string, always bool) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	cleaned(t)
	helm(t, "install", "quartermaster", chart.Chart(), "--create-namespace", "-f", file)
	manifest := rendered(t, file)
	if again := rendered(t, file); again != manifest {
		t.Error("two renderings are not the same")
	}
	if always {
		noDrift(t, "after the installation", manifest)
	}

	if values == "" { // people bring the policy
		kubectl(t, "{apiVersion: quartermaster.io/v1alpha1, kind: AcceleratorPolicy, metadata: {name: default}, spec: {modules: {pgpu: {enabled: true}}}}", "create", "-f", "-")
	}
	end := life(t)
	defer end()
	secrets := []string{"secret/quartermaster-webhook", "secret/quartermaster-extender", "secret/quartermaster-extender-client"}
	soon(t, "the operator has issued its certificates", func() bool { return exists(secrets...) && webhookCA(t) != "" })
	if values != "" {
		soon(t, "the operator has applied the policy", func() bool {
			return exists("apol/default", "configmap/quartermaster-scheduler", "daemonset/nvidia-device-plugin-ds", "daemonset/gpu-manager-daemonset")
		})
	}
	// What agents write on control-plane nodes.
	kubectl(t, "", "patch", "configmap", "quartermaster-static-pod", "-n", namespace, "--type=merge", "-p", `{"data":{"cp-1":"{\"state\":\"Off\"}"}}`)
	kubectl(t, "", "patch", "lease", "quartermaster-static-pod", "-n", namespace, "--type=merge", "-p", `{"spec":{"holderIdentity":"cp-1","leaseDurationSeconds":60}}`)
	noDrift(t, "with an operator", manifest)

	if always {
		before := webhookCA(t)
		kubectl(t, "", append([]string{"delete", "-n", namespace}, secrets...)...)
		soon(t, "the operator has issued new certificates", func() bool { now := webhookCA(t); return now != "" && now != before && exists(secrets...) })
		noDrift(t, "with new certificates", manifest)
	}

	written := revisions(t, manifest)
	if strings.Count(written, "\n") < 40 {
		t.Fatalf("only these objects are of the release:\n%s", written)
	}
	helm(t, "upgrade", "quartermaster", chart.Chart(), "-f", file)
	same(t, "helm upgrade without a change", written, revisions(t, manifest))
	if !always {
		return
	}

	kubectl(t, manifest, "apply", "-f", "-")
	written = revisions(t, manifest)
	for _, line := range strings.Split(kubectl(t, manifest, "apply", "-f", "-"), "\n") {
		// kubectl sends the selector of a PodDisruptionBudget each time, whatever is there: its list is replaced, not merged.
		if !strings.HasSuffix(line, " unchanged") && !strings.HasPrefix(line, "poddisruptionbudget") {
			t.Errorf("the second kubectl apply: %s", line)
		}
	}
	same(t, "the second kubectl apply", written, revisions(t, manifest))
	if webhookCA(t) == "" {
		t.Error("kubectl apply took the CA from the webhooks")
	}
	noDrift(t, "after kubectl apply", manifest)
}

// cleaned takes everything of a release and of its operator away at the end of the test.
func cleaned(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		helm(t, "uninstall", "quartermaster", "--ignore-not-found", "--no-hooks", "--wait")
		emptied(t)
		kubectl(t, "", "delete", "daemonset,deployment,service,configmap,secret,serviceaccount", "-n", namespace, "-l", "app.kubernetes.io/managed-by=quartermaster")
		kubectl(t, "", "delete", "configmap", "-n", "kube-public", "-l", "app.kubernetes.io/managed-by=quartermaster")
		kubectl(t, "", "delete", "lease", "quartermaster", "-n", namespace, "--ignore-not-found")
	})
}
