package image

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"quartermaster.io/test/faults/kit"
)

// schedulerMode writes it into the policy, next to what the values of the chart say there.
func (p *product) schedulerMode(spec string) {
	p.t.Helper()
	p.run("kubectl", "patch", "acceleratorpolicy", "default", "--type=merge", "-p", `{"spec": {"scheduler": `+spec+`}}`)
}

// dedicate: the operator's kube-scheduler runs as a pod next to the cluster's own.
func (p *product) dedicate() {
	p.t.Helper()
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
}

func (p *product) dedicateNone() {
	p.t.Helper()
	p.schedulerMode(`{"mode": "None", "image": null, "replicas": null}`)
	p.await(3*time.Minute, "the scheduler is gone", func() (bool, error) {
		_, err := p.Client.AppsV1().Deployments(kit.Namespace).Get(ctx, "quartermaster-scheduler", metav1.GetOptions{})
		return apierrors.IsNotFound(err), err
	})
}

// runTheScheduler: that kube-scheduler asks the extender by its Service, and the extender binds a pod to its cards.
func (p *product) runTheScheduler() {
	p.dedicate()
	p.placesAPod("quartermaster", func() {})
	p.lagBehind("quartermaster")
	p.dedicateNone()
}

// placesAPod with a card: this scheduler takes it, the extender binds it, and the kubelet runs it. interlude comes before the last two.
func (p *product) placesAPod(scheduler string, interlude func()) {
	p.t.Helper()
	const bind = `quartermaster_http_requests_total{server="extender",path="/scheduler/bind",status="200"`
	none, before := int64(0), p.metrics(bind)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "has-a-card", Namespace: "default"}, Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &none,
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, Containers: []corev1.Container{{Name: "main", Image: pause,
			ImagePullPolicy: corev1.PullNever, Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{gpu: resource.MustParse("1")}}}}}}
	pods := p.Client.CoreV1().Pods(pod.Namespace)
	pod, err := pods.Create(ctx, pod, metav1.CreateOptions{})
	must(p.t, err)
	if pod.Spec.SchedulerName != scheduler {
		p.t.Errorf("the pod goes to the scheduler %s", pod.Spec.SchedulerName)
	}
	interlude()
	p.await(3*time.Minute, "a pod with a card runs", func() (bool, error) {
		if pod, err = pods.Get(ctx, pod.Name, metav1.GetOptions{}); err != nil {
			return false, err
		}
		return pod.Status.Phase == corev1.PodRunning, fmt.Errorf("%+v", pod.Status)
	})
	if placement := pod.Annotations["quartermaster.io/placement"]; !strings.Contains(placement, nodeName) {
		p.t.Errorf("its placement is %q", placement)
	}
	if binds := p.metrics(bind) - before; binds != 1 {
		p.t.Errorf("the extender was asked for %.0f Bindings", binds)
	}
	must(p.t, pods.Delete(ctx, pod.Name, metav1.DeleteOptions{}))
}

// runTheStaticPod: kubeadm's kube-scheduler is a static pod of the node. The agent puts the extender into its configuration, and takes it out.
func (p *product) runTheStaticPod() {
	manifest, err := kit.KubeadmScheduler(minor)
	must(p.t, err)
	image := regexp.MustCompile(`image: (\S+)`).FindSubmatch(manifest)
	p.script("node-image", string(image[1]), p.Tool("kube-scheduler")+":/usr/local/bin/kube-scheduler")
	file := filepath.Join(p.Dir, "node/etc/kubernetes/manifests/kube-scheduler.yaml")
	p.script("stop", "scheduler") // the cluster's other one
	p.t.Cleanup(func() {
		os.Remove(file)
		p.script("start", "scheduler")
	})
	must(p.t, os.WriteFile(file, manifest, 0o600))
	p.await(3*time.Minute, "kubeadm's kube-scheduler leads", func() (bool, error) {
		lease, err := p.Client.CoordinationV1().Leases("kube-system").Get(ctx, "kube-scheduler", metav1.GetOptions{})
		return err == nil && lease.Spec.HolderIdentity != nil && strings.HasPrefix(*lease.Spec.HolderIdentity, nodeName+"_"), err
	})
	row := func(state string) {
		p.t.Helper()
		p.await(120*time.Second, "the agent says "+state, func() (bool, error) {
			rows, err := p.Client.CoreV1().ConfigMaps(kit.Namespace).Get(ctx, "quartermaster-static-pod", metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			return strings.Contains(rows.Data[nodeName], `"state":"`+state+`"`), fmt.Errorf("%v", rows.Data)
		})
	}
	p.controlPlaneAgents(0)
	p.schedulerMode(`{"mode": "StaticPod"}`)
	row("Applied")
	p.controlPlaneAgents(1)
	p.processes(1)
	p.placesAPod("default-scheduler", func() {})
	p.schedulerMode(`{"mode": "None"}`)
	row("Off")
	if after, err := os.ReadFile(file); err != nil || string(after) != string(manifest) {
		p.t.Errorf("the agent leaves another manifest than kubeadm's: %v\n%s", err, after)
	}
	p.controlPlaneAgents(0)
}
