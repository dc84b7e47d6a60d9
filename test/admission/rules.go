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
	// Amounts of every key that does not take any, declared or not.
	Amounts map[string]Accepted `json:"amounts,omitempty"`
}

// Accepted amounts of a program: from, from + step, ... to, and multiples of whole.
type Accepted struct {
	From  int64  `json:"from"`
	To    int64  `json:"to"`
	Step  int64  `json:"step"`
	Whole int64  `json:"whole,omitempty"`
	Words string `json:"words"`
}

// PodAmount is an amount that an annotation or label of the pod adds to a key (quota/resource_keys.hpp).
type PodAmount struct {
	Name    string `json:"name"`
	Label   bool   `json:"label"`
	From    int64  `json:"from,omitempty"`
	To      int64  `json:"to,omitempty"`
	Divides bool   `json:"divides,omitempty"`
	Words   string `json:"words"`
}

// MaxExclusive is max_exclusive of reconcilers/declarations/compiled.cpp.
const MaxExclusive = 320

// Rule is what holds for one key.
type Rule struct {
	Source           string    `json:"source"`
	Group            string    `json:"group,omitempty"`
	Forbidden        bool      `json:"forbidden,omitempty"`
	Must             bool      `json:"must,omitempty"`
	Fill             string    `json:"fill,omitempty"`
	AbsentPasses     bool      `json:"absentPasses,omitempty"`
	Related          []string  `json:"related,omitempty"`
	Excluded         []string  `json:"excluded,omitempty"`
	RuntimeClassName string    `json:"runtimeClassName,omitempty"`
	NotOffered       bool      `json:"notOffered,omitempty"`
	Published        bool      `json:"published,omitempty"`
	Amounts          *Accepted `json:"amounts,omitempty"`
	Partner          string    `json:"partner,omitempty"`
	WaivedBy         string    `json:"waivedBy,omitempty"`
	WaivedFrom       int64     `json:"waivedFrom,omitempty"`

	PodAmount *PodAmount `json:"podAmount,omitempty"`
}

// Keys whose amounts are known; the C++ form has them all (quota/resource_keys.hpp), and is asked for those that are compiled.
const (
	Core    = "tencent.com/vcuda-core"
	Memory  = "tencent.com/vcuda-memory"
	Percent = "aliyun.com/gpu-core.percentage"
	GpuMem  = "aliyun.com/gpu-mem"

	CoreLimit = "tencent.com/vcuda-core-limit" // an annotation
	GpuCount  = "aliyun.com/gpu-count"         // a label, or a limit
)

var onPod = map[string]*PodAmount{
	Core:   {Name: CoreLimit, To: 100, Words: "tencent.com/vcuda-core to 100 for a share, and the same as tencent.com/vcuda-core for whole cards"},
	GpuMem: {Name: GpuCount, Label: true, From: 1, Divides: true, Words: "whole numbers that divide aliyun.com/gpu-mem"},
}

var known = map[string]Accepted{
	Core:    {From: 1, To: 99, Step: 1, Whole: 100, Words: "1 to 99 (a share of a card) and multiples of 100 (whole cards)"},
	Percent: {From: 5, To: 100, Step: 5, Words: "5 to 100 in steps of 5"},
}

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
		rule.Amounts, rule.Partner, rule.WaivedBy, rule.WaivedFrom, rule.PodAmount = nil, "", "", 0, onPod[key]
		if amounts, limited := known[key]; limited {
			rule.Amounts = &amounts
		}
		switch key {
		case Core:
			rule.Partner = Memory
		case Memory:
			rule.Partner, rule.WaivedBy, rule.WaivedFrom = Core, Core, 100
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
	s.Amounts = known
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
	if s.Amounts == nil {
		s.Amounts = other.Amounts
	}
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
