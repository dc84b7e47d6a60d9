package admission_webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"quartermaster.io/test/admission"
	"quartermaster.io/test/admission/server"
	"quartermaster.io/test/faults/kit"
)

var (
	policies = schema.GroupVersionResource{Group: "quartermaster.io", Version: "v1alpha1", Resource: "acceleratorpolicies"}
	api      *server.Server
	judge    *admission.Judge
	logs     string
)

// One server for all tests, which take turns. QM_ADMISSION_CLUSTER names one that is left running.
func TestMain(m *testing.M) {
	code := kit.RunLane(m, "webhook", "QM_ADMISSION_CLUSTER", func(name string) (err error) {
		if api, err = server.Start(context.Background(), name, kit.Env("QM_K8S", "1.30")); err != nil {
			return err
		}
		return prepare()
	})
	if judge != nil {
		judge.Close()
	}
	if code == 0 {
		os.RemoveAll(logs)
	} else {
		fmt.Fprintln(os.Stderr, "admission_webhook: logs are in", logs)
	}
	os.Exit(code)
}

func prepare() error {
	var err error
	if logs, err = os.MkdirTemp("", "quartermaster-webhook-"); err != nil {
		return err
	}
	api.Fills = true // by the webhook
	judge, err = admission.StartJudge()
	return err
}

// operator as the chart has it below 1.36, where the policies refuse and the webhook fills: under the chart's ServiceAccount, on a machine of its own: the API server gets its URL.
func operator(t *testing.T) *kit.Operator {
	t.Helper()
	port, err := kit.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("127.0.0.1:%d", port)
	_, err = api.Run("", "helm", "upgrade", "--install", "quartermaster", filepath.Join(admission.Root(), "charts/quartermaster"), "--namespace", kit.Namespace,
		"--create-namespace", "--set", "replicaCount=0", "--set", "admission.url=https://"+at)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(filepath.Join(admission.Root(), "test/cluster/cluster.sh"), "sa-kubeconfig", "--name", api.Name, "--namespace", kit.Namespace,
		"--serviceaccount", "quartermaster").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	program := kit.Env("QM_OPERATOR", filepath.Join(admission.Root(), "build/release/quartermaster"))
	op, err := kit.StartOperator(kit.OperatorOptions{Name: "webhook", Program: program, Kubeconfig: lines[len(lines)-1], Namespace: kit.Namespace, Dir: logs,
		Args: []string{"--webhook-address", at, "--webhook-url", "https://" + at}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if code := op.Terminate(15 * time.Second); code != 0 {
			t.Errorf("the operator ended with %d:\n%s", code, op.LogTail(10))
		}
		if t.Failed() {
			t.Logf("the operator said:\n%s", op.LogTail(30))
		}
	})
	if err := op.WaitReady(30 * time.Second); err != nil {
		t.Fatal(err, op.LogTail(20))
	}
	return op
}

func until(t *testing.T, patience time.Duration, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// enforce is what an administrator does: the policy.
func enforce(ctx context.Context, enforcement string, fillOptional bool) error {
	body := map[string]any{"apiVersion": "quartermaster.io/v1alpha1", "kind": "AcceleratorPolicy", "metadata": map[string]any{"name": "default"},
		"spec": map[string]any{"customResources": map[string]any{"enforcement": enforcement, "fillOptional": fillOptional}}}
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	force := true
	_, err = api.Dynamic.Resource(policies).Patch(ctx, "default", types.ApplyPatchType, text, metav1.PatchOptions{FieldManager: "test", Force: &force})
	return err
}

// declare exactly these in kube-public. A declaration that is refused at the door is one that would not have been compiled.
func declare(ctx context.Context, all []corev1.ConfigMap) error {
	maps := api.Client.CoreV1().ConfigMaps("kube-public")
	is, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "features.cpaas.io/type"})
	if err != nil {
		return err
	}
	wanted := map[string]corev1.ConfigMap{}
	for _, one := range all {
		wanted[one.Name] = one
	}
	for _, one := range is.Items {
		if _, stays := wanted[one.Name]; !stays {
			if err := maps.Delete(ctx, one.Name, metav1.DeleteOptions{}); err != nil {
				return err
			}
		}
	}
	for _, one := range wanted {
		_, err := maps.Create(ctx, &one, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			_, err = maps.Update(ctx, &one, metav1.UpdateOptions{})
		}
		if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			return err
		}
	}
	return nil
}

// offer exactly these keys on the one node.
func offer(ctx context.Context, keys []string) error {
	nodes := api.Client.CoreV1().Nodes()
	if _, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "offers"}}, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	allocatable := map[string]string{}
	for _, key := range keys {
		allocatable[key] = "1000"
	}
	patch, err := json.Marshal([]map[string]any{{"op": "add", "path": "/status/allocatable", "value": allocatable}, {"op": "add", "path": "/status/capacity", "value": allocatable}})
	if err != nil {
		return err
	}
	_, err = nodes.Patch(ctx, "offers", types.JSONPatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// compiled is the ResourceRules object as the operator wrote it.
func compiled(ctx context.Context) (spec admission.Spec, enforcement string, err error) {
	object, err := api.Dynamic.Resource(admission.RulesResource).Get(ctx, "default", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return admission.NewSpec(), "", nil
	}
	if err != nil {
		return spec, "", err
	}
	spec = admission.NewSpec()
	inner, _, _ := unstructured.NestedMap(object.Object, "spec")
	text, err := json.Marshal(inner)
	if err == nil {
		err = json.Unmarshal(text, &spec)
	}
	return spec, object.GetLabels()[admission.Enforcement], err
}
