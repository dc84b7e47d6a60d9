package admission

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ManyRules for so many keys, in groups of five: one filled in, one that must be there and is not filled in, two that exclude so many keys of
// the groups that follow, one with a related key that no node offers, and one with a runtime class.
func ManyRules(keys, excluded int) Spec {
	spec := NewSpec()
	name := func(i int) string { return fmt.Sprintf("vendor-%03d.example.com/card-%04d", i/5, i) }
	for i := range keys {
		rule := Rule{Source: fmt.Sprintf("kube-public/cf-crl-vendor-%03d-card-%04d", i/5, i), Group: fmt.Sprintf("vendor-%03d", i/5)}
		switch i % 5 {
		case 1:
			rule.Fill, rule.Must = "1", true
		case 0, 2:
			for n := range excluded {
				if other := i/5*5 + 5*n + 7 - i%5; other < keys {
					rule.Excluded = append(rule.Excluded, name(other))
				}
			}
		case 3:
			rule.Related, rule.NotOffered = []string{name(i - 1)}, true
		case 4:
			rule.Must, rule.RuntimeClassName = true, "nvidia"
		}
		spec.Rules[name(i)] = rule
	}
	for _, key := range slices.Sorted(maps.Keys(spec.Rules)) { // both ways, as the operator writes them
		for _, other := range spec.Rules[key].Excluded {
			rule := spec.Rules[other]
			if !slices.Contains(rule.Excluded, key) {
				rule.Excluded = append(rule.Excluded, key)
				slices.Sort(rule.Excluded)
				spec.Rules[other] = rule
			}
		}
	}
	spec.Finish()
	return spec
}

// LargePods are how many of 500 keys each of 60 containers names, and how many exclusions declare two of five keys (with those of others, each
// may have twice as many). What grows is keys x exclusions x containers: beyond about 170,000 the server gives up on the exclusions.
var LargePods = []struct{ Named, Excluded int }{{1, 5}, {4, 5}, {8, 5}, {20, 1}}

// ManyContainers is a pod of so many containers, each of which names so many keys of the rules, one after the other; a fifth of the
// containers are init containers.
func ManyContainers(rules Spec, containers, named int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "many", Namespace: "default"}}
	keys := slices.DeleteFunc(slices.Clone(rules.Keys), func(key string) bool { return rules.Rules[key].RuntimeClassName != "" })
	next := 0
	for i := range containers {
		c := corev1.Container{Name: fmt.Sprintf("container-%02d", i), Image: "none", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{}}}
		for range named {
			c.Resources.Limits[corev1.ResourceName(keys[next%len(keys)])] = resource.MustParse("2")
			next++
		}
		if i%5 == 4 {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
		} else {
			pod.Spec.Containers = append(pod.Spec.Containers, c)
		}
	}
	return pod
}

// GoodContainers is a pod of so many containers that name what the groups of the rules ask for, one group each.
func GoodContainers(rules Spec, containers int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "good", Namespace: "default"}}
	groups := slices.Sorted(maps.Keys(rules.Groups))
	for i := range containers {
		c := corev1.Container{Name: fmt.Sprintf("container-%02d", i), Image: "none", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{}}}
		for _, key := range rules.Groups[groups[i%len(groups)]] {
			if rules.Rules[key].Must {
				c.Resources.Limits[corev1.ResourceName(key)] = resource.MustParse("1")
			}
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
	}
	CopyLimits(pod)
	return pod
}

// Padded is a pod made to be too dear to judge: many containers that ask for nothing, or for something that breaks no rule, around one that
// breaks one. A server that gives up on it lets it pass, because failurePolicy is Ignore.
type Padded struct {
	Name  string
	Pod   *corev1.Pod
	Sound bool // without the container that breaks a rule
}

// PaddingRules: five groups of 16 keys that must be used together, as many of them with 64 exclusions (the longest list) as are compared,
// next to keys to break rules by. `more` other keys take part in exclusions too: with them the operator lists them one by one, or no longer.
func PaddingRules(more int) Spec {
	spec := NewSpec()
	source := "kube-public/cf-crl-padding"
	var never []string
	for i := range 64 {
		never = append(never, fmt.Sprintf("never-beside.example.com/resource-%02d", i))
	}
	for i := range 80 {
		rule := Rule{Source: source, Group: fmt.Sprintf("group-%d", i/16), Must: true}
		if i < 76 {
			rule.Excluded = never
		}
		spec.Rules[paddingKey(i)] = rule
	}
	for i := range more {
		spec.Rules[fmt.Sprintf("more.example.com/resource-%03d", i)] = Rule{Source: source, Excluded: never[:1]}
	}
	spec.Rules["breaks.example.com/forbidden"] = Rule{Source: source, Forbidden: true}
	spec.Rules["breaks.example.com/asks"] = Rule{Source: source, Group: "asks"}
	spec.Rules["breaks.example.com/must"] = Rule{Source: source, Group: "asks", Must: true}
	spec.Finish()
	return spec
}

func paddingKey(i int) string { return fmt.Sprintf("padding.example.com/resource-%02d", i) }

// PaddedPods of so many containers with so many keys each. amount "0": nothing is asked for.
func PaddedPods(containers, named int, amount string) []Padded {
	breaks := map[string]string{"a forbidden key": "breaks.example.com/forbidden", "a required key is absent": "breaks.example.com/asks",
		"an excluded key": "never-beside.example.com/resource-63"}
	var out []Padded
	for _, what := range append(slices.Sorted(maps.Keys(breaks)), "") {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "padded", Namespace: "default"}}
		add := func(limits corev1.ResourceList) {
			n := len(pod.Spec.Containers) + len(pod.Spec.InitContainers)
			c := corev1.Container{Name: fmt.Sprintf("c%d", n), Image: "none", Resources: corev1.ResourceRequirements{Limits: limits}}
			if n%2 == 1 {
				pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
			} else {
				pod.Spec.Containers = append(pod.Spec.Containers, c)
			}
		}
		next := 0
		for range containers - 1 {
			limits := corev1.ResourceList{}
			for range named {
				limits[corev1.ResourceName(paddingKey(next%80))] = resource.MustParse(amount)
				next++
			}
			add(limits)
		}
		if key := breaks[what]; key != "" {
			limits := Amounts(key, "1")
			if what == "an excluded key" {
				limits[corev1.ResourceName(paddingKey(0))] = resource.MustParse("1")
			}
			add(limits)
		}
		name := fmt.Sprintf("%d containers that name %d keys at %s, and %s", containers, named, amount, what)
		out = append(out, Padded{name, pod, what == ""})
	}
	return out
}

// PaddedSizes are containers and keys in each: what used to pass, the bounds and what is next to them.
var PaddedSizes = []struct {
	Containers, Named int
	Amount            string
}{{2, 16, "1"}, {16, 8, "0"}, {17, 8, "0"}, {37, 5, "0"}, {60, 16, "1"}, {64, 16, "1"}, {65, 16, "1"}, {108, 3, "0"}, {120, 3, "0"}, {128, 16, "1"}, {129, 16, "1"}, {187, 1, "0"},
	{256, 1, "0"}, {256, 8, "0"}, {257, 1, "0"}, {1000, 16, "0"}}

// HamiRules: three keys that are used together and exclude those of the other products, as the declarations of HAMi say.
func HamiRules() Spec {
	spec := NewSpec()
	hami := []string{"nvidia.com/gpualloc", "nvidia.com/gpucores", "nvidia.com/gpumem"}
	others := []string{"aliyun.com/gpu-mem", "nvidia.com/gpu", "nvidia.com/mps-core", "nvidia.com/mps-memory", Core, Memory}
	for _, key := range hami {
		spec.Rules[key] = Rule{Source: "kube-public/cf-crl-hami", Group: "hami", Must: true, Excluded: others}
	}
	for _, key := range others {
		spec.Rules[key] = Rule{Source: "kube-public/cf-crl-others", Excluded: hami}
	}
	spec.Finish()
	return spec
}

// HamiPod is a pod of so many containers that each use a share of a card, and breaks no rule of HamiRules.
func HamiPod(containers int) *corev1.Pod {
	pod := NewPod()
	pod.Spec.Containers = nil
	for i := range containers {
		limits := Amounts("nvidia.com/gpualloc", "1")
		limits["nvidia.com/gpucores"], limits["nvidia.com/gpumem"] = resource.MustParse("10"), resource.MustParse("1000")
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprintf("c%d", i), Image: "none",
			Resources: corev1.ResourceRequirements{Limits: limits}})
	}
	return pod
}

// Monster is a pod of so many containers, or of one with so many limits, that names a forbidden key last.
func Monster(containers, limits int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "monster", Namespace: "default"}}
	for i := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprintf("c%d", i), Image: "n"})
	}
	last := Amounts("breaks.example.com/forbidden", "1")
	for i := range limits {
		last[corev1.ResourceName(fmt.Sprintf("a.b/%d", i))] = resource.MustParse("0")
	}
	pod.Spec.Containers[containers-1].Resources.Limits = last
	return pod
}

// MonsterSizes go up to what an API server takes in one request.
var MonsterSizes = []struct{ Containers, Limits int }{{2000, 0}, {16_000, 0}, {17_000, 0}, {40_000, 0}, {1, 3000}, {1, 30_000}, {1, 33_000}, {1, 90_000}}
