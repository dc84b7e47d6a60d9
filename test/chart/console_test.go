package chart

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// The console may read, and may ask who someone is and what they may do. Nothing else, whatever the values say.
func Test_the_console_may_only_read(t *testing.T) {
	objects, err := Template("{console: {enabled: true, views: {enabled: true}, hosts: [console.example.com], audienceOnly: true, frameAncestors: [\"https://portal.example.com\"], tlsSecret: tls, prometheusUrl: \"https://p\", prometheusSecret: p}, networkPolicy: true}")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	rules := 0
	for _, object := range objects {
		if !strings.HasPrefix(object.Text, "# Source: quartermaster/templates/console.yaml\n") {
			continue
		}
		text.WriteString("---\n" + object.Text)
		if object.Kind != "ClusterRole" && object.Kind != "Role" {
			continue
		}
		for _, rule := range object.Content["rules"].([]any) {
			rules++
			rule := rule.(map[string]any)
			groups, resources := rule["apiGroups"].([]any), rule["resources"].([]any)
			isReview := slices.Contains(groups, "authentication.k8s.io") || slices.Contains(groups, "authorization.k8s.io")
			for _, verb := range rule["verbs"].([]any) {
				isRead := verb == "get" || verb == "list" || verb == "watch"
				if !isRead && !(verb == "create" && isReview) {
					t.Errorf("the console may %s %v", verb, resources)
				}
			}
			if slices.Contains(resources, "secrets") || slices.Contains(resources, "*") {
				t.Errorf("the console may read %v", resources)
			}
		}
	}
	if rules == 0 {
		t.Error("the console has no rights at all")
	}
	Golden(t, "console.yaml", text.String())
}

// The aggregated API gives people reading and nothing else, and is there only where the console is.
func Test_the_views_only_read(t *testing.T) {
	const name = "quartermaster-views"
	for _, row := range []struct {
		values                  string
		hasService, isOfNewRole bool
	}{
		{"console: {enabled: true, views: {enabled: true}}", true, true},
		{"console: {enabled: true, views: {enabled: true}}\nrbac: {aggregate: false}", true, false},
		{"console: {enabled: false, views: {enabled: true}}", false, false},
		{"console: {enabled: true}", false, false},
	} {
		objects, err := Template(row.values)
		if err != nil {
			t.Fatal(err)
		}
		hasService, isOfNewRole := false, false
		for _, object := range objects {
			hasService = hasService || object.Kind == "APIService"
			if object.Kind != "ClusterRole" || object.Name != name {
				continue
			}
			isOfNewRole = strings.Contains(object.Text, "aggregate-to-edit")
			for _, rule := range object.Content["rules"].([]any) {
				for _, verb := range rule.(map[string]any)["verbs"].([]any) {
					if verb != "get" && verb != "list" {
						t.Errorf("people may %s %v", verb, rule)
					}
				}
			}
		}
		if hasService != row.hasService || isOfNewRole != row.isOfNewRole {
			t.Errorf("%s: APIService %v, part of edit %v", row.values, hasService, isOfNewRole)
		}
	}
}

// How the console says who it is to Prometheus.
func Test_the_console_signs_in_to_prometheus(t *testing.T) {
	for authentication, files := range map[string][]string{"token": {"ca", "token"}, "basic": {"ca", "password", "username"}, "none": {"ca"}} {
		objects, err := Template(fmt.Sprintf("{console: {enabled: true, prometheusUrl: \"https://p\", prometheusSecret: p, prometheusAuthentication: %s}}", authentication))
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, object := range objects {
			for _, match := range regexp.MustCompile(`--prometheus-(\w+)-file=/etc/quartermaster/prometheus/`).FindAllStringSubmatch(object.Text, -1) {
				found = append(found, match[1])
			}
		}
		if slices.Sort(found); !slices.Equal(found, files) {
			t.Errorf("%s: the files are %v, not %v", authentication, found, files)
		}
	}
}

// A Secret that the console would not send is refused before anything is installed: the console would end as often as it starts.
func Test_a_secret_for_prometheus_needs_https(t *testing.T) {
	for _, values := range []string{
		"console: {enabled: true, prometheusSecret: p, prometheusUrl: \"http://mine\"}",
		"console: {enabled: true, prometheusSecret: p, prometheusUrl: \"http://mine\", prometheusAuthentication: basic}",
		"console: {enabled: true, prometheusSecret: p}\nmonitoring: {prometheus: {install: true}}",
		"console: {enabled: true, prometheusSecret: p}",
	} {
		if _, err := Template(values); err == nil || !strings.Contains(err.Error(), "console.prometheusSecret is p, but the console asks ") ||
			!strings.Contains(err.Error(), "set console.prometheusUrl, or leave out console.prometheusSecret") {
			t.Errorf("%s: %v", values, err)
		}
	}
}

// Names and addresses that YAML could take for something else stay texts, in what the API server gets.
func Test_names_that_look_like_numbers_stay_texts(t *testing.T) {
	objects, err := Template("console: {enabled: true, tlsSecret: \"123\", prometheusSecret: \"1e3\", prometheusUrl: \"https://[::1]:9090/x\"}\n" +
		"monitoring: {prometheus: {install: true, storage: 1Gi, storageClass: \"0\"}}")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, object := range objects {
		content, err := yaml.Marshal(object.Content)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(content)
	}
	for _, part := range []string{"secretName: \"123\"\n", "secretName: \"1e3\"\n", "storageClassName: \"0\"\n", "- --prometheus-url=https://[::1]:9090/x\n"} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("no %q", part)
		}
	}
}

// What the chart's own Prometheus needs is there without another value: the agent serves metrics, and the console asks for them.
func Test_an_installed_prometheus_is_enough_for_history(t *testing.T) {
	const ask, serve, port = "--prometheus-url=http://quartermaster-prometheus:9090\n", "--metrics-port=9402\n", "{name: metrics, containerPort: 9402}"
	for values, wanted := range map[string][]string{
		"monitoring: {prometheus: {install: true}}":                                                                  {ask, serve, port},
		"monitoring: {prometheus: {install: true}}\nagent: {metrics: {port: 0}}":                                     {ask},
		"monitoring: {prometheus: {install: true}}\nagent: {metrics: {port: 9500}}":                                  {ask, "--metrics-port=9500\n"},
		"monitoring: {prometheus: {install: true}}\nconsole: {prometheusUrl: \"https://mine.example\"}":              {"--prometheus-url=https://mine.example\n", serve, port},
		"monitoring: {prometheus: {install: false}}\nagent: {metrics: {port: null}}\nconsole: {prometheusUrl: \"\"}": nil,
		"monitoring: null": nil,
	} {
		objects, err := Template(values, "--set", "console.enabled=true,agent.enabled=true")
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for _, object := range objects {
			text.WriteString(object.Text)
		}
		for _, part := range []string{ask, serve, port, "--metrics-port", "--prometheus-url"} {
			expected := slices.ContainsFunc(wanted, func(one string) bool { return strings.HasPrefix(one, part) })
			if strings.Contains(text.String(), part) != expected {
				t.Errorf("%s: %q is there: %v, expected %v", values, part, !expected, expected)
			}
		}
		for _, part := range wanted {
			if !strings.Contains(text.String(), part) {
				t.Errorf("%s: no %q", values, part)
			}
		}
	}
}

// It is off by default, and absent where the values of an older chart have no word of it.
func Test_the_console_is_off_by_default(t *testing.T) {
	for _, values := range []string{"", "{console: null}"} {
		objects, err := Template(values)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			if strings.Contains(object.Name, "console") {
				t.Errorf("%s %s with %q", object.Kind, object.Name, values)
			}
		}
	}
}
