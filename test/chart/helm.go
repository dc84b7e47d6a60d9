package chart

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"quartermaster.io/test/repository"
)

// Root is the top of the repository.
func Root() string { return repository.Root() }

// Chart is the folder of the chart, Plugin that of its package.
func Chart() string  { return filepath.Join(Root(), "charts/quartermaster") }
func Plugin() string { return filepath.Join(Root(), "charts/cluster-plugin") }

// Tool is a program built next to the control plane, else the one on the PATH.
func Tool(pattern, name string) string {
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		cache = filepath.Join(os.Getenv("HOME"), ".cache")
	}
	if found, _ := filepath.Glob(filepath.Join(cache, "quartermaster", pattern, "bin", name)); len(found) > 0 {
		return found[len(found)-1]
	}
	return name
}

// Helm runs helm; the error is what it said.
func Helm(arguments ...string) (string, error) {
	cmd := exec.Command(Tool("kubernetes-*", "helm"), arguments...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s", strings.TrimSpace(said.String()))
	}
	return string(out), nil
}

// Object is one document of a manifest.
type Object struct {
	Kind, Name string
	Text       string // as rendered
	Content    map[string]any
}

// Template renders the chart as for a new server, with values as a file of `values` (may be empty) and further arguments.
func Template(values string, arguments ...string) ([]Object, error) {
	return TemplateOf(Chart(), values, arguments...)
}

// TemplateOf is Template for a chart in another folder.
func TemplateOf(chart, values string, arguments ...string) ([]Object, error) {
	file, err := os.CreateTemp("", "values-*.yaml")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	if _, err := file.WriteString(values); err != nil {
		return nil, err
	}
	file.Close()
	text, err := Render("quartermaster", chart, append([]string{"-n", "quartermaster", "-f", file.Name(), "--kube-version", "1.36.0",
		"--api-versions", "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"}, arguments...)...)
	if err != nil {
		return nil, err
	}
	return Objects(text)
}

// Objects takes a manifest apart.
func Objects(manifest string) ([]Object, error) {
	var out []Object
	for _, text := range strings.Split("\n"+manifest, "\n---") {
		one := Object{Text: strings.TrimSpace(text) + "\n"}
		if err := yaml.UnmarshalStrict([]byte(text), &one.Content); err != nil {
			return nil, fmt.Errorf("%w in\n%s", err, text)
		}
		if one.Content == nil {
			continue
		}
		one.Kind, _ = one.Content["kind"].(string)
		if metadata, ok := one.Content["metadata"].(map[string]any); ok {
			one.Name, _ = metadata["name"].(string)
		}
		out = append(out, one)
	}
	return out, nil
}
