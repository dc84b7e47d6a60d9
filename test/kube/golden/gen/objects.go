package main

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var epoch = time.Date(2026, 7, 1, 10, 20, 30, 0, time.UTC)

func at(minutes int) metav1.Time {
	return metav1.NewTime(epoch.Add(time.Duration(minutes) * time.Minute))
}

func pointer[T any](value T) *T { return &value }

func uid(n int) types.UID { return types.UID(fmt.Sprintf("0a1b2c3d-4e5f-4678-9abc-%012x", n)) }

// What real objects carry most of: up to 60 % of their bytes.
func managed(fields int, managers ...string) []metav1.ManagedFieldsEntry {
	var all []metav1.ManagedFieldsEntry
	for _, manager := range managers {
		var raw strings.Builder
		raw.WriteString(`{"f:metadata":{"f:labels":{".":{}`)
		for i := range fields {
			fmt.Fprintf(&raw, `,"f:example.com/label-%d":{}`, i)
		}
		raw.WriteString(`}},"f:status":{"f:conditions":{".":{},"k:{\"type\":\"Ready\"}":{".":{},"f:status":{}}}}}`)
		all = append(all, metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate,
			APIVersion: "v1", Time: pointer(at(1)), FieldsType: "FieldsV1",
			FieldsV1: &metav1.FieldsV1{Raw: []byte(raw.String())}})
	}
	return all
}

func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func gfdNode() *corev1.Node {
	labels := map[string]string{
		"kubernetes.io/hostname": "gpu-node-0001", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
		"node.kubernetes.io/instance-type": "a100.8x", "topology.kubernetes.io/zone": "zone-b",
		"nvidia-device-enable": "vgpu", "quartermaster.io/module": "vgpu",
		"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.count": "8", "nvidia.com/gpu.memory": "81920",
		"nvidia.com/gpu.family": "ampere", "nvidia.com/gpu.compute.major": "8", "nvidia.com/gpu.compute.minor": "0",
		"nvidia.com/cuda.runtime-version.full": "12.4", "nvidia.com/cuda.driver-version.full": "550.144.03",
		"nvidia.com/mig.capable": "true", "nvidia.com/mig.strategy": "single", "nvidia.com/gfd.timestamp": "1782901230",
	}
	for i := range 24 {
		labels[fmt.Sprintf("feature.node.kubernetes.io/cpu-cpuid.AVX512-FEATURE%02d", i)] = "true"
	}
	node := &corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "gpu-node-0001", UID: uid(1), ResourceVersion: "123456789012", CreationTimestamp: at(0), Labels: labels,
			Annotations: map[string]string{
				"quartermaster.io/cordon":                                "GPU-5ac1b7a2-0d2c-4f5e-9d0e-3f1f6c1d2e3f",
				"hami.io/node-handshake":                                 "Requesting_2026.07.01 10:20:30",
				"volumes.kubernetes.io/controller-managed-attach-detach": "true",
				"csi.volume.kubernetes.io/nodeid":                        `{"csi.example.com":"gpu-node-0001"}`,
				"nfd.node.kubernetes.io/feature-labels":                  "cpu-cpuid.AVX512-FEATURE00,nvidia.com/gpu.product,nvidia.com/mig.capable",
			},
			ManagedFields: managed(40, "kubelet", "nfd-master"),
		},
		Spec: corev1.NodeSpec{PodCIDR: "10.244.1.0/24", PodCIDRs: []string{"10.244.1.0/24"}, Unschedulable: true,
			Taints: []corev1.Taint{
				{Key: "quartermaster.io/switching", Value: "pgpu.vgpu", Effect: corev1.TaintEffectNoSchedule},
				{Key: "node.kubernetes.io/unschedulable", Effect: corev1.TaintEffectNoSchedule, TimeAdded: pointer(at(2))},
			}},
		Status: corev1.NodeStatus{
			Capacity: amounts("cpu", "128", "memory", "1056384Mi", "pods", "110", "ephemeral-storage", "3Ti", "hugepages-1Gi",
				"0", "nvidia.com/gpu", "8", "tencent.com/vcuda-core", "800", "tencent.com/vcuda-memory", "2560",
				"example.com/odd", "2500m", "kubernetes.io/native", "3"),
			Allocatable: amounts("cpu", "127", "memory", "1055Gi", "pods", "110", "nvidia.com/gpu", "0",
				"tencent.com/vcuda-core", "800", "tencent.com/vcuda-memory", "2560", "example.com/big", "2k"),
			Conditions: []corev1.NodeCondition{
				{Type: "MemoryPressure", Status: "False", LastHeartbeatTime: at(9), LastTransitionTime: at(1), Reason: "KubeletHasSufficientMemory"},
				{Type: "Ready", Status: "True", LastHeartbeatTime: at(9), LastTransitionTime: at(3), Reason: "KubeletReady", Message: "kubelet is posting ready status"},
			},
			Addresses: []corev1.NodeAddress{{Type: "InternalIP", Address: "192.168.1.10"}, {Type: "Hostname", Address: "gpu-node-0001"}},
			NodeInfo: corev1.NodeSystemInfo{MachineID: "ab", SystemUUID: "cd", KernelVersion: "6.8.0", OSImage: "Ubuntu 24.04",
				ContainerRuntimeVersion: "containerd://2.1.4", KubeletVersion: "v1.36.3", OperatingSystem: "linux", Architecture: "amd64"},
		},
	}
	for i := range 30 {
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{
			Names: []string{fmt.Sprintf("images.example.com/team/image-%d:v%d", i, i)}, SizeBytes: int64(i) * 1e7})
	}
	return node
}

func gpuPod() *corev1.Pod {
	share := corev1.ResourceRequirements{
		Limits:   amounts("cpu", "4", "memory", "16Gi", "tencent.com/vcuda-core", "20", "tencent.com/vcuda-memory", "8"),
		Requests: amounts("cpu", "2", "memory", "16Gi", "tencent.com/vcuda-core", "20", "tencent.com/vcuda-memory", "8"),
	}
	var environment []corev1.EnvVar
	for i := range 40 {
		environment = append(environment, corev1.EnvVar{Name: fmt.Sprintf("TRAINING_OPTION_%02d", i), Value: strings.Repeat("value", 8)})
	}
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "trainer-7d9c5b8f4-x2x9k", GenerateName: "trainer-7d9c5b8f4-", Namespace: "team-a", UID: uid(2), ResourceVersion: "987654",
			Generation: 3, CreationTimestamp: at(4), DeletionTimestamp: pointer(at(30)), DeletionGracePeriodSeconds: pointer(int64(30)),
			Labels: map[string]string{"app.kubernetes.io/name": "trainer", "name": "trainer", "pod-template-hash": "7d9c5b8f4", "quartermaster.io/scheduler": "ignore", "nameless": "x"},
			Annotations: map[string]string{
				"quartermaster.io/placement":        `{"v":1,"node":"gpu-node-0001","containers":{"main":[{"card":"GPU-5ac1b7a2","cores":20,"memoryMiB":2048}]}}`,
				"tencent.com/predicate-gpu-idx-0":   "1",
				"tencent.com/gpu-assigned":          "true",
				"ALIYUN_COM_GPU_MEM_IDX":            "0",
				"nvidia.com/use-gputype":            "A100",
				"hami.io/bind-phase":                "success",
				"aliyun.accelerator/nvidia_name":    "Tesla-V100",
				"gaia.tencent.com/gpu-pool":         "a",
				"tkestack.io/gpu-model":             "V100",
				"kubectl.kubernetes.io/restartedAt": "2026-07-01T00:00:00Z",
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "trainer-7d9c5b8f4", UID: uid(3),
				Controller: pointer(true), BlockOwnerDeletion: pointer(true)}, {APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "not-a-uuid"}},
			Finalizers:    []string{"batch.kubernetes.io/job-tracking"},
			ManagedFields: managed(30, "kube-controller-manager", "kubelet"),
		},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{
				{Name: "warm-up", Image: "images.example.com/warm-up:1", Resources: corev1.ResourceRequirements{Limits: amounts("nvidia.com/gpu", "1"), Requests: amounts("nvidia.com/gpu", "1")}},
				{Name: "log-shipper", Image: "images.example.com/logs:1", RestartPolicy: pointer(corev1.ContainerRestartPolicyAlways)},
			},
			Containers: []corev1.Container{
				{Name: "main", Image: "images.example.com/train:2", Resources: share, Env: environment},
				{Name: "side", Image: "images.example.com/side:2", RestartPolicy: pointer(corev1.ContainerRestartPolicyAlways)},
			},
			NodeName: "gpu-node-0001", SchedulerName: "quartermaster-scheduler", Priority: pointer(int32(-5)), HostNetwork: true,
			Tolerations: []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: "Exists", Effect: "NoSchedule"}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, NominatedNodeName: "gpu-node-0002", HostIP: "192.168.1.10", PodIP: "10.244.1.17", PodIPs: []corev1.PodIP{{IP: "10.244.1.17"}}, StartTime: pointer(at(4)),
			Conditions: []corev1.PodCondition{{Type: "PodScheduled", Status: "True"}, {Type: "Ready", Status: "False", Reason: "ContainersNotReady"}},
			InitContainerStatuses: []corev1.ContainerStatus{
				{Name: "warm-up", Ready: true, RestartCount: 1, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}},
				{Name: "log-shipper", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(5)}}},
			},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "main", RestartCount: 7, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 5m0s"}}},
				{Name: "side", Ready: true, RestartCount: 2},
			},
		},
	}
}

func plainPod() *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "checkout-service-6f7d8c9b5d-q8w7e", Namespace: "shop", UID: uid(4), ResourceVersion: "4711", CreationTimestamp: at(6),
			Labels:          map[string]string{"app.kubernetes.io/name": "checkout-service", "app": "checkout", "pod-template-hash": "6f7d8c9b5d", "tier": "backend"},
			Annotations:     map[string]string{"prometheus.io/scrape": "true", "checksum/config": strings.Repeat("ab", 32)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "checkout-service-6f7d8c9b5d", UID: uid(5), Controller: pointer(true)}},
			ManagedFields:   managed(20, "kube-controller-manager", "kubelet"),
		},
		Spec: corev1.PodSpec{NodeName: "worker-node-0123.example", SchedulerName: "default-scheduler", Priority: pointer(int32(0)),
			Containers: []corev1.Container{{Name: "app", Image: "images.example.com/shop/checkout:1.2.3", Resources: corev1.ResourceRequirements{
				Limits: amounts("cpu", "500m", "memory", "512Mi"), Requests: amounts("cpu", "100m", "memory", "128Mi")}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.244.7.31", HostIP: "192.168.1.77",
			Conditions:        []corev1.PodCondition{{Type: "Ready", Status: "True", LastTransitionTime: at(7)}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "app", Ready: true, RestartCount: 0, Image: "images.example.com/shop/checkout:1.2.3"}}},
	}
}

func mirrorPod() *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "kube-scheduler-control-plane-1", Namespace: "kube-system", UID: uid(6), ResourceVersion: "31",
			Annotations: map[string]string{"kubernetes.io/config.mirror": "d41d8cd98f00b204e9800998ecf8427e", "kubernetes.io/config.source": "file"},
			Labels:      map[string]string{"k8s-app": "kube-scheduler", "controller-revision-hash": "5f", "pod-template-generation": "2"}},
		Spec:   corev1.PodSpec{NodeName: "control-plane-1", HostNetwork: true, Priority: pointer(int32(2000001000)), Containers: []corev1.Container{{Name: "kube-scheduler"}}},
		Status: corev1.PodStatus{Phase: "SomethingNew", ContainerStatuses: []corev1.ContainerStatus{{Name: "kube-scheduler", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}}, InitContainerStatuses: []corev1.ContainerStatus{{Name: "i", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}}}},
	}
}

func evictedPod() *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "gone", Namespace: "team-a", UID: uid(7), ResourceVersion: "32"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Limits: amounts("nvidia.com/gpu", "2")}}}},
		Status:     corev1.PodStatus{Phase: corev1.PodFailed, Reason: "UnexpectedAdmissionError", Message: "Allocate failed"},
	}
}

// A pod with all that it can say of where it may run and of what keeps it.
func describedPod() *corev1.Pod {
	waiting := func(name, reason, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
	}
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "described", Namespace: "team-a", UID: uid(19), ResourceVersion: "34",
			DeletionTimestamp: pointer(at(50)), DeletionGracePeriodSeconds: pointer(int64(30)), Finalizers: []string{"a.example/b", "c.example/d"}},
		Spec: corev1.PodSpec{
			NodeSelector:  map[string]string{"zone": "x", "arch": "amd64"},
			SchedulerName: "volcano",
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
					{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: "In", Values: []string{"ssd", "nvme"}}},
						MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: "NotIn", Values: []string{"n"}}}},
					{}}},
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
					{Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "no", Operator: "Exists"}}}}}}},
			Tolerations:     []corev1.Toleration{{Key: "k", Operator: "Equal", Value: "v", Effect: "NoSchedule"}, {Operator: "Exists"}},
			SchedulingGates: []corev1.PodSchedulingGate{{Name: "gate"}},
			ResourceClaims:  []corev1.PodResourceClaim{{Name: "claim"}},
			InitContainers:  []corev1.Container{{Name: "first"}},
			Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
				Limits:   amounts("nvidia.com/gpu", "2", "kubernetes.io/gpu", "1", "cpu", "4"),
				Requests: amounts("nvidia.com/gpu", "2", "cpu", "1")}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Reason: "Held", Message: "by a gate",
			Conditions: []corev1.PodCondition{
				{Type: "Ready", Status: "False", Reason: "other"},
				{Type: "PodScheduled", Status: "False", Reason: "SchedulingGated", Message: "waits for gates"}},
			ContainerStatuses: []corev1.ContainerStatus{waiting("main", "PodInitializing", ""), {Name: "runs", RestartCount: 3,
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled", FinishedAt: at(45)}}}},
			InitContainerStatuses: []corev1.ContainerStatus{waiting("first", "ImagePullBackOff", "no image")}},
	}
}

// Pods as a kubelet and the pod garbage collector leave them: what is known of when they were bound and ended.
func boundPod(name string, phase corev1.PodPhase, init, main []corev1.ContainerStatus) *corev1.Pod {
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team-a", UID: uid(13), ResourceVersion: "33", CreationTimestamp: at(40)},
		Spec:       corev1.PodSpec{NodeName: "gpu-node-0001"},
		Status: corev1.PodStatus{Phase: phase, StartTime: pointer(at(41)),
			Conditions: []corev1.PodCondition{
				{Type: "PodReadyToStartContainers", Status: "True", LastTransitionTime: at(43)},
				{Type: "PodScheduled", Status: "True", LastTransitionTime: at(41)},
				{Type: "Ready", Status: "False", Reason: "PodCompleted", LastTransitionTime: at(59)}},
			InitContainerStatuses: init, ContainerStatuses: main},
	}
	for i := range init {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: init[i].Name})
	}
	for i := range main {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: main[i].Name,
			Resources: corev1.ResourceRequirements{Limits: amounts("nvidia.com/gpu", "1")}})
	}
	return pod
}

func ended(name string, code int32, minute int) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: "Completed", StartedAt: at(minute - 1), FinishedAt: at(minute), ContainerID: "containerd://" + name}}}
}

func waits(name, reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}
}

func boundPods() map[string]*corev1.Pod {
	running := corev1.ContainerStatus{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(43)}}}
	unknown := corev1.ContainerStatus{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: 137, Reason: "ContainerStatusUnknown", Message: "The container could not be located when the pod was terminated"}}}
	restarting := waits("main", "CrashLoopBackOff")
	restarting.RestartCount = 3
	restarting.LastTerminationState = ended("main", 1, 50).State
	type list = []corev1.ContainerStatus
	unbound := boundPod("unbound", corev1.PodPending, nil, nil)
	unbound.Spec.NodeName = ""
	unbound.Status.Conditions = []corev1.PodCondition{{Type: "PodScheduled", Status: "False", Reason: "Unschedulable", LastTransitionTime: at(41)}}
	// The scheduler heard no answer to its Binding, which had happened.
	takenBack := boundPod("taken-back", corev1.PodRunning, nil, list{running})
	takenBack.Status.Conditions = []corev1.PodCondition{{Type: "PodScheduled", Status: "False", Reason: "SchedulerError", LastTransitionTime: at(42)}}
	takenBackEarly := takenBack.DeepCopy()
	takenBackEarly.Name, takenBackEarly.Status.StartTime = "taken-back-early", nil
	return map[string]*corev1.Pod{
		"pod_taken_back":       takenBack,
		"pod_taken_back_early": takenBackEarly,
		"pod_finished":         boundPod("finished", corev1.PodSucceeded, list{ended("a", 0, 42), ended("sidecar", 0, 55)}, list{ended("main", 0, 50), ended("side", 0, 49)}),
		"pod_init_failed":      boundPod("init-failed", corev1.PodFailed, list{ended("a", 1, 44), waits("b", "PodInitializing")}, list{waits("main", "PodInitializing")}),
		"pod_lost_running":     boundPod("lost-running", corev1.PodFailed, list{ended("a", 0, 42)}, list{running}),
		"pod_lost_waiting":     boundPod("lost-waiting", corev1.PodFailed, list{ended("a", 0, 42)}, list{restarting}),
		"pod_lost_end":         boundPod("lost-end", corev1.PodFailed, list{ended("a", 0, 42)}, list{unknown, ended("side", 0, 49)}),
		"pod_restarting":       boundPod("restarting", corev1.PodRunning, list{ended("a", 0, 42)}, list{restarting}),
		"pod_unbound":          unbound,
	}
}

func nameSpace() *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: "team-a", UID: uid(14), ResourceVersion: "34", CreationTimestamp: at(2), DeletionTimestamp: pointer(at(90)),
			Labels:        map[string]string{"kubernetes.io/metadata.name": "team-a", "example.com/organization": "research", "pod-security.kubernetes.io/enforce": "baseline"},
			Annotations:   map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}", "quartermaster.io/x": "y"},
			ManagedFields: managed(3, "kubectl")},
		Spec:   corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"kubernetes"}},
		Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating, Conditions: []corev1.NamespaceCondition{{Type: "NamespaceContentRemaining", Status: "True"}}},
	}
}

func daemonSet() *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
		ObjectMeta: metav1.ObjectMeta{Name: "gpu-manager-daemonset", Namespace: "kube-system", UID: uid(8), ResourceVersion: "77", Generation: 5,
			Labels:      map[string]string{"app.kubernetes.io/managed-by": "quartermaster"},
			Annotations: map[string]string{"quartermaster.io/module": "vgpu", "deprecated.daemonset.template.generation": "5"}},
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": "gpu-manager-ds"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"name": "gpu-manager-ds"}},
				Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "i", Image: "init:1"}}, Containers: []corev1.Container{{Name: "gpu-manager", Image: "images.example.com/gpu-manager:v1.1.5"}, {Name: "x", Image: "other:1"}}}}},
		Status: appsv1.DaemonSetStatus{CurrentNumberScheduled: 11, NumberMisscheduled: 1, DesiredNumberScheduled: 12, NumberReady: 9,
			ObservedGeneration: 4, UpdatedNumberScheduled: 10, NumberAvailable: 8, NumberUnavailable: 4},
	}
}

func deployment() *appsv1.Deployment {
	return &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: "quartermaster-scheduler", Namespace: "quartermaster", UID: uid(12), ResourceVersion: "80", Generation: 6,
			Labels:      map[string]string{"app.kubernetes.io/managed-by": "quartermaster"},
			Annotations: map[string]string{"state.quartermaster.io/server-version": "v1.36.3", "deployment.kubernetes.io/revision": "3"}},
		Spec: appsv1.DeploymentSpec{Replicas: pointer(int32(5)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": "x"}}, MinReadySeconds: 7, RevisionHistoryLimit: pointer(int32(9)),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "y:1"}}}}},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 4, Replicas: 11, UpdatedReplicas: 10, ReadyReplicas: 9, AvailableReplicas: 8, UnavailableReplicas: 3,
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: "False", Reason: "R", Message: "not said"},
				{Type: appsv1.DeploymentProgressing, Status: "False", Reason: "ProgressDeadlineExceeded", Message: "it takes too long"},
				{Type: appsv1.DeploymentReplicaFailure, Status: "True", Reason: "FailedCreate", Message: "no such account"}}},
	}
}

func configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: "cf-crl-nvidia-gpu", Namespace: "kube-public", UID: uid(9), ResourceVersion: "78",
			Labels:      map[string]string{"features.cpaas.io/type": "CustomResourceLimitation", "features.cpaas.io/enabled": "true"},
			Annotations: map[string]string{"quartermaster.io/verdict": "ok", "kubectl.kubernetes.io/last-applied-configuration": "{}"}},
		Data:       map[string]string{"key": "nvidia.com/gpu", "defaultValue": "1", "descriptionZh": "显卡", "empty": "", "odd": "<\x01\u2028\""},
		BinaryData: map[string][]byte{"z.bin": {0, 1, 2, 255}, "a.bin": make([]byte, 300)},
		Immutable:  pointer(true),
	}
}

func newLease() *coordinationv1.Lease {
	return &coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Name: "quartermaster", Namespace: "quartermaster", UID: uid(12), ResourceVersion: "80"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: pointer("pod-1_0a1b"), LeaseDurationSeconds: pointer(int32(15)), LeaseTransitions: pointer(int32(3)),
			AcquireTime: pointer(metav1.NewMicroTime(epoch.Add(123456 * time.Microsecond))), RenewTime: pointer(metav1.NewMicroTime(epoch.Add(time.Minute + 7*time.Microsecond)))},
	}
}
