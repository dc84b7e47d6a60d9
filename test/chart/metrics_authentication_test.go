package chart

import (
	"strings"
	"testing"
)

// Every program of the chart, and whatever scrapes them.
const scrapes = "agent: {enabled: true, metrics: {port: 9402, podMonitor: {enabled: true}}}\nconsole: {enabled: true}\n" +
	"monitoring: {prometheus: {install: true}}\nmetrics: {scrapeAnnotations: true, "

// Each container with a metrics port asks who calls, its probes speak TLS, and its pods are scraped so; without the switch nothing of it is there.
func Test_one_switch_guards_every_metrics_port(t *testing.T) {
	for values, on := range map[string]bool{"": false, "authentication: false, ": false, "authentication: true, ": true} {
		objects, err := Template(scrapes + values + "serviceMonitor: {enabled: true}}")
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		ports := 0
		for _, object := range objects {
			text.WriteString(object.Text)
			containers, _ := field(object.Content, "spec", "template", "spec", "containers").([]any)
			for _, entry := range containers {
				container := entry.(map[string]any)
				listed, _ := container["ports"].([]any)
				for _, port := range listed {
					if port.(map[string]any)["name"] != "metrics" {
						continue
					}
					ports++
					flag := false
					for _, argument := range container["args"].([]any) {
						flag = flag || argument == "--metrics-authentication"
					}
					if flag != on {
						t.Errorf("%q: %s asks who calls: %v", values, object.Name, flag)
					}
					for _, probe := range []string{"livenessProbe", "readinessProbe"} {
						get, _ := field(container, probe, "httpGet").(map[string]any)
						if get != nil && get["port"] == "metrics" && (get["scheme"] == "HTTPS") != on {
							t.Errorf("%q: %s of %s has scheme %v", values, probe, object.Name, get["scheme"])
						}
					}
				}
			}
			annotations, _ := field(object.Content, "spec", "template", "metadata", "annotations").(map[string]any)
			if annotations["prometheus.io/port"] != nil && (annotations["prometheus.io/scheme"] == "https") != on {
				t.Errorf("%q: %s has %v", values, object.Name, annotations)
			}
		}
		if ports != 3 {
			t.Errorf("%q: %d metrics ports, not those of operator, agent and console", values, ports)
		}
		for _, part := range []string{"quartermaster-metrics", "nonResourceURLs", "auth-delegator", "https", "bearerTokenFile", "service-account-token"} {
			if count := strings.Count(withoutDocuments(text.String()), part); (count > 0) != on {
				t.Errorf("%q: %q is there %d times", values, part, count)
			}
		}
	}
}

// withoutDocuments is the text without what describes and comments.
func withoutDocuments(text string) string {
	var out strings.Builder
	for _, line := range strings.Split(text, "\n") {
		if plain := strings.TrimSpace(line); !strings.HasPrefix(plain, "#") && !strings.Contains(plain, "description") && !strings.Contains(plain, "https://") {
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}

// What the switch brings, with each kind of monitor.
func Test_what_authentication_of_metrics_brings(t *testing.T) {
	var text strings.Builder
	for _, monitor := range []string{"serviceMonitor", "podMonitor"} {
		objects, err := Template(scrapes + "authentication: true, " + monitor + ": {enabled: true}}")
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			config, _ := field(object.Content, "data", "prometheus.yaml").(string)
			switch {
			case config != "" && monitor == "serviceMonitor":
				text.WriteString("---\n" + config)
			case strings.HasSuffix(object.Kind, "Monitor") || object.Name == "quartermaster-metrics" || strings.HasSuffix(object.Name, "-reviews"):
				text.WriteString("---\n" + object.Text)
			}
		}
	}
	Golden(t, "metrics-authentication.yaml", text.String())
}

// The account with a Secret is there for PodMonitors alone.
func TestS5_a_token_without_end_is_made_for_pod_monitors_alone(t *testing.T) {
	for values, wanted := range map[string]bool{
		"metrics: {authentication: true}":                                                                                             false,
		"metrics: {authentication: true, serviceMonitor: {enabled: true}}":                                                            false,
		"metrics: {authentication: true, podMonitor: {enabled: true}}":                                                                true,
		"{metrics: {authentication: true}, agent: {enabled: true, metrics: {port: 9402, podMonitor: {enabled: true}}}}":               true,
		"{metrics: {authentication: true}, agent: {enabled: false, metrics: {port: 9402, podMonitor: {enabled: true}}}}":              false,
		"{metrics: {authentication: true, podMonitor: null}, agent: {enabled: true, metrics: null}, monitoring: null}":                false,
		"{metrics: {authentication: false, podMonitor: {enabled: true}}, agent: {enabled: true, metrics: {port: 9402}}}":              false,
		"{metrics: {authentication: null, podMonitor: {enabled: true}}, agent: {enabled: true, metrics: {podMonitor: null}}}":         false,
		"{metrics: {authentication: true}, agent: {enabled: true, metrics: {port: 9402}}, monitoring: {prometheus: {install: true}}}": false,
	} {
		objects, err := Template(values)
		if err != nil {
			t.Errorf("%s: %v", values, err)
		}
		found := map[string]bool{}
		for _, object := range objects {
			if object.Name == "quartermaster-metrics" {
				found[object.Kind] = true
			}
		}
		if found["Secret"] != wanted || found["ServiceAccount"] != wanted {
			t.Errorf("%s: %v", values, found)
		}
	}
}
