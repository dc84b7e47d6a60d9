package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
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

// imagesOf are the images of every container in a document, wherever they are.
func imagesOf(document any, into map[string]bool) {
	switch part := document.(type) {
	case map[string]any:
		for key, value := range part {
			if image, ok := value.(string); ok && key == "image" {
				into[image] = true
			}
			imagesOf(value, into)
		}
	case []any:
		for _, value := range part {
			imagesOf(value, into)
		}
	}
}

// moduleImages are those that the modules of the catalogue run when the policy names none: of every module with all of its settings. The
// program wrote these files (test/reconcilers/modules).
func moduleImages(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(Root(), "test/golden/modules/*.json"))
	if err != nil || len(files) < 12 {
		t.Fatal(err, files)
	}
	found := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, ".wishes.json") || strings.HasPrefix(filepath.Base(file), "custom.") { // their image is the policy's
			continue
		}
		text, err := os.ReadFile(file)
		var objects any
		if err == nil {
			err = json.Unmarshal(text, &objects)
		}
		if err != nil {
			t.Fatal(file, err)
		}
		imagesOf(objects, found)
	}
	delete(found, "quartermaster:test") // a plugin that is part of the operator
	var out []string
	for image := range found {
		if first, _, _ := strings.Cut(image, "/"); !strings.ContainsAny(first, ".:") {
			image = "docker.io/" + image
		}
		out = append(out, image)
	}
	slices.Sort(out)
	return out
}

// What the package takes along is what runs: every image that a module may need, and ours, at the version that was tested.
func TestS2_the_package_takes_along_every_image_that_a_module_may_need(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "package")
	if _, _, _, err := Package(folder); err != nil {
		t.Fatal(err)
	}
	var packed struct {
		Global struct {
			Images map[string]struct{ Repository, Tag string }
		}
	}
	text, err := os.ReadFile(filepath.Join(folder, "quartermaster/values.yaml"))
	if err == nil {
		err = yaml.UnmarshalStrict(text, &map[string]any{})
	}
	if err == nil {
		err = yaml.Unmarshal(text, &packed)
	}
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(filepath.Join(folder, "images.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var originals []string
	for _, line := range strings.Split(strings.TrimSpace(string(list)), "\n") {
		original, name, _ := strings.Cut(line, " ")
		if !strings.HasSuffix(original, "/"+name) && original != "-" {
			t.Errorf("images.txt: %s", line)
		}
		known := false
		for _, image := range packed.Global.Images {
			known = known || image.Repository+":"+image.Tag == name
		}
		if !known {
			t.Errorf("images.txt has %s, values.yaml of the package has not", name)
		}
		if original != "-" {
			originals = append(originals, original)
		}
	}
	slices.Sort(originals)
	if needed := moduleImages(t); !slices.Equal(originals, needed) {
		t.Errorf("modules need %v, the package takes along %v", needed, originals)
	}
	version, err := os.ReadFile(filepath.Join(Root(), "VERSION"))
	if ours := packed.Global.Images["quartermaster"]; err != nil || ours.Repository+":"+ours.Tag != "accelerators/quartermaster:"+strings.TrimSpace(string(version)) {
		t.Errorf("our image is %+v (%v)", ours, err)
	}
	if len(packed.Global.Images) != len(originals)+1 {
		t.Errorf("%d images in values.yaml, %d in images.txt and ours", len(packed.Global.Images), len(originals))
	}
}

// With the platform's registry no image of the chart is from elsewhere, hooks and the agent included, and the operator is told to take
// those of modules from there (test/reconcilers/modules checks that it does).
func TestS2_no_image_of_the_package_escapes_the_platforms_registry(t *testing.T) {
	const registry = "registry.acp.example:60080"
	chart, config, _ := packaged(t)
	values, err := config.Values(map[string]any{"pgpu_enable": true, "vgpu_enable": true, "mps_enable": true})
	if err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{"", "global: {registry: {address: other.example}}", "metrics: {podMonitor: {enabled: true}}\nnetworkPolicy: true"} {
		objects, err := TemplateOf(chart, values+more)
		if err != nil {
			t.Fatal(err)
		}
		found, told := map[string]bool{}, 0
		for _, one := range objects {
			imagesOf(one.Content, found)
			told += strings.Count(one.Text, "- --image-registry="+registry+"\n")
		}
		if len(found) == 0 || told != 1 {
			t.Errorf("%q: images %v, and the operator was told of the registry %d times", more, found, told)
		}
		for image := range found {
			if !strings.HasPrefix(image, registry+"/") {
				t.Errorf("%q: %s is not from the registry", more, image)
			}
		}
	}
	for _, given := range []string{"{registry: {address: other.example/mirror/}}", "{imageRegistry: other.example/mirror/}",
		"{imageRegistry: not.this, registry: {address: other.example/mirror}}"} {
		objects, err := Template("global: " + given)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range objects {
			if one.Kind == "Deployment" && !strings.Contains(one.Text, "- --image-registry=other.example/mirror\n") {
				t.Errorf("%s: what a platform gives to all its charts does not reach the modules:\n%s", given, one.Text)
			}
		}
	}
}

// The archive that is packed is of the package's version.
func TestS2_the_package_takes_our_image_along(t *testing.T) {
	version, err := os.ReadFile(filepath.Join(Root(), "VERSION"))
	if err != nil {
		t.Fatal(err)
	}
	for tag, accepted := range map[string]bool{strings.TrimSpace(string(version)): true, "9.9.9": false} {
		folder := t.TempDir()
		index := `{"manifests": [{"annotations": {"org.opencontainers.image.ref.name": "` + tag + `"}}]}`
		if err := os.WriteFile(filepath.Join(folder, "index.json"), []byte(index), 0o644); err != nil {
			t.Fatal(err)
		}
		archive := filepath.Join(folder, "quartermaster-amd64.tar")
		if said, err := exec.Command("tar", "-cf", archive, "-C", folder, "index.json").CombinedOutput(); err != nil {
			t.Fatal(string(said))
		}
		out := filepath.Join(folder, "package")
		said, err := exec.Command(filepath.Join(Plugin(), "package.sh"), out, archive).CombinedOutput()
		if (err == nil) != accepted {
			t.Errorf("an archive of version %s: %v %s", tag, err, said)
		}
		if !accepted {
			continue
		}
		list, err := os.ReadFile(filepath.Join(out, "images.txt"))
		if err != nil || !strings.HasPrefix(string(list), "images/quartermaster-amd64.tar accelerators/quartermaster:"+tag+"\n") {
			t.Errorf("images.txt: %v %s", err, list)
		}
		if _, err := os.Stat(filepath.Join(out, "images/quartermaster-amd64.tar")); err != nil {
			t.Error(err)
		}
	}
}
