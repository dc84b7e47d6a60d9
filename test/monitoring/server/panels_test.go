package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"quartermaster.io/test/monitoring/grafana"
)

// reading is what a panel shows, as a reader computes it who has the pages and no PromQL.
type reading struct {
	metric string
	by     []string
	how    string // sum, mean, count or most
	scale  float64
}

const gib = 1 << 30

// readings of panels whose value is a plain sum, mean or number of what the pages say.
var readings = map[string]reading{
	"fleet / Cards / A":                         {metric: "card_info", how: "count"},
	"fleet / Cards given / A":                   {metric: "share_allocated_cores_ratio", how: "sum"},
	"fleet / Utilization / A":                   {metric: "card_utilization_ratio", how: "mean", scale: 100},
	"fleet / Power / A":                         {metric: "card_power_watts", how: "sum"},
	"fleet / Utilization by model and type / A": {metric: "card_utilization_ratio", by: []string{"model", "mode"}, how: "mean", scale: 100},
	"fleet / Memory / A":                        {metric: "card_memory_bytes", how: "sum", scale: 1.0 / gib},
	"fleet / Memory / B":                        {metric: "share_allocated_memory_bytes", how: "sum", scale: 1.0 / gib},
	"fleet / Memory / C":                        {metric: "card_memory_used_bytes", how: "sum", scale: 1.0 / gib},
	"fleet / Cards by model and type / A":       {metric: "card_info", by: []string{"model", "mode"}, how: "count"},
	"fleet / Cards given by model and type / A": {metric: "share_allocated_cores_ratio", by: []string{"model", "mode"}, how: "sum"},
	"fleet / Hottest card of each model / A":    {metric: "card_temperature_celsius", by: []string{"model"}, how: "most"},
	"nodes / Utilization / A":                   {metric: "card_utilization_ratio", by: []string{"node"}, how: "mean", scale: 100},
	"nodes / Memory of $node / A":               {metric: "card_memory_bytes", by: []string{"node"}, how: "sum", scale: 1.0 / gib},
	"nodes / Memory of $node / B":               {metric: "share_allocated_memory_bytes", by: []string{"node"}, how: "sum", scale: 1.0 / gib},
	"nodes / Memory of $node / C":               {metric: "card_memory_used_bytes", by: []string{"node"}, how: "sum", scale: 1.0 / gib},
	"nodes / Utilization by card / A":           {metric: "card_utilization_ratio", by: cardLabels, how: "sum", scale: 100},
	"nodes / Memory used by card / A":           {metric: "card_memory_used_bytes", by: cardLabels, how: "sum", scale: 1.0 / gib},
	"nodes / Temperature / A":                   {metric: "card_temperature_celsius", by: cardLabels, how: "sum"},
	"nodes / Power / A":                         {metric: "card_power_watts", by: cardLabels, how: "sum"},
	"nodes / Cards with lowered clocks / A":     {metric: "card_throttled", by: []string{"node", "reason"}, how: "sum"},
	"nodes / Memory of no share / A":            {metric: "card_unattributed_memory_bytes", by: []string{"node", "reason"}, how: "sum", scale: 1.0 / gib},
	"nodes / Utilization of no share / A":       {metric: "card_unattributed_utilization_ratio", by: []string{"node", "reason"}, how: "mean", scale: 100},
	"nodes / Cards given / B":                   {metric: "card_info", by: []string{"node"}, how: "count"},
	"pods / Utilization in cards / A":           {metric: "share_utilization_ratio", by: []string{"namespace", "pod"}, how: "sum", scale: 100},
	"pods / Memory used / A":                    {metric: "share_memory_used_bytes", by: []string{"namespace", "pod"}, how: "sum", scale: 1.0 / gib},
	"pods / Memory of $pod / A":                 {metric: "share_allocated_memory_bytes", by: []string{"namespace", "pod"}, how: "sum", scale: 1.0 / gib},
	"pods / Processes / A":                      {metric: "share_processes", by: []string{"namespace", "pod", "container"}, how: "sum"},
	"namespaces / Cards given / A":              {metric: "share_allocated_cores_ratio", by: []string{"namespace"}, how: "sum"},
	"namespaces / Cards that compute / A":       {metric: "share_utilization_ratio", by: []string{"namespace"}, how: "sum"},
	"namespaces / Memory given / A":             {metric: "share_allocated_memory_bytes", by: []string{"namespace"}, how: "sum", scale: 1.0 / gib},
	"namespaces / Memory used / A":              {metric: "share_memory_used_bytes", by: []string{"namespace"}, how: "sum", scale: 1.0 / gib},
	"capacity / Cards / B":                      {metric: "card_healthy", how: "sum"},
	"capacity / Cards / D":                      {metric: "card_utilization_ratio", how: "sum"},
	"operator / Pods that lead / A":             {metric: "leader", how: "sum"},
	"operator / Pods in the ledger / A":         {metric: "ledger_confirmed_entries", how: "sum"},
	"operator / Agents / A":                     {metric: "exporter_reading_age_seconds", how: "count"},
}

var cardLabels = []string{"node", "uuid", "model", "mode"}

// compute the series of a panel from samples that have these values of labels.
func (r reading) compute(all []sample, chosen map[string]string) series {
	sums, counts, out := series{}, series{}, series{}
	for _, one := range all {
		if one.name != "quartermaster_"+r.metric {
			continue
		}
		fits := true
		for label, value := range chosen {
			is, ok := one.labels[label]
			fits = fits && (!ok || is == value)
		}
		if !fits {
			continue
		}
		kept := map[string]string{}
		for _, label := range r.by {
			kept[label] = one.labels[label]
		}
		name := key(kept)
		if r.how == "most" {
			sums[name] = max(sums[name], one.value)
		} else {
			sums[name] += one.value
		}
		counts[name]++
	}
	scale := r.scale
	if scale == 0 {
		scale = 1
	}
	for name, sum := range sums {
		switch r.how {
		case "mean":
			out[name] = sum / counts[name] * scale
		case "count":
			out[name] = counts[name]
		default:
			out[name] = sum * scale
		}
	}
	return out
}

// Panels that have nothing to show here: no card of this lane is sick, linked, in MIG or without a price, no one asks the extender, no alert
// fires, and no week has gone by. test/monitoring/dashboards_test.yaml has their answers in a recorded world.
var quiet = []string{
	"fleet / Sick cards by node / A", "fleet / XIDs / A", "fleet / Alerts / A", "nodes / NVLink / A", "nodes / NVLink / B", "nodes / Preflight checks that fail / A",
	"pods / Containers that use less than 30 % of their memory / A", "capacity / Days until all cards are given / A",
	"operator / Lists and watches that failed / A", "operator / Certificates of the extender / A", "operator / Bindings / A",
	"operator / Answers of the webhook / A", "operator / Answers to kube-scheduler / A", "namespaces / Held without a price / A",
}

// dashboardsAgree runs every query of every dashboard, for each choice, on a Prometheus that scrapes these pages.
func dashboardsAgree(t *testing.T, address string, all []sample) {
	t.Helper()
	dashboards, err := grafana.Dashboards()
	if err != nil {
		t.Fatal(err)
	}
	choices := []map[string]string{{}, {"type": "pgpu"}, {"type": "vgpu"}, {"node": "t4-0"}, {"node": "t4-1"},
		{"namespace": "default"}, {"pod": "infer-0"}, {"model": "Tesla T4"}}
	var checks []func() error
	for _, dashboard := range dashboards {
		for _, one := range dashboard.Queries() {
			for _, chosen := range choices {
				if check := panelCheck(address, all, one, chosen); check != nil {
					checks = append(checks, check)
				}
			}
		}
	}
	t.Logf("%d queries of %d dashboards; %d panels are compared with the pages", len(checks), len(dashboards), len(readings))
	until(t, 90*time.Second, "the dashboards", func() error {
		var failures []error
		checks = slices.DeleteFunc(checks, func(check func() error) bool {
			err := check()
			if err != nil {
				failures = append(failures, err)
			}
			return err == nil
		})
		return errors.Join(failures...)
	})
	for place := range readings {
		if !slices.ContainsFunc(dashboards, func(d grafana.Dashboard) bool {
			return slices.ContainsFunc(d.Queries(), func(q grafana.Query) bool { return q.Place == place })
		}) {
			t.Errorf("no dashboard has %q", place)
		}
	}
}

// panelCheck runs a query with a choice, and is nil where the query does not read the choice.
func panelCheck(address string, all []sample, one grafana.Query, chosen map[string]string) func() error {
	applies := len(chosen) == 0
	labels, filled := map[string]string{}, map[string]string{"price": "1", "__range": "20s", "__rate_interval": "10s"}
	for name, value := range chosen {
		applies = applies || strings.Contains(one.Expr, "$"+name)
		filled[name] = value
		if name == "type" {
			name = "mode"
		}
		labels[name] = value
	}
	if !applies {
		return nil
	}
	expr := strings.NewReplacer(":1m]", ":1s]", ":10m]", ":1s]").Replace(one.Filled(filled))
	wanted, known := readings[one.Place]
	return func() error {
		is, err := query(address, expr)
		if err != nil {
			return fmt.Errorf("%s with %v: %s: %w", one.Place, chosen, expr, err)
		}
		if found := wanted.compute(all, labels).differences(is); known && len(found) > 0 {
			return fmt.Errorf("%s with %v: %s: %s", one.Place, chosen, expr, strings.Join(found, "\n"))
		}
		if len(is) == 0 && len(chosen) == 0 && !slices.Contains(quiet, one.Place) {
			return fmt.Errorf("%s: %s: no data", one.Place, expr)
		}
		return nil
	}
}

// variablesOffer asks Prometheus for the values of every variable, as Grafana does, and compares them with the labels on the pages.
func variablesOffer(t *testing.T, address string, all []sample) {
	t.Helper()
	dashboards, err := grafana.Dashboards()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, dashboard := range dashboards {
		for _, variable := range dashboard.Templating.List {
			if variable.Type != "query" {
				continue
			}
			seen++
			call := regexp.MustCompile(`^label_values\((([a-z_]+)\{.*\}), ([a-z]+)\)$`).FindStringSubmatch(variable.Query)
			if call == nil {
				t.Fatalf("%s: %s is not read by this test", dashboard.Name, variable.Query)
			}
			var wanted, is []string
			for _, one := range all {
				if value := one.labels[call[3]]; one.name == call[2] && !slices.Contains(wanted, value) {
					wanted = append(wanted, value)
				}
			}
			slices.Sort(wanted)
			match := grafana.Query{Expr: call[1]}.Filled(nil)
			if err := ask(address, "/api/v1/label/"+call[3]+"/values?match[]="+url.QueryEscape(match), &is); err != nil {
				t.Fatal(err)
			}
			if len(wanted) == 0 || !slices.Equal(is, wanted) {
				t.Errorf("%s offers for %s %v, and the pages have %v", dashboard.Name, variable.Name, is, wanted)
			}
		}
	}
	if seen == 0 {
		t.Error("no dashboard has a variable with a query")
	}
}

// dashboardsSayWhatTheAPISays compares panels with objects of the API server, which never saw a page of metrics.
func dashboardsSayWhatTheAPISays(t *testing.T, address string) {
	t.Helper()
	var nodes struct {
		Items []struct {
			Metadata struct{ Name string }
			Status   struct {
				Phase string
				Cards []struct {
					Model     string
					MemoryMiB float64
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(kubectl(t, "", "get", "anode", "-o", "json")), &nodes); err != nil {
		t.Fatal(err)
	}
	phases, cards := series{}, series{}
	for _, node := range nodes.Items {
		phases[key(map[string]string{"phase": node.Status.Phase})]++
		for range node.Status.Cards {
			cards[key(map[string]string{"node": node.Metadata.Name})]++
		}
	}
	var placement struct {
		Containers map[string][]struct {
			Cores, MemoryMiB float64
		}
	}
	text := kubectl(t, "", "get", "pod", "infer-0", "-o", `jsonpath={.metadata.annotations.quartermaster\.io/placement}`)
	if err := json.Unmarshal([]byte(text), &placement); err != nil {
		t.Fatal(err)
	}
	given := placement.Containers["main"][0]
	infer := func(value float64) series {
		return series{key(map[string]string{"namespace": "default", "pod": "infer-0"}): value}
	}
	plugins := series{}
	for _, name := range strings.Fields(kubectl(t, "", "get", "daemonset", "-A", "-o", `jsonpath={range .items[*]}{.spec.selector.matchLabels.quartermaster\.io/module}={.status.numberReady} {end}`)) {
		module, ready, _ := strings.Cut(name, "=")
		if module == "" {
			continue // not a plugin
		}
		number, err := strconv.ParseFloat(ready, 64)
		if err != nil {
			t.Fatal(err)
		}
		plugins[key(map[string]string{"module": module, "state": "ready"})] = number
	}
	dashboards, err := grafana.Dashboards()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		place  string
		chosen map[string]string
		wanted series
	}{
		{"fleet / Nodes by phase / A", nil, phases},
		{"nodes / Cards given / B", nil, cards},
		{"pods / Memory of $pod / A", map[string]string{"pod": "infer-0"}, infer(given.MemoryMiB / 1024)},
		{"namespaces / Cards given / A", map[string]string{"type": "vgpu"}, series{key(map[string]string{"namespace": "default"}): given.Cores / 100}},
		{"fleet / Nodes of each module / A", nil, plugins},
	} {
		found := false
		for _, dashboard := range dashboards {
			for _, one := range dashboard.Queries() {
				if one.Place != row.place {
					continue
				}
				found = true
				until(t, 20*time.Second, row.place+" is what the API says", func() error {
					is, err := query(address, one.Filled(row.chosen))
					if row.place == "fleet / Nodes of each module / A" {
						for name := range is {
							if !strings.Contains(name, `state="ready"`) {
								delete(is, name)
							}
						}
					}
					if differences := row.wanted.differences(is); err == nil && (len(row.wanted) == 0 || len(differences) > 0) {
						err = fmt.Errorf("%d series: %v", len(row.wanted), differences)
					}
					return err
				})
			}
		}
		if !found {
			t.Errorf("no dashboard has %q", row.place)
		}
	}
}
