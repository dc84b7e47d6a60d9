// Package dashboards is the source of the chart's dashboards for Grafana. Each one answers one question. A panel is a row of data (panel);
// its queries are made of few words (words.go), so that all of them count a card once, however often an agent is scraped.
package dashboards

import (
	"encoding/json"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	sdk "github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// board is one dashboard. Its file and its UID have its name.
type board struct {
	name, title, description string
	variables                []variable
	rows                     []row
}

type row struct {
	title  string
	panels []panel
}

var boards = []board{fleet, nodes, pods, namespaces, capacity, operator}

// Files are the dashboards as JSON, by the names of their files.
func Files() (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, one := range boards {
		built, err := one.build()
		if err != nil {
			return nil, err
		}
		text, err := json.MarshalIndent(built, "", "  ")
		if err != nil {
			return nil, err
		}
		out[one.name+".json"] = append(text, '\n')
	}
	return out, nil
}

func (b board) build() (sdk.Dashboard, error) {
	out := sdk.NewDashboardBuilder(b.title).Uid("quartermaster-"+b.name).Description(b.description).Tags([]string{"quartermaster"}).
		Time("now-1h", "now").Refresh("30s").Timepicker(ranges()).Timezone(common.TimeZoneBrowser).Tooltip(sdk.DashboardCursorSyncCrosshair).
		Link(sdk.NewDashboardLinkBuilder("Quartermaster").Type(sdk.DashboardLinkTypeDashboards).Tags([]string{"quartermaster"}).
			AsDropdown(true).IncludeVars(true).KeepTime(true)).
		WithVariable(sdk.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus"))
	for _, one := range b.variables {
		out.WithVariable(one.build())
	}
	id := uint32(0)
	next := func() uint32 { id++; return id }
	for _, row := range b.rows {
		out.WithRow(sdk.NewRowBuilder(row.title).Id(next()))
		for _, panel := range row.panels {
			out.WithPanel(panel.build(next()))
		}
	}
	return out.Build()
}

// ranges of the time picker. Any other range can be typed.
func ranges() *sdk.TimePickerBuilder {
	var quick []cog.Builder[sdk.TimeOption]
	for _, one := range []struct{ length, name string }{{"30m", "30 minutes"}, {"1h", "hour"}, {"6h", "6 hours"}, {"12h", "12 hours"},
		{"24h", "24 hours"}, {"2d", "2 days"}, {"7d", "7 days"}} {
		quick = append(quick, sdk.NewTimeOptionBuilder().Display("Last "+one.name).From("now-"+one.length).To("now"))
	}
	return sdk.NewTimePickerBuilder().QuickRanges(quick).RefreshIntervals([]string{"10s", "30s", "1m", "5m", "15m", "1h"})
}
