package main

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

func load(t *testing.T) map[string]profile {
	t.Helper()
	profiles, err := loadProfiles()
	if err != nil {
		t.Fatal(err)
	}
	return profiles
}

func TestEveryProfileMakesANodeTheServerAccepts(t *testing.T) {
	for name, p := range load(t) {
		node := makeNode(p, 3, "v1.36.3", time.Unix(1, 0))
		if node.Name != name+"-3" {
			t.Errorf("%s: node is named %s", name, node.Name)
		}
		for key, value := range node.Labels {
			if errs := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(errs) > 0 {
				t.Errorf("%s: label %s=%s: %v", name, key, value, errs)
			}
		}
		if p.Cards > 0 && (p.Vendor == "" || p.MemoryMiB == 0 || p.Model == "") {
			t.Errorf("%s: cards without vendor, model or memory", name)
		}
	}
}

func TestFeatureDiscoveryLabelsTellDriverFromCuda(t *testing.T) {
	labels := makeNode(load(t)["l40s"], 0, "", time.Unix(1, 0)).Labels
	for key, value := range map[string]string{
		"nvidia.com/cuda.driver-version.full":         "580.82.07",
		"nvidia.com/cuda.driver-version.minor":        "82",
		"nvidia.com/cuda.runtime-version.major":       "13",
		"nvidia.com/cuda.runtime-version.minor":       "0",
		"nvidia.com/gpu.count":                        "4",
		"nvidia.com/gpu.memory":                       "46068",
		"nvidia.com/gpu.compute.minor":                "9",
		"feature.node.kubernetes.io/pci-10de.present": "true",
		"nvidia.com/gpu.product":                      "NVIDIA-L40S",
		"sim.quartermaster.io/profile":                "l40s",
	} {
		if labels[key] != value {
			t.Errorf("%s is %q, not %q", key, labels[key], value)
		}
	}
	for key := range makeNode(load(t)["mi300x"], 0, "", time.Unix(1, 0)).Labels {
		if strings.HasPrefix(key, "nvidia.com/") {
			t.Errorf("an AMD node has the label %s", key)
		}
	}
}

func TestParseWants(t *testing.T) {
	for _, test := range []struct {
		text  string
		count int
		names string // profile*count, in order
		fails string
	}{
		{text: "t4=2,a100=1", names: "t4*2 a100*1"},
		{text: "t4,h100", count: 5, names: "t4*3 h100*2"},
		{text: "t4", count: 2, names: "t4*2"},
		{text: "", count: 8, names: "a100*1 ascend910b*1 h100*1 l40s*1 mi300x*1 rtx4090*1 t4*1 v100*1"},
		{text: "a10=1", fails: `unknown profile "a10": the profiles are a100, ascend910b, cpu, h100, l40s, mi300x, rtx4090, t4, v100`},
		{text: "t4=x", fails: "not a number"},
		{text: "t4=1,a100", fails: "every profile or"},
		{text: "t4=1", count: 3, fails: "twice"},
		{text: "t4=1,t4=2", fails: "named twice"},
		{text: "", fails: "how many"},
	} {
		wants, err := parseWants(test.text, test.count, load(t))
		if test.fails != "" {
			if err == nil || !strings.Contains(err.Error(), test.fails) {
				t.Errorf("%q: error %v does not say %q", test.text, err, test.fails)
			}
			continue
		}
		var got []string
		for _, w := range wants {
			got = append(got, w.profile.Name+"*"+string(rune('0'+w.count)))
		}
		if err != nil || strings.Join(got, " ") != test.names {
			t.Errorf("%q, %d: %v, %v", test.text, test.count, got, err)
		}
	}
}
