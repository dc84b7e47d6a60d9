package dashboards

// cardHours adds up cards over the time range, minute by minute.
func cardHours(name, labels string) string {
	return by("sum", labels, "sum_over_time("+recorded(name, spacesChosen)+"[$__range:1m])") + " / 60"
}

var namespaces = board{
	name:        "namespaces",
	title:       "Quartermaster / Namespaces and chargeback",
	description: "Who has which part of the cards, who uses it, and what does it cost? Card-hours need the chart's rules.",
	variables: []variable{typeChoice, modelChoice, namespaceChoice,
		{name: "price", label: "Price of a card-hour", description: "In your currency. Choose a model where prices differ.", text: "1"}},
	rows: []row{
		{"Now", []panel{
			{title: "Cards given", unit: count, description: "Shares count as parts of a card. A share of unknown size, such as a part of a MIG card, does not count.",
				queries: []query{{by("sum", "namespace", perShare("allocated_cores_ratio", spacesChosen)), "{{namespace}}"}}},
			{title: "Cards that compute", unit: count, description: "Sum of the utilization: 0.5 is half a card.",
				queries: []query{{by("sum", "namespace", perShare("utilization_ratio", spacesChosen)), "{{namespace}}"}}},
			{title: "Memory given", unit: gib, description: "To all pods of the namespace.",
				queries: []query{{inGiB(by("sum", "namespace", perShare("allocated_memory_bytes", spacesChosen))), "{{namespace}}"}}},
			{title: "Memory used", unit: gib, description: "By all pods of the namespace.",
				queries: []query{{inGiB(by("sum", "namespace", perShare("memory_used_bytes", spacesChosen))), "{{namespace}}"}}},
			{title: "Pods with cards", unit: count, description: "Pods that have a card or a share.",
				queries: []query{{by("count", "namespace", by("count", "namespace, pod", perShare("processes", spacesChosen))), "{{namespace}}"}}},
			{title: "Cards that no one has", unit: count, description: "Cards less what was given out, of all namespaces. Cards with a share of unknown size are left out.",
				queries: []query{{by("count", "", sized("info", cardsChosen)) + " - " +
					orNothing(by("sum", "", perShare("allocated_cores_ratio", cardsChosen)), "", cardsChosen), "cards"}}},
		}},
		{"In the time range", []panel{
			{form: list, title: "Card-hours given", unit: hours, description: "A half card for two hours is one card-hour.",
				queries: []query{{cardHours("allocated_cores", "namespace, model, mode"), "card-hours"}}},
			{form: list, title: "Card-hours used", unit: hours, description: "A card at 50 % for two hours is one card-hour.",
				queries: []query{{cardHours("utilization", "namespace, model, mode"), "card-hours"}}},
			{form: list, title: "Used part of the card-hours", unit: percent, description: "Of the card-hours that the namespace was given.",
				queries: []query{{inPercent(cardHours("utilization", "namespace")) + " / (" + cardHours("allocated_cores", "namespace") + ")", "used"}}},
			{form: list, title: "Cost", unit: count, description: "Card-hours given, times the price of a card-hour.",
				queries: []query{{"$price * " + cardHours("allocated_cores", "namespace"), "cost"}}},
		}},
	},
}
