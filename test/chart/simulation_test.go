package chart

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func Test_simulated_nodes_are_off_by_default(t *testing.T) {
	objects, err := Template("agent: {enabled: true}")
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if strings.Contains(object.Name, "simulat") || strings.Contains(object.Text, "kwok") || strings.Contains(object.Text, "sim.quartermaster.io") {
			t.Errorf("%s %s is there, or names simulated nodes", object.Kind, object.Name)
		}
	}
}

func Test_simulated_nodes_and_the_rights_of_who_plays_them(t *testing.T) {
	objects, err := Template("{simulate: {nodes: \"a100=2, t4=4\", force: true}, image: {registry: registry.example, tag: \"1\"}, agent: {enabled: true}}")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, object := range objects {
		if strings.HasPrefix(object.Text, "# Source: quartermaster/templates/simulation.yaml\n") {
			text.WriteString("---\n" + object.Text)
		}
		if object.Kind == "Role" && object.Name == "quartermaster-uninstall" && !strings.Contains(object.Text, "quartermaster-simulation]") {
			t.Error("what comes before helm uninstall cannot stop the simulation")
		}
		if object.Kind == "DaemonSet" && object.Name == "quartermaster-agent" && strings.Count(object.Text, "{key: sim.quartermaster.io/profile, operator: DoesNotExist}") != 5 {
			t.Error("the agent goes to simulated nodes, where it never runs")
		}
	}
	Golden(t, "simulation.yaml", text.String())

	objects, err = Template("simulate: {nodes: t4=1}", "--kube-version", "1.30.0", "--api-versions", "")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(objects, func(o Object) bool {
		return o.Kind == "Deployment" && o.Name == "quartermaster-simulation" && !strings.Contains(o.Text, "--force")
	}) {
		t.Error("there is no simulation on Kubernetes 1.30, or it is forced")
	}
}

// The chart knows the models of test/sim, and refuses others in one line with what is allowed.
func Test_unknown_models_of_simulated_nodes_are_refused(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(Root(), "test/sim/profiles/*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	var models []string
	for _, file := range files {
		models = append(models, strings.TrimSuffix(filepath.Base(file), ".yaml"))
	}
	if _, err := Template("simulate: {nodes: \"" + strings.Join(models, "=1,") + "=1\"}"); err != nil {
		t.Error(err)
	}
	allowed := "allowed: " + strings.Join(models, ", ") + ", each with a number"
	refused(t, map[string]string{
		"simulate: {nodes: a10=1}":           "simulate.nodes is a10=1, and \"a10\" is no model; " + allowed,
		"simulate: {nodes: \"t4=1,\"}":       "and \"\" is no model; " + allowed,
		"simulate: {nodes: t4}":              "\"t4\" is not a model with 1 to 999 nodes; write it as t4=2",
		"simulate: {nodes: t4=0}":            "\"t4=0\" is not a model with 1 to 999 nodes",
		"simulate: {nodes: t4=1000}":         "\"t4=1000\" is not a model with 1 to 999 nodes",
		"simulate: {nodes: \"t4=1=2\"}":      "\"t4=1=2\" is not a model with 1 to 999 nodes",
		"simulate: {nodes: \"t4=1,t4=2\"}":   "names t4 twice",
		"simulate: {nodes: {t4: 1}}":         "at '/simulate/nodes': got object, want string",
		"{simulate: {nodes: a100=2}, t4: 4}": "at '/t4': value must be 'left out: it is a model of simulate.nodes",
		"simulate: {nodes: t4=1, resources: {requests: {memory: 1Gi}, limits: {memory: 1Mi}}}": "simulate.resources.requests.memory is 1Gi, which is more than limits.memory",
	})
}
