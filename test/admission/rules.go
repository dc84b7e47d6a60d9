package admission

import (
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Spec is the spec of a ResourceRules object (crds/resourcerules.quartermaster.io.yaml).
type Spec struct {
	Keys   []string            `json:"keys"`
	Rules  map[string]Rule     `json:"rules"`
	Groups map[string][]string `json:"groups"`
	// Exclusive are the keys that take part in exclusions; nil: more than MaxExclusive.
	Exclusive []string `json:"exclusive,omitzero"`
}

// MaxExclusive is max_exclusive of reconcilers/crl/compiled.cpp.
const MaxExclusive = 320

// Rule is what holds for one key.
type Rule struct {
	Source           string   `json:"source"`
	Group            string   `json:"group,omitempty"`
	Forbidden        bool     `json:"forbidden,omitempty"`
	Must             bool     `json:"must,omitempty"`
	Fill             string   `json:"fill,omitempty"`
	AbsentPasses     bool     `json:"absentPasses,omitempty"`
	Related          []string `json:"related,omitempty"`
	Excluded         []string `json:"excluded,omitempty"`
	RuntimeClassName string   `json:"runtimeClassName,omitempty"`
	NotOffered       bool     `json:"notOffered,omitempty"`
	Published        bool     `json:"published,omitempty"`
	Whole            int64    `json:"whole,omitempty"`
	Partner          string   `json:"partner,omitempty"`
	WaivedBy         string   `json:"waivedBy,omitempty"`
	WaivedFrom       int64    `json:"waivedFrom,omitempty"`
}

// The names of the one vocabulary there is.
const (
	Core   = "tencent.com/vcuda-core"
	Memory = "tencent.com/vcuda-memory"
)

// Enforcement is the label that selects the bindings.
const Enforcement = "quartermaster.io/enforcement"

// RulesResource is where ResourceRules objects live.
var RulesResource = schema.GroupVersionResource{Group: "quartermaster.io", Version: "v1alpha1", Resource: "resourcerules"}

// NewSpec is empty but whole.
func NewSpec() Spec {
	return Spec{Keys: []string{}, Rules: map[string]Rule{}, Groups: map[string][]string{}, Exclusive: []string{}}
}

// Finish brings keys and groups into step with the rules, and writes in what the vocabulary knows, as spec_of does.
func (s *Spec) Finish() {
	s.Keys = slices.Sorted(maps.Keys(s.Rules))
	members, asks := map[string][]string{}, map[string]bool{}
	for _, key := range s.Keys {
		rule := s.Rules[key]
		rule.Whole, rule.Partner, rule.WaivedBy, rule.WaivedFrom = 0, "", "", 0
		switch key {
		case Core:
			rule.Whole, rule.Partner = 100, Memory
		case Memory:
			rule.WaivedBy, rule.WaivedFrom = Core, 100
		}
		s.Rules[key] = rule
		if rule.Group != "" {
			members[rule.Group] = append(members[rule.Group], key)
			asks[rule.Group] = asks[rule.Group] || rule.Must || rule.Fill != ""
		}
	}
	s.Groups = map[string][]string{}
	for group, keys := range members {
		if asks[group] {
			s.Groups[group] = keys
		}
	}
	s.exclude()
}

func (s *Spec) exclude() {
	part := map[string]bool{}
	for key, rule := range s.Rules {
		part[key] = part[key] || len(rule.Excluded) > 0
		for _, other := range rule.Excluded {
			part[other] = true
		}
	}
	maps.DeleteFunc(part, func(_ string, takes bool) bool { return !takes })
	s.Exclusive = slices.AppendSeq([]string{}, maps.Keys(part))
	if slices.Sort(s.Exclusive); len(s.Exclusive) > MaxExclusive {
		s.Exclusive = nil
	}
}

// Merge takes in another's rules; false, and nothing is changed, where the two disagree about a key or a group.
func (s *Spec) Merge(other Spec) bool {
	same := func(a, b any) bool { x, _ := json.Marshal(a); y, _ := json.Marshal(b); return string(x) == string(y) }
	for key, rule := range other.Rules {
		if mine, ok := s.Rules[key]; ok && !same(mine, rule) {
			return false
		}
	}
	for name, keys := range other.Groups {
		if mine, ok := s.Groups[name]; ok && !same(mine, keys) {
			return false
		}
	}
	maps.Copy(s.Rules, other.Rules)
	maps.Copy(s.Groups, other.Groups)
	s.Keys = slices.Sorted(maps.Keys(s.Rules))
	s.exclude()
	return true
}

// Object is the ResourceRules object with this spec.
func (s Spec) Object(name, enforcement string) *unstructured.Unstructured {
	text, err := json.Marshal(map[string]any{
		"apiVersion": "quartermaster.io/v1alpha1", "kind": "ResourceRules",
		"metadata": map[string]any{"name": name, "labels": map[string]string{Enforcement: enforcement}}, "spec": s})
	if err != nil {
		panic(err)
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(text); err != nil {
		panic(err)
	}
	return out
}
