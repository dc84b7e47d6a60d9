// The chart and its package for the Alauda Container Platform: what values become, what is refused, what a real cluster does with it.
module quartermaster.io/test/chart

go 1.26.0

require sigs.k8s.io/yaml v1.6.0

require go.yaml.in/yaml/v2 v2.4.2 // indirect
