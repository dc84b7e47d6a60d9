package admission

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// The data files, without a server: what the C++ form says, and what CEL says.
func TestS24_S25_S72_TheTruthTableInCPlusPlusAndInCEL(t *testing.T) {
	judge, engine := cppForm(t), celForm(t)
	sets, err := LoadSets()
	if err != nil {
		t.Fatal(err)
	}
	pods := 0
	for _, set := range sets {
		t.Run(strings.ReplaceAll(set.Name, " ", "-"), func(t *testing.T) {
			compiled, err := judge.Compile(set.ConfigMaps(), set.CompileOptions)
			if err != nil {
				t.Fatal(err)
			}
			var refused []string
			for _, data := range set.Declare {
				if slices.Contains(set.Refused, data["key"]) {
					refused = append(refused, configMapName(data))
				}
			}
			if !slices.Equal(slices.Sorted(slices.Values(refused)), slices.Sorted(slices.Values(compiled.Refused))) {
				t.Fatalf("declarations refused: %v, not %v", compiled.Refused, refused)
			}
			for _, c := range append(set.Cases(), set.SweepCases(Memory, form(10, 1))...) {
				pods++
				pod := c.Pod.DeepCopy()
				CopyLimits(pod)
				ours, err := judge.Evaluate(compiled.Spec, pod, "Deny")
				if err != nil {
					t.Fatal(err)
				}
				for _, wrong := range c.Wrong(ours) {
					t.Errorf("%s: C++: %s", c.Name, wrong)
				}
				theirs, after, err := engine.Pod(pod, compiled.Spec, "Deny")
				if err != nil {
					t.Fatalf("%s: %v", c.Name, err)
				}
				theirs.Fills, theirs.RuntimeClassName = FillsOf(pod, after)
				for _, wrong := range c.Wrong(theirs) {
					t.Errorf("%s: CEL: %s", c.Name, wrong)
				}
				kind := WorkloadKinds[pods%len(WorkloadKinds)] // the same, said of a template
				said, advice, err := engine.Template(kind, c.Pod, compiled.Spec, "Deny")
				if err != nil || !strings.Contains(said, c.Refuse) || (said == "") != c.Allowed || (c.Allowed && !strings.Contains(advice, c.Advise)) {
					t.Errorf("%s: CEL of a %s says %q and %q: %v", c.Name, kind, said, advice, err)
				}
			}
		})
	}
	t.Logf("%d sets of declarations, %d pods", len(sets), pods)
	if pods < form(500, 2500) {
		t.Error("so few pods are not the whole table")
	}
}

func TestACaseThatComesOutOtherwiseIsFound(t *testing.T) {
	c := Case{Allowed: true, Fills: []Fill{{"/spec/containers/0/resources/limits/a~1b", "1"}}, SetClass: "kata", Advise: "usually"}
	good := Answer{Allowed: true, Fills: c.Fills, RuntimeClassName: "kata", Advice: "it usually rains"}
	if wrong := c.Wrong(good); len(wrong) != 0 {
		t.Fatal(wrong)
	}
	for name, change := range map[string]func(*Answer){
		"refused":       func(a *Answer) { a.Allowed, a.Refusals = false, "no" },
		"not filled":    func(a *Answer) { a.Fills = nil },
		"filled wrong":  func(a *Answer) { a.Fills = []Fill{{c.Fills[0].Path, "2"}} },
		"no class":      func(a *Answer) { a.RuntimeClassName = "" },
		"other advice":  func(a *Answer) { a.Advice = "it rains" },
		"advice absent": func(a *Answer) { a.Advice = "" },
	} {
		bad := good
		change(&bad)
		if len(c.Wrong(bad)) == 0 {
			t.Errorf("%s is not noticed", name)
		}
	}
	before, after := NewPod(), NewPod()
	before.Spec.Containers = []corev1.Container{{Name: "main"}}
	after.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Limits: quantities(map[string]json.Number{"a/b": "1"})}}}
	if fills, _ := FillsOf(before, after); !slices.Equal(fills, c.Fills) {
		t.Error(fills)
	}
}
