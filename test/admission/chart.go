package admission

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Policies are the chart's, as helm renders them.
type Policies struct {
	Rules, Advice, Templates *admissionv1.ValidatingAdmissionPolicy
	Declarations             *admissionv1.ValidatingAdmissionPolicy
	Defaults                 *admissionv1.MutatingAdmissionPolicy // nil for a server without them
	Text                     []byte                               // the manifests
}

// Helm is the one next to the control plane, else the one on the PATH.
func Helm() string {
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		cache = filepath.Join(os.Getenv("HOME"), ".cache")
	}
	if found, _ := filepath.Glob(filepath.Join(cache, "quartermaster/kubernetes-*/bin/helm")); len(found) > 0 {
		return found[len(found)-1]
	}
	return "helm"
}

// Render the chart's policies for a server that has MutatingAdmissionPolicies, or has not.
func Render(mutating bool) (*Policies, error) {
	arguments := []string{"template", "quartermaster", filepath.Join(Root(), "charts/quartermaster"), "--namespace", "quartermaster",
		"--show-only", "templates/admission.yaml", "--show-only", "templates/admission-declarations.yaml", "--kube-version", "1.30.0"}
	if mutating {
		arguments = append(arguments, "--kube-version", "1.36.0", "--api-versions", "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy")
	}
	cmd := exec.Command(Helm(), arguments...)
	var said bytes.Buffer
	cmd.Stderr = &said
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("helm template: %w: %s", err, said.String())
	}
	out := &Policies{Text: text}
	for _, document := range bytes.Split(text, []byte("\n---")) {
		var head struct {
			Kind     string
			Metadata struct{ Name string }
		}
		if err := yaml.Unmarshal(document, &head); err != nil {
			return nil, err
		}
		var into runtime.Object
		switch head.Kind + " " + head.Metadata.Name {
		case "ValidatingAdmissionPolicy resource-rules.quartermaster.io":
			out.Rules = &admissionv1.ValidatingAdmissionPolicy{}
			into = out.Rules
		case "ValidatingAdmissionPolicy resource-advice.quartermaster.io":
			out.Advice = &admissionv1.ValidatingAdmissionPolicy{}
			into = out.Advice
		case "ValidatingAdmissionPolicy resource-templates.quartermaster.io":
			out.Templates = &admissionv1.ValidatingAdmissionPolicy{}
			into = out.Templates
		case "ValidatingAdmissionPolicy declarations.quartermaster.io":
			out.Declarations = &admissionv1.ValidatingAdmissionPolicy{}
			into = out.Declarations
		case "MutatingAdmissionPolicy resource-defaults.quartermaster.io":
			out.Defaults = &admissionv1.MutatingAdmissionPolicy{}
			into = out.Defaults
		default:
			continue
		}
		if err := yaml.UnmarshalStrict(document, into); err != nil {
			return nil, fmt.Errorf("%s %s: %w", head.Kind, head.Metadata.Name, err)
		}
	}
	if out.Rules == nil || out.Advice == nil || out.Templates == nil || out.Declarations == nil || (out.Defaults != nil) != mutating {
		return nil, fmt.Errorf("the chart does not render the policies that are looked for:\n%.2000s", text)
	}
	return out, nil
}

var podKind = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
