package dedicated

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"quartermaster.io/test/admission"
)

// deployment of a person who knows nothing of schedulers.
func deployment(name string) *appsv1.Deployment {
	two := int32(2)
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: appsv1.DeploymentSpec{Replicas: &two, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "none", Resources: limits(map[string]string{"nvidia.com/gpu": "1"})}}}}}}
}

// made are the pods of a Deployment with this image.
func made(name, image string) (out []corev1.Pod, err error) {
	all, err := api.Client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		return nil, err
	}
	for _, pod := range all.Items {
		if pod.Spec.Containers[0].Image == image {
			out = append(out, pod)
		}
	}
	return out, nil
}

func TestADeploymentOfAPerson(t *testing.T) {
	s := set(t)
	deployments := api.Client.AppsV1().Deployments("default")
	now := metav1.DeletePropagationForeground
	dry, err := deployments.Create(ctx, deployment("trainer"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	must(t, err)
	must(t, write("Dedicated"))
	s.settle(t, true)
	is, err := deployments.Create(ctx, deployment("trainer"), metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() { _ = deployments.Delete(ctx, "trainer", metav1.DeleteOptions{PropagationPolicy: &now}) })
	same := func(is *appsv1.Deployment) {
		t.Helper()
		want, _ := json.Marshal(dry.Spec)
		if text, _ := json.Marshal(is.Spec); string(text) != string(want) {
			t.Errorf("it became %s, and was to be %s", text, want)
		}
	}
	same(is)
	if !api.Fills {
		// Its pods are refused until their template has the name; the controller says why, and goes on when it has.
		why := ""
		must(t, until(30*time.Second, "the controller's word", func() (bool, error) {
			is, err := deployments.Get(ctx, "trainer", metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			for _, condition := range is.Status.Conditions {
				if condition.Type == appsv1.DeploymentReplicaFailure {
					why = condition.Message
				}
			}
			return why != "", nil
		}))
		if !strings.HasSuffix(why, main+refusal) {
			t.Errorf("the Deployment says: %s", why)
		}
		_, err := deployments.Patch(ctx, "trainer", types.MergePatchType, []byte(`{"spec":{"template":{"spec":{"schedulerName":"quartermaster"}}}}`), metav1.PatchOptions{})
		must(t, err)
		must(t, until(30*time.Second, "its pods", func() (bool, error) {
			pods, err := made("trainer", "none")
			return len(pods) > 0 && pods[0].Spec.SchedulerName == "quartermaster", err
		}))
		return
	}
	named := func(image string) {
		t.Helper()
		must(t, until(30*time.Second, "pods of "+image, func() (bool, error) {
			pods, err := made("trainer", image)
			if err != nil || len(pods) == 0 {
				return false, err
			}
			for _, pod := range pods {
				if pod.Spec.SchedulerName != "quartermaster" || len(pod.Spec.Tolerations) != 1 || pod.Spec.Tolerations[0].Key != taint {
					return false, fmt.Errorf("%s has %s and %v", pod.Name, pod.Spec.SchedulerName, pod.Spec.Tolerations)
				}
			}
			return true, nil
		}))
	}
	named("none")
	// A new version, and no one puts anything into its template.
	_, err = deployments.Patch(ctx, "trainer", types.StrategicMergePatchType, []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"newer"}]}}}}`), metav1.PatchOptions{})
	must(t, err)
	named("newer")
	is, err = deployments.Get(ctx, "trainer", metav1.GetOptions{})
	must(t, err)
	dry.Spec.Template.Spec.Containers[0].Image = "newer"
	same(is)
}

// A policy of someone else that adds a container with a card.
const addsAContainer = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: %[1]s.quartermaster.test}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
    objectSelector: {matchLabels: {adds: %[1]s}}
  matchConditions: [{name: once, expression: "object.spec.containers.size() == 1"}]
  mutations:
    - patchType: JSONPatch
      jsonPatch: {expression: "[JSONPatch{op: 'add', path: '/spec/containers/-', value: {'name': dyn('added'), 'image': dyn('none'), 'resources': dyn({'limits': {'nvidia.com/gpu': '1'}, 'requests': {'nvidia.com/gpu': '1'}})}}]"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: %[1]s.quartermaster.test}
spec: {policyName: %[1]s.quartermaster.test}
`

// Kubernetes gives policies no order, and does not come back to one whose match condition was false: where ours looked first, the pod is
// refused. It never goes to the default scheduler.
func TestACardThatAnotherPolicyAddsNeverSlipsBy(t *testing.T) {
	if !api.Fills {
		t.Skip("this server has no MutatingAdmissionPolicies")
	}
	s := set(t)
	must(t, write("Dedicated"))
	s.settle(t, true)
	for _, name := range []string{"a", "z"} {
		_, err := api.Run(fmt.Sprintf(addsAContainer, name), "kubectl", "apply", "-f", "-")
		must(t, err)
		t.Cleanup(func() { _, _ = api.Run(fmt.Sprintf(addsAContainer, name), "kubectl", "delete", "-f", "-") })
		pod, no := admission.NewPod(), false
		pod.Labels, pod.Spec.AutomountServiceAccountToken = map[string]string{"adds": name}, &no
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "none"}}
		must(t, until(30*time.Second, "a pod with a container that "+name+" adds", func() (bool, error) {
			reply, err := api.Pod(ctx, pod)
			if err != nil {
				return false, err
			}
			if reply.Pod == nil {
				t.Logf("%s: refused", name)
				return strings.HasSuffix(reply.Message, "container added asks for nvidia.com/gpu"+refusal), fmt.Errorf("%d %s", reply.Code, reply.Message)
			}
			if len(reply.Pod.Spec.Containers) < 2 {
				return false, fmt.Errorf("it is not added yet")
			}
			if reply.Pod.Spec.SchedulerName != "quartermaster" || len(reply.Pod.Spec.Tolerations) != 1 {
				t.Errorf("%s: it slipped by: %s %v", name, reply.Pod.Spec.SchedulerName, reply.Pod.Spec.Tolerations)
			}
			t.Logf("%s: sent to the scheduler", name)
			return true, nil
		}))
	}
}
