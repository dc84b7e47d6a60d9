package faults

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"quartermaster.io/test/faults/kit"
)

// missed makes changes that the operator must notice when it sees again: a wish changed, a node gone and back under its name with
// another UID, a declaration gone, a module switched off.
func (b *bench) missed() {
	b.t.Helper()
	nodes := b.Client.CoreV1().Nodes()
	old, err := nodes.Get(b.ctx, "t4-1", metav1.GetOptions{})
	b.must(err)
	b.must(nodes.Delete(b.ctx, "t4-1", metav1.DeleteOptions{}))
	_, err = b.Run("", "sim", "nodes", "--kubeconfig", b.Kubeconfig, "--profile", "t4=2")
	b.must(err)
	fresh, err := nodes.Get(b.ctx, "t4-1", metav1.GetOptions{})
	b.must(err)
	if fresh.UID == old.UID {
		b.t.Fatal("the node was not made again")
	}
	b.must(b.Ask(b.ctx, "t4-1", "vgpu"))
	b.must(b.Ask(b.ctx, "t4-0", "vgpu"))
	b.must(b.Ask(b.ctx, "a100-0", ""))
	b.must(b.SetModules(b.ctx, map[string]bool{"pgpu": true, "vgpu": true, "mps": false}))
	b.must(b.Client.CoreV1().ConfigMaps("kube-public").Delete(b.ctx, "cf-crl-nvidia-gpu", metav1.DeleteOptions{}))
	delete(b.Expected.Declarations, "cf-crl-nvidia-gpu")
}

// F3 and F8 in one: while the operator is frozen and its connections are cut, objects change, vanish and come back under the same name;
// etcd is compacted and the API server restarted, so that every version the operator holds is gone for good. Then exactly one re-list
// for each resource, deletions found out, watches again.
func TestF8_compacted_while_frozen_long(t *testing.T) {
	b := take(t, "storm")
	b.productLease = true
	o := b.converged("compacted")
	o.Stop()
	o.Proxy.Refuse(true)
	b.missed()
	b.must(b.Compact())
	b.must(b.Cluster.Stop("kube-apiserver", "KILL"))
	b.must(b.Cluster.Start("kube-apiserver"))
	b.must(b.AwaitServing(b.ctx, 20*time.Second))
	b.must(b.Heal())
	o.Proxy.Refuse(false)
	since := time.Now()
	o.Cont()
	o = b.awaitAlive(o, 90*time.Second) // it may find out that its lease is lost, and end
	b.clean(kit.ListBudget(o.Proxy.Since(since, nil), 1+b.revived))
	b.stable(o, 10*time.Second, 2*time.Second)
}

// F8 by HTTP status and by an ERROR event in the stream: one re-list per resource each time.
func TestF8_gone_as_status_and_as_event(t *testing.T) {
	b := take(t, "calm")
	o := b.converged("gone")
	for _, how := range []string{"status", "event"} {
		since := time.Now()
		answered := map[string]bool{}
		rule := kit.Rule{Match: func(r *kit.Request) bool { // the first watch of each resource; the proxy's lock is held
			if r.Verb != "watch" || r.Query.Get("sendInitialEvents") == "true" || answered[r.Resource+r.Query.Get("labelSelector")] {
				return false
			}
			answered[r.Resource+r.Query.Get("labelSelector")] = true
			return true
		}, Status: 410, Body: goneStatus}
		if how == "event" {
			rule.Status, rule.Body = 200, goneEvent
		}
		remove := o.Proxy.Use(rule)
		o.Proxy.Refuse(true) // cut the watches that are open, so that they are asked for again
		o.Proxy.Refuse(false)
		b.must(b.Ask(b.ctx, "t4-0", map[string]string{"status": "vgpu", "event": "pgpu"}[how]))
		b.must(wrap(b.Await(b.ctx, 40*time.Second), "410 as %s", how))
		b.rest(o, time.Second)
		remove()
		if len(answered) < 3 {
			t.Errorf("410 as %s reached %d watches only", how, len(answered))
		}
		b.clean(kit.ListBudget(o.Proxy.Since(since, nil), 1))
	}
	b.stable(o, 10*time.Second, time.Second)
}

const goneJSON = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: 1 (99)","reason":"Expired","code":410}`

func goneStatus(*kit.Request) (string, []byte) { return "application/json", []byte(goneJSON) }

// goneEvent is an ERROR event in the encoding the request prefers, as the API server frames it.
func goneEvent(r *kit.Request) (string, []byte) {
	if !strings.Contains(strings.SplitN(r.Header.Get("Accept"), ",", 2)[0], "protobuf") {
		return "application/json", []byte(`{"type":"ERROR","object":` + goneJSON + "}\n")
	}
	status := metav1.Status{Status: "Failure", Message: "too old resource version: 1 (99)", Reason: metav1.StatusReasonExpired, Code: 410}
	raw, _ := status.Marshal()
	wrapped, _ := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Status"}, Raw: raw}).Marshal()
	event, _ := (&metav1.WatchEvent{Type: "ERROR", Object: runtime.RawExtension{Raw: append([]byte("k8s\x00"), wrapped...)}}).Marshal()
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(event)))
	return "application/vnd.kubernetes.protobuf;stream=watch", append(frame, event...)
}

// F9: every watch gets a 410, again and again. Re-lists must back off, and afterwards all is well.
func TestF9_storm_of_gone_long(t *testing.T) {
	b := take(t, "pair")
	o := b.converged("storm")
	since := time.Now()
	remove := o.Proxy.Use(kit.Rule{Match: func(r *kit.Request) bool { return r.Verb == "watch" && r.Query.Get("sendInitialEvents") != "true" },
		Status: 410, Body: goneStatus})
	o.Proxy.Refuse(true)
	o.Proxy.Refuse(false)
	time.Sleep(form(12*time.Second, 2*time.Minute))
	log := o.Proxy.Since(since, nil)
	remove()
	b.clean(kit.ListBudget(log, form(6, 10)))
	b.clean(kit.AliveOrExplained(o))
	b.must(b.Ask(b.ctx, "t4-0", "vgpu"))
	b.must(b.Await(b.ctx, 60*time.Second))
	b.stable(o, 10*time.Second, time.Second)
}

// F10: every watch stream is cut after one byte more than the last, in the middle of whatever stands there, while things change. No
// event may be lost or taken in half: resumption is from the last complete version, without a list.
func TestF10_streams_cut_at_every_offset_long(t *testing.T) {
	b := take(t, "pair")
	o := b.converged("cut")
	since := time.Now()
	var cuts atomic.Int64
	const step = 37 // so that offsets are spread over whole events soon: a stream cut within its first event makes the client back off
	remove := o.Proxy.Use(kit.Rule{Match: func(r *kit.Request) bool { return r.Verb == "watch" && r.Query.Get("sendInitialEvents") != "true" },
		CutAfter: func(r *kit.Request) int64 {
			frames := int64(1200) // about two events of the resource
			if r.Resource == "nodes" || r.Resource == "pods" || r.Resource == "daemonsets" {
				frames = 9000
			}
			return 1 + (cuts.Add(1)*step*7)%frames
		}})
	o.Proxy.Refuse(true)
	o.Proxy.Refuse(false)
	for i, end := 0, time.Now().Add(form(12*time.Second, 5*time.Minute)); time.Now().Before(end); i++ {
		b.must(b.Ask(b.ctx, "t4-0", []string{"pgpu", "vgpu"}[i%2]))
		b.must(b.Declare(b.ctx, "cf-crl-nvidia-gpu", map[string]string{"key": "nvidia.com/gpu", "dataType": "integer", "defaultValue": fmt.Sprint(i),
			"group": "nvidia-gpu", "limits": "optional", "requests": "disabled", "descriptionEn": "cards", "descriptionZh": "cards"}))
		time.Sleep(150 * time.Millisecond)
	}
	remove() // a stream that is always cut within its first event never gets on, which is no one's fault
	// What was declared last looks settled before its watch is back: a verdict is asked for, which only that watch can bring.
	o = b.judges(o, 90*time.Second)
	b.must(b.Await(b.ctx, 90*time.Second))
	log := o.Proxy.Since(since, nil)
	// A dozen streams that back off to half a minute see few cuts, about fifteen a minute; every offset of a stream is in the unit tests of the watch machine.
	if cuts.Load() < form[int64](5, 50) {
		t.Errorf("only %d streams were cut", cuts.Load())
	}
	t.Logf("%d streams cut", cuts.Load())
	b.clean(kit.ListBudget(log, 1)) // none is due; one, if a version ran out of the server's window meanwhile
	b.clean(neverBack(log))
	b.stable(o, 10*time.Second, time.Second)
}

// neverBack: a watch asks for the version the last one of its kind asked for, or a newer one.
func neverBack(log []kit.Entry) (wrong []string) {
	last := map[string]int64{}
	for _, e := range log {
		if e.Verb != "watch" || e.Query.Get("sendInitialEvents") == "true" {
			continue
		}
		var version int64
		if _, err := fmt.Sscan(e.Query.Get("resourceVersion"), &version); err != nil {
			wrong = append(wrong, "F10 a watch without a version: "+e.String())
			continue
		}
		key := e.Resource + "?" + e.Query.Get("labelSelector")
		if version < last[key] {
			wrong = append(wrong, fmt.Sprintf("F10 went back from version %d: %s", last[key], e))
		}
		last[key] = version
	}
	return
}

// F13: open connections fall silent, without an end. Nightly only: the silence deadline is minutes.
func TestF13_silent_half_open_streams_long(t *testing.T) {
	if !nightly {
		t.Skip("takes minutes: QM_NIGHTLY=1")
	}
	b := take(t, "calm")
	o := b.converged("silent")
	never := make(chan struct{})
	defer close(never)
	remove := o.Proxy.Use(kit.Rule{Match: kit.Verb("watch"), HoldBody: never})
	o.Proxy.Refuse(true)
	o.Proxy.Refuse(false)
	time.Sleep(5 * time.Second)
	remove() // the streams that are open stay silent; new ones are good
	b.must(b.Ask(b.ctx, "t4-0", "vgpu"))
	b.must(b.Await(b.ctx, 4*time.Minute))
	b.stable(o, 10*time.Second, 5*time.Second)
}

// F18: 429 with Retry-After on watches and writes. A throttled watch must not become a list (client-go: TestNoRelistOnTooManyRequests).
func TestF18_throttled_long(t *testing.T) {
	b := take(t, "calm")
	o := b.converged("throttled")
	since := time.Now()
	slow := map[string]string{"Retry-After": "1"}
	removeWatch := o.Proxy.Use(kit.Rule{Match: kit.Verb("watch"), Status: 429, Header: slow})
	removeWrite := o.Proxy.Use(kit.Rule{Match: kit.Writes, Status: 429, Header: slow, Times: 5})
	o.Proxy.Refuse(true)
	o.Proxy.Refuse(false)
	b.must(b.Ask(b.ctx, "t4-0", "vgpu"))
	time.Sleep(4 * time.Second)
	log := o.Proxy.Since(since, nil)
	removeWatch()
	b.clean(kit.ListBudget(log, 0))
	b.must(b.Await(b.ctx, 40*time.Second))
	removeWrite()
	b.clean(kit.RateBudget(log, 60))
	b.stable(o, 10*time.Second, time.Second)
}

// F3 alone, with the connection up: events pile up in the sockets while the operator is frozen.
func TestF3_frozen_while_objects_are_remade_long(t *testing.T) {
	b := take(t, "calm")
	o := b.converged("blind")
	o.Signal(syscall.SIGSTOP)
	b.missed()
	o.Cont()
	b.must(b.Await(b.ctx, 40*time.Second))
	b.clean(kit.AliveOrExplained(o))
	b.stable(o, 10*time.Second, time.Second)
}
