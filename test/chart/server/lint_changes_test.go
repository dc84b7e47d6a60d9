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

// place is where a value stands; put changes it, and remove takes it out of a mapping.
type place struct {
	value  any
	put    func(any)
	remove func()
}

// places of all values below one.
func places(value any, out *[]place) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			*out = append(*out, place{value[key], func(put any) { value[key] = put }, func() { delete(value, key) }})
			places(value[key], out)
		}
	case []any:
		for i := range value {
			put := func(put any) { value[i] = put }
			*out = append(*out, place{value[i], put, func() { put(nil) }})
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
		var all []place
		places(object["spec"], &all)
		at, value := all[dice.IntN(len(all))], values[dice.IntN(len(values))]
		if at.put(value); dice.IntN(4) == 0 {
			at.remove()
		}
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

// Each number that a workload can have, where the API server takes 1 and what follows it.
const numbersOfPods = `
activeDeadlineSeconds: 600
terminationGracePeriodSeconds: 30
securityContext: {runAsUser: 600, runAsGroup: 600, fsGroup: 600, supplementalGroups: [600]}
topologySpreadConstraints: [{maxSkew: 1, minDomains: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]
affinity:
  nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: a, operator: Exists}]}}]}
  podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: zone}}]}
containers:
- name: main
  image: i
  securityContext: {runAsUser: 600, runAsGroup: 600}
  ports: [{containerPort: 600, hostPort: 600}]
  readinessProbe: {grpc: {port: 600}, initialDelaySeconds: 1, timeoutSeconds: 1, periodSeconds: 1, successThreshold: 1, failureThreshold: 1}
  livenessProbe: {exec: {command: [a]}, initialDelaySeconds: 1, timeoutSeconds: 1, periodSeconds: 1, failureThreshold: 1, terminationGracePeriodSeconds: 1}
volumes:
- name: a
  configMap: {name: a, defaultMode: 256, items: [{key: a, path: a, mode: 256}]}
- name: b
  secret: {secretName: a, defaultMode: 256}
- name: c
  projected: {defaultMode: 256, sources: [{serviceAccountToken: {path: a, expirationSeconds: 600}}]}
- name: d
  downwardAPI: {defaultMode: 256, items: [{path: a, mode: 256, fieldRef: {fieldPath: metadata.name}}]}
- name: e
  iscsi: {targetPortal: a, iqn: iqn.2001-04.com.example:a, lun: 1}
- name: f
  fc: {targetWWNs: [a], lun: 1}
`

const numbersOfOwners = `
{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 1, progressDeadlineSeconds: 600, revisionHistoryLimit: 1}}
---
{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 1, minReadySeconds: 1, revisionHistoryLimit: 1, serviceName: a, ordinals: {start: 1},
  updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}}}
---
{apiVersion: apps/v1, kind: DaemonSet, spec: {minReadySeconds: 1, revisionHistoryLimit: 1}}
---
{apiVersion: batch/v1, kind: Job, spec: {parallelism: 1, completions: 1, backoffLimit: 1, activeDeadlineSeconds: 1, ttlSecondsAfterFinished: 1}}
---
{apiVersion: batch/v1, kind: Job, spec: {completionMode: Indexed, parallelism: 1, completions: 100, backoffLimitPerIndex: 1}}
`

// workloadsOfNumbers are a Pod, and each owner of pods; numbers are looked for in their spec, and not in the template.
func workloadsOfNumbers(t *testing.T) (out []map[string]any) {
	t.Helper()
	pod, _ := podOf(t, numbersOfPods)
	out = append(out, pod)
	for _, text := range strings.Split(numbersOfOwners, "\n---\n") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			t.Fatal(err)
		}
		object["metadata"] = map[string]any{"name": "a"}
		spec, labels := object["spec"].(map[string]any), map[string]any{"app": "a"}
		template := map[string]any{"containers": []any{map[string]any{"name": "main", "image": "i"}}}
		if object["kind"] == "Job" {
			template["restartPolicy"] = "Never"
		} else {
			spec["selector"] = map[string]any{"matchLabels": labels}
		}
		spec["template"] = map[string]any{"metadata": map[string]any{"labels": labels}, "spec": template}
		out = append(out, object)
	}
	return out
}

const namesOfPods = `
hostname: a
subdomain: a
nodeName: a
priorityClassName: a
runtimeClassName: a
serviceAccountName: a
readinessGates: [{conditionType: a}]
resourceClaims: [{name: a, resourceClaimName: a}, {name: b, resourceClaimTemplateName: a}]
topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]
affinity:
  podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a}]}
`

// Of each number and each name lint takes what the API server takes: ends of ranges and kinds of names, one after the other.
func TestLintTakesTheNumbersAndNamesThatTheServerTakes_long(t *testing.T) {
	numbers := []any{-1, 0, 1, 101, 256, 512, 599, 65536, 1 << 31, 1<<32 + 1}
	names := []any{"", "A", "a.b", "a_b", "a/b", "a.b/C_d", "-a", strings.Repeat("a", 64), strings.Repeat("a.", 126) + "ab"}
	tried := map[string]int{}
	try := func(object map[string]any, spec any, what string, is func(any) bool, values []any) {
		if codes := refusals(linted(t, object)); len(codes) > 0 || !takes(t, object) {
			t.Fatalf("%v is not in order: %v", object, codes)
		}
		var all []place
		places(spec, &all)
		for _, at := range all {
			if !is(at.value) {
				continue
			}
			for _, value := range values {
				at.put(value)
				codes, isTaken := refusals(linted(t, object)), takes(t, object)
				if isTaken != (len(codes) == 0) {
					text, _ := json.Marshal(spec)
					t.Errorf("the API server takes it: %v; lint says %v: %s", isTaken, codes, text)
				}
				tried[what]++
			}
			at.put(at.value)
		}
	}
	for _, object := range workloadsOfNumbers(t) {
		try(object, object["spec"], "numbers", func(value any) bool { _, is := value.(float64); return is }, numbers)
	}
	deployment := workloadsOfNumbers(t)[1] // a Pod is also held to what its names must be names of
	template := deployment["spec"].(map[string]any)["template"].(map[string]any)
	_, spec := podOf(t, namesOfPods)
	spec["containers"] = []any{map[string]any{"name": "main", "image": "i"}}
	template["spec"] = spec
	try(deployment, spec, "names", func(value any) bool { return value == "a" }, names)
	t.Logf("tried: %v", tried)
}

// podOf is a Pod with that spec, and the spec.
func podOf(t *testing.T, text string) (pod, spec map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a"}, "spec": spec}, spec
}
