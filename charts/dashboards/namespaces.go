package dashboards

// cardHours adds up cards over the time range, minute by minute.
func cardHours(name, labels string) string {
	return by("sum", labels, "sum_over_time("+recorded(name, spacesChosen)+"[$__range:1m])") + " / 60"
}

// quotas is a table of limits: what there is, what is used, borrowed and lent of each, in the panel's unit.
func quotas(title, unit, name, divisor, description string) panel {
	out := panel{form: list, title: title, unit: unit, width: 8, description: description}
	for _, column := range []struct{ state, name string }{{"max", "quota"}, {"used", "used"}, {"borrowed", "borrowed"}, {"lent", "lent"}} {
		out.queries = append(out.queries, query{perQuota(name, column.state) + divisor, column.name})
	}
	return out
}

// usedPart of each limit on a unit. A limit of 0 has none.
func usedPart(unit, name string) query {
	return query{inPercent(perQuota(unit, "used")) + " / (" + perQuota(unit, "max") + " > 0)", "{{namespace}} " + name + " {{model}} {{scope}}"}
}

var namespaces = board{
	name:        "namespaces",
	title:       "Quartermaster / Namespaces and chargeback",
	description: "Who has which part of the cards, who uses it, and what does it cost? Card-hours need the chart's rules.",
	variables: []variable{typeChoice, modelChoice, namespaceChoice,
		{name: "price", label: "Price of a card-hour", description: "In your currency, for a card of each model.", text: "1"}},
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
		{"Quotas", []panel{
			{title: "Used part of the quotas", unit: percent, width: 24, description: "Of the limits of AcceleratorQuotas. Over 100 % is borrowed from the cohort, or was there before the limit.",
				queries: []query{usedPart("cards", "cards"), usedPart("cores", "cores"), usedPart("memory_bytes", "memory")}},
			quotas("Quotas of cards", count, "cards", "", "In parts: a share of a card is one, and so is a whole card."),
			quotas("Quotas of cores", count, "cores", " / 100", "In cards: 0.3 is 30 of the 100 cores of a card."),
			quotas("Quotas of memory", gib, "memory_bytes", " / 2^30", "A whole card counts with all of its memory."),
		}},
		{"Costs, at the prices of the policy", []panel{
			{title: "Cost per hour", unit: count, description: "What pods hold, times the price: of cores and memory the larger part of a card, for each model and type.",
				queries: []query{{cost("namespace", billed(billLabels)), "{{namespace}} {{currency}}"}}},
			{title: "Cost per hour by organization", unit: count, description: "The organization is the label of the namespace that spec.chargeback of the policy names.",
				queries: []query{{cost("organization", billed(billLabels)), "{{organization}} {{currency}}"}}},
			{form: list, title: "Cost per hour by owner", unit: count, description: "The larger part is taken for each owner, so owners can add up to more than their namespace.",
				queries: []query{{cost("namespace, owner", billed(groupLabels)), "cost"}}},
			{form: list, title: "Cost of this month", unit: count, since: "now/M", description: "Until now, from samples. The bill is `quartermaster report chargeback`, which is exact.",
				queries: []query{{cost("namespace", billedHours()), "cost"}}},
			{form: list, title: "Cost of the time range", unit: count, description: "By namespace and organization, from samples, at the prices of its end.",
				queries: []query{{cost("namespace, organization", billedHours()), "cost"}}},
			{form: list, title: "Prices", unit: count, width: 6, description: "Of a card for an hour (spec.chargeback.prices of the policy).",
				queries: []query{{prices, "price"}}},
			{form: list, title: "Held without a price", unit: count, width: 6, description: "Cards of models for which the policy has no price. No cost has them.",
				queries: []query{{by("sum", "model", perGroup("cards")) + " unless on (model) quartermaster_card_hour_price", "cards"}}},
		}},
		{"In the time range", []panel{
			{form: list, title: "Card-hours given", unit: hours, description: "A half card for two hours is one card-hour.",
				queries: []query{{cardHours("allocated_cores", "namespace, model, mode"), "card-hours"}}},
			{form: list, title: "Card-hours used", unit: hours, description: "A card at 50 % for two hours is one card-hour.",
				queries: []query{{cardHours("utilization", "namespace, model, mode"), "card-hours"}}},
			{form: list, title: "Used part of the card-hours", unit: percent, description: "Of the card-hours that the namespace was given.",
				queries: []query{{inPercent(cardHours("utilization", "namespace")) + " / (" + cardHours("allocated_cores", "namespace") + ")", "used"}}},
			{form: list, title: "Cost at the chosen price", unit: count, description: "What the bill counts, at the price of a card-hour that is typed above: the same for all models.",
				queries: []query{{"$price * " + by("sum", "namespace", billedHours()), "cost"}}},
		}},
	},
}
