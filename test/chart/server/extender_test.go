package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"math/big"
	"strings"
	"testing"
	"time"

	"quartermaster.io/test/chart"
)

// keys of the Secrets, as they stand there.
func keys(t *testing.T) string {
	t.Helper()
	return kubectl(t, "", "get", "secret", "quartermaster-extender", "quartermaster-extender-client", "quartermaster-extender-authority", "-n", namespace, "-o", "jsonpath={.items[*].data}")
}

// A kube-scheduler reads its certificate once and keeps it: upgrades leave all of them as they are, or as the operator has renewed them, while one
// half alone is no pair. Certificates of before the authority's key was kept stay, too, and the Secret is there for the operator to fill.
func Test_the_extenders_certificates_are_kept_over_upgrades(t *testing.T) {
	installed(t, "replicaCount=0", "extender.enabled=true")
	first := keys(t)
	if strings.Count(first, "tls.key") != 2 || strings.Count(first, "ca.crt") != 3 || strings.Count(first, "ca.key") != 1 {
		t.Fatalf("the Secrets hold %.200s", first)
	}
	uid := func() string {
		return kubectl(t, "", "get", "secret", "quartermaster-extender", "quartermaster-extender-client", "quartermaster-extender-authority", "-n", namespace, "-o", "jsonpath={.items[*].metadata.uid}")
	}
	before := uid()
	for range 2 {
		upgraded(t, "replicaCount=0", "extender.enabled=true", "extender.port=9555")
		if keys(t) != first || uid() != before {
			t.Fatal("an upgrade made other certificates")
		}
	}
	// As docs/scheduling.md says it: other values stay, and new ones have their defaults.
	helm(t, "upgrade", "quartermaster", chart.Chart(), "--reset-then-reuse-values", "--set", "extender.enabled=true")
	if keys(t) != first {
		t.Error("the document's upgrade made other certificates")
	}
	if is := kubectl(t, "", "get", "deployment", "quartermaster", "-n", namespace, "-o", "jsonpath={.spec.template.spec.containers[0].args}"); !strings.Contains(is, "--extender-address=:9555") {
		t.Errorf("the document's upgrade forgot a value: %s", is)
	}
	// As the operator does while the authority changes.
	kubectl(t, "", "patch", "secret", "quartermaster-extender-authority", "-n", namespace, "--type=merge", "-p", `{"data": {"ca.crt": "bmV3", "ca.key": "bmV3", "older.key": "b2xk"}}`)
	kubectl(t, "", "patch", "secret", "quartermaster-extender-client", "-n", namespace, "--type=merge", "-p",
		`{"metadata": {"annotations": {"quartermaster.io/authorities-since": "2026-01-31T12:00:00Z"}}, "data": {"ca.crt": "bmV3"}}`)
	renewed := keys(t)
	upgraded(t, "replicaCount=0", "extender.enabled=true")
	if keys(t) != renewed || !strings.Contains(renewed, "older.key") {
		t.Error("an upgrade took back what the operator wrote")
	}
	if is := kubectl(t, "", "get", "secret", "quartermaster-extender-client", "-n", namespace, "-o", "jsonpath={.metadata.annotations}"); !strings.Contains(is, "authorities-since") {
		t.Errorf("an upgrade took an annotation of the operator's: %s", is)
	}
	// One that the operator has made anew bears no mark of Helm's, and is as much the release's as before.
	kubectl(t, "", "delete", "secret", "quartermaster-extender-authority", "-n", namespace)
	kubectl(t, "", "create", "secret", "generic", "quartermaster-extender-authority", "-n", namespace, "--from-literal=ca.crt=new", "--from-literal=ca.key=new")
	made := keys(t)
	upgraded(t, "replicaCount=0", "extender.enabled=true")
	if keys(t) != made {
		t.Error("an upgrade took back what the operator made anew")
	}
	kubectl(t, "", "delete", "secret", "quartermaster-extender-authority", "-n", namespace)
	upgraded(t, "replicaCount=0", "extender.enabled=true")
	if without := keys(t); strings.Count(without, "tls.key") != 2 || strings.Contains(without, "ca.key") {
		t.Errorf("beside certificates that are kept the Secret of the authority is not empty: %.200s", without)
	}
	kubectl(t, "", "delete", "secret", "quartermaster-extender-client", "-n", namespace)
	upgraded(t, "replicaCount=0", "extender.enabled=true")
	second := keys(t)
	if second == first || strings.Count(second, "tls.key") != 2 {
		t.Error("half a pair was kept")
	}
	upgraded(t, "replicaCount=0", "extender.enabled=true", "extender.certificateSecret=mine")
	if said := kubectl(t, "", "get", "secret", "-n", namespace, "-o", "name"); strings.Contains(said, "quartermaster-extender") {
		t.Errorf("a Secret of one's own is named, and ours are there: %s", said)
	}
	upgraded(t, "replicaCount=0")
	for _, what := range []string{"service,secret,role,rolebinding", "validatingadmissionpolicy,validatingadmissionpolicybinding,clusterrole,clusterrolebinding"} {
		if said := kubectl(t, "", "get", what, "-A", "-o", "name"); strings.Contains(said, "quartermaster-extender") || strings.Contains(said, "quartermaster-scheduler") || strings.Contains(said, "placement") {
			t.Errorf("switched off, and there is: %s", said)
		}
	}
}

// held is what is in a Secret.
func held(t *testing.T, name string) map[string]string {
	t.Helper()
	var encoded map[string]string
	if err := json.Unmarshal([]byte(kubectl(t, "", "get", "secret", name, "-n", namespace, "-o", "jsonpath={.data}")), &encoded); err != nil {
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

// anAuthority as the operator makes it, and its key.
func anAuthority(t *testing.T, name string) (certificate, key string) {
	t.Helper()
	made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	is := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(3650 * 24 * time.Hour), IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign}
	signed, err := x509.CreateCertificate(rand.Reader, is, is, made.Public(), made)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(made)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text}))
}

// One that somebody deleted is made by the next upgrade, signed by the authority whose key is there: who runs with the others goes on.
func Test_a_missing_certificate_is_signed_by_the_authority_that_is_there(t *testing.T) {
	const server, client, authority = "quartermaster-extender", "quartermaster-extender-client", "quartermaster-extender-authority"
	usages := map[string]x509.ExtKeyUsage{server: x509.ExtKeyUsageServerAuth, client: x509.ExtKeyUsageClientAuth}
	installed(t, "replicaCount=0", "extender.enabled=true")
	// without the Secrets of these names an upgrade makes those alone, signed by this authority.
	without := func(by string, names ...string) {
		t.Helper()
		was := map[string]map[string]string{server: held(t, server), client: held(t, client), authority: held(t, authority)}
		kubectl(t, "", append([]string{"delete", "secret", "-n", namespace}, names...)...)
		upgraded(t, "replicaCount=0", "extender.enabled=true")
		missing := map[string]bool{}
		for _, name := range names {
			missing[name] = true
		}
		for name, before := range was {
			is := held(t, name)
			if !missing[name] {
				if !maps.Equal(is, before) {
					t.Errorf("without %v, %s is another", names, name)
				}
				continue
			}
			if is["ca.crt"] != was[authority]["ca.crt"] || is["tls.crt"] == before["tls.crt"] || is["tls.key"] == before["tls.key"] || len(is) != 3 {
				t.Errorf("without %v, %s has not a new certificate beside the authorities that are stored", names, name)
			}
			if err := signedBy(t, by, is, usages[name]); err != nil {
				t.Errorf("without %v, %s: %v", names, name, err)
			}
		}
	}
	first := held(t, authority)["ca.crt"]
	without(first, server)
	without(first, client)
	without(first, server, client)

	// While one that the operator has made takes the place of another, old ones sign: nobody may know the new one yet.
	older, olderKey := anAuthority(t, "older")
	newer, newerKey := anAuthority(t, "newer")
	store := func(data map[string][]byte) {
		t.Helper()
		patch, err := json.Marshal(map[string]any{"data": data})
		if err != nil {
			t.Fatal(err)
		}
		kubectl(t, "", "patch", "secret", authority, "-n", namespace, "--type=merge", "-p", string(patch))
	}
	store(map[string][]byte{"ca.crt": []byte(older + newer), "ca.key": []byte(newerKey), "older.key": []byte(olderKey)})
	without(older, server)
	without(older, client)
	// The older one's key is lost: the operator itself would take the newer.
	store(map[string][]byte{"older.key": nil})
	without(newer, client)
	if err := signedBy(t, older, held(t, client), x509.ExtKeyUsageClientAuth); err == nil {
		t.Error("signedBy takes what another has signed")
	}
	store(map[string][]byte{"ca.crt": []byte(newer)})
	without(newer, server)
}

// Plugins that others installed write their pods as ever where the extender is off; where it is on, `protect: false` leaves them alone.
func Test_other_peoples_plugins_write_where_nothing_is_protected(t *testing.T) {
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
	upgraded(t, "replicaCount=0", "extender.enabled=true")
	until(422)
	upgraded(t, "replicaCount=0", "extender.enabled=true", "extender.protect=false")
	until(200)
}
