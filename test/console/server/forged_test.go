package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quartermaster.io/test/chart"
)

// pair is a name of what is there, and one that no one has given to anything.
type pair struct{ present, absent string }

// compare asks for both, with NAME in their place. The refusals may differ by the name alone.
func (p pair) compare(t *testing.T, asker func(path string) answer, method, target string) {
	t.Helper()
	var texts []string
	for _, name := range []string{p.present, p.absent} {
		got := patiently(func() answer { return asker(strings.ReplaceAll(target, "NAME", name)) })
		if got.status < 400 || strings.Contains(got.body, "gpu-1") {
			t.Errorf("%s %s with %s: %d %s", method, target, name, got.status, got.body)
		}
		body := strings.ReplaceAll(strings.ReplaceAll(got.body, name, "NAME"), p.present, "NAME")
		texts = append(texts, fmt.Sprintf("%d %s %s", got.status, got.header.Get("Content-Type"), body))
	}
	if texts[0] != texts[1] {
		t.Errorf("%s %s tells %s from %s:\n%s\n%s", method, target, p.present, p.absent, texts[0], texts[1])
	}
}

// patiently asks again where the server says that someone asks too often.
func patiently(asker func() answer) answer {
	got := asker()
	for i := 0; i < 10 && got.status == 429; i++ {
		time.Sleep(time.Second)
		got = asker()
	}
	return got
}

var (
	foreignPod       = pair{"blue-runs", "blue-none"}
	foreignNamespace = pair{"blue", "teal"}
	methods          = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "LIST"}
	// What a request can add to its path. The empty one is the path alone.
	additions = []string{"", "?watch=1", "?watch=true&timeoutSeconds=1&resourceVersion=1", "?resourceVersion=0", "?resourceVersion=99999999999999999999",
		"?resourceVersionMatch=Exact&resourceVersion=1", "?fieldSelector=metadata.name%3Dblue-runs", "?fieldSelector=metadata.namespace%3Dblue", "?labelSelector=a%3Db",
		"?limit=1&continue=abc", "?names=blue-runs", "?form=yaml&names=blue-runs", "?form=text", "?form=%00", "?dryRun=All", "?pretty=true", "/", "/status", "/log", "/exec?command=sh",
		"/..%2Fblue-runs", "/%2e%2e/blue-runs", "//", ";a=b", "%00", "%20", "?%ff=%fe"}
)

// forgery is what a caller changes of a request: its method, and what it adds to the path. Methods other than GET get the first additions alone.
type forgery struct {
	methods, additions []string
}

var (
	allForgeries = forgery{methods, additions}
	fewForgeries = forgery{[]string{"GET", "POST", "LIST"}, additions[:4]}
)

func (f forgery) of(method string) []string {
	if method == "GET" {
		return f.additions
	}
	return f.additions[:4]
}

// Every method with every addition: nothing of the other namespace, through the aggregator and with its certificate.
func TestForgedRequestsTellNothingOfAnotherNamespace_long(t *testing.T) {
	port := withViews(t)
	red := token(t, "red", "red-viewer")
	eventually(t, views+"/namespaces/red/podviews", red, 200)
	allForgeries.askTheServer(t, red)
	allForgeries.askStraight(t, port)
}

// askTheServer writes what red, who has view in one namespace alone, can write: each is refused in the same words whether or not there is
// something of that name in the other namespace.
func (f forgery) askTheServer(t *testing.T, red string) {
	t.Helper()
	for _, method := range f.methods {
		asker := func(path string) answer { return askServer(t, method, path, red, nil) }
		for _, addition := range f.of(method) {
			for _, plural := range []string{"podviews", "holdings"} {
				foreignPod.compare(t, asker, method, views+"/namespaces/blue/"+plural+"/NAME"+addition)
				foreignNamespace.compare(t, asker, method, views+"/namespaces/NAME/"+plural+addition)
				foreignNamespace.compare(t, asker, method, views+"/namespaces/NAME/"+plural+"/blue-runs"+addition)
			}
		}
		foreignPod.compare(t, asker, method, views+"/watch/namespaces/blue/podviews/NAME")
		foreignPod.compare(t, asker, method, views+"/proxy/namespaces/blue/podviews/NAME")
	}
}

// forgedRequests are names, people and sizes.
func forgedRequests(t *testing.T, red string) {
	t.Helper()
	fewForgeries.askTheServer(t, red)
	get := func(path string) answer { return askServer(t, "GET", path, red, nil) }
	// In one's own namespace a name of the other one is as unknown as any.
	for _, target := range []string{"podviews/NAME", "podviews/NAME?form=text", "podviews/NAME?form=json&lang=zh", "bills/NAME", "nodeviews/NAME", "nodeviews?names=NAME", "declarations/NAME"} {
		foreignPod.compare(t, get, "GET", views+"/namespaces/red/"+target)
	}
	for _, target := range []string{"red%2F..%2FNAME", "red/../NAME", "NAME%00", "%4eAME", "red/podviews/..%2f..%2fNAME", "red%252f..%252fNAME"} {
		foreignNamespace.compare(t, get, "GET", views+"/namespaces/"+target+"/podviews")
	}
	asOthers(t, red)
	largeRequests(t, red)
}

// asOthers says that it is someone else.
func asOthers(t *testing.T, red string) {
	t.Helper()
	const account = "system:serviceaccount:blue:NAME"
	for _, row := range []http.Header{
		{"Impersonate-User": {account}},
		{"Impersonate-User": {account}, "Impersonate-Group": {"system:masters"}},
		{"Impersonate-User": {"NAME"}, "Impersonate-Uid": {"0"}},
		{"Impersonate-Group": {"NAME"}},
		{"Impersonate-Extra-Scopes": {"NAME"}},
		{"X-Remote-User": {account}, "X-Remote-Group": {"system:masters"}},
		{"X-Remote-User": {account, account}, "X-Remote-Extra-Impersonate%2fuser": {"NAME"}},
		{"X-Remote-User": {account}, "Connection": {"X-Remote-User, Authorization"}},
		{"X-Forwarded-User": {account}, "X-Original-Url": {views + "/namespaces/blue/podviews"}, "X-Rewrite-Url": {"/"}, "X-Http-Method-Override": {"LIST"}},
	} {
		asker := func(path string) answer {
			name, plain := path[strings.LastIndex(path, "#")+1:], path[:strings.LastIndex(path, "#")]
			header := http.Header{}
			for field, values := range row {
				for _, value := range values {
					header.Add(field, strings.ReplaceAll(value, "NAME", name))
				}
			}
			return askServer(t, "GET", plain, red, header)
		}
		pair{"blue-viewer", "blue-no-one"}.compare(t, asker, fmt.Sprint("GET, as ", row), views+"/namespaces/blue/podviews#NAME")
		foreignPod.compare(t, asker, fmt.Sprint("GET, as ", row), views+"/namespaces/blue/podviews/blue-runs#NAME")
	}
}

// largeRequests are refused or answered, and the server answers the next one.
func largeRequests(t *testing.T, red string) {
	t.Helper()
	own := views + "/namespaces/red/podviews"
	deep := func(levels int) string {
		text := `[{"name": "a", "namespace": "red", "pod": {"spec": ` + strings.Repeat("[", levels) + strings.Repeat("]", levels) + `}}]`
		return views + "/namespaces/red/simulations?pods=" + url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(text)))
	}
	many := http.Header{}
	for i := 0; i < 3000; i++ {
		many.Add("X-Remote-Group", fmt.Sprint("system:masters-", i))
	}
	for name, row := range map[string]struct {
		path     string
		header   http.Header
		statuses []int
	}{
		"a head of 900 KiB":     {own, http.Header{"X-Large": {strings.Repeat("x", 900<<10)}}, []int{200, 431}},
		"a head of 4 MiB":       {own, http.Header{"X-Large": {strings.Repeat("x", 4<<20)}}, []int{431}},
		"3,000 forged groups":   {own, many, []int{200}}, // the API server takes them away
		"a query of 200 KiB":    {own + "?names=" + strings.Repeat("a,", 100<<10), nil, []int{414, 431}},
		"40 KiB of names":       {own + "?names=" + strings.Repeat("a,", 20<<10), nil, []int{200, 431}},
		"10,000 levels of JSON": {deep(10000), nil, []int{400}},
		"20 levels of JSON":     {deep(20), nil, []int{200, 400}},
	} {
		var err error
		got := patiently(func() (out answer) {
			out, err = tryURL("GET", server(t)+row.path, red, row.header, nil)
			return out
		})
		if row.statuses[0] == 400 && !strings.Contains(got.body, "quartermaster simulate") {
			t.Errorf("%s: the reason is another one: %v %.300s", name, err, got.body)
		}
		refused := err != nil && row.statuses[0] != 200 && row.statuses[0] != 400 // the connection is closed while the request is still written
		fits := false
		for _, status := range row.statuses {
			fits = fits || err == nil && got.status == status
		}
		if !fits && !refused {
			t.Errorf("%s: %d, not %v: %v %.300s", name, got.status, row.statuses, err, got.body)
		}
		if next := patiently(func() answer { return askServer(t, "GET", own, red, nil) }); next.status != 200 {
			t.Errorf("after %s: %d %s", name, next.status, next.body)
		}
	}
}

// withoutTheKey speaks to the server with a certificate of the right name that another authority has signed.
func withoutTheKey(t *testing.T, port string) {
	t.Helper()
	genuine, err := os.ReadFile(filepath.Join(filepath.Dir(kubeconfig), "certs/front-proxy.crt"))
	if err != nil || !strings.Contains(string(genuine), "BEGIN CERTIFICATE") {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, issuer := range []string{"front-proxy", "quartermaster-test-front-proxy"} {
		parent := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: issuer}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
		leaf := *parent
		leaf.Subject.CommonName, leaf.SerialNumber, leaf.IsCA = "front-proxy", big.NewInt(2), false
		signed, err := x509.CreateCertificate(rand.Reader, &leaf, parent, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		forged := []tls.Certificate{{Certificate: [][]byte{signed}, PrivateKey: key}}
		header := http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}}
		for _, path := range []string{"", "/namespaces/red/podviews", "/namespaces/blue/podviews/blue-runs"} {
			if got, err := tryURL("GET", "https://127.0.0.1:"+port+views+path, "", header, forged); err == nil {
				t.Errorf("a certificate of %s of its own: %s: %d %s", issuer, path, got.status, got.body)
			}
		}
	}
}

var asRed = http.Header{"X-Remote-User": {"system:serviceaccount:red:red-viewer"}, "X-Remote-Group": {"system:serviceaccounts:red"}}

// askStraight has the API server's certificate, and says that red asks: the paths come as they are written.
func (f forgery) askStraight(t *testing.T, port string) {
	t.Helper()
	proxy := certificate(t, "front-proxy")
	for _, method := range f.methods {
		asker := func(path string) answer { return askURL(t, method, "https://127.0.0.1:"+port+path, "", asRed, proxy) }
		for _, addition := range f.of(method) {
			foreignPod.compare(t, asker, method, views+"/namespaces/blue/podviews/NAME"+addition)
			foreignNamespace.compare(t, asker, method, views+"/namespaces/NAME/podviews"+addition)
		}
	}
}

// straightToTheServer are paths and heads that the API server would never pass on.
func straightToTheServer(t *testing.T, port string) {
	t.Helper()
	fewForgeries.askStraight(t, port)
	base, proxy := "https://127.0.0.1:"+port, certificate(t, "front-proxy")
	asker := func(path string) answer { return askURL(t, "GET", base+path, "", asRed, proxy) }
	for _, target := range []string{"red/../NAME", "red%2f..%2fNAME", "%2e%2e/NAME", "./NAME", "NAME.", "-NAME", "red//NAME", "%4eAME"} {
		foreignNamespace.compare(t, asker, "GET", views+"/namespaces/"+target+"/podviews")
	}
	large := asRed.Clone()
	large.Set("X-Remote-Extra-Large", strings.Repeat("x", 100<<10))
	if got, err := tryURL("GET", base+views+"/namespaces/red/podviews", "", large, proxy); err == nil && got.status != 431 {
		t.Errorf("a head of 100 KiB: %d %s", got.status, got.body)
	}
	if got := askURL(t, "GET", base+views+"/namespaces/red/podviews", "", asRed, proxy); got.status != 200 {
		t.Errorf("after it: %d %s", got.status, got.body)
	}
}

const declaredFPGA = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: cf-crl-lab-fpga
  namespace: kube-public
  labels: {features.cpaas.io/type: CustomResourceLimitation, features.cpaas.io/group: lab, features.cpaas.io/enabled: "true"}
data: {key: example.com/fpga, dataType: integer, group: lab, limits: disabled, requests: disabled, resourceUnit: boards, labelEn: FPGA}
`

// declarationsForAll: who has a role in one namespace, and who has the role of all signed-in people alone, sees what is declared.
func declarationsForAll(t *testing.T, own string) {
	t.Helper()
	kubectl(t, declaredFPGA, "apply", "-f", "-")
	t.Cleanup(func() { kubectl(t, "", "delete", "configmap", "-n", "kube-public", "cf-crl-lab-fpga") })
	kubectl(t, "", "create", "serviceaccount", "red-guest", "-n", "red")
	kubectl(t, "", "create", "clusterrolebinding", "guests", "--clusterrole=quartermaster-everyone", "--serviceaccount=red:red-guest")
	t.Cleanup(func() { kubectl(t, "", "delete", "clusterrolebinding", "guests") })
	guest := token(t, "red", "red-guest")
	var texts []string
	for _, team := range []string{"red", "blue", "teal"} { // it holds for all namespaces, of which one is not there
		texts = append(texts, eventually(t, views+"/namespaces/"+team+"/declarations?form=table", guest, 200).body)
	}
	if texts[0] != texts[1] || texts[0] != texts[2] || !strings.Contains(texts[0], "example.com/fpga") || !strings.Contains(texts[0], "boards") {
		t.Errorf("what is declared: %q", texts)
	}
	for _, plural := range []string{"podviews", "holdings", "bills", "simulations", "nodeviews"} {
		if got := askServer(t, "GET", views+"/namespaces/red/"+plural, guest, nil); got.status != 403 {
			t.Errorf("%s with the role of all people: %d %s", plural, got.status, got.body)
		}
	}
	for _, namespace := range []string{"blue", "teal"} {
		if got := askServer(t, "GET", views+"/namespaces/red/declarations?declared="+namespace, guest, nil); got.status != 400 || strings.Contains(got.body, namespace) {
			t.Errorf("declarations of %s: %d %s", namespace, got.status, got.body)
		}
	}
	out, rc := testCluster.Output("", program, "inspect", "resources", "--kubeconfig", own)
	if rc != 0 || !strings.Contains(out, "example.com/fpga") || !strings.Contains(out, "boards") || !strings.Contains(out, "view.quartermaster.io") {
		t.Errorf("inspect resources: exit code %d:\n%s", rc, out)
	}
	file := filepath.Join(t.TempDir(), "pod.yaml")
	if err := os.WriteFile(file, []byte(`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: x, resources: {limits: {example.com/fpga: 1}}}]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	out, rc = testCluster.Output("", program, "lint", "--cluster", file, "--kubeconfig", own)
	if rc != 3 || !strings.Contains(out, "resource_forbidden") {
		t.Errorf("lint --cluster: exit code %d:\n%s", rc, out)
	}
	out, rc = testCluster.Output("", chart.Tool("kubernetes-*", "kubectl"), "--kubeconfig", own, "get", "declarations")
	if rc != 0 || !strings.Contains(out, "cf-crl-lab-fpga") {
		t.Errorf("kubectl get declarations: exit code %d:\n%s", rc, out)
	}
}
