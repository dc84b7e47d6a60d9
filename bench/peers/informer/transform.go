package main

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The peer's better form: SetTransform drops, before the store, everything our projections (kube/projections/) drop. Fresh structs are
// built instead of fields being set to nil, so that nothing of the decoded object stays reachable, and maps that shrink are replaced by new ones.

var (
	podLabels      = []string{"quartermaster.io/", "app.kubernetes.io/", "name", "k8s-app", "pod-template-generation", "controller-revision-hash"}
	podAnnotations = []string{"quartermaster.io/", "state.quartermaster.io/", "tencent.com/", "hami.io/", "ALIYUN_COM_", "nvidia.com/", "kubernetes.io/config.mirror"}
	nodeNotes      = []string{"quartermaster.io/", "state.quartermaster.io/", "hami.io/"}
	ours           = []string{"quartermaster.io/", "state.quartermaster.io/"}
)

func keptKeys(all map[string]string, prefixes []string) map[string]string {
	var kept map[string]string
	for key, value := range all {
		for _, prefix := range prefixes {
			if strings.HasPrefix(key, prefix) {
				if kept == nil {
					kept = map[string]string{}
				}
				kept[key] = value
				break
			}
		}
	}
	return kept
}

func keptMeta(m *metav1.ObjectMeta, labels map[string]string, annotations []string) metav1.ObjectMeta {
	kept := metav1.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion, Generation: m.Generation,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp, Labels: labels,
		Annotations: keptKeys(m.Annotations, annotations),
	}
	for _, o := range m.OwnerReferences {
		kept.OwnerReferences = append(kept.OwnerReferences, metav1.OwnerReference{Kind: o.Kind, Name: o.Name, UID: o.UID, Controller: o.Controller})
	}
	return kept
}

// extended keeps resources with a domain: "nvidia.com/gpu", not "cpu".
func extended(all corev1.ResourceList) corev1.ResourceList {
	var kept corev1.ResourceList
	for name, amount := range all {
		if strings.Contains(string(name), "/") {
			if kept == nil {
				kept = corev1.ResourceList{}
			}
			kept[name] = amount
		}
	}
	return kept
}

// asks is the containers with their extended resources, nil when none asks for any.
func asks(all []corev1.Container) []corev1.Container {
	any := false
	kept := make([]corev1.Container, len(all))
	for i := range all {
		kept[i] = corev1.Container{Name: all[i].Name, RestartPolicy: all[i].RestartPolicy, Resources: corev1.ResourceRequirements{
			Limits: extended(all[i].Resources.Limits), Requests: extended(all[i].Resources.Requests)}}
		any = any || kept[i].Resources.Limits != nil
	}
	if !any {
		return nil
	}
	return kept
}

func podReady(all []corev1.PodCondition) corev1.ConditionStatus {
	for i := range all {
		if all[i].Type == corev1.PodReady {
			return all[i].Status
		}
	}
	return corev1.ConditionUnknown
}

func nodeReady(all []corev1.NodeCondition) []corev1.NodeCondition {
	for i := range all {
		if all[i].Type == corev1.NodeReady {
			return []corev1.NodeCondition{{Type: corev1.NodeReady, Status: all[i].Status, LastTransitionTime: all[i].LastTransitionTime}}
		}
	}
	return nil
}

func restarts(all []corev1.ContainerStatus) (sum int32) {
	for i := range all {
		sum += all[i].RestartCount
	}
	return sum
}

// trimmed keeps the API types, so typed listers still work: what a careful Go controller does.
func trimmed(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Pod:
		return &corev1.Pod{
			ObjectMeta: keptMeta(&o.ObjectMeta, keptKeys(o.Labels, podLabels), podAnnotations),
			Spec: corev1.PodSpec{NodeName: o.Spec.NodeName, SchedulerName: o.Spec.SchedulerName, Priority: o.Spec.Priority,
				HostNetwork: o.Spec.HostNetwork, Containers: asks(o.Spec.Containers), InitContainers: asks(o.Spec.InitContainers)},
			Status: corev1.PodStatus{Phase: o.Status.Phase, Reason: o.Status.Reason, PodIP: o.Status.PodIP,
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: podReady(o.Status.Conditions)}}},
		}, nil
	case *corev1.Node:
		return &corev1.Node{
			ObjectMeta: keptMeta(&o.ObjectMeta, o.Labels, nodeNotes),
			Spec:       corev1.NodeSpec{Unschedulable: o.Spec.Unschedulable, Taints: o.Spec.Taints},
			Status: corev1.NodeStatus{Capacity: extended(o.Status.Capacity), Allocatable: extended(o.Status.Allocatable),
				Conditions: nodeReady(o.Status.Conditions), NodeInfo: corev1.NodeSystemInfo{KubeletVersion: o.Status.NodeInfo.KubeletVersion,
					OperatingSystem: o.Status.NodeInfo.OperatingSystem, Architecture: o.Status.NodeInfo.Architecture}},
		}, nil
	case *corev1.ConfigMap:
		return &corev1.ConfigMap{ObjectMeta: keptMeta(&o.ObjectMeta, o.Labels, ours), Data: o.Data, Immutable: o.Immutable}, nil
	}
	return object, nil
}

// ownPod is the smallest thing a store of client-go takes: anything with ObjectMeta. No typed lister works on it.
type ownPod struct {
	metav1.ObjectMeta
	NodeName, SchedulerName, PodIP, Reason string
	Containers, InitContainers             []ownContainer
	Phase                                  corev1.PodPhase
	Ready                                  corev1.ConditionStatus
	Priority, Restarts                     int32
	HostNetwork                            bool
}

type ownContainer struct {
	Name             string
	Limits, Requests corev1.ResourceList
}

type ownNode struct {
	metav1.ObjectMeta
	Unschedulable                                 bool
	Conditions                                    []corev1.NodeCondition
	Taints                                        []corev1.Taint
	Capacity, Allocatable                         corev1.ResourceList
	KubeletVersion, OperatingSystem, Architecture string
}

func ownAsks(all []corev1.Container) []ownContainer {
	var kept []ownContainer
	for _, c := range asks(all) {
		kept = append(kept, ownContainer{c.Name, c.Resources.Limits, c.Resources.Requests})
	}
	return kept
}

func owned(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Pod:
		kept := &ownPod{ObjectMeta: keptMeta(&o.ObjectMeta, keptKeys(o.Labels, podLabels), podAnnotations), NodeName: o.Spec.NodeName,
			SchedulerName: o.Spec.SchedulerName, PodIP: o.Status.PodIP, Reason: o.Status.Reason, Phase: o.Status.Phase, Ready: podReady(o.Status.Conditions),
			Containers: ownAsks(o.Spec.Containers), InitContainers: ownAsks(o.Spec.InitContainers),
			Restarts: restarts(o.Status.ContainerStatuses), HostNetwork: o.Spec.HostNetwork}
		if o.Spec.Priority != nil {
			kept.Priority = *o.Spec.Priority
		}
		return kept, nil
	case *corev1.Node:
		return &ownNode{ObjectMeta: keptMeta(&o.ObjectMeta, o.Labels, nodeNotes), Unschedulable: o.Spec.Unschedulable, Taints: o.Spec.Taints,
			Conditions: nodeReady(o.Status.Conditions), Capacity: extended(o.Status.Capacity), Allocatable: extended(o.Status.Allocatable),
			KubeletVersion: o.Status.NodeInfo.KubeletVersion, OperatingSystem: o.Status.NodeInfo.OperatingSystem, Architecture: o.Status.NodeInfo.Architecture}, nil
	}
	return trimmed(object)
}
