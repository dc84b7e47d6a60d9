package main

import (
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"quartermaster.io/bench/sync/load"
)

const (
	core, memory = "tencent.com/vcuda-core", "tencent.com/vcuda-memory"
	filled       = 10
	class        = "nvidia"
)

// declared is the spec of a ResourceRules object: groups of two keys, the second of which is required and has a default.
func declared(keys int) []byte {
	rules, groups := map[string]any{}, map[string][]string{}
	var names []string
	group := func(name, first, second string) {
		rules[first] = map[string]any{"source": "kube-public/cf-crl-" + name + "-a", "group": name, "runtimeClassName": class}
		rules[second] = map[string]any{"source": "kube-public/cf-crl-" + name + "-b", "group": name, "must": true, "fill": fmt.Sprint(filled)}
		groups[name] = []string{first, second}
		names = append(names, first, second)
	}
	group("gpu-manager", core, memory)
	rules[core].(map[string]any)["whole"], rules[core].(map[string]any)["partner"] = 100, memory
	rules[memory].(map[string]any)["waivedBy"], rules[memory].(map[string]any)["waivedFrom"] = core, 100
	for i := 0; len(names) < keys; i++ {
		group(fmt.Sprintf("vendor-%03d", i), fmt.Sprintf("vendor-%03d.example.com/card", i), fmt.Sprintf("vendor-%03d.example.com/memory", i))
	}
	text, _ := json.Marshal(map[string]any{"keys": names, "rules": rules, "groups": groups})
	return text
}

// review of about `size` bytes: a pod as people run them, on its way into the cluster, that asks for a share of a card.
func review(size int) ([]byte, error) {
	var best []byte
	for envs := 0; envs < 400; envs++ {
		text, err := reviewOf(envs)
		if err != nil {
			return nil, err
		}
		if best != nil && len(text) > size {
			break
		}
		best = text
	}
	return best, nil
}

func reviewOf(envs int) ([]byte, error) {
	pod := load.Pod(1, 0, 10, envs)
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	pod.Status, pod.Spec.NodeName, pod.UID, pod.ResourceVersion, pod.Spec.RuntimeClassName = corev1.PodStatus{}, "", "", "", nil
	if len(pod.ManagedFields) > 1 {
		pod.ManagedFields = pod.ManagedFields[:1]
	}
	for i := range pod.Spec.Containers {
		for _, list := range []corev1.ResourceList{pod.Spec.Containers[i].Resources.Limits, pod.Spec.Containers[i].Resources.Requests} {
			for name := range list {
				if name != corev1.ResourceCPU && name != corev1.ResourceMemory {
					delete(list, name)
				}
			}
			if i == 0 {
				list[core] = resource.MustParse("30")
			}
		}
	}
	raw, err := json.Marshal(pod)
	if err != nil {
		return nil, err
	}
	resourceOf := metav1.GroupVersionResource{Version: "v1", Resource: "pods"}
	kind := metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}
	no := false
	return json.Marshal(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{UID: "705ab4f5-6393-11e8-b7cc-42010a800002", Kind: kind, Resource: resourceOf, RequestKind: &kind, RequestResource: &resourceOf,
			Name: pod.Name, Namespace: pod.Namespace, Operation: admissionv1.Create, UserInfo: authenticationv1.UserInfo{Username: "system:serviceaccount:kube-system:replicaset-controller",
				UID: "705ab4f5-6393-11e8-b7cc-42010a800003", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"}},
			Object: runtime.RawExtension{Raw: raw}, DryRun: &no, Options: runtime.RawExtension{Raw: []byte(`{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1"}`)}}})
}
