package kit

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Each oracle answers with what is wrong, one line a violation; nothing is wrong when the answer is empty. They are tested against
// histories that are known to be bad (oracles_test.go): an oracle that cannot fail proves nothing.

// Silent is the second half of O1, eventually stable reconciliation: of these requests none may be a write. A lease is no write, and a
// checkpoint of the time of cards is none either: it goes by the clock, and by pods that ended 10 s ago.
func Silent(log []Entry) (wrong []string) {
	for _, e := range log {
		if e.Write() && e.Resource != Usages.Resource {
			wrong = append(wrong, "O1 a settled operator wrote: "+e.String())
		}
	}
	return
}

// SilentAudit is the same from the server's own book.
func SilentAudit(log []AuditEvent) (wrong []string) {
	for _, e := range log {
		if e.Write() && e.ObjectRef.Resource != Usages.Resource {
			wrong = append(wrong, "O1 a settled operator wrote: "+e.String())
		}
	}
	return
}

// OnlyLeaders is O3: no operator writes later than `deadline` after its own last renewal of the lease was answered. `names` are those
// of the proxies; `log` is in any order. Requests are judged by the moment the server received them, for then they left the operator.
func OnlyLeaders(log []AuditEvent, names []string, deadline time.Duration) (wrong []string) {
	log = slices.Clone(log)
	sort.Slice(log, func(i, j int) bool { return log[i].Received.Before(log[j].Received) })
	for _, name := range names {
		var renewed time.Time
		for _, e := range log {
			if !e.By(name) || !e.Mutating() {
				continue
			}
			if e.ObjectRef.Resource == "leases" {
				if e.ResponseStatus.Code < 300 {
					renewed = e.Received
				}
				continue
			}
			if late := e.Received.Sub(renewed); renewed.IsZero() {
				wrong = append(wrong, fmt.Sprintf("O3 %s wrote without ever holding the lease: %s", name, e))
			} else if late > deadline {
				wrong = append(wrong, fmt.Sprintf("O3 %s wrote %s after its last renewal: %s", name, late.Round(time.Millisecond), e))
			}
		}
	}
	return
}

// ListBudget is O5: at most `max` lists per resource among these requests. A watch that asks for the initial state counts as a list; a
// list that was not answered with 200 does not, for trying again is the work of the back-off, which RateBudget bounds. Nor does the question
// which pods are on one node: it fills no cache.
func ListBudget(log []Entry, max int) (wrong []string) {
	lists := map[string]int{}
	for _, e := range log {
		first := e.Query.Get("continue") == "" && e.Query.Get("limit") != "1" // one object is a question of rights, not a list
		if e.Status != 200 || strings.HasPrefix(e.Query.Get("fieldSelector"), "spec.nodeName=") {
			continue
		}
		if (e.Verb == "list" && first) || (e.Verb == "watch" && e.Query.Get("sendInitialEvents") == "true") {
			lists[e.Resource+"?"+e.Query.Get("labelSelector")]++
		}
	}
	for resource, n := range lists {
		if n > max {
			wrong = append(wrong, fmt.Sprintf("O5 %d lists of %s, allowed %d", n, resource, max))
		}
	}
	sort.Strings(wrong)
	return
}

// RateBudget is O5: in no window of a second more than `max` requests.
func RateBudget(log []Entry, max int) (wrong []string) {
	log = slices.Clone(log)
	sort.Slice(log, func(i, j int) bool { return log[i].At.Before(log[j].At) })
	for from, to := 0, 0; to < len(log); to++ {
		for log[to].At.Sub(log[from].At) > time.Second {
			from++
		}
		if n := to - from + 1; n > max {
			return []string{fmt.Sprintf("O5 %d requests within a second, allowed %d, the last one %s", n, max, log[to])}
		}
	}
	return
}

// AliveOrExplained is O7: the process runs, or ended with a code that is not 0 and one line that says why.
func AliveOrExplained(o *Operator) (wrong []string) {
	code, gone := o.Exited(0)
	if !gone {
		return nil
	}
	last := o.LogTail(1)
	if code <= 0 || code >= 128 {
		wrong = append(wrong, fmt.Sprintf("O7 operator %s ended with code %d: %s", o.Name, code, o.LogTail(8)))
	}
	if strings.TrimSpace(last) == "" {
		wrong = append(wrong, fmt.Sprintf("O7 operator %s ended with code %d and said nothing", o.Name, code))
	}
	return
}

// crashes are words that no log of a healthy process has.
var crashes = regexp.MustCompile(`AddressSanitizer|UndefinedBehaviorSanitizer|runtime error:|LeakSanitizer|terminate called|Assertion .* failed|stack smashing|panic:`)

// NoSecrets is O10, and looks for crash reports at the same time: none of the secrets, nor any long part of one, is in the log.
func NoSecrets(log string, secrets ...string) (wrong []string) {
	for _, secret := range secrets {
		part := secret
		if len(part) > 24 { // half of a token is a leak too; the head of a JWT is the same for all
			part = secret[len(secret)-24:]
		}
		if part != "" && strings.Contains(log, part) {
			wrong = append(wrong, fmt.Sprintf("O10 the log holds the secret that ends in %q", part[max(0, len(part)-6):]))
		}
	}
	for _, line := range strings.Split(log, "\n") {
		if crashes.MatchString(line) {
			wrong = append(wrong, "O7 the log holds a crash: "+line)
		}
	}
	return
}

// EvictionsByUID is how often each pod was evicted, by the UID that the evictor demanded: a name may come back. `wrong` has the granted evictions
// that demanded none, so that they may have met a successor.
func EvictionsByUID(log []Entry) (counts map[types.UID]int, wrong []string) {
	counts = map[types.UID]int{}
	for _, e := range log {
		if e.Verb != "create" || e.Resource != "pods" || e.Subresource != "eviction" || e.Status != 201 {
			continue
		}
		var eviction policyv1.Eviction
		err := json.Unmarshal(e.Body, &eviction)
		if options := eviction.DeleteOptions; err != nil || options == nil || options.Preconditions == nil || options.Preconditions.UID == nil {
			wrong = append(wrong, fmt.Sprintf("%s demands no UID: %v", e, err))
			continue
		}
		counts[*eviction.DeleteOptions.Preconditions.UID]++
	}
	return counts, wrong
}
