package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var switches = []string{"pgpu_enable", "vgpu_enable", "mps_enable"}

func packaged(t *testing.T) (string, ModuleConfig, string) {
	t.Helper()
	chart, config, text, err := Package(filepath.Join(t.TempDir(), "package"))
	if err != nil {
		t.Fatal(err)
	}
	return chart, config, text
}

// The form's three switches, in all eight combinations: what the platform hands to helm, and what becomes of it in the cluster.
func TestS2_S57_eight_combinations_of_switches(t *testing.T) {
	chart, config, text := packaged(t)
	Golden(t, "moduleconfig.yaml", text)
	var first []Object
	for combination := range 8 {
		answers, name := map[string]any{}, ""
		for i, one := range switches {
			on := combination>>(2-i)&1 == 1
			answers[one] = on
			name += map[bool]string{true: "1", false: "0"}[on]
		}
		values, err := config.Values(answers)
		if err != nil {
			t.Fatal(err)
		}
		Golden(t, "switches/"+name+".values.yaml", values)
		objects, err := TemplateOf(chart, values)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if first == nil {
			first = objects
		}
		var different []string
		for i, one := range objects {
			if i >= len(first) || first[i].Kind != one.Kind || first[i].Name != one.Name {
				t.Fatalf("%s: %s %s is not there in every combination", name, one.Kind, one.Name)
			}
			if one.Text != first[i].Text {
				different = append(different, one.Kind+" "+one.Name)
			}
			if one.Name == "quartermaster-policy" && one.Kind == "ConfigMap" {
				Golden(t, "switches/"+name+".policy.yaml", one.Text)
				modules := policyOf(t, one)["spec"].(map[string]any)["modules"].(map[string]any)
				for _, module := range []string{"pgpu", "vgpu", "mps"} {
					if said := modules[module].(map[string]any)["enabled"]; said != answers[module+"_enable"] {
						t.Errorf("%s: %s is %v in the policy", name, module, said)
					}
				}
			}
		}
		// A switch changes the policy and nothing else (the Deployment carries the policy's checksum).
		if want := []string{"ConfigMap quartermaster-policy", "Deployment quartermaster"}; combination > 0 {
			slices.Sort(different)
			if !slices.Equal(different, want) {
				t.Errorf("%s: differ from 000: %v", name, different)
			}
		}
	}
}

func policyOf(t *testing.T, configMap Object) map[string]any {
	t.Helper()
	var out map[string]any
	if err := yaml.UnmarshalStrict([]byte(configMap.Content["data"].(map[string]any)["policy.yaml"].(string)), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// What a ModuleInfo of an older version does not say counts as off; a text of an edit by hand counts as what it says.
func TestS2_answers_that_are_not_there_or_text(t *testing.T) {
	_, config, _ := packaged(t)
	for _, row := range []struct {
		answers map[string]any
		want    string
	}{
		{map[string]any{}, "pgpu_enable: false"},
		{map[string]any{"pgpu_enable": nil}, "pgpu_enable: false"},
		{map[string]any{"pgpu_enable": "false"}, "pgpu_enable: false"},
		{map[string]any{"pgpu_enable": "true"}, "pgpu_enable: true"},
		{map[string]any{"pgpu_enable": true}, "pgpu_enable: true"},
	} {
		values, err := config.Values(row.answers)
		if err != nil || !strings.HasPrefix(values, row.want+"\n") {
			t.Errorf("%v: %v\n%s", row.answers, err, values)
		}
	}
}

// What the platform's documents ask of a package (charts/cluster-plugin/README.md names them).
func TestS2_the_package_is_of_the_platforms_form(t *testing.T) {
	chart, config, _ := packaged(t)
	for label, want := range map[string]string{"cpaas.io/module-name": "quartermaster", "cpaas.io/module-type": "plugin", "cpaas.io/product": "ACP",
		"cpaas.io/module-version": config.Spec.Version} {
		if config.Metadata.Labels[label] != want {
			t.Errorf("label %s is %q, not %q", label, config.Metadata.Labels[label], want)
		}
	}
	if config.Kind != "ModuleConfig" || config.APIVersion != "cluster.alauda.io/v1alpha1" || config.Metadata.Name != "quartermaster-"+config.Spec.Version {
		t.Errorf("%s %s %s", config.APIVersion, config.Kind, config.Metadata.Name)
	}
	var display map[string]string
	if err := json.Unmarshal([]byte(config.Metadata.Annotations["cpaas.io/display-name"]), &display); err != nil || display["en"] == "" || display["zh"] == "" {
		t.Errorf("display-name: %v %v", display, err)
	}
	release := config.Spec.AppReleases[0].ChartVersions[0]
	if release.Name != config.Spec.MainChart || config.Spec.ValuesTemplates[release.Name] == "" || release.Version != config.Spec.Version {
		t.Errorf("mainChart, chartVersions and valuesTemplates do not name one chart and version: %+v", release)
	}

	// The form asks for the switches, in this order, with the defaults of config.
	var deploy, edit []string
	for _, one := range config.Spec.DeployDescriptors {
		deploy = append(deploy, one.Path)
		if want := fmt.Sprintf("urn:alm:descriptor:com.tectonic.default:%v", config.Spec.Config[one.Path]); !slices.Contains(one.XDescriptors, want) {
			t.Errorf("%s: its default is not that of config: no %s", one.Path, want)
		}
		if !slices.Contains(one.XDescriptors, "urn:alm:descriptor:com.tectonic.ui:booleanSwitch") {
			t.Errorf("%s is no switch", one.Path)
		}
	}
	for _, one := range config.Spec.EditDescriptors {
		edit = append(edit, one.Path)
	}
	if !slices.Equal(deploy, switches) || !slices.Equal(edit, switches) || len(config.Spec.Config) != len(switches) {
		t.Errorf("deployDescriptors %v, editDescriptors %v, config %v; want %v", deploy, edit, config.Spec.Config, switches)
	}

	// One version everywhere.
	version, err := os.ReadFile(filepath.Join(Root(), "VERSION"))
	if err != nil || "v"+strings.TrimSpace(string(version)) != config.Spec.Version {
		t.Errorf("VERSION %s, package %s (%v)", version, config.Spec.Version, err)
	}
	about, err := os.ReadFile(filepath.Join(chart, "Chart.yaml"))
	if err != nil || !strings.Contains(string(about), "\nversion: "+config.Spec.Version+"\n") {
		t.Errorf("Chart.yaml of the package is not of version %s (%v)", config.Spec.Version, err)
	}
}

// Images: what violet takes along, what the values name, and what the program was tested with are the same.
func TestS2_the_package_takes_the_images_along_that_it_names(t *testing.T) {
	chart, config, _ := packaged(t)
	var packed struct {
		Global struct {
			Images map[string]struct{ Repository, Tag string }
		}
	}
	text, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err == nil {
		err = yaml.UnmarshalStrict(text, &map[string]any{})
	}
	if err == nil {
		err = yaml.Unmarshal(text, &packed)
	}
	if err != nil {
		t.Fatal(err)
	}
	values, err := config.Values(nil)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := TemplateOf(chart, values)
	if err != nil {
		t.Fatal(err)
	}
	var rendered strings.Builder
	for _, one := range objects {
		rendered.WriteString(one.Text)
	}
	tested := ""
	for _, module := range []string{"pgpu", "vgpu"} {
		golden, err := os.ReadFile(filepath.Join(Root(), "test/golden/modules", module+".json"))
		if err != nil {
			t.Fatal(err)
		}
		tested += string(golden)
	}
	for name, image := range packed.Global.Images {
		if want := "registry.acp.example:60080/" + image.Repository + ":" + image.Tag; !strings.Contains(rendered.String(), want) {
			t.Errorf("nothing runs %s: %s", name, want)
		}
		if name != "quartermaster" && !strings.Contains(tested, image.Repository+":"+image.Tag+`"`) {
			t.Errorf("%s:%s is not the version of the module (test/golden/modules)", image.Repository, image.Tag)
		}
	}
	if strings.Count(rendered.String(), "registry.acp.example:60080/") < len(packed.Global.Images) || len(packed.Global.Images) != 3 {
		t.Error("images are missing")
	}
}
