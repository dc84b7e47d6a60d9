package monitoring

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"quartermaster.io/test/chart"
	"sigs.k8s.io/yaml"
)

// rendered is the rules of an object that the chart makes: a PrometheusRule, or the file of the chart's own Prometheus.
func rendered(t *testing.T, values string) (out []ruleFile) {
	t.Helper()
	objects, err := chart.Template(values)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		var text []byte
		switch {
		case object.Kind == "PrometheusRule":
			text, err = yaml.Marshal(object.Content["spec"])
		case object.Kind == "ConfigMap" && object.Name == "quartermaster-prometheus":
			text = []byte(object.Content["data"].(map[string]any)["rules.yaml"].(string))
		default:
			continue
		}
		var file ruleFile
		if err == nil {
			err = yaml.Unmarshal(text, &file)
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, file)
	}
	return out
}

// anchors are those that a Markdown page has for its headings: small letters, and - for a blank.
func anchors(t *testing.T, path string) (out []string) {
	for _, match := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(read(t, path), -1) {
		name := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(match[1]), "")
		out = append(out, strings.ReplaceAll(name, " ", "-"))
	}
	return out
}

// variables are those of each dashboard of the chart, by its uid.
func variables(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(chart.Root(), "charts/quartermaster/files/dashboards/*.json"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var dashboard struct {
			UID        string
			Templating struct{ List []struct{ Name string } }
		}
		if err := yaml.Unmarshal(text, &dashboard); err != nil {
			t.Fatal(err)
		}
		for _, variable := range dashboard.Templating.List {
			out[dashboard.UID] = append(out[dashboard.UID], variable.Name)
		}
	}
	return out
}

// Checks the links of one alert.
func links(t *testing.T, r rule, headings []string, dashboards map[string][]string) {
	t.Helper()
	page, anchor, _ := strings.Cut(r.Annotations["runbook_url"], "#")
	if page != "https://wiki.example.com/a$1/alerts.md?plain=1" || anchor != strings.ToLower(r.Alert) || !slices.Contains(headings, anchor) {
		t.Errorf("%s: its runbook_url is %q", r.Alert, r.Annotations["runbook_url"])
	}
	dashboard, ours := strings.CutPrefix(r.Annotations["dashboard_url"], "https://grafana.example.com/team/d/")
	uid, query, _ := strings.Cut(dashboard, "?")
	if !ours || dashboards[uid] == nil {
		t.Errorf("%s: its dashboard_url is %q", r.Alert, r.Annotations["dashboard_url"])
	}
	for _, choice := range strings.FieldsFunc(query, func(c rune) bool { return c == '&' }) {
		match := regexp.MustCompile(`^var-([a-z]+)=\{\{ \$labels\.([a-z]+) \}\}$`).FindStringSubmatch(choice)
		if match == nil || match[1] != match[2] || !slices.Contains(dashboards[uid], match[1]) {
			t.Errorf("%s: the dashboard %s has no such choice: %q", r.Alert, uid, choice)
		}
	}
}

// At 3 a.m. an alert is a message with two links. Both are made of values, and lead to what exists.
func TestS34_each_alert_links_to_its_section_and_to_its_dashboard(t *testing.T) {
	const urls = "runbookUrl: 'https://wiki.example.com/a$1/alerts.md?plain=1', grafanaUrl: https://grafana.example.com/team/"
	headings, dashboards := anchors(t, "docs/alerts.md"), variables(t)
	for _, switched := range []string{"rules: {enabled: true}", "prometheus: {install: true}"} {
		files := rendered(t, "monitoring: {"+switched+", "+urls+"}")
		if len(files) != 1 {
			t.Fatalf("%s: %d files of rules", switched, len(files))
		}
		plain := parse[ruleFile](t, rulesPath)
		for i, group := range files[0].Groups {
			for j, r := range group.Rules {
				if r.Alert != "" {
					links(t, r, headings, dashboards)
					delete(r.Annotations, "runbook_url")
					delete(r.Annotations, "dashboard_url")
				}
				if !reflect.DeepEqual(r, plain.Groups[i].Rules[j]) {
					t.Errorf("%s: besides its links %s%s is not what the file has: %+v", switched, r.Alert, r.Record, r)
				}
			}
		}
		if without := rendered(t, "monitoring: {"+switched+"}"); !reflect.DeepEqual(without, []ruleFile{plain}) {
			t.Errorf("%s: without addresses the rules are not the file's", switched)
		}
	}
	for value, wrong := range map[string]string{"runbookUrl": "https://wiki/#top", "grafanaUrl": "grafana.example.com"} {
		if _, err := chart.Template("monitoring: {" + value + ": '" + wrong + "'}"); err == nil || !strings.Contains(err.Error(), value) {
			t.Errorf("%s %s: %v", value, wrong, err)
		}
	}
}

// What an agent says of itself has no node. Its monitor and the chart's own Prometheus add it, because alerts name it.
func TestS34_series_of_an_agent_have_its_node(t *testing.T) {
	objects, err := chart.Template("{agent: {enabled: true, metrics: {port: 9402, podMonitor: {enabled: true}}}, monitoring: {prometheus: {install: true}}}")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, object := range objects {
		agent := object.Kind == "PodMonitor" && object.Name == "quartermaster-agent"
		own := object.Kind == "ConfigMap" && object.Name == "quartermaster-prometheus"
		if !agent && !own {
			continue
		}
		found++
		if !regexp.MustCompile(`__meta_kubernetes_pod_node_name\]?[,\n]\s*target_?[lL]abel: node`).MatchString(object.Text) {
			t.Errorf("%s %s adds no node", object.Kind, object.Name)
		}
	}
	if found != 2 {
		t.Errorf("%d of 2 objects", found)
	}
}
