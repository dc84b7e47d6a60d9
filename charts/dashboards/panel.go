package dashboards

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	sdk "github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// Units as Grafana calls them. gbytes is GiB.
const (
	count   = "short"
	percent = "percent"
	gib     = "gbytes"
	celsius = "celsius"
	watts   = "watt"
	seconds = "s"
	hours   = "h"
	perSec  = "ops"
	bytesPS = "Bps"
	days    = "d"
	kwh     = "kwatth"
	plain   = "none"
)

// form is how a panel shows its series.
type form int

const (
	graph  form = iota // lines over time
	figure             // the newest value, large
	list               // the newest values, one row per series
)

// query is one expression of a panel, and the name of its series in the legend or of its column.
type query struct{ expr, name string }

// panel is what a dashboard shows in one place. Its width is in columns, of which there are 24; 0 is half of them.
type panel struct {
	form        form
	title       string
	description string
	unit        string
	queries     []query
	width       uint32
	repeat      string // the variable of which each value gets a panel of its own
	since       string // where its time range begins, such as now/M; empty: as chosen
}

// builder is what the builders of all forms have in common.
type builder[T any] interface {
	cog.Builder[sdk.Panel]
	Id(uint32) T
	Title(string) T
	Description(string) T
	Unit(string) T
	Datasource(common.DataSourceRef) T
	Span(uint32) T
	Height(uint32) T
	TimeFrom(string) T
	WithTarget(cog.Builder[variants.Dataquery]) T
}

func source() common.DataSourceRef {
	return common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}
}

// fill says of a panel what its form does not decide.
func fill[T builder[T]](b T, p panel, id, height uint32) T {
	width := p.width
	if width == 0 {
		width = 12
	}
	b.Id(id).Title(p.title).Description(p.description).Unit(p.unit).Datasource(source()).Span(width).Height(height)
	if p.since != "" {
		b.TimeFrom(p.since)
	}
	for i, one := range p.queries {
		target := prometheus.NewDataqueryBuilder().RefId(string(rune('A' + i))).Expr(one.expr).LegendFormat(one.name).Datasource(source())
		if p.form == graph {
			target.Range()
		} else {
			target.Instant()
		}
		if p.form == list {
			target.Format(prometheus.PromQueryFormatTable)
		}
		b.WithTarget(target)
	}
	return b
}

func (p panel) build(id uint32) cog.Builder[sdk.Panel] {
	switch p.form {
	case figure:
		return fill(stat.NewPanelBuilder(), p, id, 4).GraphMode(common.BigValueGraphModeNone).ColorMode(common.BigValueColorModeNone).
			Orientation(common.VizOrientationAuto).ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}))
	case list:
		return p.columns(fill(table.NewPanelBuilder(), p, id, 8))
	}
	b := fill(timeseries.NewPanelBuilder(), p, id, 8).Min(0).ShowPoints(common.VisibilityModeNever).
		Legend(common.NewVizLegendOptionsBuilder().DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).ShowLegend(true)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	if p.unit == percent {
		b.AxisSoftMax(100)
	}
	if p.repeat != "" {
		b.Repeat(p.repeat).RepeatDirection(sdk.PanelRepeatDirectionH).MaxPerRow(4)
	}
	return b
}

// columns joins the answers to all queries: one row per set of labels, one column per query.
func (p panel) columns(b *table.PanelBuilder) cog.Builder[sdk.Panel] {
	names := map[string]string{"Value": p.queries[0].name}
	for i, one := range p.queries {
		names[fmt.Sprintf("Value #%c", 'A'+i)] = one.name
	}
	return b.Filterable(true).Footer(common.NewTableFooterOptionsBuilder().Show(false).Reducer([]string{"sum"})).
		WithTransformation(sdk.DataTransformerConfig{Id: "merge", Options: map[string]any{}}).
		WithTransformation(sdk.DataTransformerConfig{Id: "organize", Options: map[string]any{
			"excludeByName": map[string]bool{"Time": true}, "renameByName": names}})
}
