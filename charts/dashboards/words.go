package dashboards

import (
	"fmt"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	sdk "github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// variable is a choice above the panels. One with a query offers the values of a label; one with values offers these; any other is text.
type variable struct {
	name, label, description string
	query, values, text      string
}

func (v variable) build() cog.Builder[sdk.VariableModel] {
	everything := sdk.VariableOption{Text: sdk.StringOrArrayOfString{String: cog.ToPtr("All")}, Value: sdk.StringOrArrayOfString{String: cog.ToPtr("$__all")}}
	switch {
	case v.query != "":
		return sdk.NewQueryVariableBuilder(v.name).Label(v.label).Description(v.description).Datasource(source()).
			Query(sdk.StringOrMap{String: cog.ToPtr(v.query)}).Definition(v.query).Refresh(sdk.VariableRefreshOnTimeRangeChanged).
			Sort(sdk.VariableSortNaturalAsc).Multi(true).IncludeAll(true).AllValue(".*").Current(everything)
	case v.values != "":
		return sdk.NewCustomVariableBuilder(v.name).Label(v.label).Description(v.description).
			Values(sdk.StringOrMap{String: cog.ToPtr(v.values)}).Multi(true).IncludeAll(true).AllValue(".*").Current(everything)
	}
	return sdk.NewTextBoxVariableBuilder(v.name).Label(v.label).Description(v.description).DefaultValue(sdk.StringOrMap{String: cog.ToPtr(v.text)})
}

// What the variables choose. Cards that are in no mode are in `All`.
const (
	cardsChosen  = `mode=~"$type", model=~"$model"`
	nodesChosen  = cardsChosen + `, node=~"$node"`
	podsChosen   = nodesChosen + `, namespace=~"$namespace", pod=~"$pod"`
	spacesChosen = cardsChosen + `, namespace=~"$namespace"`
)

// Series that are there for each card and for each share.
const (
	cardSeries  = "quartermaster_card_info"
	shareSeries = "quartermaster_share_processes"
)

func labelValues(series, chosen, label string) string {
	return fmt.Sprintf("label_values(%s{%s}, %s)", series, chosen, label)
}

var (
	typeChoice = variable{name: "type", label: "Type", description: "How the card is offered.",
		values: "pGPU : pgpu, GPU-Manager (vGPU) : vgpu, MPS : mps, MIG : mig, HAMi : hami, gpushare : gpushare"}
	modelChoice     = variable{name: "model", label: "Model", query: labelValues(cardSeries, `mode=~"$type"`, "model")}
	nodeChoice      = variable{name: "node", label: "Node", query: labelValues(cardSeries, cardsChosen, "node")}
	namespaceChoice = variable{name: "namespace", label: "Namespace", query: labelValues(shareSeries, cardsChosen, "namespace")}
	podChoice       = variable{name: "pod", label: "Pod",
		query: labelValues(shareSeries, nodesChosen+`, namespace=~"$namespace"`, "pod")}
)

const (
	cardLabels  = "node, uuid, model, mode"
	shareLabels = cardLabels + ", namespace, pod, container"
)

// perCard is a metric of cards, once per card.
func perCard(name, chosen string) string {
	return fmt.Sprintf("max by (%s) (quartermaster_card_%s{%s})", cardLabels, name, chosen)
}

// perCardAnd is the same with one more label.
func perCardAnd(label, name, chosen string) string {
	return fmt.Sprintf("max by (%s, %s) (quartermaster_card_%s{%s})", cardLabels, label, name, chosen)
}

// perShare is a metric of shares, once per share.
func perShare(name, chosen string) string {
	return fmt.Sprintf("max by (%s) (quartermaster_share_%s{%s})", shareLabels, name, chosen)
}

func by(aggregation, labels, expr string) string {
	if labels == "" {
		return fmt.Sprintf("%s(%s)", aggregation, expr)
	}
	return fmt.Sprintf("%s by (%s) (%s)", aggregation, labels, expr)
}

func inGiB(expr string) string     { return expr + " / 2^30" }
func inPercent(expr string) string { return "100 * " + expr }

// sized is a metric of those cards on which the size of each share is known. It is not known of parts of MIG cards and of time slices.
func sized(name, chosen string) string {
	unknown := fmt.Sprintf("quartermaster_share_processes unless on (%s) quartermaster_share_allocated_cores_ratio", shareLabels)
	return perCard(name, chosen) + fmt.Sprintf(" unless on (node, uuid) (%s)", unknown)
}

// orNothing is 0 where there are cards and no shares: then it is known that nothing is given out.
func orNothing(expr, labels, chosen string) string {
	return fmt.Sprintf("(%s or 0 * %s)", expr, by("count", labels, sized("info", chosen)))
}

// recorded is what the chart's rules record per namespace, model and mode.
func recorded(name, chosen string) string {
	return fmt.Sprintf("namespace:quartermaster_share_%s:sum{%s}", name, chosen)
}

// What pods hold is known by the operator, too, also where no agent runs. It calls modes and models as the scheduler does, and not as the
// agents do, so of the choices only that of namespaces applies.
const (
	namespaceChosen = `namespace=~"$namespace"`
	groupLabels     = "namespace, owner, model, mode, organization"
	billLabels      = "namespace, model, mode, organization"
)

// perGroup is what groups of pods hold, once per group.
func perGroup(name string) string {
	return fmt.Sprintf("max by (%s) (quartermaster_allocated_%s{%s})", groupLabels, name, namespaceChosen)
}

// larger of two amounts that have the same labels. The second can be missing.
func larger(one, other string) string { return fmt.Sprintf("(%s > %s or %s)", other, one, one) }

// billed is what pods hold at this moment, in cards: the larger of their part of the cores and of their part of the memory, per set of labels.
func billed(labels string) string {
	return larger(by("sum", labels, perGroup("cores"))+" / 100",
		by("sum", labels, perGroup("memory_bytes"))+" / on (model) group_left () max by (model) (quartermaster_model_memory_bytes)")
}

// billedHours is the same over the time range, in card-hours: minute by minute, as the chart's rules record it.
func billedHours() string {
	hours := func(name string) string {
		return fmt.Sprintf("sum_over_time(namespace:quartermaster_allocated_%s:sum{%s}[$__range:1m]) / 60", name, namespaceChosen)
	}
	return larger(hours("cores"), hours("memory"))
}

const prices = "max by (model, currency) (quartermaster_card_hour_price)"

// cost of cards or card-hours. What has no price is left out.
func cost(labels, cards string) string {
	return by("sum", labels+", currency", cards+" * on (model) group_left (currency) "+prices)
}

// perQuota is an amount of each limit of a namespace, once per limit. States are max, used, borrowed and lent.
func perQuota(unit, state string) string {
	return fmt.Sprintf(`max by (namespace, model, scope) (quartermaster_quota_%s{state="%s", %s})`, unit, state, namespaceChosen)
}

// slowest is the time within which 99 % of what a histogram counts was done.
func slowest(histogram, labels string) string {
	labels = strings.TrimPrefix(labels+", le", ", ")
	return fmt.Sprintf("histogram_quantile(0.99, sum by (%s) (rate(%s_bucket[$__rate_interval])))", labels, histogram)
}

// rate per second of a counter, added up over the programs that count.
func rate(counter, labels string) string {
	return by("sum", labels, fmt.Sprintf("rate(%s[$__rate_interval])", counter))
}
