package kit

import (
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func at(second float64) time.Time {
	return time.Unix(1_800_000_000, 0).Add(time.Duration(second * float64(time.Second)))
}

func audit(second float64, by, verb, resource string, code int) AuditEvent {
	e := AuditEvent{Verb: verb, UserAgent: "quartermaster/0 proxy/" + by, Received: at(second), Answered: at(second)}
	e.ObjectRef.Resource, e.ResponseStatus.Code = resource, code
	return e
}

func expect(t *testing.T, wrong []string, want ...string) {
	t.Helper()
	if len(wrong) != len(want) {
		t.Fatalf("got %d violations, want %d: %v", len(wrong), len(want), wrong)
	}
	for i := range want {
		if !strings.Contains(wrong[i], want[i]) {
			t.Errorf("violation %q does not speak of %q", wrong[i], want[i])
		}
	}
}

func TestOracles_O3_finds_a_write_after_the_renew_deadline(t *testing.T) {
	good := []AuditEvent{
		audit(0, "a", "create", "leases", 201), audit(2, "a", "update", "leases", 200), audit(11.9, "a", "patch", "nodes", 200),
		audit(13, "b", "update", "leases", 409), audit(17, "b", "update", "leases", 200), audit(18, "b", "patch", "nodes", 200),
	}
	expect(t, OnlyLeaders(good, []string{"a", "b"}, 10*time.Second))
	expect(t, OnlyLeaders(append(good, audit(12.1, "a", "patch", "nodes", 409)), []string{"a", "b"}, 10*time.Second), "a wrote 10.1s after")
	expect(t, OnlyLeaders(append(good, audit(14, "b", "create", "events", 201)), []string{"a", "b"}, 10*time.Second), "b wrote without ever")
}

func entry(method, path, query string, after time.Duration) Entry {
	request := parse(method, path+"?"+query)
	request.At = at(0).Add(after)
	return Entry{Request: request, Status: 200}
}

func TestOracles_O1_finds_writes_but_neither_leases_nor_reviews(t *testing.T) {
	log := []Entry{
		entry("PUT", "/apis/coordination.k8s.io/v1/namespaces/q/leases/quartermaster", "", 0),
		entry("POST", "/apis/authentication.k8s.io/v1/tokenreviews", "", 0),
		entry("GET", "/api/v1/nodes", "watch=1", 0),
	}
	expect(t, Silent(log))
	expect(t, Silent(append(log, entry("PATCH", "/api/v1/nodes/n", "", 0))), "nodes/n")
}

func TestOracles_O1_knows_the_count_of_what_was_before_from_news(t *testing.T) {
	patched := func(path, body string) *Request {
		r := parse("PATCH", path)
		r.Body = []byte(body)
		return r
	}
	const event = "/apis/events.k8s.io/v1/namespaces/default/events/e"
	last := at(0).UTC().Format(time.RFC3339Nano)
	for _, c := range []struct {
		of    *Request
		since time.Time
		is    bool
	}{
		{patched(event, `{"series":{"count":2,"lastObservedTime":"`+last+`"}}`), at(1), true},
		{patched(event, `{"series":{"count":2,"lastObservedTime":"`+last+`"}}`), at(-1), false},
		{patched(event, `{"note":"news"}`), at(1), false},
		{patched(event, ``), at(1), false},
		{patched("/api/v1/nodes/n", `{"series":{"count":2,"lastObservedTime":"`+last+`"}}`), at(1), false},
	} {
		if c.of.CountsUp(c.since) != c.is {
			t.Errorf("%s %s counts up: %v", c.of.Path, c.of.Body, !c.is)
		}
	}
}

func TestOracles_O5_counts_lists_and_bursts(t *testing.T) {
	log := []Entry{
		entry("GET", "/api/v1/nodes", "limit=500", 0), entry("GET", "/api/v1/nodes", "limit=500&continue=x", 0), entry("GET", "/api/v1/nodes", "limit=1", 0),
		entry("GET", "/api/v1/pods", "watch=true&sendInitialEvents=true", 0), entry("GET", "/api/v1/nodes", "watch=true&resourceVersion=3", 0),
	}
	failed := entry("GET", "/api/v1/nodes", "limit=500", 0)
	failed.Status = 503
	expect(t, ListBudget(append(log, failed), 1))
	expect(t, ListBudget(append(log, entry("GET", "/api/v1/pods", "watch=1&sendInitialEvents=true", 0)), 1), "2 lists of pods")
	var busy []Entry
	for i := range 30 {
		busy = append(busy, entry("GET", "/api/v1/nodes", "", time.Duration(i)*100*time.Millisecond))
	}
	expect(t, RateBudget(busy, 11))
	expect(t, RateBudget(busy, 10), "11 requests within a second")
}

func TestOracles_O10_finds_the_tail_of_a_token_and_a_crash(t *testing.T) {
	token := "eyJhbGciOiJSUzI1NiIsImtpZCI6IkEifQ.payload.signature-signature-signature"
	expect(t, NoSecrets(`{"msg":"token re-read","file":"/run/token"}`, token))
	expect(t, NoSecrets("sent Bearer "+token, token), "the secret")
	expect(t, NoSecrets("==1==ERROR: AddressSanitizer: heap-use-after-free", token), "a crash")
}

func TestRequests_are_understood_as_the_server_understands_them(t *testing.T) {
	for _, c := range []struct{ method, target, verb, ns, resource, name, sub string }{
		{"GET", "/api/v1/nodes?watch=1", "watch", "", "nodes", "", ""},
		{"GET", "/api/v1/namespaces/kube-public/configmaps", "list", "kube-public", "configmaps", "", ""},
		{"GET", "/api/v1/namespaces/kube-public", "get", "", "namespaces", "kube-public", ""},
		{"PATCH", "/apis/quartermaster.io/v1alpha1/acceleratornodes/n/status", "patch", "", "acceleratornodes", "n", "status"},
		{"POST", "/api/v1/namespaces/d/pods/p/eviction", "create", "d", "pods", "p", "eviction"},
		{"DELETE", "/apis/apps/v1/namespaces/q/daemonsets", "deletecollection", "q", "daemonsets", "", ""},
		{"GET", "/version", "", "", "", "", ""},
	} {
		r := parse(c.method, c.target)
		if r.Verb != c.verb || r.Namespace != c.ns || r.Resource != c.resource || r.Name != c.name || r.Subresource != c.sub {
			t.Errorf("%s %s is read as %+v", c.method, c.target, r)
		}
	}
}

func TestOracles_S58_counts_evictions_by_the_UID_and_not_by_the_name(t *testing.T) {
	eviction := func(name, uid string, status int) Entry {
		e := entry("POST", "/api/v1/namespaces/ns/pods/"+name+"/eviction", "", 0)
		e.Body, e.Status = []byte(`{"apiVersion":"policy/v1","kind":"Eviction","deleteOptions":{"preconditions":{"uid":"`+uid+`"}}}`), status
		return e
	}
	log := []Entry{eviction("a", "1", 201), eviction("a", "2", 201), eviction("b", "3", 429), eviction("b", "3", 201), entry("POST", "/api/v1/namespaces/ns/pods", "", 0)}
	counts, wrong := EvictionsByUID(log)
	expect(t, wrong)
	if !maps.Equal(counts, map[types.UID]int{"1": 1, "2": 1, "3": 1}) {
		t.Errorf("one name came back, and one eviction was refused once: %v", counts)
	}
	blind := eviction("c", "", 201)
	blind.Body = []byte(`{"deleteOptions":{}}`)
	counts, wrong = EvictionsByUID(append(log, eviction("c", "2", 201), blind))
	expect(t, wrong, "pods/c/eviction")
	if counts["2"] != 2 {
		t.Errorf("one UID was evicted twice: %v", counts)
	}
}
