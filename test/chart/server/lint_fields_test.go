package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"quartermaster.io/test/chart"
	"quartermaster.io/test/faults/kit"
)

const fieldsFile = "../../../cli/lint/kubernetes_fields.txt"

const newestMinor = "1.37"

// A schema of OpenAPI, version 3, as far as the table needs it.
type schema struct {
	Ref                  string `json:"$ref"`
	Type, Format         string
	AllOf                []schema
	Enum                 []string
	Items                *schema
	AdditionalProperties *schema
	Properties           map[string]schema
	Required             []string
}

// what the schema refers to, or "".
func (s schema) target() string {
	if len(s.AllOf) > 0 {
		s = s.AllOf[0]
	}
	return s.Ref[strings.LastIndex(s.Ref, "/")+1:]
}

// fieldTable is the text of kubernetes_fields.txt below its comment, by type, as the API server tells it.
type fieldTable struct {
	schemas map[string]schema
	lines   map[string][]string
}

func tableOf(t *testing.T) map[string][]string {
	t.Helper()
	table := fieldTable{map[string]schema{}, map[string][]string{}}
	for _, group := range []string{"api/v1", "apis/apps/v1", "apis/batch/v1"} {
		var document struct {
			Components struct{ Schemas map[string]schema }
		}
		if err := json.Unmarshal([]byte(kubectl(t, "", "get", "--raw", "/openapi/v3/"+group)), &document); err != nil {
			t.Fatal(err)
		}
		maps.Copy(table.schemas, document.Components.Schemas)
	}
	for _, root := range []string{"core.v1.Pod", "core.v1.ReplicationController", "core.v1.PodTemplate", "core.v1.ResourceQuota", "core.v1.LimitRange",
		"core.v1.ConfigMap", "apps.v1.Deployment", "apps.v1.StatefulSet", "apps.v1.DaemonSet", "apps.v1.ReplicaSet", "batch.v1.Job", "batch.v1.CronJob"} {
		table.add("io.k8s.api." + root)
	}
	return table.lines
}

func shortName(name string) string { return name[strings.LastIndex(name, ".")+1:] }

// What OpenAPI calls required and validation takes when it is not there, and the other way round. Both were asked of API servers.
var (
	mayBeMissing = []string{"Sysctl.value", "HTTPHeader.value", "PreferredSchedulingTerm.preference", "ISCSIVolumeSource.lun", "SleepAction.seconds",
		"ScaleIOVolumeSource.secretRef", "PersistentVolumeClaimTemplate.spec", "EvictionResponder.name", "EvictionResponder.priority"}
	mustBeThere = []string{"Container.image", "EphemeralContainer.image", "ExecAction.command", "SecretVolumeSource.secretName", "ConfigMapVolumeSource.name",
		"ConfigMapKeySelector.name", "SecretKeySelector.name", "ConfigMapEnvSource.name", "SecretEnvSource.name", "ConfigMapProjection.name",
		"SecretProjection.name"}
)

func (f *fieldTable) add(name string) {
	if f.lines[shortName(name)] != nil {
		return
	}
	f.lines[shortName(name)] = []string{}
	var lines []string
	for _, field := range slices.Sorted(maps.Keys(f.schemas[name].Properties)) {
		if form := map[string]string{"status": "object", "managedFields": "[]object"}[field]; form != "" { // not looked into
			lines = append(lines, field+" "+form)
			continue
		}
		about := f.schemas[name].Properties[field]
		line, whole := field, shortName(name)+"."+field
		isRequired := slices.Contains(f.schemas[name].Required, field) && !slices.Contains(mayBeMissing, whole) && !strings.Contains(name, "alpha")
		if isRequired || slices.Contains(mustBeThere, whole) {
			line += "!"
		}
		line += " " + f.form(about)
		words := about.Enum
		if about.Items != nil {
			words = about.Items.Enum
		}
		if len(words) <= 16 {
			for _, word := range slices.Sorted(slices.Values(words)) {
				if word != "" {
					line += " " + word
				}
			}
		}
		lines = append(lines, line)
	}
	f.lines[shortName(name)] = lines
}

func (f *fieldTable) form(about schema) string {
	if target := about.target(); target != "" {
		switch {
		case strings.HasSuffix(target, ".Quantity"):
			return "quantity"
		case strings.HasSuffix(target, ".IntOrString"):
			return "int_or_text"
		case strings.HasSuffix(target, "Time"):
			return "time"
		case len(f.schemas[target].Properties) == 0:
			return "object"
		}
		f.add(target)
		return shortName(target)
	}
	switch {
	case about.Type == "string":
		return "text"
	case about.Type == "boolean":
		return "flag"
	case about.Type == "integer":
		return about.Format
	case about.Type == "array":
		return "[]" + f.form(*about.Items)
	case about.AdditionalProperties != nil:
		return "{}" + f.form(*about.AdditionalProperties)
	}
	return "object"
}

// The table that lint knows has every field of the API server, in its form. That of the newest version has no others but those that only an
// older one has. QM_GOLDEN=write makes the table of the server that runs, and keeps what only the table has.
func TestTheTableOfFieldsIsTheServers(t *testing.T) {
	text, err := os.ReadFile(fieldsFile)
	if err != nil {
		t.Fatal(err)
	}
	comment, known, current := "", map[string][]string{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "#"):
			comment += line + "\n"
		case strings.HasPrefix(line, " "):
			known[current] = append(known[current], line[1:])
		default:
			current = line
			known[current] = []string{}
		}
	}
	fieldOf := func(line string) string { return strings.TrimSuffix(strings.SplitN(line, " ", 2)[0], "!") }
	formOf := func(line string) string { return strings.SplitN(line, " ", 3)[1] }
	told := tableOf(t)
	if len(told) < 120 || len(told["PodSpec"]) < 35 {
		t.Fatalf("the API server tells little: %v", told["PodSpec"])
	}
	if os.Getenv("QM_GOLDEN") == "write" {
		out := comment
		for name, lines := range known {
			for _, line := range lines {
				if !slices.ContainsFunc(told[name], func(other string) bool { return fieldOf(other) == fieldOf(line) }) {
					told[name] = append(told[name], line)
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(told)) {
			out += name + "\n"
			slices.SortFunc(told[name], func(a, b string) int { return strings.Compare(fieldOf(a), fieldOf(b)) })
			for _, line := range told[name] {
				out += " " + line + "\n"
			}
		}
		if err := os.WriteFile(fieldsFile, []byte(out), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for name, lines := range told {
		for _, line := range lines {
			at := slices.IndexFunc(known[name], func(other string) bool { return fieldOf(other) == fieldOf(line) })
			switch {
			case at < 0:
				t.Errorf("%s has %q, and the table does not", name, line)
			case formOf(known[name][at]) != formOf(line):
				t.Errorf("%s has %q, and the table %q", name, line, known[name][at])
			case kit.Minor() == newestMinor && known[name][at] != line:
				t.Errorf("%s of the newest version has %q, and the table %q", name, line, known[name][at])
			}
		}
	}
}

// linted is what lint finds in an object: codes with their fields.
func linted(t *testing.T, object any) (out map[string][]string) {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "object.json")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	said, _ := run("", operator, "lint", "-o", "json", file)
	var findings []struct{ Code, Field string }
	if err := json.Unmarshal([]byte(said[strings.Index(said, "["):strings.LastIndex(said, "]")+1]), &findings); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	out = map[string][]string{}
	for _, finding := range findings {
		out[finding.Code] = append(out[finding.Code], finding.Field)
	}
	return out
}

// Of a name that the API server does not have lint says so, and the API server refuses it.
func TestLintKnowsTheFieldsOfTheServer(t *testing.T) {
	type object = map[string]any
	wrong := map[string]string{ // what is written in a pod, and the name that lint has to object to
		`{"metadata":{"name":"a","annotation":{}},"spec":{"containers":[{"name":"m","image":"x"}]}}`:                                    "metadata.annotation",
		`{"metadata":{"name":"a"},"spec":{"container":[],"containers":[{"name":"m","image":"x"}]}}`:                                     "spec.container",
		`{"metadata":{"name":"a"},"spec":{"containers":[{"name":"m","image":"x","resource":{}}]}}`:                                      "spec.containers[0].resource",
		`{"metadata":{"name":"a"},"spec":{"containers":[{"name":"m","image":"x","limits":{"nvidia.com/gpu":1}}]}}`:                      "spec.containers[0].limits",
		`{"metadata":{"name":"a"},"spec":{"containers":[{"name":"m","image":"x","resources":{"Limits":{"nvidia.com/gpu":1}}}]}}`:        "spec.containers[0].resources.Limits",
		`{"metadata":{"name":"a"},"spec":{"containers":[{"name":"m","image":"x","resources":{"nvidia.com/gpu":1}}]}}`:                   "spec.containers[0].resources.nvidia.com/gpu",
		`{"metadata":{"name":"a"},"Spec":{},"spec":{"containers":[{"name":"m","image":"x"}]}}`:                                          "Spec",
		`{"metadata":{"name":"a"},"spec":{"ephemeralContainers":[{"name":"d","command_":[]}],"containers":[{"name":"m","image":"x"}]}}`: "spec.ephemeralContainers[0].command_",
	}
	for text, field := range wrong {
		var pod object
		if err := json.Unmarshal([]byte(text), &pod); err != nil {
			t.Fatal(err)
		}
		maps.Copy(pod, object{"apiVersion": "v1", "kind": "Pod"})
		if unknown := linted(t, pod)["unknown_field"]; !slices.Equal(unknown, []string{field}) {
			t.Errorf("%s: lint objects to %v", text, unknown)
		}
		body, _ := json.Marshal(pod)
		out, rc := run(string(body), chart.Tool("kubernetes-*", "kubectl"), "create", "--dry-run=server", "--validate=strict", "-f", "-", "-n", "default")
		if rc == 0 || !strings.Contains(out, "unknown field") {
			t.Errorf("%s: the API server says %s", text, out)
		}
	}
	for _, wrong := range []string{`"resources":{"limits":{"nvidia.com/gpu":"1"}},"containers":[{"name":"m","image":"x"}]`,
		`"ephemeralContainers":[{"name":"d","image":"x","resources":{"limits":{"cpu":"1"}}}],"containers":[{"name":"m","image":"x"}]`} {
		body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{%s}}`, wrong)
		var pod object
		if err := json.Unmarshal([]byte(body), &pod); err != nil {
			t.Fatal(err)
		}
		codes := linted(t, pod)
		if len(codes["resources_of_pod"])+len(codes["resources_of_ephemeral"]) != 1 {
			t.Errorf("%s: lint says %v", wrong, codes)
		}
		if out, rc := run(body, chart.Tool("kubernetes-*", "kubectl"), "create", "--dry-run=server", "-f", "-", "-n", "default"); rc == 0 {
			t.Errorf("%s: the API server takes it: %s", wrong, out)
		}
	}
}
