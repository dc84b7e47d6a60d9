package image

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"quartermaster.io/test/faults/kit"
)

const servicesPod = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: services, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: services}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: services, namespace: kube-system}]
---
apiVersion: v1
kind: Pod
metadata: {name: services, namespace: kube-system}
spec:
  serviceAccountName: services
  hostNetwork: true
  tolerations: [{operator: Exists}]
  terminationGracePeriodSeconds: 0
  containers: [{name: services, image: "quartermaster.test/services:1", imagePullPolicy: Never}]
`

// startServices: pods reach Services by name and address from now on.
func startServices(p *product) {
	folder := p.t.TempDir()
	program := filepath.Join(folder, "services")
	build := exec.Command(os.Getenv("QM_GO"), "build", "-buildvcs=false", "-o", program, "./services")
	if said, err := build.CombinedOutput(); err != nil {
		p.t.Fatalf("%v: %s", err, said)
	}
	p.script("node-image", registry+"/services:1", program+":/services")
	_, err := p.Run(servicesPod, "kubectl", "apply", "-f", "-")
	must(p.t, err)
	p.run("kubectl", "wait", "pod/services", "-n", "kube-system", "--for=condition=Ready", "--timeout=30s")
}

// schedulerMode writes it into the policy, next to what the values of the chart say there.
func (p *product) schedulerMode(spec string) {
	p.t.Helper()
	p.run("kubectl", "patch", "acceleratorpolicy", "default", "--type=merge", "-p", `{"spec": {"scheduler": `+spec+`}}`)
}

// runTheScheduler: the operator's kube-scheduler runs as a pod next to the cluster's own, asks the extender by its Service, and the extender
// binds a pod to its cards.
func (p *product) runTheScheduler() {
	version, err := p.Client.Discovery().ServerVersion()
	must(p.t, err)
	image := registry + "/kube-scheduler"
	p.script("node-image", image+":"+version.GitVersion, p.Tool("kube-scheduler")+":/usr/local/bin/kube-scheduler")
	p.schedulerMode(`{"mode": "Dedicated", "image": "` + image + `", "replicas": 1}`)
	p.await(90*time.Second, "the scheduler is ready", func() (bool, error) {
		policy, err := p.Dynamic.Resource(kit.Policies).Get(ctx, "default", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		rows, _, _ := unstructured.NestedSlice(policy.Object, "status", "schedulers")
		return len(rows) == 1 && rows[0].(map[string]any)["reason"] == "Dedicated", fmt.Errorf("%v", rows)
	})
	none := int64(0)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "has-a-card", Namespace: "default"}, Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &none,
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, Containers: []corev1.Container{{Name: "main", Image: pause,
			ImagePullPolicy: corev1.PullNever, Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{gpu: resource.MustParse("1")}}}}}}
	pods := p.Client.CoreV1().Pods(pod.Namespace)
	pod, err = pods.Create(ctx, pod, metav1.CreateOptions{})
	must(p.t, err)
	if pod.Spec.SchedulerName != "quartermaster" {
		p.t.Errorf("the pod goes to the scheduler %s", pod.Spec.SchedulerName)
	}
	p.await(30*time.Second, "a pod with a card runs", func() (bool, error) {
		if pod, err = pods.Get(ctx, pod.Name, metav1.GetOptions{}); err != nil {
			return false, err
		}
		return pod.Status.Phase == corev1.PodRunning, fmt.Errorf("%+v", pod.Status)
	})
	if placement := pod.Annotations["quartermaster.io/placement"]; !strings.Contains(placement, nodeName) {
		p.t.Errorf("its placement is %q", placement)
	}
	if _, leader := p.leader(); p.metric(leader, `quartermaster_http_requests_total{server="extender"`) == 0 {
		p.t.Errorf("%s leads, and nothing asked its extender", leader)
	}
	must(p.t, pods.Delete(ctx, pod.Name, metav1.DeleteOptions{}))
	p.schedulerMode(`{"mode": "None"}`)
	p.await(60*time.Second, "the scheduler is gone", func() (bool, error) {
		_, err := p.Client.AppsV1().Deployments(kit.Namespace).Get(ctx, "quartermaster-scheduler", metav1.GetOptions{})
		return apierrors.IsNotFound(err), err
	})
}
