package chart

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// Everything that the chart can bring, and whatever makes it listen.
const listeners = "{networkPolicy: true, pgpu_enable: true, console: {enabled: true}, monitoring: {prometheus: {install: true}}, " +
	"agent: {enabled: true, metrics: {port: 9402}}, extender: {predicates: true}, policy: {scheduler: {mode: StaticPod}}}"

// field is what lies below these names of an object; nil where there is nothing.
func field(content map[string]any, path ...string) any {
	var value any = content
	for _, name := range path {
		fields, _ := value.(map[string]any)
		value = fields[name]
	}
	return value
}

// selects says whether a NetworkPolicy is about pods with these labels.
func selects(policy Object, labels map[string]any) bool {
	wanted, _ := field(policy.Content, "spec", "podSelector", "matchLabels").(map[string]any)
	for name, label := range wanted {
		if labels[name] != label {
			return false
		}
	}
	return field(policy.Content, "spec", "podSelector", "matchExpressions") == nil
}

// admits says whether a NetworkPolicy lets someone in to a port, and whether it lets everyone.
func admits(policy Object, name string, number any) (someone, everyone bool) {
	rules, _ := field(policy.Content, "spec", "ingress").([]any)
	for _, rule := range rules {
		rule := rule.(map[string]any)
		ports, hasPorts := rule["ports"].([]any)
		covers := !hasPorts
		for _, entry := range ports {
			port := entry.(map[string]any)["port"]
			covers = covers || port == name || port == number
		}
		if covers {
			someone = true
			sources, _ := rule["from"].([]any)
			everyone = everyone || len(sources) == 0
		}
	}
	return someone, everyone
}

// Every pod of the chart that listens is behind a NetworkPolicy that names the port: without one, the whole cluster may ask. A pod of the
// node's network is none for a NetworkPolicy.
func Test_every_pod_that_listens_has_a_network_policy(t *testing.T) {
	objects, err := Template(listeners, "-n", "kube-system")
	if err != nil {
		t.Fatal(err)
	}
	var policies []Object
	for _, object := range objects {
		if object.Kind == "NetworkPolicy" {
			policies = append(policies, object)
		}
	}
	listens := regexp.MustCompile(`--[a-z.-]*(listen|port|address|bind)[a-z-]*=(:|0\.0\.0\.0|\[::\]|\d)`)
	openings := map[string]bool{} // port -> may everyone ask?
	for _, object := range objects {
		template, labels := field(object.Content, "spec", "template", "spec"), field(object.Content, "spec", "template", "metadata", "labels")
		if object.Kind == "Pod" {
			template, labels = field(object.Content, "spec"), field(object.Content, "metadata", "labels")
		}
		spec, ok := template.(map[string]any)
		if !ok || spec["containers"] == nil || spec["hostNetwork"] == true {
			continue
		}
		for _, container := range spec["containers"].([]any) {
			container := container.(map[string]any)
			ports, _ := container["ports"].([]any)
			if len(ports) == 0 && listens.MatchString(fmt.Sprint(container["args"])) {
				t.Errorf("%s %s listens, and its container %v names no port: %v", object.Kind, object.Name, container["name"], container["args"])
			}
			for _, entry := range ports {
				port := entry.(map[string]any)
				name := fmt.Sprintf("%s %s %s", object.Kind, object.Name, port["name"])
				selected, reached, open := false, false, false
				for _, policy := range policies {
					if own, _ := labels.(map[string]any); selects(policy, own) {
						someone, everyone := admits(policy, fmt.Sprint(port["name"]), port["containerPort"])
						selected, reached, open = true, reached || someone, open || everyone
					}
				}
				openings[name] = open
				switch {
				case !selected:
					t.Errorf("%s: no NetworkPolicy selects the pod, so the whole cluster may reach it", name)
				case !reached:
					t.Errorf("%s: the NetworkPolicies of the pod let no one in", name)
				}
			}
		}
	}
	// Who may come from anywhere. What names pods of all namespaces is open to the release's namespace alone.
	for name, open := range map[string]bool{"Deployment quartermaster metrics": true, "Deployment quartermaster webhook": true, "Deployment quartermaster extender": true,
		"Deployment quartermaster predicates": true, "Deployment quartermaster-console console": true, "Deployment quartermaster-console metrics": true,
		"DaemonSet quartermaster-agent metrics": false, "StatefulSet quartermaster-prometheus http": false} {
		if isOpen, ok := openings[name]; !ok || isOpen != open {
			t.Errorf("%s: it is there: %v; open to the whole cluster: %v, not %v", name, ok, isOpen, open)
		}
		delete(openings, name)
	}
	if len(openings) != 0 {
		t.Errorf("ports of which this test does not say who may reach them: %v", openings)
	}
}

// The policies of the agents and of Prometheus, with a Prometheus in another namespace too, and without one where nothing listens.
func Test_who_may_reach_the_pages_that_name_pods(t *testing.T) {
	var text strings.Builder
	for _, sources := range []string{"[]", "[{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}, podSelector: {}}]"} {
		objects, err := Template("{networkPolicySources: "+sources+", "+listeners[1:], "-n", "kube-system")
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			if object.Kind == "NetworkPolicy" && (object.Name == "quartermaster-agent" || object.Name == "quartermaster-prometheus") {
				text.WriteString("---\n" + object.Text)
			}
		}
	}
	Golden(t, "network-policies.yaml", text.String())
	for _, values := range []string{
		"{networkPolicy: true, agent: {enabled: true}}", // no port
		"{agent: {enabled: true, metrics: {port: 9402}}, monitoring: {prometheus: {install: true}}}",
	} {
		objects, err := Template(values)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			if object.Kind == "NetworkPolicy" && object.Name != "quartermaster" {
				t.Errorf("%s: NetworkPolicy %s", values, object.Name)
			}
		}
	}
}
