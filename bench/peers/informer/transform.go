package main

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The peer's better form: SetTransform drops, before the store, everything our projections (kube/projections/) drop. Fresh structs are
// built instead of fields being set to nil, so that nothing of the decoded object stays reachable. What is shared (owner references,
// label maps) is moved, not copied.

var keptPodAnnotations = []string{stampKey, "quartermaster.io/placement", "quartermaster.io/isolation"}

func keptMeta(m *metav1.ObjectMeta, annotations []string) metav1.ObjectMeta {
	kept := metav1.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion, Generation: m.Generation,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp, Labels: m.Labels, OwnerReferences: m.OwnerReferences,
	}
	for _, key := range annotations {
		if value, ok := m.Annotations[key]; ok {
			if kept.Annotations == nil {
				kept.Annotations = map[string]string{}
			}
			kept.Annotations[key] = value
		}
	}
	return kept
}

func keptContainers(all []corev1.Container) []corev1.Container {
	if len(all) == 0 {
		return nil
	}
	kept := make([]corev1.Container, len(all))
	for i := range all {
		kept[i] = corev1.Container{Name: all[i].Name, Resources: all[i].Resources}
	}
	return kept
}

func readyCondition(all []corev1.NodeCondition) []corev1.NodeCondition {
	for i := range all {
		if all[i].Type == corev1.NodeReady {
			return []corev1.NodeCondition{{Type: corev1.NodeReady, Status: all[i].Status}}
		}
	}
	return nil
}

// trimmed keeps the API types, so typed listers still work: what a careful Go controller does.
func trimmed(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Pod:
		return &corev1.Pod{
			ObjectMeta: keptMeta(&o.ObjectMeta, keptPodAnnotations),
			Spec: corev1.PodSpec{NodeName: o.Spec.NodeName, SchedulerName: o.Spec.SchedulerName, Priority: o.Spec.Priority,
				Containers: keptContainers(o.Spec.Containers), InitContainers: keptContainers(o.Spec.InitContainers)},
			Status: corev1.PodStatus{Phase: o.Status.Phase, Reason: o.Status.Reason},
		}, nil
	case *corev1.Node:
		return &corev1.Node{
			ObjectMeta: keptMeta(&o.ObjectMeta, nil),
			Spec:       corev1.NodeSpec{Unschedulable: o.Spec.Unschedulable, Taints: o.Spec.Taints},
			Status: corev1.NodeStatus{Capacity: o.Status.Capacity, Allocatable: o.Status.Allocatable,
				Conditions: readyCondition(o.Status.Conditions)},
		}, nil
	case *corev1.ConfigMap:
		o.ManagedFields = nil
		return o, nil
	}
	return object, nil
}

// ownPod is the smallest thing a store of client-go takes: anything with ObjectMeta.
type ownPod struct {
	metav1.ObjectMeta
	NodeName       string
	SchedulerName  string
	Phase          corev1.PodPhase
	Containers     []ownContainer
	InitContainers []ownContainer
}

type ownContainer struct {
	Name      string
	Resources corev1.ResourceRequirements
}

type ownNode struct {
	metav1.ObjectMeta
	Unschedulable bool
	Ready         corev1.ConditionStatus
	Taints        []corev1.Taint
	Capacity      corev1.ResourceList
	Allocatable   corev1.ResourceList
}

func ownContainers(all []corev1.Container) []ownContainer {
	if len(all) == 0 {
		return nil
	}
	kept := make([]ownContainer, len(all))
	for i := range all {
		kept[i] = ownContainer{Name: all[i].Name, Resources: all[i].Resources}
	}
	return kept
}

func owned(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Pod:
		return &ownPod{ObjectMeta: keptMeta(&o.ObjectMeta, keptPodAnnotations), NodeName: o.Spec.NodeName, SchedulerName: o.Spec.SchedulerName,
			Phase: o.Status.Phase, Containers: ownContainers(o.Spec.Containers), InitContainers: ownContainers(o.Spec.InitContainers)}, nil
	case *corev1.Node:
		kept := &ownNode{ObjectMeta: keptMeta(&o.ObjectMeta, nil), Unschedulable: o.Spec.Unschedulable, Taints: o.Spec.Taints,
			Capacity: o.Status.Capacity, Allocatable: o.Status.Allocatable}
		if ready := readyCondition(o.Status.Conditions); ready != nil {
			kept.Ready = ready[0].Status
		}
		return kept, nil
	}
	return trimmed(object)
}
