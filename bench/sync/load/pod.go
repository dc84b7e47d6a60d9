// Package load makes the cluster's content: nodes as GPU feature discovery leaves them and pods as people run them, the same ones for
// the same seed, and puts them into etcd as kube-apiserver stores them.
package load

import (
	"fmt"
	"math/rand"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// epoch is when everything was made: fixed, so that bytes depend on the seed only.
var epoch = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

func at(seconds int) metav1.Time {
	return metav1.NewTime(epoch.Add(time.Duration(seconds) * time.Second))
}

func uid(r *rand.Rand) types.UID {
	var b [16]byte
	r.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16]))
}

func hex(r *rand.Rand, digits int) string {
	b := make([]byte, (digits+1)/2)
	r.Read(b)
	return fmt.Sprintf("%x", b)[:digits]
}

// Namespaces is how many namespaces the pods are spread over.
const Namespaces = 50

// NamespaceName is the name of the i-th.
func NamespaceName(i int) string { return fmt.Sprintf("team-%02d", i%Namespaces) }

// vocabularies are the ways of asking for a share of a card; one pod in three has one.
var vocabularies = []corev1.ResourceList{
	{"nvidia.com/gpu": resource.MustParse("1")},
	{"tencent.com/vcuda-core": resource.MustParse("30"), "tencent.com/vcuda-memory": resource.MustParse("40")},
	{"nvidia.com/mps-core": resource.MustParse("50"), "nvidia.com/mps-memory": resource.MustParse("20")},
	{"nvidia.com/gpualloc": resource.MustParse("1"), "nvidia.com/gpucores": resource.MustParse("25"), "nvidia.com/gpumem": resource.MustParse("8192")},
}

func environment(r *rand.Rand, n int) []corev1.EnvVar {
	field := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}
	}
	env := []corev1.EnvVar{
		{Name: "POD_NAME", ValueFrom: field("metadata.name")}, {Name: "POD_NAMESPACE", ValueFrom: field("metadata.namespace")},
		{Name: "NODE_NAME", ValueFrom: field("spec.nodeName")}, {Name: "HOST_IP", ValueFrom: field("status.hostIP")},
		{Name: "DATABASE_PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "database-credentials"}, Key: "password"}}},
	}
	for i := len(env); i < n; i++ {
		env = append(env, corev1.EnvVar{Name: fmt.Sprintf("SERVICE_SETTING_%03d", i), Value: "https://config.internal.example/v2/" + hex(r, 24)})
	}
	return env
}

func probe(path string) *corev1.Probe {
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(8080), Scheme: "HTTP"}},
		InitialDelaySeconds: 5, TimeoutSeconds: 3, PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 3}
}

func podVolumes(name string) []corev1.Volume {
	mode, seconds, no := int32(0o644), int64(3607), true
	configMap := func(volume, of string) corev1.Volume {
		return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: of}, DefaultMode: &mode}}}
	}
	return []corev1.Volume{
		configMap("config", name+"-config"), configMap("trusted-ca", "trusted-ca-bundle"),
		{Name: "model-store", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name + "-models"}}},
		{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name + "-tls", DefaultMode: &mode, Optional: &no}}},
		{Name: "kube-api-access-x7k2p", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: &mode,
			Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: &seconds, Path: "token"}},
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
					Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
			}}}},
	}
}

func podContainers(r *rand.Rand, app string, shares corev1.ResourceList, envs int) []corev1.Container {
	mounts := []corev1.VolumeMount{
		{Name: "config", MountPath: "/etc/app", ReadOnly: true}, {Name: "trusted-ca", MountPath: "/etc/ssl/extra", ReadOnly: true},
		{Name: "model-store", MountPath: "/models"}, {Name: "scratch", MountPath: "/tmp"}, {Name: "tls", MountPath: "/etc/tls", ReadOnly: true},
		{Name: "kube-api-access-x7k2p", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true},
	}
	limits := corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi")}
	requests := corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("8Gi")}
	for name, amount := range shares {
		limits[name], requests[name] = amount, amount
	}
	no := false
	security := &corev1.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	main := corev1.Container{
		Name: "main", Image: "registry.example/ml/" + app + ":v1.42.7", Command: []string{"/bin/server"},
		Args:  []string{"--listen=:8080", "--config=/etc/app/config.yaml", "--models=/models", "--log-level=info"},
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: "TCP"}, {Name: "metrics", ContainerPort: 9090, Protocol: "TCP"}},
		Env:   environment(r, envs), Resources: corev1.ResourceRequirements{Limits: limits, Requests: requests}, VolumeMounts: mounts,
		LivenessProbe: probe("/healthz"), ReadinessProbe: probe("/readyz"), TerminationMessagePath: "/dev/termination-log",
		TerminationMessagePolicy: "File", ImagePullPolicy: "IfNotPresent", SecurityContext: security,
	}
	sidecar := corev1.Container{
		Name: "log-agent", Image: "registry.example/platform/log-agent:2.8.1", Args: []string{"--follow", "/tmp/log"},
		Env: environment(r, 5)[:2], VolumeMounts: mounts[3:4], TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: "File",
		ImagePullPolicy: "IfNotPresent", SecurityContext: security, Resources: corev1.ResourceRequirements{
			Limits:   corev1.ResourceList{"cpu": resource.MustParse("200m"), "memory": resource.MustParse("256Mi")},
			Requests: corev1.ResourceList{"cpu": resource.MustParse("50m"), "memory": resource.MustParse("64Mi")}},
	}
	return []corev1.Container{main, sidecar}
}

func podStatus(r *rand.Rand, made int, containers []corev1.Container, ip string) corev1.PodStatus {
	started, yes := at(made+20), true
	status := corev1.PodStatus{Phase: corev1.PodRunning, HostIP: "10.20.0.1", HostIPs: []corev1.HostIP{{IP: "10.20.0.1"}}, PodIP: ip,
		PodIPs: []corev1.PodIP{{IP: ip}}, StartTime: &started, QOSClass: corev1.PodQOSBurstable}
	for _, kind := range []corev1.PodConditionType{"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: at(made + 25)})
	}
	for _, c := range containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Ready: true, Started: &yes, Image: c.Image,
			ImageID: c.Image + "@sha256:" + hex(r, 64), ContainerID: "containerd://" + hex(r, 64),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}}})
	}
	return status
}

// Pod is the i-th pod, on one of `nodes` nodes, with `envs` environment variables in its main container.
func Pod(seed int64, i, nodes, envs int) *corev1.Pod {
	r := rand.New(rand.NewSource(seed<<32 + int64(i)))
	app := fmt.Sprintf("inference-%03d", i/20)
	name := fmt.Sprintf("%s-%s-%05d", app, hex(r, 10), i)
	yes, grace, priority := true, int64(30), int32(1000)
	var shares corev1.ResourceList
	if i%3 == 0 {
		shares = vocabularies[i/3%len(vocabularies)]
	}
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, GenerateName: name[:len(name)-5], Namespace: NamespaceName(i), UID: uid(r), CreationTimestamp: at(i % 86400),
			Generation: 1,
			Labels: map[string]string{"app.kubernetes.io/name": app, "app.kubernetes.io/part-of": "inference", "app.kubernetes.io/version": "v1.42.7",
				"team": NamespaceName(i), "pod-template-hash": hex(r, 10), "security.example/level": "restricted"},
			Annotations: map[string]string{"cni.projectcalico.org/podIP": "10.128.3.7/32", "cni.projectcalico.org/containerID": hex(r, 64),
				"prometheus.io/scrape": "true", "prometheus.io/port": "9090", "checksum/config": hex(r, 64),
				"kubernetes.io/config.seen": "2026-03-02T08:00:00.000000000Z"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app + "-7c9d8f", UID: uid(r), Controller: &yes, BlockOwnerDeletion: &yes}},
		},
		Spec: corev1.PodSpec{
			Volumes: podVolumes(app), Containers: podContainers(r, app, shares, envs), RestartPolicy: "Always", TerminationGracePeriodSeconds: &grace,
			DNSPolicy: "ClusterFirst", ServiceAccountName: "default", DeprecatedServiceAccount: "default", NodeName: NodeName(i % max(nodes, 1)),
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes}, SchedulerName: "default-scheduler", Priority: &priority,
			PriorityClassName: "team-default", EnableServiceLinks: &yes, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}},
			Tolerations: []corev1.Toleration{
				{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: &[]int64{300}[0]},
				{Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: &[]int64{300}[0]},
				{Key: "nvidia.com/gpu", Operator: "Exists", Effect: "NoSchedule"}},
		},
	}
	preempt := corev1.PreemptLowerPriority
	pod.Spec.PreemptionPolicy = &preempt
	pod.Status = podStatus(r, i%86400, pod.Spec.Containers, fmt.Sprintf("10.%d.%d.%d", 128+i>>16&63, i>>8&255, i&255))
	pod.ManagedFields = []metav1.ManagedFieldsEntry{
		managed("kube-controller-manager", "", at(i%86400), pod, "metadata", "spec"),
		managed("kubelet", "status", at(i%86400+25), pod, "status"),
	}
	return pod
}
