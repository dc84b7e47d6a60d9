package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	celgo "github.com/google/cel-go/cel"
	corev1 "k8s.io/api/core/v1"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

func TestS24_500KeysAndAPodOf60ContainersStayWithinTheBudget(t *testing.T) {
	engine := celForm(t)
	rules := ManyRules(500, 5)
	for _, of := range LargePods {
		// Every container wrong, so that the text is written too.
		rules := ManyRules(500, of.Excluded)
		pod := ManyContainers(rules, 60, of.Named)
		costs := checkCosts(t, engine, pod, rules, fmt.Sprintf("500 keys, 60 containers that name %d each, which exclude up to %d", of.Named, 2*of.Excluded))
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
	// Pods with nothing wrong: the match conditions look at all of it.
	for _, containers := range []int{1, 60} {
		pod := GoodContainers(rules, containers)
		checkCosts(t, engine, pod, rules, fmt.Sprintf("500 keys, %d containers without fault", containers))
		if answer, _, err := engine.Pod(pod, rules, "Deny"); err != nil || !answer.Allowed {
			t.Errorf("a pod without fault: %v %s", err, answer.Refusals)
		}
	}
}

// Where one expression would cost too much, the pod is refused before it is worked out.
func TestS24_APodTooLargeForOneRuleIsHeldToTheOthers(t *testing.T) {
	engine := celForm(t)
	rules := ManyRules(500, 60)
	pod := ManyContainers(rules, 60, 20)
	CopyLimits(pod)
	if _, err := engine.Costs(pod, rules); err == nil {
		t.Error("this pod was to be beyond the limit")
	}
	text, err := engine.rules.text(newRequest(pod, podKind, "pods", "default", rules.Object("default", "Deny")))
	if err != nil || !strings.Contains(text, "more than is judged") {
		t.Errorf("%q %v", text, err)
	}
}

// The largest object the operator writes holds as many of the declared keys as fit into it.
func TestS24_TheLargestObjectCostsNoMoreThanASmallOne(t *testing.T) {
	judge, engine := cppForm(t), celForm(t)
	var all []corev1.ConfigMap
	declared := form(5_000, 10_000)
	for i := range declared {
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
	t.Logf("of %d keys %d fit, %d are left out: the object has %d bytes", declared, len(compiled.Spec.Keys), compiled.LeftOut, len(text))
	if len(text) > 1_500_000 || len(compiled.Spec.Keys) < 3000 || compiled.LeftOut == 0 || compiled.LeftOut+len(compiled.Spec.Keys) != declared {
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
		t.Logf("%s: %s costs %d of %d to match, then %d of %d (%s)", what, cost.Policy, cost.Match, int64(celconfig.RuntimeCELCostBudgetMatchConditions),
			cost.Total, int64(celconfig.RuntimeCELCostBudget), strings.Join(parts, ", "))
	}
	return costs
}

// What evaluating costs this machine for a usual pod, policy by policy: CPU, also that of the collector, in addition to the server's own work.
func BenchmarkAPodThroughEachPolicy(b *testing.B) {
	policies, err := Render(true)
	if err != nil {
		b.Fatal(err)
	}
	engine, err := NewEngine(policies, 35)
	if err != nil {
		b.Fatal(err)
	}
	rules := RandomRules(rand.New(rand.NewSource(1)), nil)
	rules.Rules[Core] = Rule{Source: "kube-public/core", Group: "gpu-manager", Excluded: []string{"nvidia.com/gpu"}, Related: []string{Memory}}
	rules.Rules[Memory] = Rule{Source: "kube-public/memory", Group: "gpu-manager", Must: true, Fill: "16"}
	rules.Rules["nvidia.com/gpu"] = Rule{Source: "kube-public/gpu", Excluded: []string{Core}, RuntimeClassName: "nvidia"}
	rules.Finish()
	object := rules.Object("default", "Deny")
	// What every policy pays before it has looked at anything: the pod made readable to CEL.
	nothing := matchconditions.NewMatcher(engine.rules.compiler.CompileCondition([]plugincel.ExpressionAccessor{condition{"false", celgo.BoolType}},
		engine.rules.options, environment.NewExpressions), nil, "policy", "validate", "nothing")
	pods := map[string]*corev1.Pod{}
	for name, limits := range map[string]map[string]json.Number{
		"complete":   {Core: "30", Memory: "40"},
		"lacking":    {Core: "30"},
		"undeclared": {"example.org/undeclared": "1"},
		"none":       {},
	} {
		limits["cpu"], limits["memory"] = "4", "1000000000"
		pod := NewPod()
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{Limits: quantities(limits)}}, {Name: "log", Image: "none",
			Resources: corev1.ResourceRequirements{Limits: quantities(map[string]json.Number{"cpu": "1", "memory": "1000000"})}}}
		for i := range 20 {
			pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", i), Value: "https://config.internal.example/v2/"})
		}
		for i := range 6 {
			name := fmt.Sprintf("volume-%d", i)
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: name}}}})
			pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/etc/" + name})
		}
		CopyLimits(pod)
		pods[name] = pod
	}
	cpu := func() time.Duration {
		var used syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &used)
		return time.Duration(used.Utime.Nano() + used.Stime.Nano())
	}
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		for policy, do := range map[string]func(request) error{
			"defaults": func(r request) error { _, err := engine.apply(r); return err },
			"rules":    func(r request) error { _, err := engine.rules.text(r); return err },
			"advice":   func(r request) error { _, err := engine.advice.text(r); return err },
			"reading": func(r request) error {
				_, err := nothing.Match(context.Background(), r.attributes, r.params, nil), error(nil)
				return err
			},
		} {
			b.Run(name+"/"+policy, func(b *testing.B) {
				began := cpu()
				for b.Loop() {
					if err := do(newRequest(pods[name], podKind, "pods", "default", object)); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64((cpu()-began).Microseconds())/float64(b.N), "cpu-us/op")
			})
		}
	}
}
