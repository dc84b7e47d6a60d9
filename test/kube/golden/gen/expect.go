package main

import (
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type values = map[string]any

func kept(from map[string]string, patterns ...string) map[string]string {
	left := map[string]string{}
	for key, value := range from {
		for _, pattern := range patterns {
			if key == pattern || pattern == "*" || (strings.HasSuffix(pattern, "/") || strings.HasSuffix(pattern, "_")) && strings.HasPrefix(key, pattern) {
				left[key] = value
			}
		}
	}
	return left
}

func expectMeta(meta *metav1.ObjectMeta, labels, annotations []string) values {
	owners := []values{}
	for _, owner := range meta.OwnerReferences {
		owners = append(owners, values{"kind": owner.Kind, "name": owner.Name, "controller": owner.Controller != nil && *owner.Controller})
	}
	created := int64(0)
	if !meta.CreationTimestamp.IsZero() {
		created = meta.CreationTimestamp.Unix()
	}
	return values{"namespace": meta.Namespace, "name": meta.Name, "uid": string(meta.UID), "resource_version": meta.ResourceVersion,
		"generation": meta.Generation, "created": created, "deleting": meta.DeletionTimestamp != nil,
		"labels": kept(meta.Labels, labels...), "annotations": kept(meta.Annotations, annotations...), "owners": owners}
}

func extended(list corev1.ResourceList) map[string]int64 {
	left := map[string]int64{}
	for name, quantity := range list {
		text := string(name)
		if strings.Contains(text, "/") && !strings.Contains(text, "kubernetes.io/") && !strings.HasPrefix(text, "requests.") {
			left[text] = quantity.Value()
		}
	}
	return left
}

var all = []string{"*"}
var ours = []string{"quartermaster.io/", "state.quartermaster.io/"}

func expectNode(node *corev1.Node) values {
	taints := []values{}
	for _, taint := range node.Spec.Taints {
		taints = append(taints, values{"key": taint.Key, "value": taint.Value, "effect": string(taint.Effect)})
	}
	ready, since := "Unknown", int64(0)
	for _, condition := range node.Status.Conditions {
		if condition.Type == "Ready" {
			since = 0
			if !condition.LastTransitionTime.IsZero() {
				since = condition.LastTransitionTime.Unix()
			}
			ready = "Unknown"
			if condition.Status == "True" || condition.Status == "False" {
				ready = string(condition.Status)
			}
		}
	}
	return values{"meta": expectMeta(&node.ObjectMeta, all, []string{"quartermaster.io/", "state.quartermaster.io/", "hami.io/"}),
		"unschedulable": node.Spec.Unschedulable, "has_gpu_discovery": slices.Contains(
			strings.Split(node.Annotations["nfd.node.kubernetes.io/feature-labels"], ","), "nvidia.com/gpu.product"),
		"taints": taints, "ready": ready, "ready_since": since,
		"capacity": extended(node.Status.Capacity), "allocatable": extended(node.Status.Allocatable),
		"container_runtime": node.Status.NodeInfo.ContainerRuntimeVersion, "kubelet_version": node.Status.NodeInfo.KubeletVersion,
		"operating_system": node.Status.NodeInfo.OperatingSystem,
		"architecture":     node.Status.NodeInfo.Architecture}
}

func expectContainers(spec *corev1.PodSpec) []values {
	asked := false
	containers := []values{}
	add := func(container *corev1.Container, role string) {
		limits := extended(container.Resources.Limits)
		asked = asked || len(limits) > 0
		if role == "init" && container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			role = "sidecar"
		}
		containers = append(containers, values{"name": container.Name, "role": role, "limits": limits})
	}
	for i := range spec.InitContainers {
		add(&spec.InitContainers[i], "init")
	}
	for i := range spec.Containers {
		add(&spec.Containers[i], "main")
	}
	if !asked {
		return []values{}
	}
	return containers
}

func expectReason(status *corev1.PodStatus) string {
	if status.Reason != "" {
		return status.Reason
	}
	for _, list := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
		for _, container := range list {
			if !container.Ready && container.State.Waiting != nil && container.State.Waiting.Reason != "" {
				return container.State.Waiting.Reason
			}
		}
	}
	return ""
}

// A bound pod whose scheduler has taken the condition back is there since its kubelet took it in, or since then at the latest.
func expectScheduled(pod *corev1.Pod) int64 {
	for _, condition := range pod.Status.Conditions {
		if condition.Type != corev1.PodScheduled || condition.LastTransitionTime.IsZero() {
			continue
		}
		start := pod.Status.StartTime
		switch {
		case condition.Status == corev1.ConditionTrue:
			return condition.LastTransitionTime.Unix()
		case pod.Spec.NodeName == "":
			return 0
		case !start.IsZero() && start.Before(&condition.LastTransitionTime):
			return start.Unix()
		}
		return condition.LastTransitionTime.Unix()
	}
	return 0
}

// The last end of a container, where each one's end is known or it never ran because an init container failed.
func expectFinished(status *corev1.PodStatus) int64 {
	if status.Phase != corev1.PodSucceeded && status.Phase != corev1.PodFailed {
		return 0
	}
	initFailed := slices.ContainsFunc(status.InitContainerStatuses, func(container corev1.ContainerStatus) bool {
		return container.State.Terminated != nil && container.State.Terminated.ExitCode != 0
	})
	last := int64(0)
	for _, container := range slices.Concat(status.InitContainerStatuses, status.ContainerStatuses) {
		state := container.State
		switch {
		case state.Running != nil, state.Terminated == nil && !initFailed:
			return 0
		case state.Terminated == nil:
			continue
		case state.Terminated.FinishedAt.IsZero():
			return 0
		}
		last = max(last, state.Terminated.FinishedAt.Unix())
	}
	return last
}

// A device plugin has to see the folder of its socket: that folder, one above it, or one of the same name under another root of a kubelet.
func expectRegisters(spec *corev1.PodSpec) bool {
	return slices.ContainsFunc(spec.Volumes, func(volume corev1.Volume) bool {
		if volume.HostPath == nil {
			return false
		}
		const plugins = "/var/lib/kubelet/device-plugins/"
		folder := strings.TrimSuffix(path.Clean("/"+volume.HostPath.Path), "/") + "/"
		return strings.HasPrefix(plugins, folder) || strings.HasPrefix(folder, plugins) || path.Base(folder) == "device-plugins"
	})
}

func expectPod(pod *corev1.Pod) values {
	restarts := int32(0)
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, container := range list {
			restarts += container.RestartCount
		}
	}
	phase := "Unknown"
	switch pod.Status.Phase {
	case corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed:
		phase = string(pod.Status.Phase)
	}
	ready := false
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			ready = condition.Status == "True"
		}
	}
	priority := int32(0)
	if pod.Spec.Priority != nil {
		priority = *pod.Spec.Priority
	}
	scheduler := pod.Spec.SchedulerName
	if scheduler == "default-scheduler" {
		scheduler = ""
	}
	_, mirror := pod.Annotations["kubernetes.io/config.mirror"]
	return values{
		"meta": expectMeta(&pod.ObjectMeta,
			[]string{"quartermaster.io/", "app.kubernetes.io/", "name", "k8s-app", "pod-template-generation", "controller-revision-hash"},
			[]string{"quartermaster.io/", "state.quartermaster.io/", "tencent.com/", "hami.io/", "ALIYUN_COM_", "nvidia.com/", "aliyun.accelerator/", "gaia.tencent.com/", "tkestack.io/", "kubernetes.io/config.mirror"}),
		"node_name": pod.Spec.NodeName, "nominated_node": pod.Status.NominatedNodeName, "scheduler_name": scheduler, "ip": pod.Status.PodIP, "reason": expectReason(&pod.Status),
		"containers": expectContainers(&pod.Spec), "scheduled_at": expectScheduled(pod), "finished_at": expectFinished(&pod.Status),
		"priority": priority, "restarts": restarts, "phase": phase, "ready": ready,
		"host_network": pod.Spec.HostNetwork, "mirror": mirror, "mounts_plugin_folder": expectRegisters(&pod.Spec)}
}

func expectDaemonSet(set *appsv1.DaemonSet) values {
	return values{"meta": expectMeta(&set.ObjectMeta, all, ours), "image": set.Spec.Template.Spec.Containers[0].Image,
		"observed_generation": set.Status.ObservedGeneration, "desired": set.Status.DesiredNumberScheduled, "current": set.Status.CurrentNumberScheduled,
		"ready": set.Status.NumberReady, "updated": set.Status.UpdatedNumberScheduled, "available": set.Status.NumberAvailable,
		"misscheduled": set.Status.NumberMisscheduled}
}

func expectDeployment(set *appsv1.Deployment) values {
	return values{"meta": expectMeta(&set.ObjectMeta, all, ours), "desired": *set.Spec.Replicas, "observed_generation": set.Status.ObservedGeneration,
		"replicas": set.Status.Replicas, "updated": set.Status.UpdatedReplicas, "ready": set.Status.ReadyReplicas, "available": set.Status.AvailableReplicas,
		"problem": "no such account"}
}

func expectNamespace(space *corev1.Namespace) values {
	return values{"meta": expectMeta(&space.ObjectMeta, all, []string{})}
}

func expectConfigMap(config *corev1.ConfigMap) values {
	sizes := map[string]int{}
	for key, bytes := range config.BinaryData {
		sizes[key] = len(bytes)
	}
	return values{"meta": expectMeta(&config.ObjectMeta, all, ours), "data": config.Data, "binary": sizes,
		"immutable": config.Immutable != nil && *config.Immutable}
}

func expectLease(lease *coordinationv1.Lease) values {
	return values{"meta": expectMeta(&lease.ObjectMeta, all, ours), "holder": *lease.Spec.HolderIdentity, "duration_seconds": *lease.Spec.LeaseDurationSeconds,
		"transitions": *lease.Spec.LeaseTransitions, "acquired_us": lease.Spec.AcquireTime.UnixMicro(), "renewed_us": lease.Spec.RenewTime.UnixMicro()}
}
