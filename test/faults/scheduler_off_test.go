package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quartermaster.io/test/faults/kit"
)

// waitingPods is the field selector that the documents, verify and uninstall name.
const waitingPods = "spec.schedulerName=" + ownScheduler + ",spec.nodeName=,status.phase=Pending"

// workloads that ask for a card, with a pod each that waits for our scheduler; what they are called says what they are.
func (d *den) workloads() map[string]types.UID {
	d.t.Helper()
	one, none := int32(1), int32(0)
	template := func(name, scheduler string, restart corev1.RestartPolicy) corev1.PodTemplateSpec {
		p := d.gpu(name, map[string]string{"nvidia.com/gpu": "1"})
		p.Spec.SchedulerName, p.Spec.RestartPolicy = scheduler, restart
		return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"is": name}}, Spec: p.Spec}
	}
	now := int64(0)
	gone := metav1.DeletePropagationBackground
	at := metav1.DeleteOptions{GracePeriodSeconds: &now, PropagationPolicy: &gone}
	for name, scheduler := range map[string]string{"owned": "", "named": ownScheduler} {
		sets := d.Client.AppsV1().Deployments(podsIn)
		_, err := sets.Create(d.ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{Replicas: &one,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"is": name}}, Template: template(name, scheduler, corev1.RestartPolicyAlways)}}, metav1.CreateOptions{})
		d.must(err)
		d.t.Cleanup(func() { sets.Delete(context.Background(), name, at) })
	}
	for name, limit := range map[string]*int32{"patient": nil, "once": &none} {
		jobs := d.Client.BatchV1().Jobs(podsIn)
		_, err := jobs.Create(d.ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{BackoffLimit: limit,
			Template: template(name, "", corev1.RestartPolicyNever)}}, metav1.CreateOptions{})
		d.must(err)
		d.t.Cleanup(func() { jobs.Delete(context.Background(), name, at) })
	}
	bare := d.gpu("bare", map[string]string{"nvidia.com/gpu": "1"})
	bare.Labels = map[string]string{"is": "bare"}
	d.create(bare)
	out := map[string]types.UID{}
	d.eventuallySo(30*time.Second, func() string {
		for _, name := range []string{"owned", "named", "patient", "once", "bare"} {
			p := d.of(name)
			if p == nil || p.Spec.SchedulerName != ownScheduler || p.Spec.NodeName != "" {
				return "no pod of " + name + " waits for our scheduler"
			}
			out[name] = p.UID
		}
		return ""
	})
	return out
}

// of a workload the pod that is not being deleted; nil: there is none, or more than one.
func (d *den) of(name string) (found *corev1.Pod) {
	d.t.Helper()
	list, err := d.Client.CoreV1().Pods(podsIn).List(d.ctx, metav1.ListOptions{LabelSelector: "is=" + name})
	d.must(err)
	for i, p := range list.Items {
		if p.DeletionTimestamp != nil {
			continue
		}
		if found != nil {
			return nil
		}
		found = &list.Items[i]
	}
	return
}

// waiting by the field selector that the documents and the program name: what these pods are called by workloads.
func (d *den) waiting() (names []string) {
	d.t.Helper()
	list, err := d.Client.CoreV1().Pods("").List(d.ctx, metav1.ListOptions{FieldSelector: waitingPods})
	d.must(err)
	for _, p := range list.Items {
		names = append(names, p.Labels["is"])
	}
	slices.Sort(names)
	return
}

// remade: the pod that the owner makes after this one is on a node, by the cluster's own scheduler.
func (d *den) remade(name string, before types.UID) {
	d.t.Helper()
	d.eventuallySo(30*time.Second, func() string {
		if p := d.of(name); p == nil || p.UID == before || p.Spec.SchedulerName != corev1.DefaultSchedulerName || p.Spec.NodeName == "" {
			return fmt.Sprintf("the pod of %s is not made again and on a node: %v", name, p)
		}
		return ""
	})
}

// kept: the pod is as it was.
func (d *den) kept(name string, before types.UID) {
	d.t.Helper()
	if p := d.of(name); p == nil || p.UID != before || p.Spec.NodeName != "" {
		d.t.Errorf("the pod of %s is not as it was", name)
	}
}

// told waits until the condition of the policy says that so many pods keep the scheduler, and checks that verify says so, too.
func (d *den) told(number int) {
	d.t.Helper()
	says := fmt.Sprintf("%d pods wait for it and can have no other scheduler: %s/", number, podsIn)
	d.eventuallySo(20*time.Second, func() string {
		if _, condition := d.row(); condition == nil || condition["reason"] != "PodsWait" || !strings.Contains(fmt.Sprint(condition["message"]), says) {
			return fmt.Sprintf("the condition is %v", condition)
		}
		return ""
	})
	d.verified("  WRONG   scheduler      the scheduler is being switched off: PodsWait: " + says)
	if d.deployment() == nil {
		d.t.Error("pods wait for a scheduler that is gone")
	}
}

// verified: the walk over the cluster says this, too.
func (d *den) verified(line string) {
	d.t.Helper()
	if _, out, errs := d.said("verify", "-o", "wide"); !strings.Contains(out, line) {
		d.t.Errorf("verify does not say %q:\n%s%s", line, out, errs)
	}
}

// dedicated has a den in which pods are sent to a scheduler that does not run, so that they wait.
func dedicated(t *testing.T) (*den, *kit.Operator) {
	t.Helper()
	d := openDen(t, map[string]int{"pgpu": 1})
	d.webhook()
	d.mode("Dedicated", nil)
	o := d.startBehind(d.proxy("first"), d.args...)
	d.must(o.WaitReady(30 * time.Second))
	d.eventuallySo(60*time.Second, func() string { return d.on("pgpu-0") })
	d.sent(true)
	return d, o
}

// S54: switched off in the policy while pods wait: they are named and keep the scheduler, until a person has done with each what the
// documents say.
func TestS54_pods_that_wait_when_it_is_switched_off_keep_it_and_are_named_long(t *testing.T) {
	d, o := dedicated(t)
	// Pods that name no scheduler are sent to this one, which asks.
	real := d.kubelet()
	if code, why, text := d.proof(30 * time.Second); code != 0 || why != "" || !strings.Contains(text, "asked by "+ownScheduler+" (") {
		t.Errorf("verify --scheduler: code %d, %q: %s", code, why, text)
	}
	real.Close()
	d.verified("  ok      scheduler      Dedicated: 2 of 2 replicas ready")
	before := d.workloads()
	d.mode("None", nil)
	d.told(5)
	d.verified(waitingPods)
	if names := d.waiting(); !slices.Equal(names, []string{"bare", "named", "once", "owned", "patient"}) {
		t.Errorf("the field selector finds %v", names)
	}
	// Pods that an owner makes again.
	d.sent(false)
	for _, name := range []string{"owned", "patient"} {
		d.remove(d.of(name).Name)
		d.remade(name, before[name])
	}
	for _, name := range []string{"named", "once", "bare"} {
		d.kept(name, before[name])
	}
	d.told(3)
	// A template that names the scheduler, a Job that may lose no pod, a pod without an owner.
	edit := []byte(`{"spec":{"template":{"spec":{"schedulerName":null}}}}`)
	_, err := d.Client.AppsV1().Deployments(podsIn).Patch(d.ctx, "named", types.StrategicMergePatchType, edit, metav1.PatchOptions{})
	d.must(err)
	d.remade("named", before["named"])
	now := int64(0)
	gone := metav1.DeletePropagationBackground
	d.must(d.Client.BatchV1().Jobs(podsIn).Delete(d.ctx, "once", metav1.DeleteOptions{GracePeriodSeconds: &now, PropagationPolicy: &gone}))
	d.remove("bare")
	d.eventuallySo(20*time.Second, d.off)
	if names := d.waiting(); len(names) > 0 {
		t.Errorf("%v still wait", names)
	}
	d.rest(o, time.Second)
}

// S59: everything is removed while pods wait: they are left alone and named.
func Test_uninstall_names_pods_that_wait_for_the_scheduler_long(t *testing.T) {
	d, o := dedicated(t)
	before := d.workloads()
	o.Terminate(10 * time.Second)
	d.must(d.ExpireLease(d.ctx))
	code, out, errs := d.said("uninstall", "--yes", "--keep-crds", "--without-operator")
	if code != 0 || errs != "" {
		t.Errorf("uninstall: code %d: %s%s", code, out, errs)
	}
	lines := []string{"note: 5 pods wait for the scheduler quartermaster, which is gone:\n", "kubectl get pods -A --field-selector " + waitingPods + "\n"}
	for name, uid := range before {
		d.kept(name, uid)
		if p := d.of(name); p != nil {
			lines = append(lines, "\n  "+podsIn+"/"+p.Name+"\n")
		}
	}
	for _, line := range lines {
		if !strings.Contains(out, line) {
			t.Errorf("it does not say %q:\n%s", line, out)
		}
	}
}
