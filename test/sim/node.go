package main

import (
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// profileLabel marks the nodes this program made, and says from which profile.
const profileLabel = "sim.quartermaster.io/profile"

// makeNode is the Node a kubelet would register, with the labels GPU Feature Discovery and NFD would have written by now. No card
// resource is in its status: those come when a device plugin runs.
func makeNode(p profile, index int, kubeletVersion string, now time.Time) *corev1.Node {
	name := fmt.Sprintf("%s-%d", p.Name, index)
	capacity := corev1.ResourceList{}
	for key, value := range p.Node {
		capacity[corev1.ResourceName(key)] = resource.MustParse(value)
	}
	labels := map[string]string{
		profileLabel:             p.Name,
		"kubernetes.io/hostname": name,
		"kubernetes.io/os":       "linux",
		"kubernetes.io/arch":     p.Arch,
	}
	if p.Vendor == "nvidia" {
		maps.Copy(labels, featureDiscoveryLabels(p, now))
	}
	maps.Copy(labels, p.Labels)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status: corev1.NodeStatus{
			Capacity:    capacity,
			Allocatable: capacity,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: addressOf(name)},
				{Type: corev1.NodeHostName, Address: name},
			},
			NodeInfo: corev1.NodeSystemInfo{
				KubeletVersion:          kubeletVersion,
				Architecture:            p.Arch,
				OperatingSystem:         "linux",
				OSImage:                 "Ubuntu 24.04.3 LTS",
				KernelVersion:           "6.8.0-71-generic",
				ContainerRuntimeVersion: "cri-o://1.33.2", // which every mode goes with: containerd 1 has no CDI by default, and GPU-Manager wants no containerd 2
			},
		},
	}
}

// addressOf gives each name its own address, nearly always, in the range for benchmarks (RFC 2544: 198.18.0.0/15).
func addressOf(name string) string {
	h := fnv.New32a()
	h.Write([]byte(name))
	n := h.Sum32()
	return fmt.Sprintf("198.%d.%d.%d", 18+n>>16&1, n>>8&255, n&255)
}

// featureDiscoveryLabels are those of GPU Feature Discovery (k8s-device-plugin, docs/gpu-feature-discovery/README.md) with MIG off and no
// sharing, and NFD's with vendor-only PCI labels. Mind the names: cuda.driver-version is the driver, cuda.runtime-version is CUDA.
func featureDiscoveryLabels(p profile, now time.Time) map[string]string {
	driver := append(strings.SplitN(p.Driver, ".", 3), "", "")
	cudaMajor, cudaMinor, _ := strings.Cut(p.Cuda, ".")
	computeMajor, computeMinor, _ := strings.Cut(p.Compute, ".")
	labels := map[string]string{"feature.node.kubernetes.io/pci-10de.present": "true"}
	for key, value := range map[string]string{
		"gpu.present":                  "true",
		"gpu.product":                  p.Model,
		"gpu.count":                    strconv.FormatInt(p.Cards, 10),
		"gpu.replicas":                 "1",
		"gpu.memory":                   strconv.FormatInt(p.MemoryMiB, 10),
		"gpu.family":                   p.Family,
		"gpu.compute.major":            computeMajor,
		"gpu.compute.minor":            computeMinor,
		"gpu.machine":                  p.Machine,
		"gpu.mode":                     p.Mode,
		"gpu.sharing-strategy":         "none",
		"mig.capable":                  strconv.FormatBool(p.Mig),
		"mps.capable":                  "false",
		"vgpu.present":                 "false",
		"gfd.timestamp":                strconv.FormatInt(now.Unix(), 10),
		"cuda.driver-version.full":     p.Driver,
		"cuda.driver-version.major":    driver[0],
		"cuda.driver-version.minor":    driver[1],
		"cuda.driver-version.revision": driver[2],
		"cuda.runtime-version.full":    p.Cuda,
		"cuda.runtime-version.major":   cudaMajor,
		"cuda.runtime-version.minor":   cudaMinor,
		"cuda.driver.major":            driver[0],
		"cuda.driver.minor":            driver[1],
		"cuda.driver.rev":              driver[2],
		"cuda.runtime.major":           cudaMajor,
		"cuda.runtime.minor":           cudaMinor,
	} {
		labels["nvidia.com/"+key] = value
	}
	return labels
}
