package static_pod

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"quartermaster.io/test/faults/kit"
)

// held is what is in a Secret; nil: there is none.
func held(name string) map[string][]byte {
	is, err := at.Client.CoreV1().Secrets(namespace).Get(at.ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return is.Data
}

// whileRunning does it ten times a second until the test ends.
func whileRunning(t *testing.T, do func()) {
	t.Helper()
	stop, done := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(stop); <-done })
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
				do()
			}
		}
	}()
}

// operate lets an operator be the extender of this test; afterwards all is as it was.
func operate(t *testing.T) *kit.Operator {
	t.Helper()
	was, url := map[string]map[string][]byte{}, at.url
	for _, name := range []string{kit.ServerSecret, kit.CallersSecret, kit.AuthoritySecret} {
		was[name] = held(name)
	}
	t.Cleanup(func() {
		at.url = url
		for name, data := range was {
			for key := range held(name) {
				if _, known := data[key]; !known {
					data[key] = nil
				}
			}
			patch, err := json.Marshal(map[string]any{"data": data})
			must(t, err)
			_, err = at.Client.CoreV1().Secrets(namespace).Patch(at.ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
			must(t, err)
		}
	})
	port, err := kit.FreePort()
	must(t, err)
	account, err := at.Account(at.ctx, "quartermaster")
	must(t, err)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	o, err := kit.StartOperator(kit.OperatorOptions{Name: "extender", Program: at.program, Kubeconfig: account, Namespace: namespace, Dir: t.TempDir(),
		Args: []string{"--extender-address", address}})
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(o.LogTail(40))
		}
		o.Kill()
	})
	must(t, o.WaitReady(30*time.Second))
	at.url = "https://" + address
	return o
}

// credentials of a kube-scheduler, out of its configuration.
type credentials struct{ authorities, certificate, key string }

var inlined = regexp.MustCompile(`(caData|certData|keyData): "?([A-Za-z0-9+/=]+)`)

func (m *controlPlaneNode) credentials() (out credentials) {
	for _, found := range inlined.FindAllStringSubmatch(m.read("scheduler-config.yaml"), -1) {
		text, _ := base64.StdEncoding.DecodeString(found[2])
		switch found[1] {
		case "caData":
			out.authorities = string(text)
		case "certData":
			out.certificate = string(text)
		case "keyData":
			out.key = string(text)
		}
	}
	return
}

// refused says what is wrong with a connection by them; nil where no one is there.
func (c credentials) refused() error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(c.authorities))
	pair, err := tls.X509KeyPair([]byte(c.certificate), []byte(c.key))
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		RootCAs: roots, Certificates: []tls.Certificate{pair}, ServerName: "quartermaster-extender." + namespace + ".svc"}}}
	answer, err := client.Get(at.url + "/scheduler")
	if err == nil {
		answer.Body.Close()
		return nil
	}
	if strings.Contains(err.Error(), "tls:") || strings.Contains(err.Error(), "x509:") {
		return err
	}
	return nil
}

// knocker is a kube-scheduler that connects all the time: with what the files of its control-plane node have, and with what they had before until the
// agent says that it was started again.
type knocker struct {
	*controlPlaneNode
	mu       sync.Mutex
	present  credentials
	before   []credentials
	reported string // in the row, when the present ones came
	knocks   int
	wrong    []string
}

func (k *knocker) arrived() bool {
	is := k.row()
	return is.State == "Applied" && is.Certificates != k.reported
}

func (k *knocker) knock() {
	k.mu.Lock()
	defer k.mu.Unlock()
	reported := k.row().Certificates
	if is := k.credentials(); is != k.present && is.key != "" {
		if k.present.key != "" {
			k.before = append(k.before, k.present)
		}
		k.present, k.reported = is, reported
	}
	if len(k.before) > 0 && k.arrived() {
		k.before = nil
	}
	for i, one := range append([]credentials{k.present}, k.before...) {
		err := one.refused()
		// It was let go while we asked.
		if err != nil && (i == 0 && k.credentials() == one || i > 0 && !k.arrived()) {
			k.wrong = append(k.wrong, fmt.Sprintf("%s %s, %d: %v", time.Now().Format("15:04:05.000"), k.node, i, err))
		}
		k.knocks++
	}
}

// watch of the files of a control-plane node: when both authorities were there first.
type watch struct {
	once sync.Once
	at   time.Time
}

// signedAt is when the operator signed the leaf of a Secret, to the second; it is good from an hour before.
func signedAt(t *testing.T, name string) time.Time {
	t.Helper()
	block, _ := pem.Decode(held(name)["tls.crt"])
	leaf, err := x509.ParseCertificate(block.Bytes)
	must(t, err)
	return leaf.NotBefore.Add(time.Hour)
}

// The extender's authority is deleted while three control-plane nodes' kube-schedulers ask the operator: each is started with both authorities, one after
// the other, before anything is signed by the new one, and then with its own new certificate. At no moment is a handshake refused.
func TestS54_ADeletedAuthorityIsReplacedOnAllControlPlaneNodesBeforeItSigns_long(t *testing.T) {
	o := operate(t)
	begin(t)
	runAll(t)
	apply(t)
	said := map[string]int{}
	for _, m := range at.controlPlaneNodes {
		said[m.node] = len(m.kubelet.Log("kube-scheduler"))
	}
	asked := func() {
		t.Helper()
		asksOne(t, func() float64 {
			calls, _ := o.Metric("quartermaster_extender_seconds_count", `verb="filter"`)
			return calls
		})
	}
	asked()
	var knockers []*knocker
	for _, m := range at.controlPlaneNodes {
		k := &knocker{controlPlaneNode: m}
		knockers = append(knockers, k)
		whileRunning(t, k.knock)
	}
	server, callers := string(held(kit.ServerSecret)["tls.crt"]), string(held(kit.CallersSecret)["tls.crt"])
	// Nothing holds the operator up but the control-plane nodes and its own files: for it the authorities were written an hour ago.
	whileRunning(t, func() {
		for _, name := range []string{kit.ServerSecret, kit.CallersSecret} {
			is, err := at.Client.CoreV1().Secrets(namespace).Get(at.ctx, name, metav1.GetOptions{})
			if err != nil {
				continue
			}
			since, err := time.Parse(time.RFC3339, is.Annotations[kit.SinceAnnotation])
			if err != nil || time.Since(since) > 50*time.Minute {
				continue
			}
			patch := fmt.Sprintf(`{"metadata":{"resourceVersion":%q,"annotations":{%q:%q}}}`, is.ResourceVersion, kit.SinceAnnotation, time.Now().Add(-time.Hour).UTC().Format(time.RFC3339))
			at.Client.CoreV1().Secrets(namespace).Patch(at.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		}
	})
	watches := map[string]*watch{}
	for _, m := range at.controlPlaneNodes {
		w := &watch{}
		watches[m.node] = w
		whileRunning(t, func() {
			if kit.CountCertificates([]byte(m.credentials().authorities)) == 2 {
				w.once.Do(func() { w.at = time.Now() })
			}
		})
	}
	must(t, at.Client.CoreV1().Secrets(namespace).Delete(at.ctx, kit.AuthoritySecret, metav1.DeleteOptions{}))
	must(t, at.until(2*patience, "both leaves of the new authority, and all control-plane nodes with them", func() error {
		if string(held(kit.ServerSecret)["tls.crt"]) == server || string(held(kit.CallersSecret)["tls.crt"]) == callers {
			return fmt.Errorf("the leaves are the old ones")
		}
		if err := every((*controlPlaneNode).applied); err != nil {
			return err
		}
		return every(func(m *controlPlaneNode) error {
			if m.credentials().certificate != string(held(kit.CallersSecret)["tls.crt"]) {
				return fmt.Errorf("%s shows another certificate", m.node)
			}
			return nil
		})
	}))
	asked()
	signed := signedAt(t, kit.ServerSecret)
	if other := signedAt(t, kit.CallersSecret); other.Before(signed) {
		signed = other
	}
	for _, k := range knockers {
		w := watches[k.node]
		w.once.Do(func() {})
		if w.at.IsZero() || signed.Add(time.Second).Before(w.at) {
			t.Errorf("a leaf was of the new authority at %s, and %s had both at %s", signed.Format("15:04:05"), k.node, w.at.Format("15:04:05.000"))
		}
		k.mu.Lock()
		if k.knocks < 20 || len(k.wrong) > 0 {
			t.Errorf("%s: %d knocks, refused: %.800v", k.node, k.knocks, k.wrong)
		}
		t.Logf("%s had both authorities %s before a leaf was of the new one; %d knocks", k.node, signed.Sub(w.at).Round(100*time.Millisecond), k.knocks)
		k.mu.Unlock()
		for line := range strings.Lines(k.kubelet.Log("kube-scheduler")[said[k.node]:]) {
			if strings.Contains(line, "/scheduler/") && (strings.Contains(line, "x509:") || strings.Contains(line, "tls:")) {
				t.Errorf("%s: %s", k.node, line)
			}
		}
	}
}
