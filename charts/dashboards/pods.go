package dashboards

// ofGiven is a part of what a pod was given, over those of its shares of which both are known.
func ofGiven(labels, used, given string) string {
	used, given = perShare(used, podsChosen), perShare(given, podsChosen)
	return inPercent(by("sum", labels, used+" and "+given)) + " / (" + by("sum", labels, given+" and "+used) + " > 0)"
}

var pods = board{
	name:        "pods",
	title:       "Quartermaster / Pods",
	description: "What do these pods and containers use of what they were given? Choose several pods to see them next to each other.",
	variables:   []variable{typeChoice, modelChoice, nodeChoice, namespaceChoice, podChoice},
	rows: []row{
		{"Pods", []panel{
			{title: "Utilization of what the pod was given", unit: percent,
				description: "100 % is all that the pod was given. It is more where nothing limits a share.",
				queries:     []query{{ofGiven("namespace, pod", "utilization_ratio", "allocated_cores_ratio"), "{{namespace}}/{{pod}}"}}},
			{title: "Utilization in cards", unit: percent, description: "100 % is one whole card.",
				queries: []query{{inPercent(by("sum", "namespace, pod", perShare("utilization_ratio", podsChosen))), "{{namespace}}/{{pod}}"}}},
			{title: "Memory used of what the pod was given", unit: percent, description: "At 100 % the next allocation fails.",
				queries: []query{{ofGiven("namespace, pod", "memory_used_bytes", "allocated_memory_bytes"), "{{namespace}}/{{pod}}"}}},
			{title: "Memory used", unit: gib, description: "On all cards of the pod.",
				queries: []query{{inGiB(by("sum", "namespace, pod", perShare("memory_used_bytes", podsChosen))), "{{namespace}}/{{pod}}"}}},
			{title: "Memory of $pod", unit: gib, width: 6, repeat: "pod", description: "What it was given, and what it uses.",
				queries: []query{{inGiB(by("sum", "namespace, pod", perShare("allocated_memory_bytes", podsChosen))), "{{namespace}} given"},
					{inGiB(by("sum", "namespace, pod", perShare("memory_used_bytes", podsChosen))), "{{namespace}} used"}}},
		}},
		{"Containers", []panel{
			{title: "Utilization of what the container was given", unit: percent, description: "100 % is all that the container was given.",
				queries: []query{{ofGiven("namespace, pod, container", "utilization_ratio", "allocated_cores_ratio"), "{{namespace}}/{{pod}}/{{container}}"}}},
			{title: "Memory left", unit: gib, description: "What the container was given and does not use, on its fullest card.",
				queries: []query{{inGiB(by("min", "namespace, pod, container",
					perShare("allocated_memory_bytes", podsChosen)+" - "+perShare("memory_used_bytes", podsChosen))), "{{namespace}}/{{pod}}/{{container}}"}}},
			{title: "Processes", unit: count, description: "Processes on cards that the agent sees.",
				queries: []query{{by("sum", "namespace, pod, container", perShare("processes", podsChosen)), "{{namespace}}/{{pod}}/{{container}}"}}},
			{title: "Clients of MPS", unit: count, description: "Those of the processes that are clients of MPS.",
				queries: []query{{by("sum", "namespace, pod, container", perShare("mps_clients", podsChosen)), "{{namespace}}/{{pod}}/{{container}}"}}},
			{form: list, title: "Shares", unit: plain, width: 24, description: "One row per container and card.",
				queries: []query{{perShare("allocated_cores_ratio", podsChosen), "cards given"},
					{inGiB(perShare("allocated_memory_bytes", podsChosen)), "GiB given"},
					{inGiB(perShare("memory_used_bytes", podsChosen)), "GiB used"},
					{inPercent(perShare("utilization_ratio", podsChosen)), "% of the card"}}},
			{form: list, title: "Containers that use less than 30 % of their memory", unit: percent, width: 24,
				description: "Highest use in the time range. A smaller share would do. It needs the chart's rules.",
				queries: []query{{inPercent(by("max", shareLabels, "max_over_time(share:quartermaster_share_memory_used:ratio{"+podsChosen+"}[$__range])")) +
					" < 30", "most"}}},
		}},
	},
}
