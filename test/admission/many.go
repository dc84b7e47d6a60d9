package admission

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ManyRules for so many keys, in groups of five: one filled in, one that must be there and is not filled in, one that excludes the first key
// of the next group, one with a related key that no node offers, and one with a runtime class.
func ManyRules(keys int) Spec {
	spec := NewSpec()
	name := func(i int) string { return fmt.Sprintf("vendor-%03d.example.com/card-%04d", i/5, i) }
	for i := range keys {
		rule := Rule{Source: fmt.Sprintf("kube-public/cf-crl-vendor-%03d-card-%04d", i/5, i), Group: fmt.Sprintf("vendor-%03d", i/5)}
		switch i % 5 {
		case 0:
			if i >= 5 {
				rule.Excluded = []string{name(i - 3)}
			}
		case 1:
			rule.Fill, rule.Must = "1", true
		case 2:
			if i+3 < keys {
				rule.Excluded = []string{name(i + 3)}
			}
		case 3:
			rule.Related, rule.NotOffered = []string{name(i - 1)}, true
		case 4:
			rule.Must, rule.RuntimeClassName = true, "nvidia"
		}
		spec.Rules[name(i)] = rule
	}
	spec.Finish()
	return spec
}

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
