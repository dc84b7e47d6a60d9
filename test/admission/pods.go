package admission

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// WorkloadKinds have templates.
var WorkloadKinds = []string{"Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"}

// Workload of that kind whose template makes such pods.
func Workload(kind string, pod *corev1.Pod) (runtime.Object, schema.GroupVersionKind, string) {
	meta := metav1.ObjectMeta{Name: "test", Namespace: "default"}
	labels := map[string]string{"app": "test"}
	selector := &metav1.LabelSelector{MatchLabels: maps.Clone(labels)}
	maps.Copy(labels, pod.Labels)
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: pod.Annotations}, Spec: *pod.Spec.DeepCopy()}
	apps := func(kind string) schema.GroupVersionKind { return appsv1.SchemeGroupVersion.WithKind(kind) }
	switch kind {
	case "Deployment":
		return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Template: template, Selector: selector}}, apps(kind), "deployments"
	case "StatefulSet":
		return &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Template: template, Selector: selector}}, apps(kind), "statefulsets"
	case "DaemonSet":
		return &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Template: template, Selector: selector}}, apps(kind), "daemonsets"
	}
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	job := batchv1.JobSpec{Template: template}
	if kind == "Job" {
		return &batchv1.Job{ObjectMeta: meta, Spec: job}, batchv1.SchemeGroupVersion.WithKind(kind), "jobs"
	}
	cron := batchv1.CronJobSpec{Schedule: "0 0 * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: job}}
	return &batchv1.CronJob{ObjectMeta: meta, Spec: cron}, batchv1.SchemeGroupVersion.WithKind("CronJob"), "cronjobs"
}

// sameDemand compares what the rules may change.
func sameDemand(a, b *corev1.Pod) bool { return demand(a) == demand(b) }

// demand of a pod in one text: amounts of each container, and the runtime class.
func demand(pod *corev1.Pod) string {
	var out strings.Builder
	if pod.Spec.RuntimeClassName != nil {
		fmt.Fprintf(&out, "runtime class %q\n", *pod.Spec.RuntimeClassName)
	}
	for i, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, c := range containers {
			fmt.Fprintf(&out, "%s %s: limits %s requests %s\n", []string{"init container", "container"}[i], c.Name, amounts(c.Resources.Limits),
				amounts(c.Resources.Requests))
		}
	}
	return out.String()
}

func amounts(of corev1.ResourceList) string {
	spoken := make(map[string]int64, len(of)) // fmt prints maps sorted
	for key, amount := range of {
		spoken[string(key)] = amount.Value()
	}
	return fmt.Sprint(spoken)
}

// Filled is the pod with these fills and this runtime class, as the server has it then: what the C++ form says a pod becomes.
func Filled(in *corev1.Pod, fills []Fill, runtimeClass string) (*corev1.Pod, error) {
	pod := in.DeepCopy()
	for _, fill := range fills {
		parts := strings.Split(fill.Path, "/")
		if len(parts) != 7 || parts[0] != "" || parts[1] != "spec" || parts[4] != "resources" || parts[5] != "limits" {
			return nil, fmt.Errorf("a fill at an odd place: %s", fill.Path)
		}
		containers := pod.Spec.Containers
		if parts[2] == "initContainers" {
			containers = pod.Spec.InitContainers
		}
		i, err := strconv.Atoi(parts[3])
		if err != nil || i >= len(containers) {
			return nil, fmt.Errorf("a fill at an odd place: %s", fill.Path)
		}
		amount, err := resource.ParseQuantity(fill.Value)
		if err != nil {
			return nil, err
		}
		key := strings.ReplaceAll(strings.ReplaceAll(parts[6], "~1", "/"), "~0", "~")
		containers[i].Resources.Limits[corev1.ResourceName(key)] = amount
	}
	if runtimeClass != "" {
		pod.Spec.RuntimeClassName = &runtimeClass
	}
	CopyLimits(pod)
	return pod, nil
}
