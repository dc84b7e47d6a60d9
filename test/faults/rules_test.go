package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"quartermaster.io/test/faults/kit"
)

// refused waits until the server refuses such a pod with these words; a new rule takes a second or two to be seen.
func (b *bench) refused(words string, limits map[string]string) {
	b.t.Helper()
	var last error
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if _, last = b.Try(b.ctx, limits); last != nil && strings.Contains(last.Error(), words) {
			return
		}
	}
	b.must(fmt.Errorf("a pod with %v: %v, want a refusal with %q", limits, last, words))
}

func (b *bench) allowed(limits map[string]string) *corev1.Pod {
	b.t.Helper()
	var last error
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		var pod *corev1.Pod
		if pod, last = b.Try(b.ctx, limits); last == nil {
			return pod
		}
	}
	b.must(fmt.Errorf("a pod with %v is refused: %w", limits, last))
	return nil
}

var cards = map[string]string{"key": "example.com/card", "dataType": "integer", "group": "cards", "limits": "optional", "requests": "disabled",
	"descriptionEn": "cards", "descriptionZh": "卡", "defaultValue": "1"}

func with(data map[string]string, more ...string) map[string]string {
	out := map[string]string{}
	for k, v := range data {
		out[k] = v
	}
	for i := 0; i < len(more); i += 2 {
		out[more[i]] = more[i+1]
	}
	return out
}

// The rules are the API server's: they hold while the operator is dead. An edit into an error while it is back leaves the last good
// content in force, and so does another death.
func TestS24_F36_rules_hold_while_the_operator_is_dead(t *testing.T) {
	b := take(t, "calm")
	o := b.converged("rules")
	b.must(b.Declare(b.ctx, "cf-crl-cards-card", cards))
	b.must(b.Declare(b.ctx, "cf-crl-cards-memory", with(cards, "key", "example.com/memory", "limits", "required", "defaultValue", "")))
	b.must(b.Enforce(b.ctx, "Deny"))
	lone, both := map[string]string{"example.com/card": "2"}, map[string]string{"example.com/card": "2", "example.com/memory": "3"}
	words := "container main: example.com/memory must be set to 1 or more beside example.com/card (ConfigMap kube-public/cf-crl-cards-memory)"
	b.refused(words, lone)
	b.allowed(both)
	o.Kill()
	b.refused(words, lone)
	b.allowed(both)

	b.must(b.ExpireLease(b.ctx))
	o = b.startBehind(o.Proxy)
	b.must(o.WaitReady(20 * time.Second))
	// An error that the policy on declarations cannot tell; others do not get as far as here.
	b.Expected.Declarations["cf-crl-cards-memory"] = "refused"
	b.must(b.Declare(b.ctx, "cf-crl-cards-memory", with(cards, "key", "example.com/memory", "limits", "required", "excludeResources", "example.com/card")))
	b.must(b.Await(b.ctx, 20*time.Second))
	b.refused(words, lone)
	o.Kill()
	b.must(b.ExpireLease(b.ctx))
	o = b.startBehind(o.Proxy)
	b.must(o.WaitReady(20 * time.Second))
	b.must(b.Await(b.ctx, 20*time.Second))
	b.rest(o, time.Second)
	b.refused(words, lone)

	b.Expected.Declarations["cf-crl-cards-memory"] = "good"
	b.must(b.Declare(b.ctx, "cf-crl-cards-memory", with(cards, "key", "example.com/memory", "limits", "optional", "excludeResources", "")))
	b.allowed(lone)
	b.must(b.Enforce(b.ctx, "Off"))
	b.stable(o, 20*time.Second, 2*time.Second)
}

// A broken declaration is refused when it is written, with what is wrong as the text; the published ones are not.
func TestS23_S24_broken_declarations_are_refused_when_they_are_written_long(t *testing.T) {
	b := take(t, "calm")
	o := b.converged("written")
	b.must(b.Enforce(b.ctx, "Deny"))
	b.must(b.Declare(b.ctx, "cf-crl-cards-card", cards))
	b.must(b.Declare(b.ctx, "cf-crl-cards-memory", with(cards, "key", "example.com/memory", "limits", "required", "defaultValue", "")))
	b.refused("example.com/memory must be set", map[string]string{"example.com/card": "2"}) // the rules are seen
	apply := func(file string) (string, error) {
		return b.Run("", "kubectl", "apply", "--dry-run=server", "-f", file)
	}
	golden := filepath.Join(kit.Root(), "test/golden")
	said := []string{"missing", "not_in_vocabulary", "key_without_domain", "key_native", "key_malformed", "default_not_a_number", "default_not_legal",
		"group_differs", "impossible_requests", "related_and_excluded"}
	files, err := filepath.Glob(filepath.Join(golden, "lint/broken/*.yaml"))
	b.must(err)
	tried := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		b.must(err)
		code := strings.TrimSpace(strings.TrimPrefix(strings.SplitN(string(text), "\n", 2)[0], "# expect:"))
		if !slices.Contains(said, code) || strings.Contains(string(text), "device-plugin.cpaas.io/config") || strings.Contains(string(text), "\n---\n") ||
			strings.Contains(string(text), "features.alauda.io") && strings.Contains(string(text), "features.cpaas.io") {
			continue
		}
		tried++
		out, err := apply(file)
		if err == nil || !strings.Contains(out+err.Error(), "declarations.quartermaster.io' with binding 'declarations-deny.quartermaster.io' denied request: ") {
			t.Errorf("%s (%s) is not refused: %s %v", filepath.Base(file), code, out, err)
		}
	}
	if tried < 10 {
		t.Errorf("only %d broken declarations were tried", tried)
	}
	sound, err := filepath.Glob(filepath.Join(golden, "crl/platform-*.yaml"))
	b.must(err)
	for _, file := range append(sound, filepath.Join(golden, "crl/manual-vcuda.yaml")) {
		if strings.Contains(file, "manual") { // the scenario declares one of its keys already
			b.must(b.Client.CoreV1().ConfigMaps("kube-public").Delete(b.ctx, "cf-crl-gpu-manager-vcuda-core", metav1.DeleteOptions{}))
			delete(b.Expected.Declarations, "cf-crl-gpu-manager-vcuda-core")
			time.Sleep(4 * time.Second)
		}
		if out, err := apply(file); err != nil && !strings.Contains(out+err.Error(), "which ConfigMap kube-public/cf-crl-nvidia-gpu declares already") {
			t.Errorf("%s is refused: %s %v", filepath.Base(file), out, err)
		}
	}
	_, err = b.Run("", "kubectl", "create", "configmap", "cf-crl-nobody", "-n", "kube-public", "--from-literal=a=b", "--dry-run=server", "--warnings-as-errors")
	if err == nil || !strings.Contains(err.Error(), "the name is that of a declaration, but the labels are missing, so this ConfigMap has no effect") {
		t.Errorf("a ConfigMap that only looks like a declaration: %v", err)
	}
	err = b.Declare(b.ctx, "cf-crl-cards-again", cards)
	if err == nil || !strings.Contains(err.Error(), `data.key is "example.com/card", which ConfigMap kube-public/cf-crl-cards-card declares already`) {
		t.Errorf("a key declared twice: %v", err)
	}
	delete(b.Expected.Declarations, "cf-crl-cards-again")
	err = b.Declare(b.ctx, "cf-crl-cards-card", with(cards, "limits", "sometimes"))
	if err == nil || !strings.Contains(err.Error(), `data.limits is "sometimes"; allowed: disabled, required, optional`) {
		t.Errorf("edited into an error: %v", err)
	}
	b.must(b.Enforce(b.ctx, "Off"))
	b.stable(o, 20*time.Second, 2*time.Second) // what was broken before has its verdict all the same
}

// F34: ten thousand ConfigMaps of others in the namespace are filtered by the server: not a byte of them arrives, memory is the same.
func TestF34_ten_thousand_foreign_config_maps_long(t *testing.T) {
	b := take(t, "pair")
	o := b.converged("before")
	before, err := o.Footprint()
	b.must(err)
	if code := o.Terminate(10 * time.Second); code != 0 {
		t.Fatalf("ended with code %d", code)
	}
	count := form(2_000, 10_000)
	filler := strings.Repeat("0123456789abcdef", 64)
	maps := b.Client.CoreV1().ConfigMaps("kube-public")
	defer func() {
		_ = maps.DeleteCollection(b.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "foreign=yes"})
	}()
	var workers sync.WaitGroup
	for w := range 8 {
		workers.Go(func() {
			for i := w; i < count; i += 8 {
				cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("cf-crl-foreign-%d", i), Labels: map[string]string{"foreign": "yes"}},
					Data: map[string]string{"key": fmt.Sprintf("example.com/f%d", i), "text": filler}}
				if _, err := maps.Create(b.ctx, cm, metav1.CreateOptions{}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	workers.Wait()
	o = b.start("after")
	b.must(o.WaitReady(20 * time.Second))
	b.must(b.Await(b.ctx, 40*time.Second))
	b.rest(o, time.Second)
	after, err := o.Footprint()
	b.must(err)
	var bytes int64
	for _, e := range o.Proxy.Log() {
		if e.Resource == "configmaps" {
			bytes += e.Bytes
			if (e.Verb == "list" || e.Verb == "watch") && e.Query.Get("labelSelector") == "" && !strings.HasPrefix(e.Query.Get("fieldSelector"), "metadata.name=") {
				t.Errorf("%s without a label selector or a name", e)
			}
		}
	}
	t.Logf("%d foreign ConfigMaps of 1 KiB: %d bytes of ConfigMaps read, %d -> %d KiB", count, bytes, before.RSSKiB, after.RSSKiB)
	if bytes > 256<<10 {
		t.Errorf("%d bytes of ConfigMaps were read", bytes)
	}
	if kit.Sanitized(program) {
		t.Log("built with AddressSanitizer: memory is not judged")
	} else if after.RSSKiB > before.RSSKiB+512 {
		t.Errorf("memory went from %d to %d KiB", before.RSSKiB, after.RSSKiB)
	}
}

// F35: declarations of a mebibyte, which are not read, and smaller ones: of what JSON makes six times as long, of bytes that are no text, of
// four thousand fields. Each gets the finding it deserves; memory is back when they are gone.
func TestF35_declarations_of_a_mebibyte_long(t *testing.T) {
	b := take(t, "pair")
	o := b.converged("large")
	before, err := o.Footprint()
	b.must(err)
	maps := b.Client.CoreV1().ConfigMaps("kube-public")
	filled := func(fill string, size int) string { return strings.Repeat(fill, size/len(fill)) }
	large := func(fill string) string { return filled(fill, 50_000) }
	fields := map[string]string{}
	for i := range 1_500 {
		fields[fmt.Sprintf("field-%d", i)] = "x"
	}
	cases := []struct {
		name, code string
		data       map[string]string
		binary     map[string][]byte
	}{
		{"mebibyte", "too_large", map[string]string{"descriptionEn": filled("<", 1_000_000)}, nil},
		{"bytes", "too_large", nil, map[string][]byte{"blob": []byte(filled("\xff", 700_000))}},
		{"angle", "too_long", map[string]string{"descriptionEn": large("<")}, nil},
		{"control", "too_long", map[string]string{"descriptionEn": large("\x01")}, nil},
		{"binary", "binary_data", nil, map[string][]byte{"blob": []byte(large("\xff"))}},
		{"fields", "more_unknown_fields", fields, nil},
		{"i18n", "group_names_malformed", map[string]string{"groupI18n": "{" + large("[") + "}"}, nil},
		{"number", "default_not_a_number", map[string]string{"defaultValue": large("9")}, nil},
		{"list", "list_too_long", map[string]string{"excludeResources": large("example.com/a,example.com/b,")}, nil},
	}
	for i, c := range cases {
		key := fmt.Sprintf("example.com/large-%d", i)
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cf-crl-large-" + c.name, Namespace: "kube-public", Labels: map[string]string{
			"features.cpaas.io/type": "CustomResourceLimitation", "features.cpaas.io/group": "large-" + c.name, "features.cpaas.io/enabled": "true"}},
			Data: with(cards, append([]string{"key", key, "group", "large-" + c.name}, flat(c.data)...)...), BinaryData: c.binary}
		_, err := maps.Create(b.ctx, cm, metav1.CreateOptions{})
		b.must(err)
	}
	for _, c := range cases {
		var verdict string
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end) && !strings.Contains(verdict, `"code":"`+c.code+`"`); time.Sleep(100 * time.Millisecond) {
			cm, err := maps.Get(b.ctx, "cf-crl-large-"+c.name, metav1.GetOptions{})
			b.must(err)
			verdict = cm.Annotations[kit.VerdictKey]
		}
		if !strings.Contains(verdict, `"code":"`+c.code+`"`) || len(verdict) > 8192 {
			t.Errorf("%s: want finding %s within 8 KiB, the verdict is %.300q", c.name, c.code, verdict)
		}
	}
	during, err := o.Footprint()
	b.must(err)
	for _, c := range cases {
		b.must(maps.Delete(b.ctx, "cf-crl-large-"+c.name, metav1.DeleteOptions{}))
	}
	b.rest(o, 2*time.Second)
	after, err := o.Footprint()
	b.must(err)
	t.Logf("2 ConfigMaps of about 1 MB, 7 of 50 kB: %d -> %d -> %d KiB", before.RSSKiB, during.RSSKiB, after.RSSKiB)
	if kit.Sanitized(program) {
		t.Log("built with AddressSanitizer: memory is not judged")
	} else if during.RSSKiB > before.RSSKiB+64<<10 || after.RSSKiB > before.RSSKiB+24<<10 {
		t.Errorf("%d KiB before, %d with them, %d after: want at most 64 MiB more, then 24 MiB", before.RSSKiB, during.RSSKiB, after.RSSKiB)
	}
	b.stable(o, 10*time.Second, time.Second)
}

func flat(of map[string]string) []string {
	var out []string
	for k, v := range of {
		out = append(out, k, v)
	}
	return out
}
