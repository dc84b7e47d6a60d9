package load

import (
	"fmt"
	"math/rand"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeName is the name of the i-th node.
func NodeName(i int) string { return fmt.Sprintf("gpu-%05d", i) }

var cpuFeatures = []string{"ADX", "AESNI", "AMXBF16", "AMXINT8", "AMXTILE", "AVX", "AVX2", "AVX512BF16", "AVX512BITALG", "AVX512BW", "AVX512CD",
	"AVX512DQ", "AVX512F", "AVX512FP16", "AVX512IFMA", "AVX512VBMI", "AVX512VBMI2", "AVX512VL", "AVX512VNNI", "AVX512VPOPCNTDQ", "CMPXCHG8",
	"FMA3", "FXSR", "GFNI", "HYPERVISOR", "IBPB", "LAHF", "MOVBE", "OSXSAVE", "SHA", "STIBP", "VAES", "VMX", "VPCLMULQDQ", "X87", "XSAVE"}

func nodeLabels(i int, r *rand.Rand) map[string]string {
	labels := map[string]string{
		"kubernetes.io/hostname": NodeName(i), "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "amd64",
		"beta.kubernetes.io/os": "linux", "node.kubernetes.io/instance-type": "gpu.8x", "topology.kubernetes.io/region": "region-1",
		"topology.kubernetes.io/zone": fmt.Sprintf("zone-%d", i%3), "nvidia-device-enable": []string{"pgpu", "vgpu", "mps"}[i%3],
		"nvidia.com/gpu.present": "true", "nvidia.com/gpu.count": "8", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.memory": "81920",
		"nvidia.com/gpu.family": "ampere", "nvidia.com/gpu.machine": "DGXA100-920-23687-2530-000", "nvidia.com/gpu.replicas": "1",
		"nvidia.com/gpu.sharing-strategy": "none", "nvidia.com/gpu.mode": "compute", "nvidia.com/gpu.compute.major": "8", "nvidia.com/gpu.compute.minor": "0",
		"nvidia.com/cuda.driver.major": "570", "nvidia.com/cuda.driver.minor": "86", "nvidia.com/cuda.driver.rev": "15",
		"nvidia.com/cuda.driver-version.full": "570.86.15", "nvidia.com/cuda.runtime.major": "12", "nvidia.com/cuda.runtime.minor": "8",
		"nvidia.com/cuda.runtime-version.full": "12.8", "nvidia.com/gfd.timestamp": fmt.Sprint(1772438400 + i), "nvidia.com/mig.capable": "true",
		"nvidia.com/mig.strategy": "single", "nvidia.com/mps.capable": "false", "nvidia.com/vgpu.present": "false",
		"feature.node.kubernetes.io/cpu-model.family": "6", "feature.node.kubernetes.io/cpu-model.id": "106", "feature.node.kubernetes.io/cpu-model.vendor_id": "Intel",
		"feature.node.kubernetes.io/kernel-version.full": "5.15.0-122-generic", "feature.node.kubernetes.io/kernel-version.major": "5",
		"feature.node.kubernetes.io/pci-10de.present": "true", "feature.node.kubernetes.io/pci-15b3.present": "true",
		"feature.node.kubernetes.io/network-sriov.capable": "true", "feature.node.kubernetes.io/memory-numa": "true",
		"feature.node.kubernetes.io/system-os_release.ID": "ubuntu", "feature.node.kubernetes.io/system-os_release.VERSION_ID": "22.04",
		"rack": hex(r, 4),
	}
	for _, f := range cpuFeatures {
		labels["feature.node.kubernetes.io/cpu-cpuid."+f] = "true"
	}
	return labels
}

func nodeStatus(i int, r *rand.Rand) corev1.NodeStatus {
	amounts := func() corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse("128"), "memory": resource.MustParse("2113487732Ki"), "pods": resource.MustParse("110"),
			"ephemeral-storage": resource.MustParse("1843269236Ki"), "hugepages-1Gi": resource.MustParse("0"), "hugepages-2Mi": resource.MustParse("0"),
			"nvidia.com/gpu": resource.MustParse("8"), "rdma/hca": resource.MustParse("63")}
	}
	status := corev1.NodeStatus{Capacity: amounts(), Allocatable: amounts(),
		Addresses: []corev1.NodeAddress{{Type: "InternalIP", Address: fmt.Sprintf("10.20.%d.%d", i>>8&255, i&255)}, {Type: "Hostname", Address: NodeName(i)}},
		NodeInfo: corev1.NodeSystemInfo{MachineID: hex(r, 32), SystemUUID: string(uid(r)), BootID: string(uid(r)), KernelVersion: "5.15.0-122-generic",
			OSImage: "Ubuntu 22.04.5 LTS", ContainerRuntimeVersion: "cri-o://1.33.2", KubeletVersion: "v1.36.3", OperatingSystem: "linux", Architecture: "amd64"},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: 10250}},
	}
	condition := func(kind corev1.NodeConditionType, value corev1.ConditionStatus, reason, message string) {
		status.Conditions = append(status.Conditions, corev1.NodeCondition{Type: kind, Status: value, LastHeartbeatTime: at(i + 300),
			LastTransitionTime: at(i), Reason: reason, Message: message})
	}
	for _, problem := range []string{"KernelDeadlock", "ReadonlyFilesystem", "FrequentKubeletRestart", "FrequentContainerdRestart", "GpuXidError"} {
		condition(corev1.NodeConditionType(problem), corev1.ConditionFalse, "No"+problem, "node-problem-detector: nothing seen")
	}
	condition("MemoryPressure", corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available")
	condition("DiskPressure", corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure")
	condition("PIDPressure", corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available")
	condition("Ready", corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status")
	for n := range 50 { // nodeStatusMaxImages
		repository := fmt.Sprintf("registry.example/platform/component-%02d", n)
		status.Images = append(status.Images, corev1.ContainerImage{SizeBytes: int64(1 << 20 * (n + 1)),
			Names: []string{repository + "@sha256:" + hex(r, 64), repository + ":v1." + fmt.Sprint(n)}})
	}
	return status
}

// Node is the i-th node: 8 cards, labels of node feature discovery and GPU feature discovery, the 50 images a kubelet reports.
func Node(seed int64, i int) *corev1.Node {
	r := rand.New(rand.NewSource(seed<<32 + int64(i) + 1<<31))
	labels := nodeLabels(i, r)
	var features []string
	for _, f := range cpuFeatures {
		features = append(features, "cpu-cpuid."+f)
	}
	node := &corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: NodeName(i), UID: uid(r), CreationTimestamp: at(i), Labels: labels,
			Annotations: map[string]string{"node.alpha.kubernetes.io/ttl": "0", "volumes.kubernetes.io/controller-managed-attach-detach": "true",
				"csi.volume.kubernetes.io/nodeid": `{"csi.example":"` + NodeName(i) + `"}`, "projectcalico.org/IPv4Address": "10.20.0.1/16",
				"nfd.node.kubernetes.io/feature-labels": strings.Join(features, ",")}},
		Spec:   corev1.NodeSpec{PodCIDR: fmt.Sprintf("10.%d.%d.0/24", 128+i>>8&63, i&255), PodCIDRs: []string{fmt.Sprintf("10.%d.%d.0/24", 128+i>>8&63, i&255)}},
		Status: nodeStatus(i, r),
	}
	node.ManagedFields = []metav1.ManagedFieldsEntry{
		managed("kube-controller-manager", "", at(i), node, "spec"), managed("nfd-master", "", at(i+60), node, "metadata"),
		managed("kubelet", "status", at(i+300), node, "status"),
	}
	return node
}
