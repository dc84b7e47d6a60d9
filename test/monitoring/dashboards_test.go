package monitoring

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	sdk "github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	tables "github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"quartermaster.io/charts/dashboards"
	"quartermaster.io/test/chart"
	"quartermaster.io/test/monitoring/grafana"
	"sigs.k8s.io/yaml"
)

func shipped(t *testing.T) []grafana.Dashboard {
	t.Helper()
	out, err := grafana.Dashboards()
	if err != nil || len(out) == 0 {
		t.Fatalf("%d dashboards: %v", len(out), err)
	}
	return out
}

// The files in the chart are made of charts/dashboards; QM_GOLDEN=write test/go_test.sh monitoring writes them.
func TestS35_the_dashboards_in_the_chart_are_those_of_the_source(t *testing.T) {
	made, err := dashboards.Files()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(chart.Root(), grafana.Folder)
	if os.Getenv("QM_GOLDEN") == "write" {
		for name, text := range made {
			if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, one := range shipped(t) {
		if !bytes.Equal(one.Text, made[one.Name+".json"]) {
			t.Errorf("%s/%s.json is not what charts/dashboards says: QM_GOLDEN=write test/go_test.sh monitoring", grafana.Folder, one.Name)
		}
		delete(made, one.Name+".json")
	}
	if len(made) > 0 {
		t.Errorf("not in the chart: %v", made)
	}
}

// strict is what the SDK's schema does not know, or misses. An error without findings is none.
func strict(text []byte) error {
	var found cog.BuildErrors
	err := new(sdk.Dashboard).UnmarshalJSONStrict(text)
	if errors.As(err, &found) && len(found) == 0 {
		return nil
	}
	return err
}

func TestS35_every_dashboard_is_strictly_of_grafanas_schema(t *testing.T) {
	known := cog.NewRuntime()
	known.RegisterPanelcfgVariant(stat.VariantConfig())
	known.RegisterPanelcfgVariant(tables.VariantConfig())
	known.RegisterPanelcfgVariant(timeseries.VariantConfig())
	known.RegisterDataqueryVariant(prometheus.VariantConfig())
	for _, one := range shipped(t) {
		if err := strict(one.Text); err != nil {
			t.Errorf("%s: %v", one.Name, err)
		}
		for _, field := range []string{"graphTooltip", "fieldConfig", "allValue", "legendFormat", "quick_ranges"} {
			wrong := bytes.Replace(one.Text, []byte(`"`+field+`":`), []byte(`"`+field+`s":`), 1)
			if !bytes.Equal(wrong, one.Text) && strict(wrong) == nil {
				t.Errorf("%s: the schema takes a wrong name of %s", one.Name, field)
			}
		}
	}
}

func TestS37_ranges_and_refresh_are_those_people_ask_for(t *testing.T) {
	for _, one := range shipped(t) {
		var ranges []string
		for _, quick := range one.Timepicker.QuickRanges {
			if quick.To != "now" {
				t.Errorf("%s: a range ends at %s", one.Name, quick.To)
			}
			ranges = append(ranges, strings.TrimPrefix(quick.From, "now-"))
		}
		if !reflect.DeepEqual(ranges, []string{"30m", "1h", "6h", "12h", "24h", "2d", "7d"}) {
			t.Errorf("%s: ranges %v", one.Name, ranges)
		}
		if !slices.Contains(one.Timepicker.RefreshIntervals, one.Refresh) {
			t.Errorf("%s: it is refreshed every %q; the choices are %v", one.Name, one.Refresh, one.Timepicker.RefreshIntervals)
		}
	}
}

func TestS36_variables_choose_type_model_node_namespace_and_pod(t *testing.T) {
	wanted := map[string][]string{"fleet": {"type", "model"}, "nodes": {"type", "model", "node"}, "pods": {"type", "model", "node", "namespace", "pod"},
		"namespaces": {"type", "model", "namespace", "price"}, "capacity": {"type", "model"}, "operator": nil}
	for _, one := range shipped(t) {
		var names []string
		for _, variable := range one.Templating.List {
			if variable.Name == "datasource" {
				continue
			}
			names = append(names, variable.Name)
			if variable.Name != "price" && (!variable.Multi || !variable.IncludeAll || variable.AllValue != ".*") {
				t.Errorf("%s: of %s several can be chosen, or all: %+v", one.Name, variable.Name, variable)
			}
			if variable.Name == "type" && !strings.HasPrefix(variable.Query, "pGPU : pgpu, GPU-Manager (vGPU) : vgpu, MPS : mps, MIG : mig, ") {
				t.Errorf("%s: the types are %s", one.Name, variable.Query)
			}
			if !strings.Contains(string(one.Text), "$"+variable.Name) {
				t.Errorf("%s: nothing reads %s", one.Name, variable.Name)
			}
		}
		if !reflect.DeepEqual(names, wanted[one.Name]) {
			t.Errorf("%s has the variables %v", one.Name, names)
		}
		delete(wanted, one.Name)
	}
	if len(wanted) > 0 {
		t.Errorf("there is no dashboard %v", wanted)
	}
}

// What Grafana would show badly, or not at all.
func TestS35_every_panel_is_complete(t *testing.T) {
	builtIn := []string{"__range", "__rate_interval"}
	for _, one := range shipped(t) {
		known := slices.Clone(builtIn)
		for _, variable := range one.Templating.List {
			known = append(known, variable.Name)
		}
		titles, ids, taken := map[string]bool{}, map[int]bool{}, map[[2]int]string{}
		for _, panel := range one.Panels {
			if panel.Type == "row" {
				continue
			}
			place := one.Name + " / " + panel.Title
			if panel.Title == "" || titles[panel.Title] || ids[panel.ID] || !strings.HasSuffix(panel.Description, ".") {
				t.Errorf("%s: a title and an ID of its own and a description are wanted", place)
			}
			titles[panel.Title], ids[panel.ID] = true, true
			if panel.FieldConfig.Defaults.Unit == "" || len(panel.Targets) == 0 || panel.Datasource.UID != "${datasource}" {
				t.Errorf("%s: unit %q, %d queries, data source %q", place, panel.FieldConfig.Defaults.Unit, len(panel.Targets), panel.Datasource.UID)
			}
			if panel.Type == "timeseries" && !panel.Options.Legend.ShowLegend {
				t.Errorf("%s: no one can see which line is which", place)
			}
			for x := panel.GridPos.X; x < panel.GridPos.X+panel.GridPos.W; x++ {
				for y := panel.GridPos.Y; y < panel.GridPos.Y+panel.GridPos.H; y++ {
					if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
						t.Fatalf("%s lies over %q at column %d, line %d", place, other, x, y)
					}
					taken[[2]int{x, y}] = place
				}
			}
			for _, target := range panel.Targets {
				for _, name := range regexp.MustCompile(`\$([a-z_]+)`).FindAllStringSubmatch(target.Expr+target.LegendFormat+panel.Title, -1) {
					if !slices.Contains(known, name[1]) {
						t.Errorf("%s: no variable %s", place, name[0])
					}
				}
				if target.Datasource.UID != "${datasource}" || target.LegendFormat == "" || target.Instant == target.Range {
					t.Errorf("%s: query %+v", place, target)
				}
			}
			if panel.Repeat != "" && !slices.Contains(known, panel.Repeat) {
				t.Errorf("%s is repeated by %s, which is no variable", place, panel.Repeat)
			}
		}
	}
}

// docs/dashboards.md has a section per dashboard, which begins with the question that the dashboard answers.
func TestS35_each_dashboard_has_a_section(t *testing.T) {
	documentation := read(t, "docs/dashboards.md")
	for _, one := range shipped(t) {
		title := strings.TrimPrefix(one.Title, "Quartermaster / ")
		question, _, _ := strings.Cut(one.Description, " Choose several")
		question, _, _ = strings.Cut(question, " Card-hours")
		question, _, _ = strings.Cut(question, " What is about")
		if !strings.Contains(documentation, "\n## "+title+"\n\n"+question+"\n") {
			t.Errorf("docs/dashboards.md has no section %q with %q", title, question)
		}
	}
}

// Of a range of a counter only a rate or an increase means something, and `[5m]` misses samples where scrapes are rarer.
func TestS75_dashboards_read_only_series_that_exist(t *testing.T) {
	known := table(t)
	for _, one := range shipped(t) {
		for _, query := range one.Queries() {
			for _, name := range regexp.MustCompile(`[a-z]*:?(quartermaster|process)_[a-z_:]+`).FindAllString(query.Expr, -1) {
				if !slices.Contains(known, strings.TrimSuffix(name, "_bucket")) {
					t.Errorf("%s reads %s, which docs/metrics.md does not have", query.Place, name)
				}
			}
			if regexp.MustCompile(`(rate|increase)\([^)]*\[[0-9]`).MatchString(query.Expr) {
				t.Errorf("%s: its rate has a fixed range", query.Place)
			}
		}
	}
}

type sampleCase struct {
	Labels string  `json:"labels"`
	Value  float64 `json:"value"`
}

// recordedWorld is dashboards_test.yaml.
type recordedWorld struct {
	Interval    string
	EvalTime    string           `json:"eval_time"`
	InputSeries []map[string]any `json:"input_series"`
	Cases       []struct {
		Chosen  map[string]string
		Answers map[string][]sampleCase
	}
}

// Every query of every panel has data in a recorded world, and says what is known of it.
func TestS35_S36_every_query_has_its_known_answer(t *testing.T) {
	world := parse[recordedWorld](t, "test/monitoring/dashboards_test.yaml")
	queries := map[string]grafana.Query{}
	for _, one := range shipped(t) {
		for _, query := range one.Queries() {
			queries[query.Place] = query
		}
	}
	type expected struct {
		Expr       string       `json:"expr"`
		EvalTime   string       `json:"eval_time"`
		ExpSamples []sampleCase `json:"exp_samples"`
	}
	var steps []expected
	for i, one := range world.Cases {
		for place, answer := range one.Answers {
			query, ok := queries[place]
			if !ok {
				t.Errorf("case %d answers %q, which no dashboard asks", i, place)
			}
			if i == 0 && len(answer) == 0 {
				t.Errorf("%q has no data", place)
			}
			steps = append(steps, expected{query.Filled(one.Chosen), world.EvalTime, answer})
		}
	}
	for place := range queries {
		if _, ok := world.Cases[0].Answers[place]; !ok {
			t.Errorf("no answer is known to %q", place)
		}
	}
	file := filepath.Join(t.TempDir(), "dashboards.yaml")
	text, err := yaml.Marshal(map[string]any{"rule_files": []string{filepath.Join(chart.Root(), rulesPath)}, "evaluation_interval": world.Interval,
		"fuzzy_compare": true, "tests": []any{map[string]any{"interval": world.Interval, "input_series": world.InputSeries, "promql_expr_test": steps}}})
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	promtool(t, "test", "rules", file)
}

// A sidecar finds them by the label. They exist on demand alone, with the bytes of the files.
func TestS35_the_chart_brings_the_dashboards_as_they_are(t *testing.T) {
	for values, wanted := range map[string]struct{ labels, annotations map[string]any }{
		"": {},
		"monitoring: {dashboards: {enabled: true}}": {map[string]any{"grafana_dashboard": "1"}, map[string]any{"grafana_folder": "Quartermaster"}},
		"monitoring: {dashboards: {enabled: true, labels: {grafana_dashboard: null, board: gpu}, annotations: {grafana_folder: null}}}": {map[string]any{"board": "gpu"}, nil},
	} {
		objects, err := chart.Template(values)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, object := range objects {
			name, ok := strings.CutPrefix(object.Name, "quartermaster-dashboard-")
			if !ok {
				continue
			}
			found++
			data := object.Content["data"].(map[string]any)
			text := read(t, grafana.Folder+"/"+name+".json")
			if len(data) != 1 || strings.TrimSpace(data["quartermaster-"+name+".json"].(string)) != strings.TrimSpace(text) {
				t.Errorf("%q: %s has not the bytes of its file", values, object.Name)
			}
			if len(object.Text) > 1<<20 {
				t.Errorf("%s has %d bytes; an object may have 1 MiB", object.Name, len(object.Text))
			}
			metadata := object.Content["metadata"].(map[string]any)
			labels := metadata["labels"].(map[string]any)
			for label, value := range wanted.labels {
				if labels[label] != value {
					t.Errorf("%q: %s has the labels %v", values, object.Name, labels)
				}
			}
			if _, ok := wanted.labels["grafana_dashboard"]; !ok && labels["grafana_dashboard"] != nil {
				t.Errorf("%q: %s keeps a label that is taken away", values, object.Name)
			}
			if annotations, _ := metadata["annotations"].(map[string]any); !reflect.DeepEqual(annotations, wanted.annotations) {
				t.Errorf("%q: %s has the annotations %v", values, object.Name, annotations)
			}
		}
		number := 0
		if wanted.labels != nil {
			number = len(shipped(t))
		}
		if found != number {
			t.Errorf("%q: %d dashboards, wanted %d", values, found, number)
		}
	}
	if _, err := chart.Template("monitoring: {dashboards: {enable: true}}"); err == nil || !strings.Contains(err.Error(), "additional properties 'enable' not allowed") {
		t.Errorf("a value that does not exist: %v", err)
	}
}

// A Prometheus without its operator finds both programs by annotations, and an agent without a port has none.
func TestS34_annotations_say_which_port_to_scrape(t *testing.T) {
	for values, wanted := range map[string]map[string]any{
		"agent: {enabled: true, metrics: {port: 9402}}":                                       {"Deployment": nil, "DaemonSet": nil},
		"{metrics: {scrapeAnnotations: true}, agent: {enabled: true}}":                        {"Deployment": "8080", "DaemonSet": nil},
		"{metrics: {scrapeAnnotations: true}, agent: {enabled: true, metrics: {port: 9402}}}": {"Deployment": "8080", "DaemonSet": "9402"},
	} {
		objects, err := chart.Template(values)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			port, ok := wanted[object.Kind]
			if !ok || (object.Name != "quartermaster" && object.Name != "quartermaster-agent") {
				continue
			}
			template := object.Content["spec"].(map[string]any)["template"].(map[string]any)["metadata"].(map[string]any)
			annotations, _ := template["annotations"].(map[string]any)
			var scrape, path any
			if port != nil {
				scrape, path = "true", "/metrics"
			}
			if annotations["prometheus.io/scrape"] != scrape || annotations["prometheus.io/port"] != port || annotations["prometheus.io/path"] != path {
				t.Errorf("%s: %s has %v, and port %v is wanted", values, object.Kind, annotations, port)
			}
		}
	}
}
