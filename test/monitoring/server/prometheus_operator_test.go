package server

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"quartermaster.io/test/chart"
	"sigs.k8s.io/yaml"
)

// The Prometheus operator reads the chart's monitors and rules. There is one where QM_PROMETHEUS_OPERATOR names a folder with it (run.sh --help).
const all = `{apiVersion: monitoring.coreos.com/v1, kind: Prometheus, metadata: {name: all}, spec: {replicas: 0, serviceAccountName: default,
  serviceMonitorSelector: {}, podMonitorSelector: {}, ruleSelector: {}}}`

// theOperatorsPrometheus is a Prometheus with the files that the Prometheus operator makes of what the chart installs. These ports are those of
// the chart's pods, by the name of the app.
func theOperatorsPrometheus(t *testing.T, folder string, ports map[string][]string) string {
	t.Helper()
	kubectl(t, "", "apply", "--server-side", "-f", filepath.Join(folder, "crds"))
	kubectl(t, "", "wait", "--for=condition=Established", "--timeout=60s", "crd", "prometheuses.monitoring.coreos.com", "prometheusrules.monitoring.coreos.com",
		"podmonitors.monitoring.coreos.com", "servicemonitors.monitoring.coreos.com")
	kubectl(t, all, "apply", "-n", namespace, "-f", "-")
	start(t, []string{"KUBECONFIG=" + kubeconfig}, filepath.Join(folder, "operator"), "--web.listen-address=127.0.0.1:"+freePort(t))
	podsOfTheChart(t, ports)

	values := "monitoring.rules.enabled=true,agent.metrics.podMonitor.enabled=true,"
	upgraded(t, values+"metrics.serviceMonitor.enabled=true")
	configured(t, "serviceMonitor/quartermaster/quartermaster/0", "podMonitor/quartermaster/quartermaster-agent/0")
	upgraded(t, values+"metrics.serviceMonitor.enabled=false,metrics.podMonitor.enabled=true")
	config := configured(t, "podMonitor/quartermaster/quartermaster-agent/0", "podMonitor/quartermaster/quartermaster/0")
	config["rule_files"] = []string{filepath.Join(writtenRules(t), "*.yaml")}
	config["global"] = map[string]string{"scrape_interval": "1s", "evaluation_interval": "1s"}
	for _, each := range config["scrape_configs"].([]any) {
		scrape := each.(map[string]any)
		scrape["scrape_interval"] = "1s"
		for _, discovery := range scrape["kubernetes_sd_configs"].([]any) {
			discovery.(map[string]any)["kubeconfig_file"] = kubeconfig // the operator thinks of one in the cluster
		}
	}
	return startPrometheus(t, config)
}

func upgraded(t *testing.T, values string) {
	t.Helper()
	call(t, "", chart.Tool("kubernetes-*", "helm"), "upgrade", "quartermaster", chart.Chart(), "-n", namespace, "--reuse-values", "--set", values)
}

// podsOfTheChart have its labels, and are programs on this machine. The policy owns them, so that no controller of the chart takes them for its own.
func podsOfTheChart(t *testing.T, ports map[string][]string) {
	t.Helper()
	owner := kubectl(t, "", "get", "acceleratorpolicy", "default", "-o", "jsonpath={.metadata.uid}")
	for app, list := range ports {
		for i, port := range list {
			name := fmt.Sprintf("%s.monitored-%d", app, i)
			kubectl(t, fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q, "labels": {"app.kubernetes.io/name": %q, "app.kubernetes.io/instance": "quartermaster"},
				"ownerReferences": [{"apiVersion": "quartermaster.io/v1alpha1", "kind": "AcceleratorPolicy", "name": "default", "uid": %q, "controller": true}]},
				"spec": {"schedulerName": "none", "containers": [{"name": "main", "image": "none.test/none:1", "ports": [{"name": "metrics", "containerPort": %s}]}]}}`,
				name, app, owner, port), "apply", "-n", namespace, "-f", "-")
			kubectl(t, "", "patch", "pod", name, "-n", namespace, "--subresource=status", "-p",
				`{"status": {"phase": "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}}`)
		}
	}
}

// configured waits until the configuration that was written has these jobs and no others.
func configured(t *testing.T, jobs ...string) (config map[string]any) {
	t.Helper()
	until(t, time.Minute, "the Prometheus operator has written "+strings.Join(jobs, " and "), func() error {
		out, rc := testCluster.Output("", chart.Tool("kubernetes-*", "kubectl"), "get", "secret", "prometheus-all", "-n", namespace, "-o", `jsonpath={.data.prometheus\.yaml\.gz}`)
		packed, err := base64.StdEncoding.DecodeString(out)
		if rc != 0 || err != nil {
			return fmt.Errorf("%s %v", out, err)
		}
		unpacked, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return err
		}
		text, err := io.ReadAll(unpacked)
		if err != nil {
			return err
		}
		config = nil
		text = bytes.ReplaceAll(text, []byte("$(SHARD)"), []byte("0")) // as the configuration reloader does in each pod
		if err := yaml.Unmarshal(text, &config); err != nil {
			return err
		}
		var found []string
		scrapes, _ := config["scrape_configs"].([]any)
		for _, scrape := range scrapes {
			found = append(found, scrape.(map[string]any)["job_name"].(string))
		}
		if slices.Sort(found); !slices.Equal(found, slices.Sorted(slices.Values(jobs))) {
			return fmt.Errorf("it has %v", found)
		}
		return nil
	})
	return config
}

// writtenRules is a folder with the rules that it has taken.
func writtenRules(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	until(t, time.Minute, "the Prometheus operator has taken three objects of rules", func() error {
		var list struct {
			Items []struct{ Data map[string]string }
		}
		if err := json.Unmarshal([]byte(kubectl(t, "", "get", "configmap", "-n", namespace, "-l", "prometheus-name=all", "-o", "json")), &list); err != nil {
			return err
		}
		count := 0
		for _, item := range list.Items {
			for name, text := range item.Data {
				count++
				if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
					return err
				}
			}
		}
		if count != 3 {
			return fmt.Errorf("there are %d", count)
		}
		return nil
	})
	return folder
}
