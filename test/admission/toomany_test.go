package admission

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// failurePolicy Ignore lets a pod pass that costs more than the budget: one that is made to is refused before it is worked out, unless it
// names no declared key.
func TestS24_APodOfMoreThanIsJudgedIsRefusedAndCostsLittle(t *testing.T) {
	engine := celForm(t)
	rules := ManyRules(500, 5)
	named, other := rules.Keys[0], "example.com/undeclared"
	pod := func(containers, limits int, key string) *corev1.Pod {
		out := NewPod()
		for i := range containers {
			c := corev1.Container{Name: fmt.Sprintf("c%d", i), Image: "none", Resources: corev1.ResourceRequirements{Limits: Amounts(key, "1")}}
			for n := 1; n < limits; n++ {
				c.Resources.Limits[corev1.ResourceName(fmt.Sprintf("example.com/more-%d", n))] = resource.MustParse("1")
			}
			out.Spec.Containers = append(out.Spec.Containers, c)
		}
		CopyLimits(out)
		return out
	}
	const words = "the pod has more than 256 containers, or more than 2048 limits: more than is judged"
	for _, c := range []struct {
		containers, limits int
		key, refused       string
	}{
		{60, 8, named, "must be set to 1 or more"},
		{257, 1, named, words},
		{257, 1, other, ""},
		{8000, 1, named, words},
		{8000, 1, other, ""},
		{64, 33, named, words},
		{1, 10_000, named, words},
		{1, 10_000, other, ""},
	} {
		of := pod(c.containers, c.limits, c.key)
		began := time.Now()
		answer, _, err := engine.Pod(of, rules, "Deny")
		if err != nil || !strings.Contains(answer.Refusals, c.refused) || answer.Allowed != (c.refused == "") || (c.refused == words && answer.Advice != "") {
			t.Errorf("%d containers with %d limits of %s: %v %.200q %.100q", c.containers, c.limits, c.key, err, answer.Refusals, answer.Advice)
		}
		t.Logf("%d containers with %d limits of %s: %s", c.containers, c.limits, c.key, time.Since(began).Round(time.Millisecond))
		said, _, err := engine.Template("Deployment", of.Spec, rules, "Deny")
		if err != nil || !strings.Contains(said, c.refused) || (said == "") != (c.refused == "") {
			t.Errorf("a template of %d containers with %d limits of %s: %v %.200q", c.containers, c.limits, c.key, err, said)
		}
		r := newRequest(of, podKind, "pods", "default", rules.Object("default", "Deny"))
		for _, one := range []*compiled{&engine.rules.compiled, &engine.advice.compiled, &engine.defaults.compiled} {
			if _, left, err := one.matching.ForInput(t.Context(), r.attributes, r.review(), r.bindings(), everyday, celconfig.RuntimeCELCostBudgetMatchConditions); err != nil ||
				left < celconfig.RuntimeCELCostBudgetMatchConditions/2 {
				t.Errorf("%d containers with %d limits of %s: the conditions of %s leave %d: %v", c.containers, c.limits, c.key, one.name, left, err)
			}
		}
	}
}
