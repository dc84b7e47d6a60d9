package chart

import (
	"strings"
	"testing"
)

// agent is what the chart makes for the agent with these values of agent.metrics, without comments.
func agent(t *testing.T, metrics string) string {
	t.Helper()
	return agentOf(t, "metrics: {"+metrics+"}")
}

// agentOf is the same with these values of agent.
func agentOf(t *testing.T, values string) string {
	t.Helper()
	objects, err := Template("agent: {enabled: true, " + values + "}")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, one := range objects {
		if strings.HasPrefix(one.Text, "# Source: quartermaster/templates/agent.yaml\n") {
			for _, line := range strings.Split(one.Text, "\n") {
				if !strings.HasPrefix(strings.TrimSpace(line), "#") {
					out.WriteString(line + "\n")
				}
			}
		}
	}
	return out.String()
}

// Each privilege comes with the value that asks for it, and with no other.
func TestS5_the_agent_takes_no_privilege_that_its_metrics_do_not_need(t *testing.T) {
	const (
		pods   = "resources: [pods]\n    verbs: [list, watch]"
		host   = "hostPID: true"
		root   = "runAsUser: 0"
		socket = "hostPath: {path: /var/lib/kubelet/pod-resources, type: Directory}"
		port   = "--metrics-port=9402"
		asks   = "--pod-resources=/pod-resources/kubelet.sock"
		watch  = "kind: PodMonitor"
	)
	const folder = "podResources: /var/lib/kubelet/pod-resources"
	for _, row := range []struct {
		values string
		has    []string
	}{
		{"", nil},
		{"port: 9402", []string{pods, port}},
		{"port: 9402, processes: true", []string{pods, port, host}},
		{"port: 9402, " + folder, []string{pods, port, root, socket, asks}},
		{"port: 9402, podMonitor: {enabled: true}", []string{pods, port, watch}},
	} {
		text := agent(t, row.values)
		for _, part := range []string{pods, host, root, socket, port, asks, watch} {
			expected := false
			for _, one := range row.has {
				expected = expected || one == part
			}
			if strings.Contains(text, part) != expected {
				t.Errorf("agent.metrics {%s}: %q is there: %v, expected %v", row.values, part, !expected, expected)
			}
		}
		if strings.Contains(text, "privileged") || !strings.Contains(text, "capabilities: {drop: [ALL]}") {
			t.Errorf("agent.metrics {%s}: a capability", row.values)
		}
	}
	for _, row := range []struct{ values, refusal string }{
		{"podMonitor: {enabled: true}", "agent.metrics.podMonitor.enabled is true, but agent.metrics.port is not set"},
		{"processes: true", "agent.metrics.processes is set, but agent.metrics.port is not set"},
		{folder, "agent.metrics.podResources is set, but agent.metrics.port is not set"},
	} {
		_, err := Template("agent: {enabled: true, metrics: {" + row.values + "}}")
		if err == nil || !strings.Contains(err.Error(), row.refusal) || !strings.Contains(err.Error(), "set agent.metrics.port=9402") {
			t.Errorf("agent.metrics {%s} without a port: %v", row.values, err)
		}
	}
}

// As root it could use the sockets in /run. "/" as the driver's place and as the kubelet's folder would bring them.
func TestS5_the_agent_as_root_gets_no_folder_with_sockets(t *testing.T) {
	const metrics = "metrics: {port: 9402, podResources: /var/lib/kubelet/pod-resources}"
	for _, row := range []struct{ root, flag, volume string }{
		{"/", "--driver-root=/node\n", ""},
		{"//", "--driver-root=/node\n", ""},
		{"/run/nvidia/driver", "--driver-root=/driver-root\n", "hostPath: {path: /run/nvidia/driver, type: Directory}"},
	} {
		text := agentOf(t, "driverRoot: "+row.root+", "+metrics)
		if !strings.Contains(text, row.flag) || !strings.Contains(text, row.volume) {
			t.Errorf("driverRoot %s: no %q or no %q", row.root, row.flag, row.volume)
		}
		for _, path := range []string{"/", "//", "/etc", "/run", "/var/lib/kubelet/device-plugins"} {
			if strings.Contains(text, "hostPath: {path: "+path+",") {
				t.Errorf("driverRoot %s: it is root and sees %s", row.root, path)
			}
		}
	}
	if text := agentOf(t, "driverRoot: /"); !strings.Contains(text, "hostPath: {path: /, type: Directory}") {
		t.Error("driverRoot / is not mounted for an agent that is not root")
	}
	if _, err := Template("agent: {enabled: true, metrics: {port: 9402, podResources: /}}"); err == nil || !strings.Contains(err.Error(), "/agent/metrics/podResources") {
		t.Errorf("the whole node as the kubelet's folder: %v", err)
	}
}

// No series of containers is what 0 asks for. An older chart's values say nothing.
func Test_the_agent_has_as_many_series_as_values_say(t *testing.T) {
	const flag = "--metrics-max-series="
	for values, want := range map[string]string{"maxSeries: 0": flag + "0\n", "maxSeries: 1000000": flag + "1000000\n", "maxSeries: null": ""} {
		text := agent(t, "port: 9402, "+values)
		if strings.Contains(text, flag) != (want != "") || !strings.Contains(text, want) {
			t.Errorf("%s: no %q in\n%s", values, want, text)
		}
	}
}
