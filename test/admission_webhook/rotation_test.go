package admission_webhook

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"quartermaster.io/test/admission"
	"quartermaster.io/test/admission/server"
	"quartermaster.io/test/faults/kit"
)

const (
	secretName = "quartermaster-webhook"
	namespace  = "quartermaster"
)

// caller calls the webhook as an API server does: it trusts the caBundle it was given, keeps connections, and begins new ones when the
// bundle changes. It hears of changes `late`, as the slowest API server of a large control plane might.
type caller struct {
	url  string
	late time.Duration
	body []byte

	mu     sync.Mutex
	client *http.Client // of the bundle in use
	bundle string
	heard  []heard
	leaves map[[32]byte]bool

	calls, fresh, failed atomic.Int64
	first                atomic.Value // the first failure
}

type heard struct {
	bundle string
	at     time.Time
}

func newCaller(t *testing.T, late time.Duration) *caller {
	t.Helper()
	pod := admission.NewPod()
	pod.Namespace = "default"
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{Limits: admission.Amounts("h1.probe.test/asked", "1"),
		Requests: admission.Amounts("h1.probe.test/asked", "1")}}}
	raw, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	review := admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: &admissionv1.AdmissionRequest{
		UID: "5f1c1f70-0000-4000-8000-000000000001", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Operation: admissionv1.Create, Namespace: "default",
		Object: runtime.RawExtension{Raw: raw}}}
	c := &caller{late: late, leaves: map[[32]byte]bool{}}
	if c.body, err = json.Marshal(review); err != nil {
		t.Fatal(err)
	}
	return c
}

// listen is the API server's watch of the configuration.
func (c *caller) listen(ctx context.Context) {
	configurations := api.Client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		is, err := configurations.Get(ctx, "quartermaster", metav1.GetOptions{})
		if err != nil {
			continue
		}
		told := is.Webhooks[0].ClientConfig
		c.mu.Lock()
		if told.URL != nil {
			c.url = *told.URL
		}
		if len(c.heard) == 0 || c.heard[len(c.heard)-1].bundle != string(told.CABundle) {
			c.heard = append(c.heard, heard{string(told.CABundle), time.Now()})
		}
		now := c.heard[0].bundle
		for _, one := range c.heard {
			if time.Since(one.at) >= c.late {
				now = one.bundle
			}
		}
		if now != c.bundle || c.client == nil {
			c.bundle = now
			c.client = c.connect(true)
		}
		c.mu.Unlock()
	}
}

func (c *caller) connect(keep bool) *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(c.bundle))
	return &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: !keep, MaxIdleConnsPerHost: 8, TLSClientConfig: &tls.Config{RootCAs: pool}}}
}

func (c *caller) fail(format string, arguments ...any) {
	c.failed.Add(1)
	c.first.CompareAndSwap(nil, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, arguments...))
}

// call once; every tenth time over a connection of its own, so that what is shown to newcomers is seen too.
func (c *caller) call(number int64) {
	c.mu.Lock()
	client, url := c.client, c.url
	if number%10 == 0 {
		client = c.connect(false)
	}
	c.mu.Unlock()
	c.calls.Add(1)
	reply, err := client.Post(url+"?timeout=5s", "application/json", bytes.NewReader(c.body))
	if err != nil {
		c.fail("%v", err)
		return
	}
	defer reply.Body.Close()
	text, _ := io.ReadAll(reply.Body)
	var answer admissionv1.AdmissionReview
	if reply.StatusCode != 200 || json.Unmarshal(text, &answer) != nil || answer.Response == nil || answer.Response.UID != "5f1c1f70-0000-4000-8000-000000000001" ||
		len(answer.Response.Patch) == 0 {
		c.fail("%d %.200s", reply.StatusCode, text)
	}
	if number%10 == 0 {
		c.fresh.Add(1)
		c.mu.Lock()
		c.leaves[sha256.Sum256(reply.TLS.PeerCertificates[0].Raw)] = true
		c.mu.Unlock()
	}
}

// at so many calls a second until the context ends; a call that finds no free hand is made late, not left out.
func (c *caller) at(ctx context.Context, rate int) *sync.WaitGroup {
	work := make(chan int64, 4*rate)
	var hands sync.WaitGroup
	for range 16 {
		hands.Go(func() {
			for number := range work {
				c.call(number)
			}
		})
	}
	hands.Go(func() {
		defer close(work)
		began := time.Now()
		for number := int64(1); ctx.Err() == nil; number++ {
			time.Sleep(time.Until(began.Add(time.Duration(number) * time.Second / time.Duration(rate))))
			work <- number
		}
	})
	return &hands
}

func (c *caller) shown() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.leaves)
}

func secret(t *testing.T) *corev1.Secret {
	t.Helper()
	is, err := api.Client.CoreV1().Secrets(namespace).Get(context.Background(), secretName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return is
}

func authorities(of *corev1.Secret) (count int) {
	for rest := of.Data["ca.crt"]; len(rest) > 0; count++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
	}
	return count
}

func patchSecret(t *testing.T, patch string) {
	t.Helper()
	if _, err := api.Client.CoreV1().Secrets(namespace).Patch(context.Background(), secretName, types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// byHand is an authority and a leaf of it, as an administrator might put there, leaf and bundle at once.
func byHand(t *testing.T, host string) map[string][]byte {
	t.Helper()
	key := func() *ecdsa.PrivateKey {
		out, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	encode := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	private := func(of *ecdsa.PrivateKey) []byte {
		der, err := x509.MarshalPKCS8PrivateKey(of)
		if err != nil {
			t.Fatal(err)
		}
		return encode("PRIVATE KEY", der)
	}
	now := time.Now()
	by := &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "by hand"}, NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(0, 10, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	byKey, leafKey := key(), key()
	der, err := x509.CreateCertificate(rand.Reader, by, by, byKey.Public(), byKey)
	if err != nil {
		t.Fatal(err)
	}
	service := secretName + "." + namespace + ".svc"
	leaf := &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano() + 1), Subject: pkix.Name{CommonName: "leaf by hand"}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.AddDate(0, 3, 0), DNSNames: []string{service, service + ".cluster.local"}, IPAddresses: []net.IP{net.ParseIP(host)}, KeyUsage: x509.KeyUsageDigitalSignature}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, by, leafKey.Public(), byKey)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"ca.crt": encode("CERTIFICATE", der), "ca.key": private(byKey), "tls.crt": encode("CERTIFICATE", leafDER), "tls.key": private(leafKey)}
}

// failedOpen is how often the API server let an object pass because the webhook did not answer.
func failedOpen(t *testing.T) (sum float64) {
	t.Helper()
	text, err := api.Client.RESTClient().Get().AbsPath("/metrics").DoRaw(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "apiserver_admission_webhook_fail_open_count") && strings.Contains(line, "quartermaster.io") {
			var value float64
			fmt.Sscan(line[strings.LastIndex(line, " ")+1:], &value)
			sum += value
		}
	}
	return sum
}

// Every change of certificates there is, each while 500 calls a second are made by one that hears of new authorities seconds late, and
// while pods are made through the API server. Not one call fails.
func TestF22_F23_CertificatesChangeUnderLoadAndNoCallFails(t *testing.T) {
	if err := api.Client.CoreV1().Secrets(namespace).Delete(context.Background(), secretName, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err) // what an earlier run left
	}
	op := operator(t)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	if err := (&webhook{}).Hold(ctx, &server.Batch{Spec: admission.NewSpec()}, "Deny"); err != nil {
		t.Fatal(err)
	}
	open := failedOpen(t)
	c := newCaller(t, 5*time.Second)
	go c.listen(ctx)
	until(t, 10*time.Second, "the first bundle", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.client != nil })
	calling := c.at(ctx, 500)

	pod := admission.NewPod()
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{Limits: admission.Amounts("h1.probe.test/asked", "1")}}}
	var pods, unfilled atomic.Int64
	calling.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(30 * time.Millisecond) {
			reply, err := api.Pod(ctx, pod)
			if ctx.Err() != nil {
				return
			}
			pods.Add(1)
			if err != nil || reply.Pod == nil || reply.Pod.Spec.Containers[0].Resources.Limits.Name("h1.probe.test/filled", "").IsZero() {
				unfilled.Add(1)
			}
		}
	})

	had := 0
	changes := []struct {
		what   string
		change func()
		done   func() bool
	}{
		{"a leaf is lost", func() { patchSecret(t, `[{"op":"remove","path":"/data/tls.key"}]`) }, func() bool { return len(secret(t).Data["tls.key"]) > 0 }},
		{"a leaf is half written", func() { patchSecret(t, `[{"op":"replace","path":"/data/tls.crt","value":"LS0tLS1CRUdJTg=="}]`) },
			func() bool { return len(secret(t).Data["tls.crt"]) > 100 }},
		{"the authority's key is lost", func() {
			// Callers may still have been told of one of an operator before this one.
			had = authorities(secret(t))
			patchSecret(t, `[{"op":"remove","path":"/data/ca.key"}]`)
		}, func() bool { return authorities(secret(t)) > had }},
		{"another authority is put there by hand, leaf and all", func() {
			is := secret(t)
			is.Data = byHand(t, "127.0.0.1")
			if _, err := api.Client.CoreV1().Secrets(namespace).Update(ctx, is, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}, func() bool { return authorities(secret(t)) > 1 }},
		{"everything is deleted", func() {
			if err := api.Client.CoreV1().Secrets(namespace).Delete(ctx, secretName, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}, func() bool {
			is, err := api.Client.CoreV1().Secrets(namespace).Get(ctx, secretName, metav1.GetOptions{})
			return err == nil && len(is.Data["tls.crt"]) > 0
		}},
	}
	time.Sleep(time.Second)
	for _, one := range changes {
		before := c.shown()
		one.change()
		until(t, 15*time.Second, one.what+": it is made again", one.done)
		until(t, 25*time.Second, one.what+": the new one is shown", func() bool { return c.shown() > before })
		if c.failed.Load() > 0 {
			t.Errorf("%s: %d of %d calls failed, first %v", one.what, c.failed.Load(), c.calls.Load(), c.first.Load())
			break
		}
	}
	time.Sleep(6 * time.Second) // until the late one has heard, too
	stop()
	calling.Wait()
	if failed := c.failed.Load(); failed > 0 {
		t.Errorf("%d of %d calls failed, first %v", failed, c.calls.Load(), c.first.Load())
	}
	if unfilled.Load() > 0 {
		t.Errorf("%d of %d pods were not filled in", unfilled.Load(), pods.Load())
	}
	if now := failedOpen(t); now > open {
		t.Errorf("the API server let %g objects pass unseen", now-open)
	}
	if pods.Load() < 100 || c.calls.Load() < 5000 {
		t.Errorf("only %d calls and %d pods", c.calls.Load(), pods.Load())
	}
	if rejected, _ := op.Metric("quartermaster_certificate_rejected", `server="webhook"`); rejected != 0 {
		t.Errorf("a pair is still refused: %g", rejected)
	}
	if refused, _ := op.Metric("quartermaster_certificate_reloads_total", `result="rejected"`, `server="webhook"`); refused < 1 {
		t.Error("the half written leaf was not refused")
	}
	t.Logf("%d calls, %d over new connections, and %d pods through the API server; %d certificates shown", c.calls.Load(), c.fresh.Load(), pods.Load(), c.shown())
}

func TestF23_ABundleThatLagsOrWasChangedIsPutBack(t *testing.T) {
	operator(t)
	ctx := context.Background()
	configurations := api.Client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	told := func() []byte {
		is, err := configurations.Get(ctx, "quartermaster", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return is.Webhooks[0].ClientConfig.CABundle
	}
	until(t, 10*time.Second, "a bundle", func() bool { return len(told()) > 0 })
	right := told()
	other := byHand(t, "127.0.0.1")["ca.crt"]
	for what, change := range map[string]string{
		"taken away":     `[{"op":"remove","path":"/webhooks/0/clientConfig/caBundle"}]`,
		"another's":      fmt.Sprintf(`[{"op":"replace","path":"/webhooks/0/clientConfig/caBundle","value":%s}]`, encoded(other)),
		"both":           fmt.Sprintf(`[{"op":"replace","path":"/webhooks/0/clientConfig/caBundle","value":%s}]`, encoded(slices.Concat(right, other))),
		"another's host": `[{"op":"replace","path":"/webhooks/0/clientConfig/url","value":"https://127.0.0.1:1/mutate/pods"}]`,
	} {
		if _, err := configurations.Patch(ctx, "quartermaster", types.JSONPatchType, []byte(change), metav1.PatchOptions{}); err != nil {
			t.Fatal(what, err)
		}
		until(t, 5*time.Second, what+": put back", func() bool {
			is, err := configurations.Get(ctx, "quartermaster", metav1.GetOptions{})
			return err == nil && bytes.Equal(is.Webhooks[0].ClientConfig.CABundle, right) && !strings.Contains(*is.Webhooks[0].ClientConfig.URL, ":1/")
		})
	}
}

func encoded(text []byte) string {
	out, _ := json.Marshal(text)
	return string(out)
}

// What raw sockets can do to it, and what it costs.
func TestF38_HostileReviewsDoNotHurtTheRunningOperator(t *testing.T) {
	op := operator(t)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	if err := (&webhook{}).Hold(ctx, &server.Batch{Spec: admission.NewSpec()}, "Deny"); err != nil {
		t.Fatal(err)
	}
	c := newCaller(t, 0)
	go c.listen(ctx)
	until(t, 10*time.Second, "the first bundle", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.client != nil })
	before, err := op.Footprint()
	if err != nil {
		t.Fatal(err)
	}
	zeros := bytes.Repeat([]byte("0"), 64<<20)
	deep := append(bytes.Repeat([]byte("["), 100_000), bytes.Repeat([]byte("]"), 100_000)...)
	twice := bytes.Replace(c.body, []byte(`"uid"`), []byte(`"uid":"other","uid"`), 1)
	wrap := func(inner []byte) []byte {
		return bytes.Replace(c.body, []byte(`"operation"`), append(append([]byte(`"x":`), inner...), []byte(`,"operation"`)...), 1)
	}
	bodies := map[string][]byte{"empty": {}, "no JSON": []byte("hello"), "64 MB": zeros, "9 MB of brackets": bytes.Repeat([]byte("["), 9<<20), "deep": deep, "deep inside": wrap(deep),
		"twice": twice, "no uid": bytes.Replace(c.body, []byte(`"uid"`), []byte(`"u"`), 1), "not UTF-8": wrap([]byte("\"\xff\"")), "9 MB of text": wrap(slices.Concat([]byte(`"`), zeros[:9<<20], []byte(`"`)))}
	for what, body := range bodies {
		for range 4 {
			reply, err := c.connect(false).Post(c.url, "application/json", bytes.NewReader(body))
			if err != nil {
				continue // it may close before it has read 64 MB
			}
			text, _ := io.ReadAll(reply.Body)
			reply.Body.Close()
			if reply.StatusCode == 200 && !bytes.Contains(text, []byte(`"uid":"5f1c1f70-0000-4000-8000-000000000001"`)) || reply.StatusCode >= 500 && reply.StatusCode != 503 {
				t.Errorf("%s: %d %.200s", what, reply.StatusCode, text)
			}
		}
	}
	endless, finish := io.Pipe()
	go func() {
		for range 100 {
			if _, err := finish.Write(zeros[:1<<20]); err != nil {
				return
			}
		}
		finish.Close()
	}()
	if reply, err := c.connect(false).Post(c.url, "application/json", endless); err == nil {
		reply.Body.Close()
		if reply.StatusCode != 413 {
			t.Errorf("an endless body: %d", reply.StatusCode)
		}
	}
	for number := range int64(20) {
		c.call(number)
	}
	if c.failed.Load() > 0 {
		t.Errorf("%d calls failed afterwards: %v", c.failed.Load(), c.first.Load())
	}
	after, err := op.Footprint()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v before, %+v after", before, after)
	if grown := after.RSSKiB - before.RSSKiB; grown > 200<<10 && !kit.Sanitized(kit.Env("QM_OPERATOR", filepath.Join(admission.Root(), "build/release/quartermaster"))) {
		t.Errorf("it grew by %d MiB", grown>>10)
	}
}
