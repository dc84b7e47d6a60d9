package server

import (
	"strings"
	"testing"

	"quartermaster.io/test/chart"
)

// The API server refuses settings that mean nothing next to the plugin that the policy chose, and says which.
func TestSettingsOfAnotherPluginAreRefused(t *testing.T) {
	installed(t)
	for _, entry := range []struct{ module, settings, says string }{
		{"pgpu", `{"plugin": "nvidia", "MIG_STRATEGY": "mixed"}`, ""},
		{"pgpu", `{"plugin": "quartermaster", "featureDiscovery": "true"}`, ""},
		{"pgpu", `{"plugin": "theirs"}`, "plugin of pgpu must be one of nvidia, quartermaster"},
		{"pgpu", `{"plugin": "gpu-manager"}`, "plugin of pgpu must be one of nvidia, quartermaster"},
		{"vgpu", `{"plugin": "quartermaster"}`, ""},
		{"vgpu", `{"plugin": "nvidia"}`, "plugin of vgpu one of gpu-manager, quartermaster"},
		{"vgpu", `{"replicas": "2"}`, "unknown setting replicas of vgpu; its settings are plugin"},
		{"gpushare", `{"plugin": "quartermaster", "memoryUnit": "MiB"}`, ""},
		{"gpushare", `{"plugin": "gpushare", "mps": "true"}`, ""},
		{"gpushare", `{"plugin": "gpu-manager"}`, "plugin of hami and of gpushare that of the same name, or quartermaster"},
		{"gpushare", `{"plugin": "quartermaster", "mps": "true"}`, "mps is for the plugin of another product, and plugin is quartermaster"},
		{"hami", `{"plugin": "quartermaster", "resourceName": "nvidia.com/gpu", "defaultMem": "0"}`, ""},
		{"hami", `{"plugin": "gpushare"}`, "plugin of hami and of gpushare that of the same name, or quartermaster"},
		{"hami", `{"plugin": "quartermaster", "deviceMemoryScaling": "2"}`, "deviceMemoryScaling is for the plugin of another product, and plugin is quartermaster"},
		{"mps", `{"replicas": "2"}`, "mps and modules of your own have neither settings nor node sets"},
		{"pgpu", `{"plugin": "quartermaster", "MIG_STRATEGY": "mixed"}`, "MIG_STRATEGY is for the plugin of another product, and plugin is quartermaster"},
	} {
		policy := `{"apiVersion": "quartermaster.io/v1alpha1", "kind": "AcceleratorPolicy", "metadata": {"name": "default"}, "spec": {"modules": {"` + entry.module + `": {"settings": ` + entry.settings + `}}}}`
		said, rc := run(policy, chart.Tool("kubernetes-*", "kubectl"), "apply", "--server-side", "--dry-run=server", "-f", "-")
		if (rc == 0) != (entry.says == "") || !strings.Contains(said, entry.says) {
			t.Errorf("%s %s: %s", entry.module, entry.settings, said)
		}
	}
}
