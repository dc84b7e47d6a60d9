package admission

import (
	"fmt"
	"strings"
	"testing"
	"time"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// failurePolicy Ignore lets a pod pass that costs more than the budget: one that is made to is refused before it is worked out, unless it
// names no declared key.
func TestS24_APodOfMoreThanIsJudgedIsRefusedAndCostsLittle(t *testing.T) {
	engine, judge := celForm(t), cppForm(t)
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
	const words = "the pod has more than 256 containers or 2048 limits, or uses too many keys that exclude others or belong to large groups: more than is judged"
	for _, c := range []struct {
		containers, limits int
		key, refused       string
	}{
		{60, 8, named, "must be set to 1 or more"},
		{257, 1, named, words},
		{257, 1, other, ""},
		{form(1000, 8000), 1, named, words},
		{1000, 1, other, ""},
		{form(1100, 16_000), 1, other, words}, // whatever it names: not even the names are read
		{64, 33, named, words},
		{1, form(2500, 10_000), named, words},
		{1, form(2500, 10_000), other, ""},
	} {
		of := pod(c.containers, c.limits, c.key)
		began := time.Now()
		answer, _, err := engine.Pod(of, rules, "Deny")
		if err != nil || !strings.Contains(answer.Refusals, c.refused) || answer.Allowed != (c.refused == "") || (c.refused == words && answer.Advice != "") {
			t.Errorf("%d containers with %d limits of %s: %v %.200q %.100q", c.containers, c.limits, c.key, err, answer.Refusals, answer.Advice)
		}
		t.Logf("%d containers with %d limits of %s: %s", c.containers, c.limits, c.key, time.Since(began).Round(time.Millisecond))
		ours, err := judge.Evaluate(rules, of, "Deny")
		if err != nil || ours.Allowed != answer.Allowed || (c.refused == words && (ours.Refusals != words || ours.Advice != "" || len(ours.Fills) > 0)) {
			t.Errorf("%d containers with %d limits of %s: C++ says %v %.200q %.100q", c.containers, c.limits, c.key, err, ours.Refusals, ours.Advice)
		}
		said, _, err := engine.Template("Deployment", of, rules, "Deny")
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

// A pod that breaks a rule is refused whatever is around it: judged or too large, but never skipped because the server gave up.
func TestS24_APaddedPodIsRefusedAtEverySize_long(t *testing.T) {
	engine := celForm(t)
	judge := cppForm(t)
	for _, more := range []int{170, 400} { // listed one by one: 76 + 64 + 170; too many for that
		rules := PaddingRules(more)
		if (rules.Exclusive == nil) != (more == 400) {
			t.Fatalf("%d keys take part in exclusions: %d are listed", more, len(rules.Exclusive))
		}
		object := rules.Object("default", "Deny")
		for _, size := range PaddedSizes {
			for _, of := range PaddedPods(size.Containers, size.Named, size.Amount) {
				CopyLimits(of.Pod)
				r := newRequest(of.Pod, podKind, "pods", "default", object)
				_, left, err := engine.rules.matching.ForInput(t.Context(), r.attributes, r.review(), r.bindings(), everyday, celconfig.RuntimeCELCostBudgetMatchConditions)
				text, wrong := engine.rules.text(r)
				if err != nil || wrong != nil || (text == "" && !of.Sound) {
					t.Errorf("%d more: %s: %v %v %.200q", more, of.Name, err, wrong, text)
					continue
				}
				if used := celconfig.RuntimeCELCostBudgetMatchConditions - left; used > celconfig.PerCallLimit*9/10 {
					t.Errorf("%d more: %s: the match condition costs %d, near the limit", more, of.Name, used)
				}
				answer, err := judge.Evaluate(rules, of.Pod, "Warn")
				tooMuch := strings.Contains(text, "more than is judged") || strings.Contains(answer.Refusals, "more than is judged")
				if err != nil || answer.Allowed != (text == "") || (tooMuch && answer.Refusals != text) {
					t.Errorf("%d more: %s: C++ says %.200q, CEL %.200q %v", more, of.Name, answer.Refusals, text, err)
				}
			}
		}
		for _, size := range MonsterSizes {
			of := Monster(size.Containers, size.Limits)
			text, err := engine.rules.text(newRequest(of, podKind, "pods", "default", object))
			if err != nil || text == "" {
				t.Errorf("%d containers, %d limits: %v %.200q", size.Containers, size.Limits, err, text)
			}
			if answer, err := judge.Evaluate(rules, of, "Warn"); err != nil || answer.Refusals != text {
				t.Errorf("%d containers, %d limits: C++ says %.200q, CEL %.200q %v", size.Containers, size.Limits, answer.Refusals, text, err)
			}
		}
	}
}

// The decision itself stays far from what one expression may cost, at the bounds that are documented. Of a pod within them it says yes or no.
func TestS24_TheWorstPodThatIsJudgedCostsLessThanOneExpressionMay(t *testing.T) {
	engine := celForm(t)
	most, dearest, judged := int64(0), "", 0
	names := []string{"fits", "sound", "apart"}
	decisions := map[string]plugincel.ConditionEvaluator{}
	for _, name := range names {
		decisions[name] = engine.rules.compiler.CompileCondition([]plugincel.ExpressionAccessor{condition{"variables." + name, celgo.AnyType}},
			engine.rules.options, environment.NewExpressions)
	}
	for _, more := range []int{170, 400} {
		rules := PaddingRules(more)
		for _, size := range PaddedSizes {
			if size.Containers < form(128, 0) || size.Containers > form(257, 1000) {
				continue
			}
			for _, of := range PaddedPods(size.Containers, size.Named, size.Amount) {
				CopyLimits(of.Pod)
				r := newRequest(of.Pod, podKind, "pods", "default", rules.Object("default", "Deny"))
				for _, name := range names {
					results, left, err := decisions[name].ForInput(t.Context(), r.attributes, r.review(), r.bindings(), everyday, celconfig.RuntimeCELCostBudget)
					if err == nil {
						err = results[0].Error
					}
					if err != nil {
						t.Errorf("%d more: %s: %s: %v", more, of.Name, name, err)
						break
					}
					if used := celconfig.RuntimeCELCostBudget - left; used > most {
						most, dearest = used, fmt.Sprintf("%s of %d more, %s", name, more, of.Name)
					}
					if name == "fits" && results[0].EvalResult != types.True {
						break // refused as too large: the others do not count
					}
					judged++
				}
			}
		}
	}
	// Each includes the variables that it uses, which the server charges one by one.
	if most > celconfig.PerCallLimit {
		t.Errorf("%s costs %d of %d", dearest, most, int64(celconfig.PerCallLimit))
	}
	if judged < form(50, 100) {
		t.Errorf("only %d decisions were looked at", judged)
	}
	t.Logf("of %d decisions the dearest, %s, costs %d of %d", judged, dearest, most, int64(celconfig.PerCallLimit))
}

// As many amounts as are judged, of keys that do not take any amount, cost no more.
func TestS24_AmountsThatAProgramAcceptsCostLittle(t *testing.T) {
	engine := celForm(t)
	rules := NewSpec()
	name := func(i int) string { return fmt.Sprintf("amounts.example.com/resource-%d", i%8) }
	for i := range 8 {
		rules.Rules[name(i)] = Rule{Source: "kube-public/cf-crl-amounts"}
	}
	rules.Finish()
	for i := range 8 {
		rules.Rules[name(i)] = Rule{Source: "kube-public/cf-crl-amounts", Partner: name(i + 1),
			Amounts: &Accepted{From: 5, To: 95, Step: 5, Whole: 100, Words: "some"}}
	}
	pod := NewPod()
	pod.Spec.Containers = nil
	for i := range 256 {
		limits := corev1.ResourceList{}
		for n := range 8 {
			limits[corev1.ResourceName(name(n))] = resource.MustParse("95")
		}
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprintf("c%d", i), Image: "none", Resources: corev1.ResourceRequirements{Limits: limits}})
	}
	CopyLimits(pod)
	if answer, _, err := engine.Pod(pod, rules, "Deny"); err != nil || !answer.Allowed {
		t.Errorf("legal amounts: %v %.200q", err, answer.Refusals)
	}
	pod.Spec.Containers[255].Resources.Limits[corev1.ResourceName(name(7))] = resource.MustParse("96")
	CopyLimits(pod)
	if answer, _, err := engine.Pod(pod, rules, "Deny"); err != nil || answer.Allowed {
		t.Errorf("the last amount is not legal: %v", err)
	}
}

// What the pod says in addition to a key is read in every container, however long it is.
func TestS49_WhatThePodSaysIsJudgedInEveryContainerWithinTheBudget(t *testing.T) {
	engine, judge := celForm(t), cppForm(t)
	rules := NewSpec()
	for _, key := range []string{Core, Memory, GpuMem} {
		rules.Rules[key] = Rule{Source: "kube-public/cf-crl-x"}
	}
	rules.Finish()
	pod := NewPod()
	for i := range 256 {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprintf("c%d", i), Image: "none", Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{Core: resource.MustParse("50"), Memory: resource.MustParse("4"), GpuMem: resource.MustParse("8")}}})
	}
	CopyLimits(pod)
	for _, text := range []string{"100", "50", "49", strings.Repeat("1", 250_000)} {
		pod.Annotations = map[string]string{CoreLimit: text}
		answer, _, err := engine.Pod(pod, rules, "Deny")
		if err != nil || answer.Allowed != (text == "100" || text == "50") {
			t.Errorf("%.20s: %v %.200q", text, err, answer.Refusals)
		}
		if ours, err := judge.Evaluate(rules, pod, "Deny"); err != nil || ours.Refusals != answer.Refusals {
			t.Errorf("%.20s: C++ says %.200q, CEL %.200q %v", text, ours.Refusals, answer.Refusals, err)
		}
	}
}

// Nothing is refused for its size alone that people may mean.
func TestS24_ASoundPodOfManyContainersPasses(t *testing.T) {
	engine := celForm(t)
	rules := HamiRules()
	for _, containers := range []int{94, 256} {
		pod := HamiPod(containers)
		CopyLimits(pod)
		if answer, _, err := engine.Pod(pod, rules, "Deny"); err != nil || !answer.Allowed {
			t.Errorf("%d containers: %v %.200q", containers, err, answer.Refusals)
		}
		pod.Spec.Containers[containers-1].Resources.Limits[Core] = resource.MustParse("100")
		CopyLimits(pod)
		if answer, _, err := engine.Pod(pod, rules, "Deny"); err != nil || answer.Allowed {
			t.Errorf("%d containers, the last of which uses an excluded key: %v", containers, err)
		}
	}
}
