package monitoring

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"quartermaster.io/test/chart"
)

// monitors are the objects of the monitoring, each as KIND/NAME. The six dashboards count as one; so does a port of the agents.
func monitors(t *testing.T, values string, arguments ...string) []string {
	t.Helper()
	objects, err := chart.Template(values, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, object := range objects {
		switch {
		case strings.HasPrefix(object.Name, "quartermaster-dashboard-"):
			out["dashboards"] = true
		case slices.Contains([]string{"PodMonitor", "ServiceMonitor", "PrometheusRule"}, object.Kind):
			out[object.Kind+"/"+object.Name] = true
		case object.Kind == "DaemonSet" && object.Name == "quartermaster-agent" && strings.Contains(object.Text, "--metrics-port=9402"):
			out["port"] = true
		}
	}
	return slices.Sorted(maps.Keys(out))
}

// One value switches on what the cluster can take; each part's own switch counts before it.
func TestS34_S38_monitoring_is_one_switch(t *testing.T) {
	const agents = "agent: {enabled: true}, "
	operator := []string{"--api-versions", "monitoring.coreos.com/v1/PodMonitor,monitoring.coreos.com/v1/PrometheusRule"}
	all := []string{"PodMonitor/quartermaster", "PodMonitor/quartermaster-agent", "PrometheusRule/quartermaster", "dashboards", "port"}
	without := func(parts ...string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(part string) bool { return slices.Contains(parts, part) })
	}
	for _, one := range []struct {
		values    string
		arguments []string
		want      []string
	}{
		{agents, operator, nil},
		{agents + "monitoring: {enabled: true}", operator, all},
		{"monitoring: {enabled: true}", operator, without("PodMonitor/quartermaster-agent", "port")},
		// No types of the Prometheus operator.
		{agents + "monitoring: {enabled: true}", nil, []string{"dashboards", "port"}},
		{agents + "monitoring: {enabled: true, rules: {enabled: true}}", nil, []string{"PrometheusRule/quartermaster", "dashboards", "port"}},
		{agents + "monitoring: {enabled: true, rules: {enabled: false}}", operator, without("PrometheusRule/quartermaster")},
		{agents + "monitoring: {enabled: true, dashboards: {enabled: false}}", operator, without("dashboards")},
		{agents + "monitoring: {enabled: true}, metrics: {podMonitor: {enabled: false}}", operator, without("PodMonitor/quartermaster")},
		{agents + "monitoring: {enabled: true}, metrics: {serviceMonitor: {enabled: true}}", operator,
			append(without("PodMonitor/quartermaster", "dashboards", "port"), "ServiceMonitor/quartermaster", "dashboards", "port")},
		{"agent: {enabled: true, metrics: {port: 0}}, monitoring: {enabled: true}", operator, without("PodMonitor/quartermaster-agent", "port")},
		{"agent: {enabled: true, metrics: {podMonitor: {enabled: false}}}, monitoring: {enabled: true}", operator,
			without("PodMonitor/quartermaster-agent")},
	} {
		if is := monitors(t, "{"+one.values+"}", one.arguments...); !slices.Equal(is, one.want) {
			t.Errorf("%s %v\n%v, and not\n%v", one.values, one.arguments, is, one.want)
		}
	}
}
