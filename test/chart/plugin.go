package chart

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"
)

// ModuleConfig is what the platform makes of module-plugin.yaml and scripts/plugin-config.yaml: one version of a plugin.
type ModuleConfig struct {
	APIVersion string
	Kind       string
	Metadata   struct {
		Name        string
		Labels      map[string]string
		Annotations map[string]string
	}
	Spec struct {
		Name, Version, MainChart string
		AppReleases              []struct {
			Name          string
			ChartVersions []struct{ Name, ReleaseName, Version string }
		}
		Config                             map[string]any
		ValuesTemplates                    map[string]string
		DeployDescriptors, EditDescriptors []struct {
			Path         string
			XDescriptors []string `json:"x-descriptors"`
		}
		Logo string
	}
}

// Package runs package.sh: the chart as it is pushed, and the ModuleConfig with its text.
func Package(folder string) (chart string, config ModuleConfig, text string, err error) {
	if said, failed := exec.Command(filepath.Join(Plugin(), "package.sh"), folder).CombinedOutput(); failed != nil {
		return "", config, "", fmt.Errorf("package.sh: %w: %s", failed, said)
	}
	bytes, err := os.ReadFile(filepath.Join(folder, "moduleconfig.yaml"))
	if err == nil {
		err = yaml.UnmarshalStrict(bytes, &map[string]any{})
	}
	if err == nil {
		err = yaml.Unmarshal(bytes, &config)
	}
	return filepath.Join(folder, "quartermaster"), config, string(bytes), err
}

// Values are what the platform hands to helm for a person's answers in the form: valuesTemplates, with << >> about the expressions.
// Of the platform's own values those are there that docs/scriptspluginconfig.md of alauda/cluster-plugin lists and we use.
func (of *ModuleConfig) Values(answers map[string]any) (string, error) {
	parsed, err := template.New("values").Delims("<<", ">>").Parse(of.Spec.ValuesTemplates[of.Spec.MainChart])
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	err = parsed.Execute(&out, map[string]any{"MiConfig": answers, "RegistryAddress": "registry.acp.example:60080", "Replicas": 2})
	if strings.Contains(out.String(), "<no value>") {
		err = fmt.Errorf("the template says nothing for an answer:\n%s", out.String())
	}
	return out.String(), err
}
