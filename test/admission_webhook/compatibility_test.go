package admission_webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"quartermaster.io/test/admission"
	"quartermaster.io/test/faults/kit"
)

const gpu = "nvidia.com/gpu"

// cardNode is as GPU Feature Discovery labels it. labelled: with the labels of the manual, too.
type cardNode struct {
	name, cuda, driver, capability, product string
	labelled                                bool
}

func (n cardNode) labels() map[string]string {
	major := func(v string) string { return strings.Split(v, ".")[0] }
	minor := func(v string) string { return strings.Split(v, ".")[1] }
	out := map[string]string{
		"nvidia.com/cuda.runtime-version.major": major(n.cuda), "nvidia.com/cuda.runtime-version.minor": minor(n.cuda),
		"nvidia.com/cuda.driver-version.major": major(n.driver), "nvidia.com/cuda.driver-version.minor": minor(n.driver),
		"nvidia.com/cuda.driver-version.revision": strings.Split(n.driver, ".")[2],
		"nvidia.com/gpu.compute.major":            major(n.capability), "nvidia.com/gpu.compute.minor": minor(n.capability), "nvidia.com/gpu.product": n.product,
	}
	if n.labelled {
		out["cuda-major-version"], out["cuda-minor-version"] = major(n.cuda), minor(n.cuda)
	}
	return out
}

// fleet of ready nodes with eight cards each, and nothing else.
func fleet(t *testing.T, all ...cardNode) {
	t.Helper()
	ctx, nodes := context.Background(), api.Client.CoreV1().Nodes()
	for _, one := range all {
		amounts := corev1.ResourceList{gpu: resource.MustParse("8"), "cpu": resource.MustParse("64"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110")}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: one.name, Labels: one.labels()}}
		if _, err := nodes.Create(ctx, node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		now := metav1.Now()
		status, err := json.Marshal(map[string]any{"status": corev1.NodeStatus{Capacity: amounts, Allocatable: amounts,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Test", LastHeartbeatTime: now, LastTransitionTime: now}}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := nodes.Patch(ctx, one.name, types.MergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
		// No one sends heartbeats: what the node lifecycle controller thinks of that is not our subject.
		if _, err := nodes.Patch(ctx, one.name, types.MergePatchType, []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, one := range all {
			_ = nodes.Delete(ctx, one.name, metav1.DeleteOptions{})
		}
	})
}

// compatible is what an administrator does: spec.compatibility.
func compatible(t *testing.T, enforcement string) {
	t.Helper()
	body := fmt.Sprintf(`{"apiVersion":"quartermaster.io/v1alpha1","kind":"AcceleratorPolicy","metadata":{"name":"default"},
		"spec":{"compatibility":{"enforcement":%q}}}`, enforcement)
	force := true
	if _, err := api.Dynamic.Resource(policies).Patch(context.Background(), "default", types.ApplyPatchType, []byte(body),
		metav1.PatchOptions{FieldManager: "compatibility", Force: &force}); err != nil {
		t.Fatal(err)
	}
}

func asking(annotations map[string]string, env ...corev1.EnvVar) *corev1.Pod {
	pod := admission.NewPod()
	pod.Annotations = annotations
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "none", Env: env, Resources: corev1.ResourceRequirements{Limits: admission.Amounts(gpu, "1")}}}
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	return pod
}

func needs(cuda string) map[string]string { return map[string]string{"quartermaster.io/cuda": cuda} }

// scheduler is the real one, for pods that are made while it runs.
func scheduler(t *testing.T) {
	t.Helper()
	port, err := kit.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	run := exec.Command(api.Tool("kube-scheduler"), "--kubeconfig", api.Kubeconfig, "--authentication-kubeconfig", api.Kubeconfig,
		"--authorization-kubeconfig", api.Kubeconfig, "--leader-elect=false", "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port))
	log, err := os.CreateTemp(logs, "scheduler-")
	if err != nil {
		t.Fatal(err)
	}
	run.Stdout, run.Stderr = log, log
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = run.Process.Kill()
		_ = run.Wait()
	})
}

// placed makes the pod five times and says where they went; nowhere within the patience is "".
func placed(t *testing.T, pod *corev1.Pod) []string {
	t.Helper()
	ctx, pods := context.Background(), api.Client.CoreV1().Pods("default")
	var names, out []string
	for range 5 {
		one := pod.DeepCopy()
		one.Name, one.GenerateName = "", "card-"
		made, err := pods.Create(ctx, one, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, made.Name)
	}
	now := int64(0)
	for _, name := range names {
		node := ""
		for deadline := time.Now().Add(10 * time.Second); node == "" && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			one, err := pods.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			node = one.Spec.NodeName
		}
		if !slices.Contains(out, node) {
			out = append(out, node)
		}
		if err := pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	}
	slices.Sort(out)
	return out
}

// answered waits until the webhook answers, whose certificates come a moment after the operator.
func answered(t *testing.T) {
	t.Helper()
	until(t, 30*time.Second, "the webhook answers", func() bool {
		reply, err := api.Pod(context.Background(), asking(needs("not a version")))
		return err == nil && strings.Contains(reply.Message+strings.Join(reply.Warnings, ""), "is no condition")
	})
}

func TestS28_S30_S78_PodsGoWhereTheDriverKnowsTheirCUDA(t *testing.T) {
	op := operator(t)
	fleet(t, cardNode{"cuda-11", "11.8", "520.61.05", "7.0", "Tesla-V100-SXM2-32GB", true},
		cardNode{"cuda-12", "12.4", "550.54.14", "8.0", "NVIDIA-A100-SXM4-40GB", true}, cardNode{"cuda-13", "13.0", "580.65.06", "9.0", "NVIDIA-H100-80GB-HBM3", false})
	compatible(t, "Deny")
	answered(t)
	scheduler(t)
	for _, c := range []struct {
		pod   *corev1.Pod
		among []string
	}{
		{asking(needs(">=12.4")), []string{"cuda-12", "cuda-13"}},
		{asking(needs(">=12.2")), []string{"cuda-12", "cuda-13"}}, // 13.0, whose minor is not above 2
		{asking(needs(">=12.5")), []string{"cuda-13"}},
		{asking(needs(">=12,<13")), []string{"cuda-12"}},
		{asking(needs("<12")), []string{"cuda-11"}},
		{asking(nil, corev1.EnvVar{Name: "CUDA_VERSION", Value: "13.0.1"}), []string{"cuda-13"}},
		{asking(nil, corev1.EnvVar{Name: "NVIDIA_REQUIRE_CUDA", Value: "cuda>=13.0 brand=tesla,driver>=520,driver<521"}), []string{"cuda-11", "cuda-13"}},
		{asking(map[string]string{"quartermaster.io/cuda": ">=11", "quartermaster.io/compute-capability": ">=8.0,<9"}), []string{"cuda-12"}},
	} {
		for _, node := range placed(t, c.pod) {
			if !slices.Contains(c.among, node) {
				t.Errorf("%v %v: on %q, not among %v", c.pod.Annotations, c.pod.Spec.Containers[0].Env, node, c.among)
			}
		}
	}

	// Plain pods cause no call, nor do pods that name a card and say nothing.
	calls := func() float64 {
		sum, _ := op.Metric("quartermaster_admission_answers_total", `webhook="compatibility.quartermaster.io"`)
		return sum
	}
	before := calls()
	plain := asking(needs(">=12.4"))
	plain.Spec.Containers[0].Resources.Limits = nil
	for range 20 {
		for _, pod := range []*corev1.Pod{plain, asking(nil)} {
			if reply, err := api.Pod(context.Background(), pod); err != nil || reply.Code != 201 {
				t.Fatal(reply, err)
			}
		}
	}
	if after := calls(); after != before || before == 0 {
		t.Errorf("%v calls before, %v after pods that are none of our business", before, after)
	}
}

func TestS30_S32_S78_WhatCannotRunIsRefusedWithWhatThereIs(t *testing.T) {
	operator(t)
	fleet(t, cardNode{"v100", "12.4", "550.54.14", "7.0", "Tesla-V100-SXM2-32GB", true}, cardNode{"t4", "12.4", "550.54.14", "7.5", "Tesla-T4", true})
	compatible(t, "Deny")
	answered(t)
	ctx := context.Background()
	bf16 := asking(map[string]string{"quartermaster.io/compute-capability": ">=8.0"})
	newer := asking(nil, corev1.EnvVar{Name: "CUDA_VERSION", Value: "13.1.0"})
	for _, c := range []struct {
		pod   *corev1.Pod
		words []string
	}{
		{bf16, []string{"compute capability 7.0, Tesla-V100-SXM2-32GB: v100", "compute capability 7.5, Tesla-T4: t4"}},
		{newer, []string{`env CUDA_VERSION of container main: "13.1.0"`, "CUDA 12.4"}},
		{asking(needs("12.4")), []string{"annotation quartermaster.io/cuda", "is no condition; allowed is"}},
	} {
		reply, err := api.Pod(ctx, c.pod)
		if err != nil || reply.Code != 403 {
			t.Fatalf("%d %q %v", reply.Code, reply.Message, err)
		}
		for _, word := range c.words {
			if !strings.Contains(reply.Message, word) {
				t.Errorf("%q does not say %q", reply.Message, word)
			}
		}
	}
	// No one reads the warnings that a controller gets for its pods: the author of the template is warned.
	for _, kind := range admission.WorkloadKinds {
		object, of, resource := admission.Workload(kind, newer)
		reply, err := api.DryRun(ctx, object, of, resource, "default")
		if said := strings.Join(reply.Warnings, " "); err != nil || reply.Code != 201 || !strings.Contains(said, "its pods would be refused: no node") {
			t.Errorf("a %s: %d %q %q %v", kind, reply.Code, reply.Message, said, err)
		}
	}
	compatible(t, "Warn")
	until(t, 10*time.Second, "only warned", func() bool {
		reply, err := api.Pod(ctx, bf16)
		return err == nil && reply.Code == 201 && strings.Contains(strings.Join(reply.Warnings, " "), "Tesla-T4: t4") && reply.Pod.Spec.Affinity != nil
	})

	// The affinity of the manual.
	manual := asking(nil)
	expression := func(key string, operator corev1.NodeSelectorOperator, value string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: operator, Values: []string{value}}
	}
	manual.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			expression("cuda-major-version", corev1.NodeSelectorOpIn, "12"), expression("cuda-minor-version", corev1.NodeSelectorOpGt, "2")}}}}}}
	if reply, err := api.Pod(ctx, manual); err != nil || reply.Code != 201 || !strings.Contains(strings.Join(reply.Warnings, " "), "shuts out CUDA 13.x and 12.0-12.2") {
		t.Errorf("%d %v %v", reply.Code, reply.Warnings, err)
	}
	compatible(t, "Off")
	until(t, 10*time.Second, "nothing", func() bool {
		reply, err := api.Pod(ctx, bf16)
		return err == nil && reply.Code == 201 && len(reply.Warnings) == 0 && reply.Pod.Spec.Affinity == nil
	})
}
