package admission_webhook

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"quartermaster.io/test/admission"
	"quartermaster.io/test/admission/server"
)

// webhook brings a batch into force the way people do: declarations, a policy, nodes. Whether the operator compiles the same of it as
// the C++ form did is part of what is seen.
type webhook struct {
	as   form
	held int
}

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
			rule.AbsentPasses = w.as == fills && enforcement == "Deny" && rule.Fill != "" // the webhook may be away
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

// holds: whoever refuses, warns and fills in knows of the probes.
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
	operator(t, fills)
	server.RunCases(t, api, judge, &webhook{as: fills}, batches(t))
}

// The webhook alone: the same verdict, the same mutation, the same words as the C++ form, which CEL is held against elsewhere.
func TestS24_S25_TheTruthTableByTheWebhookAlone(t *testing.T) {
	operator(t, forced)
	ctx := context.Background()
	hook := &webhook{as: forced}
	count := 0
	for i, batch := range batches(t) {
		began := time.Now()
		cases := append(slices.Clone(batch.Cases), batch.Swept...)
		if err := hook.Hold(ctx, batch, "Deny"); err != nil {
			t.Fatal(err)
		}
		if _, label, err := compiled(ctx); err != nil || label != "Off" {
			t.Errorf("the policies are not out of it: %q %v", label, err)
		}
		each(t, cases, func(c admission.Case) []string { return denied(ctx, batch, c) })
		if err := hook.Hold(ctx, batch, "Warn"); err != nil {
			t.Fatal(err)
		}
		each(t, batch.Cases, func(c admission.Case) []string { return warned(ctx, batch, c) })
		count += len(cases) + len(batch.Cases)
		t.Logf("batch %d: %d keys, %d cases in %s", i+1, len(batch.Spec.Keys), len(cases), time.Since(began).Round(time.Millisecond))
	}
	t.Logf("%d requests", count)
}

func each(t *testing.T, cases []admission.Case, check func(admission.Case) []string) {
	t.Helper()
	work := make(chan admission.Case)
	var workers sync.WaitGroup
	for range 6 {
		workers.Go(func() {
			for c := range work {
				for _, wrong := range check(c) {
					t.Errorf("%s: %s", c.Name, wrong)
				}
			}
		})
	}
	for _, c := range cases {
		work <- c
	}
	close(work)
	workers.Wait()
}

func expected(batch *server.Batch, c admission.Case, enforcement string) (admission.Answer, error) {
	asked := c.Pod.DeepCopy()
	admission.CopyLimits(asked)
	return judge.Evaluate(batch.Spec, asked, enforcement)
}

func denied(ctx context.Context, batch *server.Batch, c admission.Case) []string {
	reply, err := api.Pod(ctx, c.Pod)
	if err != nil {
		return []string{err.Error()}
	}
	if c.Server != "" {
		if reply.Code != 422 || !strings.Contains(reply.Message, c.Server) {
			return []string{fmt.Sprintf("Kubernetes itself should have said %q: %d %q", c.Server, reply.Code, reply.Message)}
		}
		return nil
	}
	want, err := expected(batch, c, "Deny")
	if err != nil {
		return []string{err.Error()}
	}
	answer := admission.Answer{Allowed: reply.Code == 201, Refusals: reply.Refusal(), Advice: strings.Join(reply.Warnings, " ")}
	if reply.Pod != nil {
		answer.Fills, answer.RuntimeClassName = admission.FillsOf(c.Pod, reply.Pod)
	} else {
		c.Fills, c.SetClass = nil, "" // nobody sees them
	}
	wrong := c.Wrong(answer)
	if answer.Refusals != want.Refusals {
		wrong = append(wrong, fmt.Sprintf("refused with %q, not %q", answer.Refusals, want.Refusals))
	}
	return wrong
}

func warned(ctx context.Context, batch *server.Batch, c admission.Case) []string {
	if c.Server != "" {
		return nil
	}
	reply, err := api.Pod(ctx, c.Pod)
	if err != nil {
		return []string{err.Error()}
	}
	if reply.Code != 201 {
		return []string{fmt.Sprintf("refused, though enforcement is Warn: %q", reply.Message)}
	}
	want, err := expected(batch, c, "Warn")
	if err != nil {
		return []string{err.Error()}
	}
	var wrong []string
	// One warning an objection, long ones in pieces; the policies say all in one.
	apart := strings.NewReplacer("; container ", " container ", "; init container ", " init container ")
	if got, text := strings.Join(reply.Warnings, " "), apart.Replace(strings.TrimSpace(want.Refusals+" "+want.Advice)); got != text {
		wrong = append(wrong, fmt.Sprintf("warned %q, not %q", got, text))
	}
	if fills, class := admission.FillsOf(c.Pod, reply.Pod); len(fills) > 0 || class != "" {
		wrong = append(wrong, fmt.Sprintf("filled in, though enforcement is Warn: %v %q", fills, class))
	}
	return wrong
}

// What a person sees who writes a declaration that cannot be.
func TestS24_ABrokenDeclarationIsRefusedAtTheDoor(t *testing.T) {
	operator(t, forced)
	ctx := context.Background()
	hook := &webhook{as: forced}
	if err := hook.Hold(ctx, &server.Batch{Spec: admission.NewSpec()}, "Deny"); err != nil {
		t.Fatal(err)
	}
	good := map[string]string{"key": "door.test/a", "dataType": "integer", "limits": "optional", "requests": "disabled"}
	apply := func(change func(map[string]string)) (string, error) {
		data := map[string]string{}
		for field, value := range good {
			data[field] = value
		}
		change(data)
		object := admission.ConfigMap("cf-crl-door-a", data)
		_, err := api.Client.CoreV1().ConfigMaps("kube-public").Create(ctx, &object, metav1.CreateOptions{DryRun: []string{"All"}})
		if err == nil {
			return "", nil
		}
		return err.Error(), err
	}
	if said, err := apply(func(map[string]string) {}); err != nil {
		t.Errorf("a sound one: %s", said)
	}
	for want, change := range map[string]func(map[string]string){
		`data.limits`:       func(of map[string]string) { of["limits"] = "requierd" },
		`data.key`:          func(of map[string]string) { of["key"] = "no domain" },
		`data.defaultValue`: func(of map[string]string) { of["defaultValue"] = "4Gi" },
		`data.requests`:     func(of map[string]string) { delete(of, "requests") },
	} {
		if said, err := apply(change); err == nil || !strings.Contains(said, want) {
			t.Errorf("%s: %q", want, said)
		}
	}
	// The same as pods: Warn and Off refuse nothing.
	for _, mode := range []string{"Warn", "Off"} {
		if err := enforce(ctx, mode, false); err != nil {
			t.Fatal(err)
		}
		var said string
		err := error(nil)
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			if said, err = apply(func(of map[string]string) { of["limits"] = "requierd" }); err == nil {
				break
			}
		}
		if err != nil {
			t.Errorf("with %s: %q", mode, said)
		}
	}
	if out, err := api.Run("", "kubectl", "create", "configmap", "cf-crl-door-b", "-n", "kube-public", "--from-literal=a=b", "--dry-run=server"); err != nil {
		t.Errorf("a ConfigMap that only looks like one: %s %v", out, err)
	}
}

// Below 1.36 nobody fills in a default while the operator is gone: a pod that relies on one is made without it, not refused.
func TestS24_APodThatReliesOnADefaultIsMadeWhileTheOperatorIsGone(t *testing.T) {
	op := operator(t, fills)
	ctx := context.Background()
	hook := &webhook{as: fills}
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

// The operator is gone: pods are made all the same, and nobody waits for long.
func TestS24_PodsAreMadeWhileTheOperatorIsGone(t *testing.T) {
	op := operator(t, forced)
	ctx := context.Background()
	if err := (&webhook{as: forced}).Hold(ctx, &server.Batch{Spec: admission.NewSpec()}, "Deny"); err != nil {
		t.Fatal(err)
	}
	op.Terminate(15 * time.Second)
	pod := admission.NewPod()
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{Limits: admission.Amounts("h1.probe.test/never", "1")}}}
	began := time.Now()
	reply, err := api.Pod(ctx, pod)
	if err != nil || reply.Code != 201 {
		t.Errorf("%d %s %v", reply.Code, reply.Message, err)
	}
	if took := time.Since(began); took > 6*time.Second {
		t.Errorf("it took %s", took)
	}
}
