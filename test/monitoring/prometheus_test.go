package monitoring

import (
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"quartermaster.io/test/chart"
	"sigs.k8s.io/yaml"
)

// prometheusObjects is what the chart makes for monitoring.prometheus with these values, by kind.
func prometheusObjects(t *testing.T, values string) map[string]chart.Object {
	t.Helper()
	objects, err := chart.Template(values)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]chart.Object{}
	for _, object := range objects {
		if strings.HasPrefix(object.Name, "quartermaster-prometheus") {
			out[object.Kind] = object
		}
	}
	return out
}

func TestS38_the_chart_installs_a_prometheus_on_demand_alone(t *testing.T) {
	if objects := prometheusObjects(t, ""); len(objects) != 0 {
		t.Errorf("without being asked: %v", objects)
	}
	objects := prometheusObjects(t, "{monitoring: {prometheus: {install: true, retention: 2w}}, image: {registry: registry.example/mirror}, imagePullSecrets: [{name: pull}]}")
	for _, kind := range []string{"ServiceAccount", "Role", "RoleBinding", "ConfigMap", "Service", "StatefulSet"} {
		if _, ok := objects[kind]; !ok {
			t.Errorf("no %s", kind)
		}
	}
	if len(objects) != 6 {
		t.Errorf("%d kinds", len(objects))
	}
	if rules := objects["Role"].Content["rules"]; !reflect.DeepEqual(rules, []any{map[string]any{
		"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"list", "watch"}}}) {
		t.Errorf("it may %v", rules)
	}
	text := objects["StatefulSet"].Text
	for _, part := range []string{"image: registry.example/mirror/prom/prometheus:v3.", "--storage.tsdb.retention.time=2w\n", "imagePullSecrets:\n        - name: pull\n",
		"{key: quartermaster.io/accelerator, operator: Exists, effect: NoSchedule}", "key: node-role.kubernetes.io/control-plane",
		"runAsNonRoot: true", "readOnlyRootFilesystem: true", "capabilities: {drop: [ALL]}", "allowPrivilegeEscalation: false", "emptyDir: {}"} {
		if !strings.Contains(text, part) {
			t.Errorf("the StatefulSet has no %q:\n%s", part, text)
		}
	}
	for _, part := range []string{"volumeClaimTemplates", "hostPath", "hostNetwork", "hostPID"} {
		if strings.Contains(text, part) {
			t.Errorf("the StatefulSet has %q", part)
		}
	}
}

// The rules that a switch adds for the Prometheus operator are added here as well, without that operator. Its pod reads its files when it
// starts, so other files are another pod.
func TestS38_S66_it_has_the_rules_that_are_switched_on(t *testing.T) {
	checksum := regexp.MustCompile(`checksum/files: [0-9a-f]{64}`)
	pods := map[string]string{}
	for values, switches := range map[string][]string{"": nil, "hami: true": {"hami"}, "dcgm: true": {"dcgm"}, "hami: true, dcgm: true": {"hami", "dcgm"}} {
		objects := prometheusObjects(t, "monitoring: {prometheus: {install: true}, rules: {"+values+"}}")
		wanted := map[string]string{"prometheus.yaml": "charts/quartermaster/files/prometheus.yaml", "rules.yaml": rulesPath}
		for _, name := range switches {
			wanted["rules-"+name+".yaml"] = moreRules[name]
		}
		data := objects["ConfigMap"].Content["data"].(map[string]any)
		for name, file := range wanted {
			if text, _ := data[name].(string); strings.TrimSpace(text) != strings.TrimSpace(read(t, file)) {
				t.Errorf("{%s}: %s of the ConfigMap is not the file", values, name)
			}
		}
		if len(data) != len(wanted) {
			t.Errorf("{%s}: the ConfigMap has %d files, wanted %d", values, len(data), len(wanted))
		}
		var config struct {
			RuleFiles []string `json:"rule_files"`
		}
		if err := yaml.Unmarshal([]byte(data["prometheus.yaml"].(string)), &config); err != nil {
			t.Fatal(err)
		}
		for name := range data {
			isRead := slices.ContainsFunc(config.RuleFiles, func(pattern string) bool {
				fits, err := path.Match(pattern, "/etc/prometheus/"+name)
				return err == nil && fits
			})
			if isRead != strings.HasPrefix(name, "rules") {
				t.Errorf("{%s}: %v reads %s: %v", values, config.RuleFiles, name, isRead)
			}
		}
		sum := checksum.FindString(objects["StatefulSet"].Text)
		if other, ok := pods[sum]; ok || sum == "" {
			t.Errorf("{%s}: its pod is that of {%s}: %q", values, other, sum)
		}
		pods[sum] = values
	}
}

func TestS38_series_outlive_the_pod_where_there_is_a_volume(t *testing.T) {
	text := prometheusObjects(t, "monitoring: {prometheus: {install: true, storage: 20Gi, storageClass: fast}}")["StatefulSet"].Text
	for _, part := range []string{"--storage.tsdb.retention.time=7d\n", "requests: {storage: 20Gi}", "storageClassName: \"fast\"", "whenDeleted: Delete"} {
		if !strings.Contains(text, part) {
			t.Errorf("the StatefulSet has no %q:\n%s", part, text)
		}
	}
	if strings.Contains(text, "emptyDir") {
		t.Error("the StatefulSet has an emptyDir as well")
	}
	for values, wanted := range map[string]string{
		"monitoring: {prometheus: {install: true, retention: 7}}":       "at '/monitoring/prometheus/retention': got number, want string",
		"monitoring: {prometheus: {install: true, retention: forever}}": "at '/monitoring/prometheus/retention': 'forever' does not match pattern",
		"monitoring: {prometheus: {install: true, storage: much}}":      "at '/monitoring/prometheus/storage': 'much' does not match pattern",
		"monitoring: {prometheus: {enabled: true}}":                     "at '/monitoring/prometheus': additional properties 'enabled' not allowed",
	} {
		if _, err := chart.Template(values); err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("%s: %v", values, err)
		}
	}
}

// promtool reads the configuration; its rule file has another place in the pod.
func TestS38_promtool_accepts_the_configuration(t *testing.T) {
	promtool(t, "check", "config", "--syntax-only", "../../charts/quartermaster/files/prometheus.yaml")
}
