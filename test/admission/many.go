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
