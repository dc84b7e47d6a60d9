package faults

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"quartermaster.io/test/faults/kit"
)

// secret of the extender, decoded; nil: there is none.
func (d *den) secret(name string) map[string][]byte {
	d.t.Helper()
	list, err := d.Client.CoreV1().Secrets(kit.Namespace).List(d.ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	d.must(err)
	for _, one := range list.Items {
		return one.Data
	}
	return nil
}

// mount writes a Secret into the files of who reads it, as a kubelet does.
func (d *den) mount(of, name string) {
	d.t.Helper()
	for key, text := range d.secret(name) {
		d.must(kit.WriteAtomically(filepath.Join(d.dir, "chart-"+of+"-"+key), string(text)))
	}
}

// elapse lets the operator believe that the authorities were written an hour ago.
func (d *den) elapse() {
	d.t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, kit.SinceAnnotation, time.Now().Add(-time.Hour).UTC().Format(time.RFC3339))
	for _, name := range []string{kit.ServerSecret, kit.CallersSecret} {
		_, err := d.Client.CoreV1().Secrets(kit.Namespace).Patch(d.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		d.must(err)
	}
}

// rolled says what is missing until the Deployment runs with another hash of the certificates.
func (d *den) rolled(before string) string {
	set := d.deployment()
	is := set.Spec.Template.Annotations["quartermaster.io/certificates"]
	switch {
	case is == before:
		return "the Deployment has the certificates of before"
	case set.Status.ObservedGeneration < set.Generation || set.Status.UpdatedReplicas != 2 || set.Status.AvailableReplicas != 2 || set.Status.Replicas != 2:
		return fmt.Sprintf("the Deployment is not rolled out: %+v", set.Status)
	}
	return ""
}

// knocker opens a connection after the other with what a scheduler has read when it started.
type knocker struct {
	mu       sync.Mutex
	answered int
	refused  []string // handshakes that failed
	stop     func()
}

func (d *den) knock() *knocker {
	d.t.Helper()
	client := filepath.Join(d.dir, "chart-client-")
	with, err := kit.ClientTLS(client+"ca.crt", client+"tls.crt", client+"tls.key")
	d.must(err)
	with.ServerName = "quartermaster-extender." + kit.Namespace + ".svc"
	ctx, cancel := context.WithCancel(d.ctx)
	k := &knocker{}
	var done sync.WaitGroup
	k.stop = sync.OnceFunc(func() { cancel(); done.Wait() })
	d.t.Cleanup(k.stop)
	address := fmt.Sprintf("127.0.0.1:%d", d.port)
	one := func() error {
		dial := net.Dialer{Timeout: 2 * time.Second}
		plain, err := dial.DialContext(ctx, "tcp", address)
		if err != nil {
			return nil // no one is there: an operator is started again
		}
		plain.SetDeadline(time.Now().Add(5 * time.Second))
		c := tls.Client(plain, with)
		defer c.Close()
		if err := c.Handshake(); err != nil {
			return err
		}
		// What the server thinks of our certificate comes with the first answer.
		if _, err := fmt.Fprint(c, "GET /scheduler HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); err != nil {
			return err
		}
		answer := make([]byte, len("HTTP/1.1 "+fmt.Sprint(http.StatusNotFound)))
		if _, err := c.Read(answer); err != nil {
			return err
		}
		k.mu.Lock()
		k.answered++
		k.mu.Unlock()
		return nil
	}
	done.Go(func() {
		for ctx.Err() == nil {
			if err := one(); err != nil && ctx.Err() == nil && (strings.Contains(err.Error(), "tls:") || strings.Contains(err.Error(), "x509:")) {
				k.mu.Lock()
				k.refused = append(k.refused, time.Now().Format("15:04:05.000 ")+err.Error())
				k.mu.Unlock()
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
	return k
}

// turned ends it and says how it went.
func (k *knocker) turned(t *testing.T, name string) {
	t.Helper()
	k.stop()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.answered < 10 || len(k.refused) > 0 {
		t.Errorf("the %s scheduler's certificates: %d answers, %d handshakes failed: %.600v", name, k.answered, len(k.refused), k.refused)
	}
	t.Logf("the %s scheduler's certificates: %d connections", name, k.answered)
}

// The extender's authority is deleted while the operator runs a scheduler: another is made, the scheduler starts with both before anything is
// signed by the new one, and at every moment the certificates of every scheduler that runs are good.
func TestS54_a_deleted_authority_is_replaced_and_the_scheduler_starts_first(t *testing.T) {
	d := openDen(t, map[string]int{"pgpu": 2})
	d.webhook()
	d.mode("Dedicated", nil)
	o := d.startBehind(d.proxy("first"), d.args...)
	d.must(o.WaitReady(30 * time.Second))
	d.eventuallySo(60*time.Second, func() string { return d.on("pgpu-0", "pgpu-1") })
	first, asks := d.kubelet(), d.knock()
	d.sent(true)
	pods := 0
	schedules := func() {
		t.Helper()
		pods++
		name := fmt.Sprintf("card-%d", pods)
		d.create(d.gpu(name, map[string]string{"nvidia.com/gpu": "1"}))
		d.awaitBound(name, 40*time.Second) // a lease that no one holds any more lasts 15 s
		d.remove(name)
	}
	schedules()
	server, callers, hash := d.secret(kit.ServerSecret), d.secret(kit.CallersSecret), d.deployment().Spec.Template.Annotations["quartermaster.io/certificates"]

	known := kit.CountCertificates(d.secret(kit.AuthoritySecret)["ca.crt"]) // a cluster that is used again is still between two
	d.must(d.Client.CoreV1().Secrets(kit.Namespace).Delete(d.ctx, kit.AuthoritySecret, metav1.DeleteOptions{}))
	d.eventuallySo(60*time.Second, func() string {
		for _, name := range []string{kit.AuthoritySecret, kit.ServerSecret, kit.CallersSecret} {
			if is := kit.CountCertificates(d.secret(name)["ca.crt"]); is != known+1 {
				return fmt.Sprintf("Secret %s has %d authorities", name, is)
			}
		}
		return d.rolled(hash)
	})
	schedules() // with the old one still
	hash = d.deployment().Spec.Template.Annotations["quartermaster.io/certificates"]
	time.Sleep(form(5*time.Second, 30*time.Second))
	for name, before := range map[string][]byte{kit.ServerSecret: server["tls.crt"], kit.CallersSecret: callers["tls.crt"]} {
		if string(d.secret(name)["tls.crt"]) != string(before) {
			t.Fatalf("the leaf of %s changed before what was written could have arrived", name)
		}
	}
	// As the kubelet starts its new pod; then the old one goes.
	d.mount("client", kit.CallersSecret)
	second, asksToo := d.kubelet(), d.knock()
	first.Close()
	asks.turned(t, "first")
	schedules()
	// The operator dies in the wait: another goes on.
	o.Kill()
	d.must(d.ExpireLease(d.ctx))
	d.elapse()
	o = d.startBehind(d.proxy("second"), d.args...)
	d.must(o.WaitReady(30 * time.Second))
	d.eventuallySo(60*time.Second, func() string {
		for name, before := range map[string][]byte{kit.ServerSecret: server["tls.crt"], kit.CallersSecret: callers["tls.crt"]} {
			if string(d.secret(name)["tls.crt"]) == string(before) {
				return "the leaf of " + name + " is not of the new authority"
			}
		}
		return d.rolled(hash)
	})
	d.eventuallySo(30*time.Second, func() string {
		if reloads, _ := o.Metric("quartermaster_certificate_reloads_total", `server="extender"`, `result="ok"`); reloads < 2 {
			return "the server has not read its new certificate"
		}
		return ""
	})
	schedules() // by one that was started before any leaf was of the new authority
	d.mount("client", kit.CallersSecret)
	third, asksAtLast := d.kubelet(), d.knock()
	second.Close()
	asksToo.turned(t, "second")
	schedules()
	time.Sleep(2 * time.Second)
	asksAtLast.turned(t, "third")
	for name, s := range map[string]*kit.Scheduler{"first": first, "second": second, "third": third} {
		for line := range strings.Lines(s.Log()) {
			if strings.Contains(line, "/scheduler/") && (strings.Contains(line, "x509:") || strings.Contains(line, "tls:")) {
				t.Errorf("the %s scheduler: %s", name, line)
			}
		}
	}
	if ends, ok := o.Metric("quartermaster_extender_certificate_expiry_seconds", `certificate="client"`); !ok || time.Until(time.Unix(int64(ends), 0)) < 300*24*time.Hour {
		t.Errorf("quartermaster_extender_certificate_expiry_seconds of the client is %v", ends)
	}
	// The three schedulers showed three certificates of a year each: the first to end is one of these.
	if ends, ok := o.Metric("quartermaster_extender_caller_certificate_expiry_seconds"); !ok || time.Until(time.Unix(int64(ends), 0)) < 300*24*time.Hour {
		t.Errorf("quartermaster_extender_caller_certificate_expiry_seconds is %v, %v", ends, ok)
	}
	d.eventuallySo(30*time.Second, func() string {
		policy, err := d.Dynamic.Resource(kit.Policies).Get(d.ctx, "default", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		conditions, _, _ := unstructured.NestedSlice(policy.Object, "status", "conditions")
		for _, one := range conditions {
			if is, _ := one.(map[string]any); is["type"] == "CallerCertificatesValid" && is["status"] == "True" {
				return ""
			}
		}
		return fmt.Sprintf("no condition CallerCertificatesValid that is True: %v", conditions)
	})
	for _, one := range d.ops {
		if strings.Contains(one.Log(), "PRIVATE KEY") {
			t.Error("a key is in the log")
		}
	}
}
