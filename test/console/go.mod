// The console on a real API server, asked with the real tokens of two namespaces.
module quartermaster.io/test/console

go 1.26.0

require quartermaster.io/test/chart v0.0.0

require (
	go.yaml.in/yaml/v2 v2.4.2 // indirect
	sigs.k8s.io/yaml v1.6.0 // indirect
)

replace quartermaster.io/test/chart => ../chart
