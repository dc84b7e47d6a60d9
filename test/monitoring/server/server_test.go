package server

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"quartermaster.io/test/chart"
	"quartermaster.io/test/chart/lane"
	"sigs.k8s.io/yaml"
)

// documented is a row of docs/metrics.md.
type documented struct {
	kind   string
	labels []string
}

// page is the metrics that these sections of docs/metrics.md have.
func page(t *testing.T, sections ...string) map[string]documented {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(chart.Root(), "docs/metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]documented{}
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([a-z]+) \\| ([^|]*)\\|")
	for _, part := range strings.Split(string(text), "\n## ") {
		if title, body, _ := strings.Cut(part, "\n"); slices.Contains(sections, title) {
			for _, match := range row.FindAllStringSubmatch(body, -1) {
				labels := regexp.MustCompile("[a-z_]+").FindAllString(match[3], -1)
				slices.Sort(labels)
				out[match[1]] = documented{match[2], labels}
			}
		}
	}
	return out
}

// sameAs compares a page that a program serves with the documentation, in both directions.
func sameAs(t *testing.T, program, served string, known map[string]documented) {
	t.Helper()
	types := map[string]bool{}
	for _, match := range typePattern.FindAllStringSubmatch(served, -1) {
		types[match[1]] = true
		if row, ok := known[match[1]]; !ok {
			t.Errorf("docs/metrics.md does not have %s of %s", match[1], program)
		} else if row.kind != match[2] {
			t.Errorf("%s is a %s, and docs/metrics.md says %s", match[1], match[2], row.kind)
		}
	}
	for name := range known {
		if !types[name] {
			t.Errorf("docs/metrics.md has %s, which %s does not serve", name, program)
		}
	}
	for _, one := range samples(t, served) {
		name := one.name
		for _, ending := range []string{"_bucket", "_sum", "_count"} {
			if base, ok := strings.CutSuffix(name, ending); ok && known[base].kind == "histogram" {
				name = base
			}
		}
		var labels []string
		for label := range one.labels {
			if label != "le" {
				labels = append(labels, label)
			}
		}
		slices.Sort(labels)
		if row := known[name]; !slices.Equal(row.labels, labels) {
			t.Errorf("%s of %s has the labels %v, and docs/metrics.md says %v", one.name, program, labels, row.labels)
		}
	}
}

// prometheus is one with the chart's rules and the scrape settings of the chart's PodMonitors, on these addresses.
func prometheus(t *testing.T, targets map[string][]string) string {
	t.Helper()
	objects, err := chart.Template("metrics: {podMonitor: {enabled: true}}\nagent: {enabled: true, metrics: {port: 9402, podMonitor: {enabled: true}}}")
	if err != nil {
		t.Fatal(err)
	}
	var scrapes []any
	for _, object := range objects {
		if object.Kind != "PodMonitor" {
			continue
		}
		endpoint := object.Content["spec"].(map[string]any)["podMetricsEndpoints"].([]any)[0].(map[string]any)
		scrape := map[string]any{"job_name": namespace + "/" + object.Name, "metrics_path": endpoint["path"],
			"static_configs": []any{map[string]any{"targets": targets[object.Name],
				"labels": map[string]string{"namespace": namespace, "pod": object.Name + "-0", "container": "main"}}}}
		if endpoint["honorLabels"] != nil {
			scrape["honor_labels"] = endpoint["honorLabels"]
		}
		if endpoint["relabelings"] != nil {
			scrape["relabel_configs"] = relabelConfigs(t, endpoint["relabelings"])
		}
		scrapes = append(scrapes, scrape)
	}
	if len(scrapes) != len(targets) {
		t.Fatalf("%d PodMonitors in the chart", len(scrapes))
	}
	return startPrometheus(t, map[string]any{"global": map[string]string{"scrape_interval": "1s", "evaluation_interval": "1s"},
		"rule_files": []string{filepath.Join(chart.Chart(), "files/rules.yaml")}, "scrape_configs": scrapes})
}

// relabelConfigs are the relabelings of a PodMonitor as Prometheus names their fields.
func relabelConfigs(t *testing.T, relabelings any) (out any) {
	t.Helper()
	text, err := json.Marshal(relabelings)
	if err != nil {
		t.Fatal(err)
	}
	names := strings.NewReplacer(`"sourceLabels"`, `"source_labels"`, `"targetLabel"`, `"target_label"`)
	if err := json.Unmarshal([]byte(names.Replace(string(text))), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func startPrometheus(t *testing.T, config any) string {
	t.Helper()
	return startPrometheusOn(t, config, filepath.Join(t.TempDir(), "data"))
}

// startPrometheusOn is the same with what the folder has from before, and more options.
func startPrometheusOn(t *testing.T, config any, data string, options ...string) string {
	t.Helper()
	folder, port := t.TempDir(), freePort(t)
	text, err := yaml.Marshal(config)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "prometheus.yml"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	start(t, nil, chart.Tool("prometheus-*", "prometheus"), append(options, "--config.file", filepath.Join(folder, "prometheus.yml"),
		"--storage.tsdb.path", data, "--web.listen-address", "127.0.0.1:"+port)...)
	address := "http://127.0.0.1:" + port
	if len(options) == 0 { // with more it may take no one without a password
		until(t, time.Minute, "Prometheus is ready", func() error { _, err := get(address + "/-/ready"); return err })
	}
	return address
}

// installed is the Prometheus that the chart installs: the files that are in the cluster, with the rights of its account. It runs outside the cluster, so
// it is given the way to the API server, and pods whose address is this machine.
func installed(t *testing.T, ports map[string]string) string {
	t.Helper()
	for name, port := range ports {
		app, _, _ := strings.Cut(name, ".")
		kubectl(t, fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q, "labels": {"app.kubernetes.io/name": %q}}, "spec": {"schedulerName": "none",
			"containers": [{"name": "main", "image": "none.test/none:1", "ports": [{"name": "metrics", "containerPort": %s}, {"name": "other", "containerPort": 1}]}]}}`,
			name, app, port), "apply", "-n", namespace, "-f", "-")
		kubectl(t, "", "patch", "pod", name, "-n", namespace, "--subresource=status", "-p", `{"status": {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}}`)
	}
	var files struct{ Data map[string]string }
	if err := json.Unmarshal([]byte(kubectl(t, "", "get", "configmap", "quartermaster-prometheus", "-n", namespace, "-o", "json")), &files); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, text := range files.Data {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var config map[string]any
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(files.Data["prometheus.yaml"], "/etc/prometheus", folder)), &config); err != nil || config == nil {
		t.Fatalf("it has no configuration: %v", err)
	}
	config["global"] = map[string]string{"scrape_interval": "1s", "evaluation_interval": "1s"}
	account := asAccount(t, "quartermaster-prometheus")
	for _, scrape := range config["scrape_configs"].([]any) {
		pods := scrape.(map[string]any)["kubernetes_sd_configs"].([]any)[0].(map[string]any)
		pods["kubeconfig_file"], pods["namespaces"] = account, map[string]any{"names": []string{namespace}}
		if bearer, ok := scrape.(map[string]any)["authorization"].(map[string]any); ok {
			bearer["credentials_file"] = filepath.Join(folder, "token") // as its pod has it
		}
	}
	token := kubectl(t, "", "create", "token", "quartermaster-prometheus", "-n", namespace)
	if err := os.WriteFile(filepath.Join(folder, "token"), []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	return startPrometheus(t, config)
}

// ask is what the API of Prometheus answers, below `data`.
func ask(address, path string, out any) error {
	body, err := get(address + path)
	if err != nil {
		return err
	}
	var answer struct{ Data json.RawMessage }
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		return err
	}
	return json.Unmarshal(answer.Data, out)
}

func query(address, expression string) (series, error) {
	var data struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
	if err := ask(address, "/api/v1/query?query="+url.QueryEscape(expression), &data); err != nil {
		return nil, err
	}
	out := series{}
	for _, one := range data.Result {
		value, err := strconv.ParseFloat(one.Value[1].(string), 64)
		if err != nil {
			return nil, err
		}
		out[key(one.Metric)] = value
	}
	return out, nil
}

// ruleState is a rule as Prometheus runs it.
type ruleState struct {
	Name, Type, Health, LastError, State string
	Alerts                               []struct{ Labels, Annotations map[string]string }
}

func ruleStates(address string) (out []ruleState, err error) {
	var data struct{ Groups []struct{ Rules []ruleState } }
	err = ask(address, "/api/v1/rules", &data)
	for _, group := range data.Groups {
		out = append(out, group.Rules...)
	}
	return out, err
}

const objects = `
apiVersion: quartermaster.io/v1alpha1
kind: AcceleratorPolicy
metadata: {name: default}
spec:
  modules: {pgpu: {enabled: true}, vgpu: {enabled: true}}
  chargeback: {currency: EUR, organizationLabel: example.com/cost-center, prices: [{model: "*T4*", cardHour: "2.50"}]}
---
{apiVersion: v1, kind: Pod, metadata: {name: train-0}, spec: {nodeName: t4-0, containers: [{name: main, image: "none.test/none:1"}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: train-1}, spec: {nodeName: t4-0, containers: [{name: main, image: "none.test/none:1"}]}}
---
apiVersion: v1
kind: Pod
metadata:
  name: infer-0
  annotations:
    quartermaster.io/placement: '{"v":1,"node":"t4-1","containers":{"main":[{"card":"GPU-74200000-0000-4000-8000-111111111001","cores":60,"memoryMiB":4096}]}}'
spec: {nodeName: t4-1, containers: [{name: main, image: "none.test/none:1"}]}
`

func TestS75_a_real_prometheus_runs_the_rules_on_real_pages(t *testing.T) {
	webhook := freePort(t)
	call(t, "", chart.Tool("kubernetes-*", "helm"), "install", "quartermaster", chart.Chart(), "-n", namespace, "--create-namespace", "--set",
		"replicaCount=0,agent.enabled=true,agent.metrics.port=9402,monitoring.prometheus.install=true,monitoring.rules.hami=true,monitoring.rules.dcgm=true,admission.url=https://127.0.0.1:"+webhook)
	sim := chart.Tool("kubernetes-*", "sim")
	call(t, "", sim, "nodes", "--kubeconfig", kubeconfig, "--profile", "t4=3")
	start(t, nil, sim, "plugins", "--kubeconfig", kubeconfig)
	port := freePort(t)
	operator := start(t, []string{"POD_NAMESPACE=" + namespace}, program, "controller", "--kubeconfig", asAccount(t, "quartermaster"),
		"--metrics-address", "127.0.0.1:"+port, "--webhook-address", "127.0.0.1:"+webhook, "--webhook-url", "https://127.0.0.1:"+webhook, "--extender-address", "127.0.0.1:0", "--predicates-address", "127.0.0.1:0")
	until(t, 30*time.Second, "the operator answers", func() error { _, err := get("http://127.0.0.1:" + port + "/healthz"); return err })
	kubectl(t, objects, "apply", "-f", "-")
	kubectl(t, "", "label", "node", "t4-0", "nvidia-device-enable=pgpu")
	kubectl(t, "", "label", "node", "t4-1", "nvidia-device-enable=vgpu")
	kubectl(t, "", "label", "node", "t4-2", "nvidia-device-enable=vgpu") // no agent runs there
	until(t, time.Minute, "the nodes are in their modes", func() error {
		if phases := kubectl(t, "", "get", "anode", "-o", "jsonpath={.items[*].status.phase}"); phases != "Ready Ready Ready" {
			return fmt.Errorf("they are %q", phases)
		}
		return nil
	})
	kubectl(t, paid, "apply", "-f", "-")
	agents := []string{startAgent(t, "t4-0", "000000000", "--pod-resources", lane.Kubelet(t)), startAgent(t, "t4-1", "111111111")}
	address := prometheus(t, map[string][]string{"quartermaster": {"127.0.0.1:" + port},
		"quartermaster-agent": {"127.0.0.1:" + agents[0], "127.0.0.1:" + agents[1]}})

	// The pages, when each share has all of its series.
	var pages []string
	until(t, 30*time.Second, "three shares", func() error {
		pages = nil
		var found int
		for _, each := range append([]string{port}, agents...) {
			text, err := get("http://127.0.0.1:" + each + "/metrics")
			if err != nil {
				return err
			}
			pages = append(pages, text)
			found += strings.Count(text, "\nquartermaster_share_allocated_memory_bytes{") + strings.Count(text, "\nquartermaster_share_utilization_ratio{")
		}
		if found != 6 {
			return fmt.Errorf("%d of 6 series in\n%s\n%s", found, pages[1], pages[2])
		}
		if groups := strings.Count(pages[0], "\nquartermaster_allocated_cores{"); groups != 2 {
			return fmt.Errorf("%d groups hold cards, wanted 2: %s\n%s", groups, kubectl(t, "", "get", "pods", "-n", "paid", "-o", "yaml"), pages[0])
		}
		return nil
	})
	sameAs(t, "the operator", pages[0], page(t, "Every program", "The operator"))
	sameAs(t, "the agent", pages[1], page(t, "Every program", "The agent for cards"))
	for _, wanted := range []string{`{node="t4-0",mode="pgpu",phase="Ready"}`, `{node="t4-1",mode="vgpu",phase="Ready"}`} {
		if !strings.Contains(pages[0], "quartermaster_node_phase_since_timestamp_seconds"+wanted) {
			t.Errorf("the operator's page has no phase %s", wanted)
		}
	}
	if !strings.Contains(pages[0], "\nquartermaster_module_nodes{module=\"vgpu\",state=\"ready\"} 2\n") {
		t.Error("the operator's page does not say that the plugin of vgpu is ready on two nodes")
	}

	// Every rule is accepted and evaluated, and each record is what the pages say.
	wanted := expected(slices.Concat(samples(t, pages[0]), samples(t, pages[1]), samples(t, pages[2])))
	var states []ruleState
	until(t, 30*time.Second, "every rule is evaluated", func() (err error) {
		if states, err = ruleStates(address); err != nil {
			return err
		}
		for _, rule := range states {
			if rule.Health != "ok" {
				return fmt.Errorf("%s is %q: %s", rule.Name, rule.Health, rule.LastError)
			}
		}
		if len(states) == 0 {
			return fmt.Errorf("there are none")
		}
		return nil
	})
	var records []string
	for _, rule := range states {
		if rule.Type == "recording" && !slices.Contains(records, rule.Name) {
			records = append(records, rule.Name)
		}
	}
	slices.Sort(records)
	var computed []string
	for record := range wanted {
		computed = append(computed, record)
	}
	slices.Sort(computed)
	if !reflect.DeepEqual(records, computed) {
		t.Errorf("the rules record\n%v, and this test computes\n%v", records, computed)
	}
	for record, values := range wanted {
		until(t, 20*time.Second, record, func() error {
			is, err := query(address, record)
			if found := values.differences(is); err == nil && len(found) > 0 {
				err = fmt.Errorf("%s", strings.Join(found, "\n"))
			}
			return err
		})
	}

	// Every panel of every dashboard, and what it shows.
	var all []sample
	for _, text := range pages {
		all = append(all, samples(t, text)...)
	}
	dashboardsAgree(t, address, all)
	variablesOffer(t, address, all)
	dashboardsSayWhatTheAPISays(t, address)
	quotasAreThoseOfTheAPI(t, address)
	costsAreThoseOfTheAPI(t, address)
	monthCostsWhatTheReportSays(t, address)

	// The Prometheus that the chart installs finds the same three programs, and no port that is not for metrics.
	own := installed(t, map[string]string{"quartermaster.0": port, "quartermaster-agent.0": agents[0], "quartermaster-agent.1": agents[1]})
	until(t, 30*time.Second, "the installed Prometheus", func() error {
		healthy, err := query(own, `sum by (job) (up{instance=~"127.0.0.1:.*"})`)
		if found := (series{`job="quartermaster"`: 1, `job="quartermaster-agent"`: 2}).differences(healthy); err == nil && len(found) > 0 {
			err = fmt.Errorf("up: %v", found)
		}
		if err != nil {
			return err
		}
		for _, record := range []string{"share:quartermaster_share_memory_used:ratio", "container_gpu_utilization", "namespace:quartermaster_allocated_cores:sum"} {
			is, err := query(own, record)
			if found := wanted[record].differences(is); err == nil && len(found) > 0 {
				err = fmt.Errorf("%s: %v", record, found)
			}
			if err != nil {
				return err
			}
		}
		// HAMi's names are switched on here; the other Prometheus does not have them.
		hami, err := query(own, "hami_host_gpu_memory_used_bytes")
		if err == nil && len(hami) != 4 {
			err = fmt.Errorf("%d cards have HAMi's names, wanted 4", len(hami))
		}
		return err
	})
	if states, err := ruleStates(own); err != nil || !slices.ContainsFunc(states, func(rule ruleState) bool { return rule.Name == "card:DCGM_FI_DEV_GPU_UTIL:ratio" }) {
		t.Errorf("the installed Prometheus does not have the rules of dcgm: %v", err)
	}

	if folder := os.Getenv("QM_PROMETHEUS_OPERATOR"); folder != "" {
		theirs := theOperatorsPrometheus(t, folder, map[string][]string{"quartermaster": {port}, "quartermaster-agent": agents})
		until(t, 30*time.Second, "the Prometheus of the Prometheus operator", func() error {
			healthy, err := query(theirs, `sum by (job) (up)`)
			if found := (series{`job="quartermaster/quartermaster"`: 1, `job="quartermaster/quartermaster-agent"`: 2}).differences(healthy); err == nil && len(found) > 0 {
				err = fmt.Errorf("up: %v", found)
			}
			for record, values := range wanted {
				if err != nil {
					break
				}
				is, fails := query(theirs, record)
				if err = fails; err == nil {
					if found := values.differences(is); len(found) > 0 {
						err = fmt.Errorf("%s: %v", record, found)
					}
				}
			}
			return err
		})
	}

	// The reports read it. No share has been measured for a day.
	if out := call(t, "", program, "report", "capacity", "--kubeconfig", kubeconfig, "--prometheus-url", address); !strings.Contains(out, "Tesla-T4") {
		t.Error(out)
	}
	if out, err := exec.Command(program, "report", "right-size", "--prometheus-url", address).CombinedOutput(); err == nil || !strings.Contains(string(out), "of a day ago") {
		t.Errorf("%v: %s", err, out)
	}

	// The operator goes, and the alert knows.
	active := func(name string) (labels map[string]string) {
		states, _ := ruleStates(address)
		for _, rule := range states {
			for _, alert := range rule.Alerts {
				if rule.Name == name {
					labels = alert.Labels
				}
			}
		}
		return labels
	}
	if labels := active("QuartermasterDown"); labels != nil {
		t.Errorf("QuartermasterDown while it runs: %v", labels)
	}
	operator.Process.Kill()
	until(t, 20*time.Second, "QuartermasterDown", func() error {
		if active("QuartermasterDown") == nil {
			return fmt.Errorf("not active")
		}
		return nil
	})

	// With authentication the installed Prometheus has its page by its own token, and a stranger has not.
	upgraded(t, "metrics.authentication=true")
	guarded := freePort(t)
	start(t, []string{"POD_NAMESPACE=" + namespace}, program, "controller", "--kubeconfig", asAccount(t, "quartermaster"),
		"--metrics-address", "127.0.0.1:"+guarded, "--metrics-authentication")
	own = installed(t, map[string]string{"quartermaster.guarded": guarded})
	until(t, 30*time.Second, "the installed Prometheus with its token", func() error {
		healthy, err := query(own, fmt.Sprintf(`up{job="quartermaster", instance="127.0.0.1:%s"} == 1`, guarded))
		if err == nil && len(healthy) != 1 {
			err = fmt.Errorf("%v", healthy)
		}
		return err
	})
	stranger := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	answer, err := stranger.Get("https://127.0.0.1:" + guarded + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	if answer.Body.Close(); answer.StatusCode != 401 {
		t.Errorf("a stranger gets %s", answer.Status)
	}
}
