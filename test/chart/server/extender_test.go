package server

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"quartermaster.io/test/chart"
	"quartermaster.io/test/chart/lane"
)

const server, callers, authority = "quartermaster-extender", "quartermaster-extender-client", "quartermaster-extender-authority"

var secrets = []string{server, callers, authority}

// govern applies a policy as people do.
func govern(t *testing.T, mode string) {
	t.Helper()
	kubectl(t, "", "wait", "crd", "--for=condition=Established", "--timeout=30s", "acceleratorpolicies.quartermaster.io")
	kubectl(t, fmt.Sprintf("{apiVersion: quartermaster.io/v1alpha1, kind: AcceleratorPolicy, metadata: {name: default}, spec: {scheduler: {mode: %q}}}", mode), "apply", "-f", "-")
}

// stored makes the Secrets without an operator.
func stored(t *testing.T, by string) {
	t.Helper()
	for _, name := range secrets {
		kubectl(t, fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: %s, labels: {app.kubernetes.io/managed-by: %s}}, stringData: {ca.crt: a}}`, name, namespace, by), "apply", "-f", "-")
	}
	t.Cleanup(func() {
		kubectl(t, "", append([]string{"delete", "secret", "--ignore-not-found", "-n", namespace}, secrets...)...)
	})
}

// All that a kube-scheduler needs which asks us, and what says that one does: which objects they are, where they are, and what is in them.
func needed(t *testing.T) string {
	t.Helper()
	at := func(kind, name, path string) string {
		return kind + " " + kubectl(t, "", "get", kind, name, "-n", namespace, "-o", "jsonpath={.metadata.uid} "+path) + "\n"
	}
	out := at("service", server, "{.spec.clusterIP} {.spec.ports[0].port}") + at("daemonset", "quartermaster-static-pod", "") +
		at("lease", "quartermaster-static-pod", "") + at("configmap", "quartermaster-static-pod", "{.data}") +
		at("serviceaccount", "quartermaster-scheduler", "") + at("serviceaccount", "quartermaster-static-pod", "")
	for _, name := range secrets {
		out += at("secret", name, "{.data}")
	}
	return out + kubectl(t, "", "get", "acceleratorpolicy", "default", "-o", "jsonpath={.spec.scheduler.mode}")
}

// Control-plane nodes ask the extender, and the next upgrade has forgotten all that was set: nothing is taken from them.
func Test_an_upgrade_that_loses_every_value_takes_nothing_from_a_scheduler_that_asks(t *testing.T) {
	installed(t, "replicaCount=2", "extender.port=9555", "extender.protect=always", "staticPod.patienceSeconds=60", "policy.scheduler.mode=StaticPod")
	stored(t, "quartermaster")
	govern(t, "StaticPod")
	kubectl(t, "", "patch", "configmap", "quartermaster-static-pod", "-n", namespace, "--type=merge", "-p", `{"data": {"m1": "{\"state\": \"Applied\"}"}}`)
	before := needed(t)
	for _, forgets := range [][]string{{}, {"--reset-values"}, {"--set", "replicaCount=0"}} {
		helm(t, append([]string{"upgrade", "quartermaster", chart.Chart()}, forgets...)...)
		if is := needed(t); is != before {
			t.Errorf("upgrade %v: before\n%s\nand after\n%s", forgets, before, is)
		}
	}
	// What values of earlier charts said is refused, and nothing happens.
	for _, gone := range []string{"extender.enabled=false", "staticPod.enabled=false", "extender.enabled=true"} {
		out, rc := run("", chart.Tool("kubernetes-*", "helm"), "upgrade", "quartermaster", chart.Chart(), "-n", namespace, "--set", gone)
		if rc == 0 || !strings.Contains(out, "is no value any more") || !strings.Contains(out, "spec.scheduler.mode") {
			t.Errorf("%s: %d %s", gone, rc, out)
		}
	}
	if is := needed(t); is != before {
		t.Errorf("a refused upgrade changed\n%s\nto\n%s", before, is)
	}
}

// Secrets of an earlier chart are in helm's own list of what it made: without a word it would delete them.
func Test_an_upgrade_from_a_chart_that_made_the_secrets_says_how_they_are_kept_long(t *testing.T) {
	installed(t, "replicaCount=0")
	stored(t, "Helm")
	out, rc := run("", chart.Tool("kubernetes-*", "helm"), "upgrade", "quartermaster", chart.Chart(), "-n", namespace)
	_, command, found := strings.Cut(out, "keep the three first: ")
	if rc == 0 || !found {
		t.Fatalf("%d %s", rc, out)
	}
	shell := exec.Command("bash", "-c", strings.ReplaceAll(command, "kubectl", chart.Tool("kubernetes-*", "kubectl")+" --kubeconfig "+kubeconfig))
	if said, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("the command it prints: %v %s", err, said)
	}
	helm(t, "upgrade", "quartermaster", chart.Chart())
	for _, name := range secrets {
		if is := held(t, name); is["ca.crt"] != "a" {
			t.Errorf("%s holds %v", name, is)
		}
	}
}

// held is what is in a Secret; nil: there is none.
func held(t *testing.T, name string) map[string]string {
	t.Helper()
	text := kubectl(t, "", "get", "secret", name, "-n", namespace, "-o", "jsonpath={.data}", "--ignore-not-found")
	if text == "" {
		return nil
	}
	encoded := map[string]string{}
	if err := json.Unmarshal([]byte(text), &encoded); err != nil {
		t.Fatal(err)
	}
	for key, value := range encoded {
		text, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			t.Fatal(err)
		}
		encoded[key] = string(text)
	}
	return encoded
}

// signedBy says whether one side of a connection takes what the other shows, when it has these authorities.
func signedBy(t *testing.T, authorities string, shown map[string]string, as x509.ExtKeyUsage) error {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(authorities)) {
		t.Fatalf("no authorities: %.100q", authorities)
	}
	block, _ := pem.Decode([]byte(shown["tls.crt"]))
	if block == nil {
		t.Fatalf("no certificate: %.100q", shown["tls.crt"])
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	want := x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{as}}
	if as == x509.ExtKeyUsageServerAuth {
		want.DNSName = "quartermaster-extender." + namespace + ".svc"
	}
	_, err = leaf.Verify(want)
	return err
}

// signed is such a certificate and its key; without a signer it signs itself.
func signed(t *testing.T, is, parent *x509.Certificate, signer crypto.PrivateKey) (certificate, key string) {
	t.Helper()
	made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if signer == nil {
		signer = made
	}
	der, err := x509.CreateCertificate(rand.Reader, is, parent, made.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(made)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text}))
}

// anAuthority as the operator makes it, and its key.
func anAuthority(t *testing.T, name string) (certificate, key string) {
	t.Helper()
	is := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(3650 * 24 * time.Hour), IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign}
	return signed(t, is, is, nil)
}

// extends starts an operator with an extender; where that listens.
func extends(t *testing.T) (address string) {
	t.Helper()
	address = "127.0.0.1:" + lane.FreePort(t)
	operates(t, "--extender-address", address)
	return
}

// operates starts an operator with the rights of the chart; where it serves metrics.
func operates(t *testing.T, flags ...string) (metrics string) {
	t.Helper()
	metrics = "127.0.0.1:" + lane.FreePort(t)
	file := kubeconfigOf(t, "quartermaster")
	cmd := exec.Command(operator, append([]string{"controller", "--kubeconfig", file, "-n", namespace, "--metrics-address", metrics}, flags...)...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		select {
		case <-ended:
			t.Errorf("the operator has ended: %s", said.String())
		default:
			cmd.Process.Signal(syscall.SIGTERM)
			<-ended
		}
		if t.Failed() {
			t.Log(said.String())
		}
	})
	return
}

// asks the extender as a kube-scheduler does that was started with what is stored.
func asks(t *testing.T, address string) error {
	t.Helper()
	is := held(t, callers)
	pair, err := tls.X509KeyPair([]byte(is["tls.crt"]), []byte(is["tls.key"]))
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(is["ca.crt"]))
	to, err := tls.DialWithDialer(&net.Dialer{Timeout: 2 * time.Second}, "tcp", address,
		&tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, ServerName: server + "." + namespace + ".svc"})
	if err != nil {
		return err
	}
	defer to.Close()
	to.SetDeadline(time.Now().Add(2 * time.Second))
	if _, err := fmt.Fprint(to, "GET /scheduler HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		return err
	}
	_, err = to.Read(make([]byte, 12))
	return err
}

// expired is a pair whose certificate this authority signed and which has ended.
func expired(t *testing.T, by, key string, usage x509.ExtKeyUsage) (string, string) {
	t.Helper()
	signer, err := tls.X509KeyPair([]byte(by), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	parent, err := x509.ParseCertificate(signer.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	is := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "old"}, NotBefore: time.Now().Add(-400 * 24 * time.Hour),
		NotAfter: time.Now().Add(-35 * 24 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
		DNSNames: []string{server + "." + namespace + ".svc"}}
	return signed(t, is, parent, signer.PrivateKey)
}

// An operator that finds certificates expired, empty, damaged or missing starts, makes good ones with the rights of the chart, and answers.
func TestF22_an_operator_starts_without_a_certificate_that_can_be_used_and_makes_one_long(t *testing.T) {
	installed(t, "replicaCount=0")
	t.Cleanup(func() {
		kubectl(t, "", append([]string{"delete", "secret", "--ignore-not-found", "-n", namespace}, secrets...)...)
	})
	govern(t, "None")
	ca, key := anAuthority(t, "of last year")
	shown, shownKey := expired(t, ca, key, x509.ExtKeyUsageServerAuth)
	caller, callerKey := expired(t, ca, key, x509.ExtKeyUsageClientAuth)
	for _, stage := range []struct {
		name string
		data map[string]map[string]string // of each Secret; nil: there is none
	}{
		{"missing", nil},
		{"expired", map[string]map[string]string{authority: {"ca.crt": ca, "ca.key": key}, server: {"ca.crt": ca, "tls.crt": shown, "tls.key": shownKey},
			callers: {"ca.crt": ca, "tls.crt": caller, "tls.key": callerKey}}},
		{"empty", map[string]map[string]string{authority: {}, server: {"ca.crt": "", "tls.crt": "", "tls.key": ""}, callers: {}}},
		{"damaged", map[string]map[string]string{authority: {"ca.crt": "-----BEGIN CERTIFICATE-----\n", "ca.key": "x"}, server: {"ca.crt": "x", "tls.crt": shown[:200], "tls.key": callerKey},
			callers: {"ca.crt": ca, "tls.crt": caller, "tls.key": "x"}}},
	} {
		t.Run(stage.name, func(t *testing.T) {
			kubectl(t, "", append([]string{"delete", "secret", "--ignore-not-found", "-n", namespace}, secrets...)...)
			for name, data := range stage.data {
				object, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": data,
					"metadata": map[string]any{"name": name, "namespace": namespace, "labels": map[string]string{"app.kubernetes.io/managed-by": "quartermaster"}}})
				if err != nil {
					t.Fatal(err)
				}
				kubectl(t, string(object), "create", "-f", "-")
			}
			began := time.Now()
			address := extends(t)
			for {
				err := asks(t, address)
				if err == nil {
					break
				}
				if time.Since(began) > 40*time.Second {
					t.Fatal(err)
				}
				time.Sleep(200 * time.Millisecond)
			}
			t.Logf("answers after %s", time.Since(began).Round(100*time.Millisecond))
			for name, usage := range map[string]x509.ExtKeyUsage{server: x509.ExtKeyUsageServerAuth, callers: x509.ExtKeyUsageClientAuth} {
				if err := signedBy(t, held(t, authority)["ca.crt"], held(t, name), usage); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

// Plugins that others installed write their pods as ever while the mode is None; with a scheduler that asks us only `protect: never` leaves them
// alone, and `always` does not look at the mode.
func Test_other_peoples_plugins_write_where_nothing_is_protected_long(t *testing.T) {
	installed(t, "replicaCount=0")
	kubectl(t, `{apiVersion: v1, kind: Namespace, metadata: {name: theirs}}`, "apply", "-f", "-")
	defer kubectl(t, "", "delete", "namespace", "theirs", "--wait=false")
	kubectl(t, `
apiVersion: v1
kind: ServiceAccount
metadata: {name: hami-scheduler, namespace: theirs}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: theirs, namespace: theirs}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{kind: ServiceAccount, name: hami-scheduler, namespace: theirs}]
`, "apply", "-f", "-")
	const path = "/api/v1/namespaces/theirs/pods"
	who := as(t, "default")
	who.token = kubectl(t, "", "create", "token", "hami-scheduler", "-n", "theirs")
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		status, answer := who.call(t, "POST", path, "application/json",
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"a","image":"x"}]}}`)
		if status == 201 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d %v", status, answer["message"])
		}
	}
	write := func() (int, any) {
		status, answer := who.call(t, "PATCH", path+"/p?dryRun=All", "application/strategic-merge-patch+json",
			`{"metadata":{"annotations":{"hami.io/vgpu-node":"n","hami.io/vgpu-devices-to-allocate":"x","tencent.com/predicate-node":"n","ALIYUN_COM_GPU_MEM_IDX":"0"}}}`)
		return status, answer["message"]
	}
	until := func(want int) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(200 * time.Millisecond) {
			status, message := write()
			if status == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%d, not %d: %v", status, want, message)
			}
		}
	}
	until(200)
	// As the operator says it.
	kubectl(t, "", "wait", "crd", "--for=condition=Established", "--timeout=30s", "resourcerules.quartermaster.io")
	kubectl(t, "{apiVersion: quartermaster.io/v1alpha1, kind: ResourceRules, metadata: {name: default, labels: {quartermaster.io/scheduler: StaticPod}}, spec: {keys: [], rules: {}, groups: {}}}", "create", "-f", "-")
	until(422)
	kubectl(t, "", "label", "resourcerules", "default", "--overwrite", "quartermaster.io/scheduler=None")
	until(200)
	upgraded(t, "replicaCount=0", "extender.protect=always")
	until(422)
	upgraded(t, "replicaCount=0", "extender.protect=never")
	until(200)
}
