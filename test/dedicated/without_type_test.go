package dedicated

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"quartermaster.io/test/admission"
)

// The type ResourceRules goes while the chart's policies are there, as with `quartermaster uninstall` before `helm uninstall`: every pod of
// the cluster is made as if we were not there. With failurePolicy Fail no pod would be, from the server's next start at the latest.
func TestWithoutTheTypeOfTheRulesPodsAreMade_long(t *testing.T) {
	s := set(t)
	must(t, write("Dedicated"))
	s.settle(t, true)
	types := api.Dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	const name = "resourcerules.quartermaster.io"
	kept, err := types.Get(ctx, name, metav1.GetOptions{})
	must(t, err)
	must(t, types.Delete(ctx, name, metav1.DeleteOptions{}))
	defer func() {
		again := &unstructured.Unstructured{Object: kept.Object}
		again.SetResourceVersion("")
		again.SetUID("")
		unstructured.RemoveNestedField(again.Object, "status")
		if _, err := types.Create(ctx, again, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		must(t, until(60*time.Second, "the type", func() (bool, error) { err := write("Dedicated"); return err == nil, err }))
		began := time.Now()
		s.settle(t, true)
		t.Logf("with the type again: %s until pods are sent to the scheduler", time.Since(began).Round(time.Second))
	}()
	must(t, until(60*time.Second, "the end of the type", func() (bool, error) {
		_, err := api.Dynamic.Resource(admission.RulesResource).List(ctx, metav1.ListOptions{})
		return apierrors.IsNotFound(err), err
	}))
	must(t, api.Stop("kube-apiserver", "TERM"))
	must(t, api.Cluster.Start("kube-apiserver"))
	s.settle(t, false)
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if wrong := s.wrong(false); len(wrong) > 0 {
			t.Fatalf("%d wrong, such as %s", len(wrong), wrong[0])
		}
	}
	kinds := []schema.GroupVersionResource{validating}
	if api.Fills {
		kinds = append(kinds, mutating)
	}
	for _, of := range kinds {
		original, err := specOf(of)
		must(t, err)
		closed := strings.Replace(original, `"failurePolicy":"Ignore"`, `"failurePolicy":"Fail"`, 1)
		if closed == original {
			t.Fatalf("%s: %s", of.Resource, original)
		}
		must(t, hold(of, closed))
		said := ""
		if err := until(15*time.Second, "a pod that is refused", func() (bool, error) {
			code, message, _, err := s.trials[0].send()
			said = message
			return code >= 400, fmt.Errorf("%d %v", code, err)
		}); err != nil {
			t.Errorf("%s with Fail: %v", of.Resource, err)
		}
		t.Logf("%s with Fail, a pod that asks for nothing: %.300s", of.Resource, said)
		must(t, hold(of, original))
		s.settle(t, false)
	}
}
