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
)

// schemas of a group as the API server tells them: names of fields, by the name of the type.
func schemas(t *testing.T, group string) map[string][]string {
	t.Helper()
	var document struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]json.RawMessage }
		}
	}
	if err := json.Unmarshal([]byte(kubectl(t, "", "get", "--raw", "/openapi/v3/"+group)), &document); err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for name, schema := range document.Components.Schemas {
		out[name[strings.LastIndex(name, ".")+1:]] = slices.Sorted(maps.Keys(schema.Properties))
	}
	return out
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

// Every name of a field that the API server has where an object describes pods is known to lint; of a name that it does not have lint says
// so, and the API server refuses it.
func TestLintKnowsTheFieldsOfTheServer(t *testing.T) {
	core, apps, batch := schemas(t, "api/v1"), schemas(t, "apis/apps/v1"), schemas(t, "apis/batch/v1")
	type object = map[string]any
	all := func(names []string, but object) object {
		out := object{}
		for _, name := range names {
			out[name] = nil
		}
		maps.Copy(out, but)
		return out
	}
	if len(core["PodSpec"]) < 35 || len(core["Container"]) < 20 || len(core["ObjectMeta"]) < 12 {
		t.Fatalf("the API server tells little: %v", core["PodSpec"])
	}
	container := all(core["Container"], object{"name": "main", "resources": all(core["ResourceRequirements"], object{})})
	ephemeral := all(core["EphemeralContainer"], object{"name": "debug"})
	metadata := all(core["ObjectMeta"], object{"name": "a"})
	delete(metadata, "labels")
	delete(metadata, "annotations")
	spec := all(core["PodSpec"], object{"containers": []any{container}, "initContainers": []any{container}, "ephemeralContainers": []any{ephemeral}})
	template := all(core["PodTemplateSpec"], object{"metadata": metadata, "spec": spec})
	job := all(batch["JobSpec"], object{"template": template})
	of := func(version, kind string, fields object) object {
		return object{"apiVersion": version, "kind": kind, "metadata": metadata, "status": nil, "spec": fields}
	}
	objects := []object{of("v1", "Pod", spec), of("v1", "ReplicationController", all(core["ReplicationControllerSpec"], object{"template": template})),
		of("batch/v1", "Job", job), of("batch/v1", "CronJob", all(batch["CronJobSpec"], object{"jobTemplate": object{"metadata": metadata, "spec": job}}))}
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"} {
		objects = append(objects, of("apps/v1", kind, all(apps[kind+"Spec"], object{"template": template})))
	}
	for _, one := range objects {
		if unknown := linted(t, one)["unknown_field"]; len(unknown) > 0 {
			t.Errorf("%s: lint does not know %v", one["kind"], unknown)
		}
	}

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
