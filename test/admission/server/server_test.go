package server

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"quartermaster.io/test/admission"
	"quartermaster.io/test/faults/kit"
)

var (
	minor  = kit.Minor()
	server *Server
	judge  *admission.Judge
)

// One server for all tests, which take turns: each writes the one ResourceRules object. QM_ADMISSION_CLUSTER names one that is left running.
func TestMain(m *testing.M) {
	flag.Parse()
	code := kit.RunLane(m, "admission", "QM_ADMISSION_CLUSTER", func(name string) (err error) {
		if server, err = Start(context.Background(), name, minor); err == nil {
			judge, err = admission.StartJudge()
		}
		return err
	})
	if judge != nil {
		judge.Close()
	}
	os.Exit(code)
}

func TestS24_S25_S72_TheTruthTableOnARealAPIServer(t *testing.T) {
	sets, err := admission.LoadSets()
	if err != nil {
		t.Fatal(err)
	}
	batches, err := Batches(judge, sets)
	if err != nil {
		t.Fatal(err)
	}
	RunCases(t, server, judge, &Policies{Server: server, Judge: judge}, batches)
}

// The status of a policy is where the server says that an expression does not fit the kinds it looks at.
func TestS24_TheServerHasNothingToSayAgainstThePolicies(t *testing.T) {
	ctx := context.Background()
	for _, name := range []string{"resource-rules", "resource-advice", "resource-templates"} {
		var policy *admissionv1.ValidatingAdmissionPolicy
		err := until(ctx, 60*time.Second, "the status of "+name, func() (bool, error) {
			var err error
			policy, err = server.Client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(ctx, name+".quartermaster.io", metav1.GetOptions{})
			return err == nil && policy.Status.ObservedGeneration == policy.Generation && policy.Status.TypeChecking != nil, err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, warning := range policy.Status.TypeChecking.ExpressionWarnings {
			t.Errorf("%s, %s: %s", name, warning.FieldRef, warning.Warning)
		}
	}
	// The check can fail.
	broken := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "broken.quartermaster.test"}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create}, Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}}}},
		Validations: []admissionv1.Validation{{Expression: "object.spec.noSuchField == 1"}}}}
	policies := server.Client.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	if _, err := policies.Create(ctx, broken, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	defer policies.Delete(ctx, broken.Name, metav1.DeleteOptions{})
	if err := until(ctx, 60*time.Second, "a warning about a broken policy", func() (bool, error) {
		is, err := policies.Get(ctx, broken.Name, metav1.GetOptions{})
		return err == nil && is.Status.TypeChecking != nil && len(is.Status.TypeChecking.ExpressionWarnings) > 0, err
	}); err != nil {
		t.Error(err)
	}
}

func TestS24_TheSystemsOwnPodsAreLeftAlone(t *testing.T) {
	ctx := context.Background()
	spec := admission.NewSpec()
	spec.Rules["never.test/a"] = admission.Rule{Source: "kube-public/cf-crl-never-a", Forbidden: true}
	spec.Finish()
	policies := &Policies{Server: server, Judge: judge}
	if err := policies.Hold(ctx, &Batch{Spec: spec}, "Deny"); err != nil {
		t.Fatal(err)
	}
	pod := admission.NewPod()
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{Limits: admission.Amounts("never.test/a", "1")}}}
	in := func(namespace string, of *corev1.Pod) Reply {
		t.Helper()
		of = of.DeepCopy()
		of.Namespace = namespace
		reply, err := server.DryRun(ctx, of, corev1.SchemeGroupVersion.WithKind("Pod"), "pods", namespace)
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	if reply := in("default", pod); reply.Refusal() == "" {
		t.Errorf("a pod of everyday is not held to the rules: %d %s", reply.Code, reply.Message)
	}
	for _, namespace := range []string{"kube-system", "kube-public", "kube-node-lease", "quartermaster"} {
		if err := until(ctx, 20*time.Second, "a ServiceAccount in "+namespace, func() (bool, error) {
			_, err := server.Client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
			return err == nil, nil
		}); err != nil {
			t.Fatal(err)
		}
		if reply := in(namespace, pod); reply.Code != 201 || len(reply.Warnings) > 0 {
			t.Errorf("a pod in %s is not left alone: %d %s %v", namespace, reply.Code, reply.Message, reply.Warnings)
		}
	}
	mirror := pod.DeepCopy()
	mirror.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	mirror.Spec.NodeName = "node-1"
	if reply := in("default", mirror); strings.Contains(reply.Message, "quartermaster.io") {
		t.Errorf("a mirror pod is held to the rules: %d %s", reply.Code, reply.Message)
	}
	// Off, and no rules at all.
	for what, write := range map[string]func() error{
		"Off": func() error { return policies.Write(ctx, spec, "Off") },
		"deleted": func() error {
			return server.Dynamic.Resource(admission.RulesResource).Delete(ctx, "default", metav1.DeleteOptions{})
		},
	} {
		if err := policies.Hold(ctx, &Batch{Spec: spec}, "Deny"); err != nil {
			t.Fatal(err)
		}
		if err := write(); err != nil {
			t.Fatal(err)
		}
		if err := until(ctx, 20*time.Second, "rules that are "+what, func() (bool, error) {
			reply := in("default", pod)
			return reply.Code == 201 && len(reply.Warnings) == 0, nil
		}); err != nil {
			t.Error(err)
		}
	}
}

// No one reads the warnings that a controller gets for its pods; the author of the template was warned.
func TestS24_WhatIsOnlySaidIsSaidToPeople(t *testing.T) {
	ctx := context.Background()
	spec := admission.NewSpec()
	spec.Rules["said.test/a"] = admission.Rule{Source: "kube-public/cf-crl-said-a", NotOffered: true}
	spec.Finish()
	if err := (&Policies{Server: server, Judge: judge}).Hold(ctx, &Batch{Spec: spec}, "Deny"); err != nil {
		t.Fatal(err)
	}
	pod := admission.NewPod()
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{Limits: admission.Amounts("said.test/a", "1")}}}
	for label, speaks := range map[string]bool{"app": true, "pod-template-hash": false, "controller-revision-hash": false, "batch.kubernetes.io/job-name": false} {
		pod.Labels = map[string]string{label: "x"}
		reply, err := server.Pod(ctx, pod)
		if err != nil || reply.Code != 201 || (reply.Warned("resource-advice") != "") != speaks {
			t.Errorf("a pod with label %s: %d %v %v", label, reply.Code, reply.Warnings, err)
		}
	}
}

// failurePolicy Ignore means that a policy beyond the budget lets everything pass in silence, so a pod that must be refused has to be.
func TestS24_500KeysAndAPodOf60ContainersAreJudgedOnARealAPIServer_long(t *testing.T) {
	ctx := context.Background()
	for _, of := range admission.LargePods {
		spec := admission.ManyRules(500, of.Excluded)
		if err := (&Policies{Server: server, Judge: judge}).Hold(ctx, &Batch{Spec: spec}, "Deny"); err != nil {
			t.Fatal(err)
		}
		large(t, spec, of.Named)
	}
}

func TestS24_TheLargestObjectIsEnforcedOnARealAPIServer_long(t *testing.T) {
	ctx := context.Background()
	var all []corev1.ConfigMap
	for i := range 10_000 {
		all = append(all, admission.ConfigMap(fmt.Sprintf("cf-crl-group-%04d-card-%d", i/5, i), map[string]string{"key": fmt.Sprintf("vendor-%04d.example.com/card-%05d", i/5, i),
			"group": fmt.Sprintf("group-%04d", i/5), "dataType": "integer", "limits": []string{"required", "optional"}[i%2], "requests": "fromLimits"}))
	}
	compiled, err := judge.Compile(all, admission.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := (&Policies{Server: server, Judge: judge}).Hold(ctx, &Batch{Spec: compiled.Spec}, "Deny"); err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(compiled.Spec)
	t.Logf("%d keys in %d bytes, %d left out", len(compiled.Spec.Keys), len(text), compiled.LeftOut)
	large(t, compiled.Spec, 4)
}

// large sends a pod of 60 containers that name so many keys each: refused in the words of the C++ form, and taken once it is fixed.
func large(t *testing.T, spec admission.Spec, named int) {
	t.Helper()
	ctx := context.Background()
	pod := admission.ManyContainers(spec, 60, named)
	asked := pod.DeepCopy()
	admission.CopyLimits(asked)
	want, err := judge.Evaluate(spec, asked, "Deny")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	reply, err := server.Pod(ctx, pod)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("60 containers that name %d of %d keys each: %d in %s", named, len(spec.Keys), reply.Code, time.Since(began).Round(time.Millisecond))
	if want.Allowed {
		t.Fatal("this pod was to be refused")
	}
	if server.Fills && reply.Refusal() != want.Refusals {
		t.Errorf("refused with %.300q, not %.300q", reply.Refusal(), want.Refusals)
	}
	if reply.Refusal() == "" {
		t.Errorf("60 containers that name %d keys each pass in silence: %d %s", named, reply.Code, reply.Message)
	}
	good := admission.GoodContainers(spec, 60)
	if reply, err := server.Pod(ctx, good); err != nil || reply.Code != 201 {
		t.Errorf("a good pod of 60 containers: %d %s %v", reply.Code, reply.Message, err)
	}
}
