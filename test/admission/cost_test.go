package admission

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

func TestS24_500KeysAndAPodOf60ContainersStayWithinTheBudget(t *testing.T) {
	engine := celForm(t)
	rules := ManyRules(500)
	for _, named := range []int{1, 4, 8, 20} {
		// Every container wrong, so that the text is written too.
		pod := ManyContainers(rules, 60, named)
		costs := checkCosts(t, engine, pod, rules, fmt.Sprintf("500 keys, 60 containers that name %d each", named))
		for _, cost := range costs {
			if cost.Total > celconfig.RuntimeCELCostBudget/2 {
				t.Errorf("%s: %d of %d leaves too little room", cost.Policy, cost.Total, int64(celconfig.RuntimeCELCostBudget))
			}
		}
		CopyLimits(pod)
		answer, _, err := engine.Pod(pod, rules, "Deny")
		if err != nil || answer.Allowed {
			t.Errorf("a pod that breaks a rule in each container passes: %v", err)
		}
	}
	// A usual pod.
	checkCosts(t, engine, ManyContainers(rules, 1, 2), rules, "500 keys, one container that names 2")
}

// The largest object the operator writes holds as many of 10,000 declared keys as fit into it.
func TestS24_TheLargestObjectCostsNoMoreThanASmallOne(t *testing.T) {
	judge, engine := cppForm(t), celForm(t)
	var all []corev1.ConfigMap
	for i := range 10_000 {
		all = append(all, ConfigMap(fmt.Sprintf("cf-crl-group-%04d-card-%d", i/5, i), map[string]string{"key": fmt.Sprintf("vendor-%04d.example.com/card-%05d", i/5, i),
			"group": fmt.Sprintf("group-%04d", i/5), "dataType": "integer", "limits": "required", "requests": "fromLimits", "defaultValue": "1"}))
	}
	compiled, err := judge.Compile(all, CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(compiled.Spec.Object("default", "Deny"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("of 10,000 keys %d fit, %d are left out: the object has %d bytes", len(compiled.Spec.Keys), compiled.LeftOut, len(text))
	if len(text) > 1_500_000 || len(compiled.Spec.Keys) < 3000 || compiled.LeftOut+len(compiled.Spec.Keys) != 10_000 {
		t.Error("that does not fit into etcd, or is too little")
	}
	small, err := judge.Compile(all[:500], CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	few := checkCosts(t, engine, ManyContainers(small.Spec, 60, 4), small.Spec, "500 keys, 60 containers that name 4 each")
	many := checkCosts(t, engine, ManyContainers(compiled.Spec, 60, 4), compiled.Spec, fmt.Sprintf("%d keys, 60 containers that name 4 each", len(compiled.Spec.Keys)))
	for i := range min(len(few), len(many)) {
		if many[i].Total > few[i].Total*11/10 {
			t.Errorf("%s costs %d with %d keys and %d with 500", many[i].Policy, many[i].Total, len(compiled.Spec.Keys), few[i].Total)
		}
	}
}

func checkCosts(t *testing.T, engine *Engine, pod *corev1.Pod, rules Spec, what string) []Cost {
	t.Helper()
	CopyLimits(pod)
	costs, err := engine.Costs(pod, rules)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return costs
	}
	for _, cost := range costs {
		var parts []string
		for _, name := range engine.variables(cost.Policy) {
			parts = append(parts, fmt.Sprintf("%s %d", name, cost.Variables[name]))
		}
		t.Logf("%s: %s costs %d of %d (%s)", what, cost.Policy, cost.Total, int64(celconfig.RuntimeCELCostBudget), strings.Join(parts, ", "))
	}
	return costs
}

// What evaluating costs this machine: everything the API server does for a usual pod beside its own work.
func BenchmarkAPodThroughAllPolicies(b *testing.B) {
	policies, err := Render(true)
	if err != nil {
		b.Fatal(err)
	}
	engine, err := NewEngine(policies, 35)
	if err != nil {
		b.Fatal(err)
	}
	for _, keys := range []int{20, 500} {
		rules := ManyRules(keys)
		object := rules.Object("default", "Deny")
		for _, containers := range []int{1, 60} {
			pod := ManyContainers(rules, containers, 2)
			CopyLimits(pod)
			b.Run(fmt.Sprintf("%d_keys_%d_containers", keys, containers), func(b *testing.B) {
				for b.Loop() {
					r := newRequest(pod, podKind, "pods", "default", object)
					if _, err := engine.apply(r); err != nil {
						b.Fatal(err)
					}
					for _, v := range []*validation{engine.rules, engine.advice} {
						if _, err := v.text(r); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}
