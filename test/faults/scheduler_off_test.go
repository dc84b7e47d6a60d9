package faults

import (
	"context"
	"fmt"
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

// remade: those whose owner makes them again are on a node, by another scheduler; the others are as they were.
func (d *den) remade(before map[string]types.UID) {
	d.t.Helper()
	for _, name := range []string{"owned", "patient"} {
		d.eventuallySo(30*time.Second, func() string {
			if p := d.of(name); p == nil || p.UID == before[name] || p.Spec.SchedulerName != corev1.DefaultSchedulerName || p.Spec.NodeName == "" {
				return fmt.Sprintf("the pod of %s is not made again and on a node: %v", name, p)
			}
			return ""
		})
	}
	for _, name := range []string{"named", "once", "bare"} {
		if p := d.of(name); p == nil || p.UID != before[name] || p.Spec.NodeName != "" {
			d.t.Errorf("the pod of %s is not as it was", name)
		}
	}
	for _, name := range []string{"patient", "once"} {
		job, err := d.Client.BatchV1().Jobs(podsIn).Get(d.ctx, name, metav1.GetOptions{})
		d.must(err)
		for _, c := range job.Status.Conditions {
			if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue {
				d.t.Errorf("Job %s has failed: %s", name, c.Message)
			}
		}
	}
}

// told says what the output lacks about the pods that stay.
func (d *den) told(out string) {
	d.t.Helper()
	for _, line := range []string{"2 pods were deleted: their owners recreate them", "  Deployment default/named: 1 pod (default/named-", "the template of Deployment default/named names the scheduler",
		"  Job default/once: 1 pod (default/once-", "  no owner: 1 pod (default/bare): nothing would recreate it"} {
		if !strings.Contains(out, line) {
			d.t.Errorf("it does not say %q:\n%s", line, out)
		}
	}
	_, left, _ := strings.Cut(out, "their owners recreate them")
	for _, name := range []string{"owned", "patient"} {
		if strings.Contains(left, "default/"+name) {
			d.t.Errorf("%s is listed as left:\n%s", name, out)
		}
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

// S54: switching off with pods that wait, which their owners make again; killed in the middle and called again.
func TestS54_pods_that_wait_are_made_anew_by_their_owners_when_it_is_switched_off(t *testing.T) {
	d, o := dedicated(t)
	// Pods that name no scheduler are sent to this one, which asks.
	real := d.kubelet()
	if code, why, text := d.proof(30 * time.Second); code != 0 || why != "" || !strings.Contains(text, "asked by "+ownScheduler+" (") {
		t.Errorf("verify --scheduler: code %d, %q: %s", code, why, text)
	}
	real.Close()
	d.verified("  ok      scheduler      Dedicated: 2 of 2 replicas ready")
	before := d.workloads()
	if code, out, _ := d.said("scheduler", "off"); code != 1 || d.sends() != "Dedicated" || !strings.Contains(out, "nothing was changed") {
		t.Errorf("no one can be asked here: code %d: %s", code, out)
	}
	first := d.verb("scheduler", "off", "--recreate-owned", "--yes")
	d.must(first.Start())
	d.eventuallySo(20*time.Second, func() string {
		if d.sends() != "None" {
			return "pods are sent: " + d.sends()
		}
		return ""
	})
	first.Process.Kill()
	first.Wait()
	code, out, errs := d.said("scheduler", "off", "--recreate-owned", "--yes", "--timeout", "14")
	if code != 3 || errs != "" {
		t.Errorf("pods are left: code %d: %s%s", code, out, errs)
	}
	d.told(out)
	d.remade(before)
	d.verified("  WRONG   scheduler      the scheduler is being switched off: PodsWait: 3 pods wait for it")
	if d.deployment() == nil {
		t.Error("pods wait for a scheduler that is gone")
	}
	// What was listed is put right by a person.
	now := int64(0)
	gone := metav1.DeletePropagationBackground
	at := metav1.DeleteOptions{GracePeriodSeconds: &now, PropagationPolicy: &gone}
	d.remove("bare")
	d.must(d.Client.BatchV1().Jobs(podsIn).Delete(d.ctx, "once", at))
	d.must(d.Client.AppsV1().Deployments(podsIn).Delete(d.ctx, "named", at))
	if code, out, errs := d.said("scheduler", "off", "--yes", "--timeout", "60"); code != 0 || !strings.Contains(out, "it is off") {
		t.Errorf("no one waits any more: code %d: %s%s", code, out, errs)
	}
	d.eventuallySo(20*time.Second, d.off)
	d.rest(o, time.Second)
}

// S59: the same where everything is removed.
func Test_uninstall_lets_owners_make_pods_anew_that_wait_for_the_scheduler(t *testing.T) {
	d, o := dedicated(t)
	before := d.workloads()
	o.Terminate(10 * time.Second)
	d.must(d.ExpireLease(d.ctx))
	code, out, errs := d.said("uninstall", "--yes", "--keep-crds", "--without-operator", "--recreate-owned")
	if code != 0 || errs != "" {
		t.Errorf("uninstall: code %d: %s%s", code, out, errs)
	}
	d.told(out)
	d.remade(before)
}
