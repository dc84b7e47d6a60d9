package dashboards

// perModel is what is recorded of a model.
func perModel(name string) string { return by("sum", "model", recorded(name, cardsChosen)) }

const week = "[7d:10m]"

var capacity = board{
	name:        "capacity",
	title:       "Quartermaster / Capacity",
	description: "Are there enough cards, and until when? What is about the last week needs the chart's rules.",
	variables:   []variable{typeChoice, modelChoice},
	rows: []row{
		{"Now", []panel{
			{title: "Cards", unit: count, description: "How many there are, how many may get pods, how many are given out, how many compute.",
				queries: []query{{by("count", "", perCard("info", cardsChosen)), "there are"},
					{by("sum", "", perCard("healthy", cardsChosen)), "healthy"},
					{orNothing(by("sum", "", perShare("allocated_cores_ratio", cardsChosen)), "", cardsChosen), "given"},
					{by("sum", "", perCard("utilization_ratio", cardsChosen)), "compute"}}},
			{title: "Memory", unit: gib, description: "What there is, what pods were given, what is in use.",
				queries: []query{{inGiB(by("sum", "", perCard("memory_bytes", cardsChosen))), "available"},
					{inGiB(by("sum", "", perShare("allocated_memory_bytes", cardsChosen))), "given"},
					{inGiB(by("sum", "", perCard("memory_used_bytes", cardsChosen))), "used"}}},
			{form: list, title: "Free cards", unit: count,
				description: "Healthy cards less what was given out, without cards with a share of unknown size. Parts of several cards can add up to one.",
				queries: []query{{by("sum", "model, mode", sized("healthy", cardsChosen)) + " - " +
					orNothing(by("sum", "model, mode", perShare("allocated_cores_ratio", cardsChosen)), "model, mode", cardsChosen), "free"}}},
			{form: list, title: "Whole cards that are free", unit: count, description: "Healthy cards of which no one has a part.",
				queries: []query{{by("count", "model, mode", perCard("healthy", cardsChosen)+" == 1 unless on (node, uuid) "+shareSeries), "free"}}},
			{title: "Pods that wait", unit: count, description: "Pods that fit on no node they were tried on, of all types and models.",
				queries: []query{{"max(quartermaster_waiting_pods)", "pods"}}},
			{title: "Cards given by model", unit: count, description: "Next to the number of cards of the model.",
				queries: []query{{by("sum", "model", perShare("allocated_cores_ratio", cardsChosen)), "{{model}} given"},
					{by("count", "model", perCard("info", cardsChosen)), "{{model}}"}}},
		}},
		{"In the last week", []panel{
			{form: list, title: "Cards given, peaks", unit: count, description: "In 95 % of the last week it was no more than the first; the second is the highest.",
				queries: []query{{"quantile_over_time(0.95, (" + perModel("allocated_cores") + ")" + week + ")", "95 %"},
					{"max_over_time((" + perModel("allocated_cores") + ")" + week + ")", "highest"}}},
			{form: list, title: "Cards that compute, peaks", unit: count, description: "The same of the utilization.",
				queries: []query{{"quantile_over_time(0.95, (" + perModel("utilization") + ")" + week + ")", "95 %"},
					{"max_over_time((" + perModel("utilization") + ")" + week + ")", "highest"}}},
			{form: list, title: "Days until all cards are given", unit: days, width: 24,
				description: "If the last week goes on. A model of which less is given than before is not listed.",
				queries: []query{{"(" + by("count", "model", perCard("info", cardsChosen)) + " - on (model) " + perModel("allocated_cores") + ")" +
					" / on (model) (86400 * deriv((" + perModel("allocated_cores") + ")" + week + ") > 0)", "days"}}},
		}},
	},
}
