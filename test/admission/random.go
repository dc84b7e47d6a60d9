package admission

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Trial is a set of rules and a pod that both forms are asked about.
type Trial struct {
	Rules       Spec        `json:"rules"`
	Pod         *corev1.Pod `json:"pod"`
	Enforcement string      `json:"enforcement"`
	Template    string      `json:"template,omitempty"` // the kind whose template the pod spec is in; its requests are as written
}

func (t Trial) clone() Trial {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err)
	}
	var out Trial
	if err := json.Unmarshal(text, &out); err != nil {
		panic(err)
	}
	return out
}

func (t Trial) String() string {
	text, _ := json.MarshalIndent(t, "", "  ")
	return string(text)
}

// Few keys, groups and amounts, so that rules meet.
var (
	poolKeys = []string{"a.test/one", "a.test/two", "b.test/one", "b.test/two", "c.test/odd_name.x", GpuCount, GpuMem, Percent, Core, Memory}
	moreKeys = func() (out []string) { // so many that a container may name more than are sorted one by one
		for i := range 24 {
			out = append(out, fmt.Sprintf("d.test/%d", i))
		}
		return out
	}()
	poolOnPod   = []string{"1", "2", "4", "7", "50", "50", "60", "99", "100", "100", "200", "8589934592", "0", "050", " 50", "banana", "", "-1", "1e2", "99999999999", strings.Repeat("9", 300)}
	undeclared  = "z.test/undeclared"
	poolGroups  = []string{"", "g1", "g1", "g2"}
	poolAmounts = []string{"0", "0", "0", "1", "1", "2", "7", "50", "99", "100", "100", "100", "101", "149", "150", "151", "200", "200", "1k", "1050", "8Gi", "1e30"}
)

type source struct{ *rand.Rand }

func (r source) one(of []string) string  { return of[r.Intn(len(of))] }
func (r source) chance(percent int) bool { return r.Intn(100) < percent }
func (r source) some(of []string, p int) []string {
	var out []string
	for _, one := range of {
		if r.chance(p) {
			out = append(out, one)
		}
	}
	return out
}

// RandomRules as the operator could have compiled them.
func RandomRules(r *rand.Rand, keys []string) Spec {
	in := source{r}
	spec := NewSpec()
	for _, key := range keys {
		if !in.chance(75) {
			continue
		}
		rule := Rule{Source: "kube-public/cf-crl-" + fmt.Sprint(in.Intn(50)), Group: in.one(poolGroups)}
		switch {
		case in.chance(8):
			rule.Forbidden = true
		case in.chance(40):
			rule.Must = true
			if in.chance(70) {
				rule.Fill = in.one([]string{"1", "3", "20", "100", "200", "4000"})
			}
		case in.chance(25):
			rule.Fill = in.one([]string{"1", "20", "300"})
		}
		for _, other := range append(slices.Clone(keys), undeclared) {
			if other != key && in.chance(8) {
				rule.Related = append(rule.Related, other)
			}
			if other != key && in.chance(6) {
				rule.Excluded = append(rule.Excluded, other)
			}
		}
		if in.chance(25) {
			rule.RuntimeClassName = in.one([]string{"nvidia", "kata"})
		}
		rule.NotOffered = in.chance(20)
		spec.Rules[key] = rule
	}
	for _, key := range slices.Sorted(maps.Keys(spec.Rules)) { // exclusions hold both ways
		for _, other := range spec.Rules[key].Excluded {
			if rule, ok := spec.Rules[other]; ok && !slices.Contains(rule.Excluded, key) {
				rule.Excluded = append(rule.Excluded, key)
				slices.Sort(rule.Excluded)
				spec.Rules[other] = rule
			}
		}
	}
	for key, rule := range spec.Rules {
		slices.Sort(rule.Related)
		slices.Sort(rule.Excluded)
		spec.Rules[key] = rule
	}
	spec.Finish()
	return spec
}

// RandomConfigMaps declare keys in ways that are mostly sound.
func RandomConfigMaps(r *rand.Rand, keys []string) []corev1.ConfigMap {
	in := source{r}
	var out []corev1.ConfigMap
	for i, key := range keys {
		if !in.chance(80) {
			continue
		}
		data := map[string]string{"key": key, "dataType": "integer",
			"limits":   in.one([]string{"optional", "optional", "optional", "required", "required", "required", "disabled"}),
			"requests": in.one([]string{"optional", "disabled", "fromLimits", "required"}),
		}
		group := in.one(poolGroups)
		if group != "" {
			data["group"] = group
		}
		if in.chance(50) {
			data["defaultValue"] = in.one([]string{"1", "20", "100"})
		}
		join := func(field string, percent int) {
			for _, other := range in.some(keys, percent) {
				if other != key {
					if data[field] != "" {
						data[field] += ","
					}
					data[field] += other
				}
			}
		}
		join("relatedResources", 8)
		join("excludeResources", 4)
		if in.chance(20) {
			data["runtimeClassName"] = in.one([]string{"nvidia", "kata", "gone"})
		}
		out = append(out, ConfigMap(fmt.Sprintf("cf-crl-x-%d", i), data))
	}
	return out
}

// ConfigMap that declares a resource with these fields.
func ConfigMap(name string, data map[string]string) corev1.ConfigMap {
	labels := map[string]string{"features.cpaas.io/type": "CustomResourceLimitation", "features.cpaas.io/enabled": "true"}
	if data["group"] != "" {
		labels["features.cpaas.io/group"] = data["group"]
	}
	return corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: name, Labels: labels}, Data: data}
}

// RandomPod names some of the keys, in few containers, with requests as people write them.
func RandomPod(r *rand.Rand, keys []string) *corev1.Pod {
	in := source{r}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "test", Namespace: "default"}}
	keys = append(slices.Clone(keys), undeclared)
	fill := func(name string, always bool) corev1.Container {
		c := corev1.Container{Name: name, Image: "none"}
		if always {
			policy := corev1.ContainerRestartPolicyAlways
			c.RestartPolicy = &policy
		}
		if in.chance(15) {
			return c
		}
		c.Resources.Limits = corev1.ResourceList{}
		if in.chance(30) {
			c.Resources.Limits[corev1.ResourceCPU] = resource.MustParse("500m")
		}
		for _, key := range in.some(keys, 5+in.Intn(40+2*len(keys))) {
			amount := resource.MustParse(in.one(poolAmounts))
			name := corev1.ResourceName(key)
			request := func(q resource.Quantity) {
				if c.Resources.Requests == nil {
					c.Resources.Requests = corev1.ResourceList{}
				}
				c.Resources.Requests[name] = q
			}
			switch how := in.Intn(60); {
			case how == 0: // a request alone
				request(amount)
				continue
			case how == 1:
				request(resource.MustParse(in.one(poolAmounts)))
			case how < 15:
				request(amount)
			}
			c.Resources.Limits[name] = amount
		}
		return c
	}
	for i := range in.Intn(3) {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, fill(fmt.Sprintf("init-%d", i), in.chance(40)))
	}
	for i := range 1 + in.Intn(3) {
		pod.Spec.Containers = append(pod.Spec.Containers, fill(fmt.Sprintf("main-%d", i), false))
	}
	if in.chance(30) {
		pod.Annotations = map[string]string{CoreLimit: in.one(poolOnPod), GpuCount: "not an annotation"}
	}
	if in.chance(30) {
		pod.Labels = map[string]string{GpuCount: in.one(poolOnPod[:12]), CoreLimit: "not-a-label"}
	}
	if in.chance(25) {
		class := in.one([]string{"kata", "nvidia", "runc", ""})
		pod.Spec.RuntimeClassName = &class
	}
	return pod
}

// RandomTrial number n of a seed; always the same one. A part of the rules is compiled from random ConfigMaps.
func RandomTrial(j *Judge, seed int64, n int) (Trial, error) {
	r := rand.New(rand.NewSource(seed*1_000_003 + int64(n)))
	in := source{r}
	keys := poolKeys
	switch draw := in.Intn(100); {
	case draw == 0: // many at once
		keys = append(slices.Clone(poolKeys), moreKeys...)
	case draw < 20: // one thing at a time
		keys = []string{poolKeys[in.Intn(len(poolKeys)-2)], Core, Memory}
	case draw < 35:
		at := in.Intn(len(poolKeys) - 1)
		keys = poolKeys[at : at+2]
	}
	var t Trial
	if in.chance(30) {
		compiled, err := j.Compile(RandomConfigMaps(r, keys), CompileOptions{FillOptional: in.chance(30), RuntimeClasses: []string{"nvidia", "kata"},
			Offered: in.some(keys, 70)})
		if err != nil {
			return t, err
		}
		t.Rules = compiled.Spec
	} else {
		t.Rules = RandomRules(r, keys)
	}
	t.Pod = RandomPod(r, keys)
	t.Enforcement = in.one([]string{"Deny", "Deny", "Warn"})
	if in.chance(25) {
		t.Template = in.one(WorkloadKinds)
	}
	return t, nil
}

// Disagreement asks both forms and says where they differ; empty: nowhere.
func Disagreement(j *Judge, e *Engine, t Trial) (string, error) {
	pod := t.Pod.DeepCopy()
	if t.Template == "" {
		CopyLimits(pod)
	}
	ours, err := j.Evaluate(t.Rules, pod, t.Enforcement)
	if err != nil {
		return "", err
	}
	if t.Template != "" {
		refusals, advice, err := e.Template(t.Template, pod, t.Rules, t.Enforcement)
		if err != nil {
			return "CEL fails: " + err.Error(), nil
		}
		if said := differs("text", ours.Refusals, refusals); said != "" {
			return said, nil
		}
		return differs("advice", ours.Advice, advice), nil
	}
	theirs, changed, err := e.Pod(pod, t.Rules, t.Enforcement)
	if err != nil {
		return "CEL fails: " + err.Error(), nil
	}
	filled, err := Filled(pod, ours.Fills, ours.RuntimeClassName)
	if err != nil {
		return "", err
	}
	if said := differs("pod", demand(filled), demand(changed)); said != "" {
		return said, nil
	}
	if said := differs("text", ours.Refusals, theirs.Refusals); said != "" {
		return said, nil
	}
	if ours.Allowed != theirs.Allowed {
		return fmt.Sprintf("verdict\nC++: %v\nCEL: %v", ours.Allowed, theirs.Allowed), nil
	}
	return differs("advice", ours.Advice, theirs.Advice), nil
}

func differs(what, ours, theirs string) string {
	if ours == theirs {
		return ""
	}
	return fmt.Sprintf("%s\nC++: %s\nCEL: %s", what, ours, theirs)
}

// Smallest leaves out of a trial whatever it can while `bad` stays true.
func Smallest(t Trial, bad func(Trial) bool) Trial {
	for {
		smaller := false
		for _, candidate := range simpler(t) {
			if bad(candidate) {
				t, smaller = candidate, true
				break
			}
		}
		if !smaller {
			return t
		}
	}
}

// simpler is the trial with one thing less, in all ways.
func simpler(t Trial) []Trial {
	var out []Trial
	but := func(change func(*Trial)) {
		candidate := t.clone()
		change(&candidate)
		candidate.Rules.Finish()
		out = append(out, candidate)
	}
	for i := range t.Pod.Spec.InitContainers {
		but(func(t *Trial) { t.Pod.Spec.InitContainers = slices.Delete(t.Pod.Spec.InitContainers, i, i+1) })
	}
	for i := range t.Pod.Spec.Containers {
		if len(t.Pod.Spec.Containers) > 1 {
			but(func(t *Trial) { t.Pod.Spec.Containers = slices.Delete(t.Pod.Spec.Containers, i, i+1) })
		}
	}
	for _, key := range t.Rules.Keys {
		but(func(t *Trial) { delete(t.Rules.Rules, key) })
	}
	if t.Pod.Annotations != nil {
		but(func(t *Trial) { t.Pod.Annotations = nil })
	}
	if t.Pod.Labels != nil {
		but(func(t *Trial) { t.Pod.Labels = nil })
	}
	if t.Pod.Spec.RuntimeClassName != nil {
		but(func(t *Trial) { t.Pod.Spec.RuntimeClassName = nil })
	}
	lists := func(t *Trial) []corev1.ResourceList {
		var out []corev1.ResourceList
		for _, containers := range [][]corev1.Container{t.Pod.Spec.InitContainers, t.Pod.Spec.Containers} {
			for _, c := range containers {
				out = append(out, c.Resources.Limits, c.Resources.Requests)
			}
		}
		return out
	}
	for i, list := range lists(&t) {
		for _, key := range slices.Sorted(maps.Keys(list)) {
			but(func(t *Trial) { delete(lists(t)[i], key) })
		}
	}
	for _, key := range t.Rules.Keys {
		rule := t.Rules.Rules[key]
		without := func(has bool, change func(*Rule)) {
			if has {
				but(func(t *Trial) { rule := t.Rules.Rules[key]; change(&rule); t.Rules.Rules[key] = rule })
			}
		}
		without(rule.Group != "", func(r *Rule) { r.Group = "" })
		without(rule.Forbidden, func(r *Rule) { r.Forbidden = false })
		without(rule.Must, func(r *Rule) { r.Must = false })
		without(rule.Fill != "", func(r *Rule) { r.Fill = "" })
		without(len(rule.Related) > 0, func(r *Rule) { r.Related = nil })
		without(len(rule.Excluded) > 0, func(r *Rule) { r.Excluded = nil })
		without(rule.RuntimeClassName != "", func(r *Rule) { r.RuntimeClassName = "" })
		without(rule.NotOffered, func(r *Rule) { r.NotOffered = false })
	}
	return out
}
