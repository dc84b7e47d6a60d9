package faults

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"quartermaster.io/test/faults/kit"
)

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// withoutCodes takes `cause` and `parameters` out of a schema, wherever they stand next to each other.
func withoutCodes(part any) {
	switch part := part.(type) {
	case map[string]any:
		if part["cause"] != nil && part["parameters"] != nil {
			delete(part, "cause")
			delete(part, "parameters")
		}
		for _, inner := range part {
			withoutCodes(inner)
		}
	case []any:
		for _, inner := range part {
			withoutCodes(inner)
		}
	}
}

// putSchema writes the versions of a CRD, and waits until the API server takes codes or refuses them.
func (b *bench) putSchema(resource schema.GroupVersionResource, change func(versions []any) []any, hasCodes bool) {
	b.t.Helper()
	name := resource.Resource + "." + resource.Group
	for {
		crd, err := b.Dynamic.Resource(crds).Get(b.ctx, name, metav1.GetOptions{})
		b.must(err)
		versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
		b.must(err)
		b.must(unstructured.SetNestedSlice(crd.Object, change(versions), "spec", "versions"))
		if _, err = b.Dynamic.Resource(crds).Update(b.ctx, crd, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			b.must(err)
			break
		}
	}
	b.eventuallySo(20*time.Second, func() string {
		err := b.applyCode(resource, "state-of-schema", map[string]any{"cause": "c"}, true)
		if (err == nil) == hasCodes {
			return ""
		}
		return fmt.Sprintf("%s: takes codes: %v, %v", name, err == nil, err)
	})
}

// applyCode applies a condition with that next to its message.
func (b *bench) applyCode(resource schema.GroupVersionResource, name string, code map[string]any, isTrial bool) error {
	condition := map[string]any{"type": "Trial", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}
	for key, value := range code {
		condition[key] = value
	}
	force := true // the operator writes the conditions that it has read again, and then has them, too
	options, part := metav1.PatchOptions{FieldManager: "trial", Force: &force}, []string{"status"}
	if isTrial { // there is no such object
		options.DryRun, part = []string{metav1.DryRunAll}, nil
	}
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "quartermaster.io/v1alpha1", "kind": kindOf[resource], "metadata": map[string]any{"name": name},
		"status": map[string]any{"conditions": []any{condition}}}}
	body, err := object.MarshalJSON()
	b.must(err)
	_, err = b.Dynamic.Resource(resource).Patch(b.ctx, name, types.ApplyPatchType, body, options, part...)
	return err
}

var kindOf = map[schema.GroupVersionResource]string{kit.AccelNodes: "AcceleratorNode", kit.Policies: "AcceleratorPolicy"}

// An operator next to CRDs of an earlier version does all its work, and its messages come without codes. With the CRDs of its own version the
// codes come, too. A code without parameters takes the place of one with them.
func Test_an_operator_next_to_earlier_CRDs_leaves_codes_out(t *testing.T) {
	b := take(t, "calm")
	renewed := []func(){}
	for _, resource := range []schema.GroupVersionResource{kit.AccelNodes, kit.Policies} {
		var whole []any
		b.putSchema(resource, func(versions []any) []any {
			whole = versions
			old := (&unstructured.Unstructured{Object: map[string]any{"versions": versions}}).DeepCopy().Object["versions"].([]any)
			withoutCodes(old)
			return old
		}, false)
		renew := func() { b.putSchema(resource, func([]any) []any { return whole }, true) }
		t.Cleanup(renew) // twice is no harm
		renewed = append(renewed, renew)
	}
	o := b.converged("earlier-crds")
	const node = "t4-0"
	status := b.status(node)
	if status["message"] == "" || status["cause"] != nil {
		t.Errorf("the status next to an earlier CRD is %v", status)
	}
	policy, err := b.Dynamic.Resource(kit.Policies).Get(b.ctx, "default", metav1.GetOptions{})
	b.must(err)
	said := fmt.Sprint(policy.Object["status"])
	if !strings.Contains(said, "Ready") || strings.Contains(said, "cause:") {
		t.Errorf("the status of the policy next to an earlier CRD is %s", said)
	}
	b.must(b.Ask(b.ctx, node, "vgpu"))
	b.must(b.Await(b.ctx, 40*time.Second))
	b.stable(o, 40*time.Second, 3*time.Second)

	for _, renew := range renewed {
		renew()
	}
	b.must(b.Ask(b.ctx, node, "pgpu"))
	b.until(node, 40*time.Second, func(status map[string]any) bool {
		parameters, _ := status["parameters"].(map[string]any)
		return status["phase"] == "Ready" && status["cause"] == "status.node.ready" && parameters["resources"] == "nvidia.com/gpu"
	})
	for resource, name := range map[schema.GroupVersionResource]string{kit.AccelNodes: node, kit.Policies: "default"} {
		b.must(b.applyCode(resource, name, map[string]any{"cause": "c", "parameters": map[string]any{"a": "1"}}, false))
		b.must(b.applyCode(resource, name, map[string]any{"cause": "d", "parameters": map[string]any{"b": "1"}}, false))
		b.must(b.applyCode(resource, name, map[string]any{"cause": "e"}, false))
	}
}
