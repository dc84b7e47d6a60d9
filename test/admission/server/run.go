package server

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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"quartermaster.io/test/admission"
)

// Batch is many sets that do not disagree, so that one ResourceRules object, or one state of kube-public, serves all their cases.
type Batch struct {
	Sets       []admission.Set
	Spec       admission.Spec // what the operator would compile of them
	ConfigMaps []corev1.ConfigMap
	How        admission.CompileOptions
	Cases      []admission.Case
	Swept      []admission.Case
}

// Batches of sets, as few as a simple look finds. The operator's own knowledge (nodes, runtime classes, fillOptional) is the same within one.
func Batches(judge *admission.Judge, sets []admission.Set) ([]*Batch, error) {
	var out []*Batch
	for _, set := range sets {
		compiled, err := judge.Compile(set.ConfigMaps(), set.CompileOptions)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", set.Name, err)
		}
		var into *Batch
		for _, batch := range out {
			if reflect.DeepEqual(batch.How, set.CompileOptions) && batch.Spec.Merge(compiled.Spec) {
				into = batch
				break
			}
		}
		if into == nil {
			into = &Batch{Spec: admission.NewSpec(), How: set.CompileOptions}
			into.Spec.Merge(compiled.Spec)
			out = append(out, into)
		}
		into.Sets = append(into.Sets, set)
		into.ConfigMaps = append(into.ConfigMaps, set.ConfigMaps()...)
		into.Cases = append(into.Cases, set.Cases()...)
		into.Swept = append(into.Swept, set.SweepCases(admission.Memory, 1)...)
	}
	return out, nil
}

// Enforcer brings rules into force on a server. The chart's policies are one; a webhook is another, which reads ConfigMaps.
type Enforcer interface {
	// Hold the server's pods to the batch from when it returns.
	Hold(ctx context.Context, batch *Batch, enforcement string) error
	// Ready makes of a pod as people write it the one that is sent: the same, where the server fills in what is absent.
	Ready(batch *Batch, pod *corev1.Pod, enforcement string) (*corev1.Pod, error)
}

// Policies are the chart's, given the ResourceRules object that the operator would write. Where the server has no policies that fill, the
// webhook does; here, what it fills is taken from the C++ form, which it is made of.
type Policies struct {
	Server *Server
	Judge  *admission.Judge
}

func (p *Policies) Hold(ctx context.Context, batch *Batch, enforcement string) error {
	own := time.Now().UnixNano() // no earlier object has such a probe, of whatever run
	domain, group := fmt.Sprintf("p%d.probe.test/", own), fmt.Sprintf("probe-%d", own)
	spec := admission.NewSpec()
	spec.Merge(batch.Spec)
	probe := admission.NewSpec()
	source := "kube-public/cf-crl-probe"
	probe.Rules = map[string]admission.Rule{domain + "never": {Source: source, Forbidden: true}, domain + "asked": {Source: source, Group: group},
		domain + "filled": {Source: source, Group: group, Must: true, Fill: "7"}}
	probe.Finish()
	spec.Merge(probe)
	if err := p.Write(ctx, spec, enforcement); err != nil {
		return err
	}
	// The policies that validate and those that mutate see the object each by its own watch.
	pod := admission.NewPod()
	ask := func(key string) (Reply, error) {
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{Limits: admission.Amounts(domain+key, "1")}}}
		return p.Server.Pod(ctx, pod)
	}
	return until(ctx, 30*time.Second, "the rules in force", func() (bool, error) {
		never, err := ask("never")
		if err != nil {
			return false, err
		}
		asked, err := ask("asked")
		if err != nil {
			return false, err
		}
		if enforcement == "Warn" {
			return never.Warned("resource-rules") != "" && asked.Warned("resource-rules") != "", nil
		}
		filled := !p.Server.Fills
		if asked.Pod != nil {
			_, found := asked.Pod.Spec.Containers[0].Resources.Limits[corev1.ResourceName(domain+"filled")]
			filled = filled || found
		}
		return never.Refusal() != "" && filled, nil
	})
}

// Write the one ResourceRules object.
func (p *Policies) Write(ctx context.Context, spec admission.Spec, enforcement string) error {
	return p.Server.WriteRules(ctx, spec.Object("default", enforcement))
}

// WriteRules makes this the one ResourceRules object.
func (s *Server) WriteRules(ctx context.Context, object *unstructured.Unstructured) error {
	objects := s.Dynamic.Resource(admission.RulesResource)
	is, err := objects.Get(ctx, object.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = objects.Create(ctx, object, metav1.CreateOptions{})
		return err
	} else if err != nil {
		return err
	}
	object.SetResourceVersion(is.GetResourceVersion())
	_, err = objects.Update(ctx, object, metav1.UpdateOptions{})
	return err
}

func (p *Policies) Ready(batch *Batch, pod *corev1.Pod, enforcement string) (*corev1.Pod, error) {
	if p.Server.Fills || enforcement != "Deny" {
		return pod, nil
	}
	asked := pod.DeepCopy()
	admission.CopyLimits(asked)
	answer, err := p.Judge.Evaluate(batch.Spec, asked, enforcement)
	if err != nil {
		return nil, err
	}
	filled, err := admission.Filled(pod, answer.Fills, answer.RuntimeClassName)
	return filled, err
}

// RunCases holds the server to each batch and sends it the cases: as pods under Deny and under Warn, and in templates.
func RunCases(t *testing.T, s *Server, judge *admission.Judge, by Enforcer, batches []*Batch) {
	ctx := context.Background()
	count := 0
	for i, batch := range batches {
		began := time.Now()
		hold := func(enforcement string) {
			t.Helper()
			if err := by.Hold(ctx, batch, enforcement); err != nil {
				t.Fatal(err)
			}
		}
		hold("Deny")
		each(t, append(batch.Cases, batch.Swept...), func(c admission.Case) []string { return denied(ctx, s, by, batch, c) })
		each(t, batch.Cases, func(c admission.Case) []string { return inTemplate(ctx, s, judge, batch, c) })
		hold("Warn")
		each(t, batch.Cases, func(c admission.Case) []string { return warned(ctx, s, judge, by, batch, c) })
		count += 3*len(batch.Cases) + len(batch.Swept)
		t.Logf("batch %d: %d sets, %d keys, %d cases and %d of sweeps in %s", i+1, len(batch.Sets), len(batch.Spec.Keys), len(batch.Cases), len(batch.Swept),
			time.Since(began).Round(time.Millisecond))
	}
	t.Logf("%d requests", count)
}

// each case, a few at a time.
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

func denied(ctx context.Context, s *Server, by Enforcer, batch *Batch, c admission.Case) []string {
	pod, err := by.Ready(batch, c.Pod, "Deny")
	if err != nil {
		return []string{err.Error()}
	}
	reply, err := s.Pod(ctx, pod)
	if err != nil {
		return []string{err.Error()}
	}
	if c.Server != "" {
		if reply.Code != 422 || !strings.Contains(reply.Message, c.Server) {
			return []string{fmt.Sprintf("Kubernetes itself should have said %q: %d %q", c.Server, reply.Code, reply.Message)}
		}
		return nil
	}
	answer := admission.Answer{Allowed: reply.Code == 201, Refusals: reply.Refusal(), Advice: reply.Warned("resource-advice")}
	if reply.Pod != nil {
		answer.Fills, answer.RuntimeClassName = admission.FillsOf(c.Pod, reply.Pod)
		if unequal := limitsWithoutRequests(reply.Pod); unequal != "" {
			return []string{"a limit without an equal request: " + unequal}
		}
	} else {
		c.Fills, c.SetClass = nil, "" // no one sees them
		if answer.Refusals == "" {
			return []string{fmt.Sprintf("%d %q", reply.Code, reply.Message)}
		}
	}
	return c.Wrong(answer)
}

func limitsWithoutRequests(pod *corev1.Pod) string {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, c := range containers {
			for key, limit := range c.Resources.Limits {
				if request := c.Resources.Requests[key]; request.Cmp(limit) != 0 {
					return string(key)
				}
			}
		}
	}
	return ""
}

// warned: nothing is refused and nothing filled in, and what would be refused is a warning in the words of the C++ form.
func warned(ctx context.Context, s *Server, judge *admission.Judge, by Enforcer, batch *Batch, c admission.Case) []string {
	if c.Server != "" {
		return nil
	}
	reply, err := s.Pod(ctx, c.Pod)
	if err != nil {
		return []string{err.Error()}
	}
	if reply.Code != 201 {
		return []string{fmt.Sprintf("refused, though enforcement is Warn: %q", reply.Message)}
	}
	pod := c.Pod.DeepCopy()
	admission.CopyLimits(pod)
	answer, err := judge.Evaluate(batch.Spec, pod, "Warn")
	if err != nil {
		return []string{err.Error()}
	}
	var wrong []string
	if got := reply.Warned("resource-rules"); got != answer.Refusals {
		wrong = append(wrong, fmt.Sprintf("warned: %q, not %q", got, answer.Refusals))
	}
	if got := reply.Warned("resource-advice"); got != answer.Advice {
		wrong = append(wrong, fmt.Sprintf("advised: %q, not %q", got, answer.Advice))
	}
	if fills, class := admission.FillsOf(c.Pod, reply.Pod); len(fills) > 0 || class != "" {
		wrong = append(wrong, fmt.Sprintf("filled in, though enforcement is Warn: %v %q", fills, class))
	}
	return wrong
}

// inTemplate: the workload is made, with the refusal of its pods as a warning.
func inTemplate(ctx context.Context, s *Server, judge *admission.Judge, batch *Batch, c admission.Case) []string {
	if c.Server != "" {
		return nil
	}
	answer, err := judge.Evaluate(batch.Spec, c.Pod, "Deny")
	if err != nil {
		return []string{err.Error()}
	}
	kind := admission.WorkloadKinds[len(c.Name)%len(admission.WorkloadKinds)]
	object, of, resource := admission.Workload(kind, c.Pod)
	reply, err := s.DryRun(ctx, object, of, resource, "default")
	if err != nil {
		return []string{err.Error()}
	}
	if reply.Code != 201 {
		return []string{fmt.Sprintf("the %s is refused: %q", kind, reply.Message)}
	}
	var want []string
	if answer.Refusals != "" {
		want = append(want, admission.TemplatePrefix("Deny")+answer.Refusals)
	}
	if answer.Advice != "" {
		want = append(want, answer.Advice)
	}
	if got := reply.WarnedAll("resource-templates"); !slices.Equal(got, want) {
		return []string{fmt.Sprintf("warned of the %s: %q, not %q", kind, got, want)}
	}
	return nil
}
