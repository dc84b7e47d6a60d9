// The chart's dashboards for Grafana, from one source. test/monitoring writes them as JSON and tests them.
module quartermaster.io/charts/dashboards

go 1.26.0

require github.com/grafana/grafana-foundation-sdk/go v0.0.22
