// The chart's rules for Prometheus: unit tests by promtool, and a real Prometheus that scrapes the operator and an agent.
module quartermaster.io/test/monitoring

go 1.26.0

require (
	github.com/grafana/grafana-foundation-sdk/go v0.0.22
	quartermaster.io/charts/dashboards v0.0.0
	quartermaster.io/test/chart v0.0.0
	sigs.k8s.io/yaml v1.6.0
)

require go.yaml.in/yaml/v2 v2.4.2 // indirect

replace (
	quartermaster.io/charts/dashboards => ../../charts/dashboards
	quartermaster.io/test/chart => ../chart
)
