package admission_webhook

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"quartermaster.io/test/admission"
	"quartermaster.io/test/admission/server"
)

// webhook brings a batch into force the way people do: declarations, a policy, nodes. Whether the operator compiles the same of it as
// the C++ form did is part of what is seen.
type webhook struct{ held int }

// Hold adds probes of its own to the batch, so that it is known when everyone has heard.
func (w *webhook) Hold(ctx context.Context, batch *server.Batch, enforcement string) error {
	w.held++
	domain, group := fmt.Sprintf("h%d.probe.test/", w.held), fmt.Sprintf("probe-%d", w.held)
	probe := func(name, limits, group, otherwise string) corev1.ConfigMap {
		data := map[string]string{"key": domain + name, "dataType": "integer", "limits": limits, "requests": "disabled", "defaultValue": otherwise}
		if group != "" {
			data["group"] = group
		}
		return admission.ConfigMap("cf-crl-"+strings.TrimSuffix(domain, ".probe.test/")+"-"+name, data)
	}
	all := append(slices.Clone(batch.ConfigMaps), probe("never", "disabled", "", ""), probe("asked", "optional", group, ""), probe("filled", "required", group, "7"))
	offered := batch.How.Offered
	if offered == nil { // nothing is to be said of what nodes offer
		offered = batch.Spec.Keys
	}
	offered = append(slices.Clone(offered), domain+"never", domain+"asked", domain+"filled")
	for _, step := range []error{offer(ctx, offered), declare(ctx, all), enforce(ctx, enforcement, batch.How.FillOptional)} {
		if step != nil {
			return step
		}
	}
	if err := w.compiles(ctx, batch, domain, enforcement); err != nil {
		return err
	}
	return w.holds(ctx, domain, enforcement)
}

// compiles: the operator has made the same rules of it as the C++ form.
func (w *webhook) compiles(ctx context.Context, batch *server.Batch, domain, enforcement string) error {
	var differs string
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		spec, _, err := compiled(ctx)
		if err != nil {
			return err
		}
		if _, heard := spec.Rules[domain+"filled"]; !heard {
			differs = "the probes are not there"
			continue
		}
		differs = ""
		for key, rule := range batch.Spec.Rules {
			got := spec.Rules[key]
			rule.AbsentPasses = enforcement == "Deny" && rule.Fill != "" // the webhook may be away
			if !reflect.DeepEqual(got, rule) {
				differs = fmt.Sprintf("%s is compiled to %+v, not %+v", key, got, rule)
			}
		}
		if differs == "" && len(spec.Rules) == len(batch.Spec.Rules)+3 {
			return nil
		}
	}
	return fmt.Errorf("the operator's rules: %s", differs)
}

// holds: everything that refuses, warns and fills in knows of the probes.
func (w *webhook) holds(ctx context.Context, domain, enforcement string) error {
	ask := func(key string) (server.Reply, error) {
		pod := admission.NewPod()
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{Limits: admission.Amounts(domain+key, "1")}}}
		return api.Pod(ctx, pod)
	}
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		never, err := ask("never")
		if err != nil {
			return err
		}
		asked, err := ask("asked")
		if err != nil {
			return err
		}
		refused := never.Refusal()
		if enforcement == "Warn" {
			refused = strings.Join(never.Warnings, " ")
		}
		filled := enforcement == "Warn" && strings.Contains(strings.Join(asked.Warnings, " "), "must be set to 1 or more")
		if asked.Pod != nil && enforcement == "Deny" {
			_, filled = asked.Pod.Spec.Containers[0].Resources.Limits[corev1.ResourceName(domain+"filled")]
		}
		if strings.Contains(refused, domain+"never is 1, but must not be set") && filled {
			return nil
		}
	}
	return fmt.Errorf("the rules are not held to")
}

// Ready: the webhook fills in, so the pod is sent as people write it.
func (w *webhook) Ready(_ *server.Batch, pod *corev1.Pod, _ string) (*corev1.Pod, error) {
	return pod, nil
}

func batches(t *testing.T) []*server.Batch {
	t.Helper()
	sets, err := admission.LoadSets()
	if err != nil {
		t.Fatal(err)
	}
	out, err := server.Batches(judge, sets)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Below 1.36, as the chart has it: the webhook fills in, the policies refuse what is still wrong.
func TestS24_S25_TheTruthTableWhereTheWebhookFillsIn(t *testing.T) {
	operator(t)
	server.RunCases(t, api, judge, &webhook{}, batches(t))
}

// Below 1.36 no one fills in a default while the operator is gone: a pod that relies on one is made without it, not refused.
func TestS24_APodThatReliesOnADefaultIsMadeWhileTheOperatorIsGone(t *testing.T) {
	op := operator(t)
	ctx := context.Background()
	hook := &webhook{}
	if err := hook.Hold(ctx, &server.Batch{Spec: admission.NewSpec()}, "Deny"); err != nil {
		t.Fatal(err)
	}
	op.Terminate(15 * time.Second)
	ask := func(key, amount string) server.Reply {
		t.Helper()
		limits := admission.Amounts(fmt.Sprintf("h%d.probe.test/asked", hook.held), "1")
		if key != "" {
			limits[corev1.ResourceName(fmt.Sprintf("h%d.probe.test/%s", hook.held, key))] = resource.MustParse(amount)
		}
		pod := admission.NewPod()
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{Limits: limits}}}
		reply, err := api.Pod(ctx, pod)
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	if reply := ask("", ""); reply.Code != 201 {
		t.Errorf("a pod that relies on the default: %d %s", reply.Code, reply.Message)
	}
	if reply := ask("filled", "0"); reply.Refusal() == "" {
		t.Errorf("a pod that asks for nothing of what is required: %d", reply.Code)
	}
	if reply := ask("never", "1"); reply.Refusal() == "" {
		t.Errorf("a pod that asks for what is disabled: %d", reply.Code)
	}
}
