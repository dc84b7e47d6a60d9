package server

import (
	"strings"
	"testing"

	"quartermaster.io/test/chart"
)

// The API server refuses settings that mean nothing next to the plugin that the policy chose, and says which.
func TestSettingsOfAnotherPluginAreRefused(t *testing.T) {
	installed(t)
	for _, entry := range []struct{ settings, says string }{
		{`{"plugin": "nvidia", "MIG_STRATEGY": "mixed"}`, ""},
		{`{"plugin": "quartermaster", "featureDiscovery": "true"}`, ""},
		{`{"plugin": "theirs"}`, "plugin must be one of nvidia, quartermaster"},
		{`{"plugin": "quartermaster", "MIG_STRATEGY": "mixed"}`, "MIG_STRATEGY is for the plugin of NVIDIA, and plugin is quartermaster"},
	} {
		policy := `{"apiVersion": "quartermaster.io/v1alpha1", "kind": "AcceleratorPolicy", "metadata": {"name": "default"}, "spec": {"modules": {"pgpu": {"settings": ` + entry.settings + `}}}}`
		said, rc := run(policy, chart.Tool("kubernetes-*", "kubectl"), "apply", "--server-side", "--dry-run=server", "-f", "-")
		if (rc == 0) != (entry.says == "") || !strings.Contains(said, entry.says) {
			t.Errorf("%s: %s", entry.settings, said)
		}
	}
}
