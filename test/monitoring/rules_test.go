// Package monitoring: the rules that the chart brings for Prometheus. promtool judges them; what it cannot see is compared here:
// that each alert is tested and explained, and that no rule reads a series that does not exist.
package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"quartermaster.io/test/chart"
	"sigs.k8s.io/yaml"
)

type rule struct {
	Record, Alert, Expr, For string
	Labels, Annotations      map[string]string
}

type ruleFile struct {
	Groups []struct {
		Name  string
		Rules []rule
	}
}

// unitTest is a case of rules_test.yaml or rules_days_test.yaml. Its name is the alert that it is about.
type unitTest struct {
	Name       string
	PromqlTest []struct {
		Expr       string
		EvalTime   string                    `json:"eval_time"`
		ExpSamples []struct{ Labels string } `json:"exp_samples"`
	} `json:"promql_expr_test"`
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(chart.Root(), path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func parse[T any](t *testing.T, path string) (out T) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(read(t, path)), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

const rulesPath = "charts/quartermaster/files/rules.yaml"

func rules(t *testing.T) (out []rule) {
	t.Helper()
	for _, group := range parse[ruleFile](t, rulesPath).Groups {
		out = append(out, group.Rules...)
	}
	return out
}

func alerts(t *testing.T) []rule {
	return slices.DeleteFunc(rules(t), func(r rule) bool { return r.Alert == "" })
}

func promtool(t *testing.T, arguments ...string) {
	t.Helper()
	cmd := exec.Command(chart.Tool("prometheus-*", "promtool"), arguments...)
	cmd.Dir = filepath.Join(chart.Root(), "test/monitoring")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %v: %v\n%s", arguments, err, out)
	}
}

// moreRules are what a switch adds to the rules, by the name of the switch.
var moreRules = map[string]string{"hami": "charts/quartermaster/files/rules-hami.yaml", "dcgm": "charts/quartermaster/files/rules-dcgm.yaml"}

func TestS34_promtool_accepts_the_rules(t *testing.T) {
	for _, path := range []string{rulesPath, moreRules["hami"], moreRules["dcgm"]} {
		promtool(t, "check", "rules", "--lint=all", "--lint-fatal", filepath.Join(chart.Root(), path))
	}
}

func TestS34_each_rule_does_what_its_unit_test_says(t *testing.T) {
	promtool(t, "test", "rules", "rules_test.yaml", "rules_days_test.yaml", "rules_hami_test.yaml", "rules_dcgm_test.yaml", "rules_dcgm_values_test.yaml")
}

// Each record of a switch has an answer in each of its unit tests, and a row in docs/metrics.md. Records of our own series alone, which do not
// depend on the form of the other product's, have theirs in the tests of values.
func TestS66_S75_names_of_other_products_are_tested_and_documented(t *testing.T) {
	documentation := read(t, "docs/metrics.md")
	for name, path := range moreRules {
		tests := parse[struct{ Tests []unitTest }](t, "test/monitoring/rules_"+name+"_test.yaml").Tests
		if len(tests) == 0 {
			t.Errorf("no unit tests of %s", path)
		}
		for _, group := range parse[ruleFile](t, path).Groups {
			for _, r := range group.Rules {
				if !strings.Contains(documentation, "`"+r.Record+"`") {
					t.Errorf("docs/metrics.md does not have %s", r.Record)
				}
				asked := tests
				if strings.HasPrefix(r.Record, "card:quartermaster_") {
					asked = parse[struct{ Tests []unitTest }](t, "test/monitoring/rules_"+name+"_values_test.yaml").Tests
				}
				for _, one := range asked {
					answered := false
					for _, step := range one.PromqlTest {
						answered = answered || (step.Expr == r.Record && len(step.ExpSamples) > 0)
					}
					if !answered {
						t.Errorf("%q has no answer to %s", one.Name, r.Record)
					}
				}
			}
		}
	}
}

func TestS66_S75_names_of_other_products_come_on_demand(t *testing.T) {
	for name, path := range moreRules {
		objects, err := chart.Template("monitoring: {rules: {enabled: true, " + name + ": true}}")
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, object := range objects {
			if object.Kind != "PrometheusRule" {
				continue
			}
			found = append(found, object.Name)
			if object.Name == "quartermaster-"+name && !reflect.DeepEqual(object.Content["spec"], any(parse[map[string]any](t, path))) {
				t.Errorf("the spec of %s is not the file", object.Name)
			}
		}
		if !slices.Equal(found, []string{"quartermaster", "quartermaster-" + name}) {
			t.Errorf("%s: the rules %v", name, found)
		}
		if _, err := chart.Template("monitoring: {rules: {" + name + ": true}}"); err == nil || !strings.Contains(err.Error(), "monitoring.rules."+name+" is true, but monitoring.rules.enabled and monitoring.prometheus.install are false") {
			t.Errorf("%s without the rules: %v", name, err)
		}
	}
}

// The alert that the manual of the Alauda Container Platform names, word for word.
func TestS34_gpu_alloc_conflict_is_the_alert_of_the_manual(t *testing.T) {
	for _, r := range alerts(t) {
		if r.Alert != "GPUAllocConflict" {
			continue
		}
		if r.Expr != "rate(paddle_gpu_malloc_failed_total[5m]) > 0" || r.For != "" || r.Labels["severity"] != "critical" ||
			r.Annotations["summary"] != "GPU Memory Allocation Conflict Alert" {
			t.Errorf("it is %+v", r)
		}
		return
	}
	t.Error("there is none")
}

// Fires, is quiet before, and is quiet again.
func TestS34_each_alert_has_a_unit_test_in_which_it_fires_and_ends(t *testing.T) {
	cases := map[string]unitTest{}
	for _, file := range []string{"rules_test.yaml", "rules_days_test.yaml"} {
		for _, one := range parse[struct{ Tests []unitTest }](t, "test/monitoring/"+file).Tests {
			cases[one.Name] = one
		}
	}
	label := regexp.MustCompile(`\$labels\.([a-z_]+)`)
	for _, r := range alerts(t) {
		var shape, firing string
		for _, step := range cases[r.Alert].PromqlTest {
			if !strings.Contains(step.Expr, `alertname="`+r.Alert+`"`) {
				t.Errorf("%s: a step is about something else: %s", r.Alert, step.Expr)
			}
			if len(step.ExpSamples) == 0 {
				shape += "0"
				continue
			}
			shape += "1"
			firing = step.ExpSamples[0].Labels
		}
		if !regexp.MustCompile(`^0+1+0+$`).MatchString(shape) {
			t.Errorf("%s: quiet, firing, quiet again is wanted, and the steps are %q", r.Alert, shape)
		}
		// A label that the alert does not have would be an empty word in its text, or an empty choice of its dashboard.
		for _, match := range label.FindAllStringSubmatch(r.Annotations["summary"]+r.Annotations["description"]+r.Annotations["dashboard"], -1) {
			if !strings.Contains(firing, " "+match[1]+`="`) {
				t.Errorf("%s: its text names the label %s, which the alert does not have: %s", r.Alert, match[1], firing)
			}
		}
	}
}

// docs/alerts.md has a section per alert, with its severity and the three answers, and none of an alert that does not exist.
func TestS34_each_alert_has_a_section_for_the_person_on_call(t *testing.T) {
	sections := map[string]string{}
	var names []string
	for _, part := range strings.Split(read(t, "docs/alerts.md"), "\n### ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		text, _, _ = strings.Cut(text, "\n## ")
		sections[name] = text
		names = append(names, name)
	}
	var wanted []string
	for _, r := range alerts(t) {
		wanted = append(wanted, r.Alert)
		text := sections[r.Alert]
		if !strings.HasPrefix(strings.TrimSpace(text), r.Labels["severity"]+", ") {
			t.Errorf("docs/alerts.md, %s: does not begin with its severity %s", r.Alert, r.Labels["severity"])
		}
		for _, answer := range []string{"**Means:** ", "**Look:** ", "**Do:** "} {
			if strings.Count(text, answer) != 1 {
				t.Errorf("docs/alerts.md, %s: no %s", r.Alert, answer)
			}
		}
		if r.Annotations["runbook"] != "quartermaster explain alert "+r.Alert+" (docs/alerts.md#"+strings.ToLower(r.Alert)+")" {
			t.Errorf("%s: its runbook is %q", r.Alert, r.Annotations["runbook"])
		}
		if !regexp.MustCompile(`^quartermaster-[a-z]+(\?.+)?$`).MatchString(r.Annotations["dashboard"]) {
			t.Errorf("%s: its dashboard is %q", r.Alert, r.Annotations["dashboard"])
		}
		if len(r.Annotations["summary"]) == 0 || len(r.Annotations["summary"]) > 100 || !strings.HasSuffix(r.Annotations["description"], ".") {
			t.Errorf("%s: summary of one short line and a description are wanted: %q", r.Alert, r.Annotations)
		}
	}
	if !reflect.DeepEqual(names, wanted) {
		t.Errorf("docs/alerts.md has the sections\n%v, and the rules are\n%v", names, wanted)
	}
}

// table is the names in the first column of the tables of docs/metrics.md.
func table(t *testing.T) (out []string) {
	for _, match := range regexp.MustCompile("(?m)^\\| `([a-z_:]+)` \\|").FindAllStringSubmatch(read(t, "docs/metrics.md"), -1) {
		out = append(out, match[1])
	}
	return out
}

func TestS75_rules_read_only_series_that_exist(t *testing.T) {
	known := table(t)
	var recorded []string
	for _, r := range rules(t) {
		for _, name := range regexp.MustCompile(`quartermaster_[a-z_]+`).FindAllString(regexp.MustCompile(`[a-z]+:[a-z_:]+`).ReplaceAllString(r.Expr, ""), -1) {
			if !slices.Contains(known, strings.TrimSuffix(name, "_bucket")) {
				t.Errorf("%s%s reads %s, which docs/metrics.md does not have", r.Record, r.Alert, name)
			}
		}
		if r.Record != "" && !slices.Contains(recorded, r.Record) {
			recorded = append(recorded, r.Record)
		}
	}
	var documented []string
	for _, name := range known {
		if strings.Contains(name, ":") || strings.HasPrefix(name, "workload_") || strings.HasPrefix(name, "container_") {
			documented = append(documented, name)
		}
	}
	if !reflect.DeepEqual(documented, recorded) {
		t.Errorf("docs/metrics.md has the recorded series\n%v, and the rules record\n%v", documented, recorded)
	}
}

// Helm would take {{ $labels }} for its own. The object has the file as it is, and exists only on demand.
func TestS34_the_chart_brings_the_rules_as_they_are(t *testing.T) {
	for values, wanted := range map[string]bool{"": false, "monitoring: {rules: {enabled: true, labels: {release: prometheus}}}": true} {
		objects, err := chart.Template(values)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, object := range objects {
			if object.Kind != "PrometheusRule" {
				continue
			}
			found = true
			if is := parse[map[string]any](t, rulesPath); !reflect.DeepEqual(object.Content["spec"], any(is)) {
				t.Error("its spec is not the file")
			}
			labels := object.Content["metadata"].(map[string]any)["labels"].(map[string]any)
			if labels["release"] != "prometheus" || labels["app.kubernetes.io/name"] != "quartermaster" {
				t.Errorf("its labels are %v", labels)
			}
		}
		if found != wanted {
			t.Errorf("%q: a PrometheusRule: %v", values, found)
		}
	}
	if _, err := chart.Template("monitoring: {rules: {enable: true}}"); err == nil || !strings.Contains(err.Error(), "additional properties 'enable' not allowed") {
		t.Errorf("a value that does not exist: %v", err)
	}
}
