// Package grafana reads what Grafana reads of a dashboard, from the files that the chart ships: panels, queries and variables.
package grafana

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"quartermaster.io/test/chart"
)

// Folder is where the chart has the dashboards.
const Folder = "charts/quartermaster/files/dashboards"

// Dashboard is one of them; Name is that of its file.
type Dashboard struct {
	Name                    string `json:"-"`
	Text                    []byte `json:"-"`
	Title, UID, Description string
	Refresh                 string
	Tags                    []string
	Time                    struct{ From, To string }
	Timepicker              struct {
		RefreshIntervals []string                    `json:"refresh_intervals"`
		QuickRanges      []struct{ From, To string } `json:"quick_ranges"`
	}
	Panels     []Panel
	Templating struct{ List []Variable }
}

// Panel is one place of a dashboard. A row has no queries.
type Panel struct {
	ID                               int
	Type, Title, Description, Repeat string
	GridPos                          struct{ X, Y, W, H int }
	Datasource                       struct{ Type, UID string }
	FieldConfig                      struct{ Defaults struct{ Unit string } }
	Options                          struct{ Legend struct{ ShowLegend bool } }
	Targets                          []struct {
		RefID, Expr, LegendFormat string
		Datasource                struct{ Type, UID string }
		Instant, Range            bool
	}
}

// Variable is a choice above the panels.
type Variable struct {
	Name, Type, AllValue, Query string
	Multi, IncludeAll           bool
}

// Query is one expression, and where it is shown.
type Query struct{ Place, Dashboard, Expr string }

// Dashboards are all that the chart ships, by name.
func Dashboards() ([]Dashboard, error) {
	files, err := filepath.Glob(filepath.Join(chart.Root(), Folder, "*.json"))
	if err != nil {
		return nil, err
	}
	var out []Dashboard
	for _, file := range files {
		one := Dashboard{Name: strings.TrimSuffix(filepath.Base(file), ".json")}
		if one.Text, err = os.ReadFile(file); err == nil {
			err = json.Unmarshal(one.Text, &one)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// Queries of a dashboard. A place is `dashboard / title / letter`.
func (d Dashboard) Queries() (out []Query) {
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			out = append(out, Query{d.Name + " / " + panel.Title + " / " + target.RefID, d.Name, target.Expr})
		}
	}
	return out
}

// Filled is the expression with what is chosen. What is not chosen is All.
func (q Query) Filled(chosen map[string]string) string {
	return regexp.MustCompile(`\$([a-z_]+)`).ReplaceAllStringFunc(q.Expr, func(name string) string {
		if value, ok := chosen[name[1:]]; ok {
			return value
		}
		switch name {
		case "$__range":
			return "1h"
		case "$__rate_interval":
			return "5m"
		}
		return ".*"
	})
}
