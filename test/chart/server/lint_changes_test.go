package server

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"quartermaster.io/test/chart"
)

// wholeWorkloads are the objects of the golden cases in which lint finds nothing, and which the API server takes.
func wholeWorkloads(t *testing.T) (out []map[string]any) {
	t.Helper()
	text, err := os.ReadFile("../../golden/lint/cases.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(text), "\n== ") {
		head, body, _ := strings.Cut(part, "\n")
		var object map[string]any
		if !strings.HasSuffix(head, "-> 0 fine") || strings.Contains(body, "\n---") || yaml.Unmarshal([]byte(body), &object) != nil {
			continue
		}
		kinds := []string{"Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob"}
		if kind, _ := object["kind"].(string); slices.Contains(kinds, kind) && takes(t, object) {
			out = append(out, object)
		}
	}
	if len(out) < 10 {
		t.Fatalf("%d whole workloads", len(out))
	}
	return out
}

func takes(t *testing.T, object map[string]any) bool {
	t.Helper()
	metadata, _ := object["metadata"].(map[string]any)
	delete(metadata, "namespace")
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	_, rc := run(string(text), chart.Tool("kubernetes-*", "kubectl"), "create", "--dry-run=server", "--validate=strict", "-f", "-", "-n", "default")
	return rc == 0
}

// Codes of what the API server refuses (docs/cli.md); the others are of declarations, plugins and cards.
var refusalCodes = strings.Fields(`not_a_string not_a_mapping name_malformed name_long spec_unreadable unknown_field wrong_form field_missing
	api_version_missing selector_mismatch selector_generated label_key_malformed label_value_malformed containers_missing container_twice
	part_name_malformed restart_policy restart_policy_missing operator_unknown value_unknown claim_missing volume_missing item_twice
	refused_together choice_missing choices_many request_above_limit resource_name resources_of_pod resources_of_ephemeral amount_malformed amount_fraction amount_negative
	request_without_limit request_differs`)

func refusals(found map[string][]string) (out []string) {
	for code := range found {
		if slices.Contains(refusalCodes, code) {
			out = append(out, code)
		}
	}
	return out
}

// places of all values below one, as functions that change them: take them out, or put another value there.
func places(value any, out *[]func(put any, remove bool)) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			*out = append(*out, func(put any, remove bool) {
				if remove {
					delete(value, key)
				} else {
					value[key] = put
				}
			})
			places(value[key], out)
		}
	case []any:
		for i := range value {
			*out = append(*out, func(put any, _ bool) { value[i] = put })
			places(value[i], out)
		}
	}
}

// One random change in an object that both take: lint refuses none that the API server takes, and little that the API server refuses passes.
// QM_SEED chooses the changes.
func TestLintRefusesNothingThatTheServerTakes_long(t *testing.T) {
	seed, _ := strconv.ParseUint(os.Getenv("QM_SEED"), 10, 64)
	dice := rand.New(rand.NewPCG(seed, 1))
	values := []any{nil, "", -1, 0, 1.5, true, "x", []any{}, map[string]any{}, []any{"a"}, map[string]any{"a": "b"}, "A_b", strings.Repeat("a", 70),
		99999999999, "1Gi", "30%", " 1", "Always", []any{map[string]any{}}, []any{nil}}
	refused, passed, taken := 0, []string{}, 0
	objects := wholeWorkloads(t)
	for range 400 {
		whole, _ := json.Marshal(objects[dice.IntN(len(objects))])
		var object map[string]any
		if err := json.Unmarshal(whole, &object); err != nil {
			t.Fatal(err)
		}
		var all []func(any, bool)
		places(object["spec"], &all)
		all[dice.IntN(len(all))](values[dice.IntN(len(values))], dice.IntN(4) == 0)
		text, _ := json.Marshal(object)
		codes, isTaken := refusals(linted(t, object)), takes(t, object)
		switch {
		case isTaken && len(codes) > 0:
			t.Errorf("the API server takes what lint refuses with %v: %s", codes, text)
		case isTaken:
			taken++
		case len(codes) == 0:
			passed = append(passed, string(text))
		default:
			refused++
		}
	}
	t.Logf("QM_SEED=%d: both take %d and refuse %d; lint alone takes %d", seed, taken, refused, len(passed))
	if refused < 100 || len(passed) > refused/10 {
		t.Errorf("lint takes what the API server refuses: %s", strings.Join(passed, "\n"))
	}
}
