package kit

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// RealNode is the first node of a cluster that was started with --real-nodes: it has a kubelet and a containerd of its own.
const RealNode = "real-1"

// Script runs cluster.sh with a verb about this cluster and returns all it prints.
func (c *Cluster) Script(verb string, args ...string) (string, error) {
	text, err := exec.Command(filepath.Join(Root(), "test/cluster/cluster.sh"), append([]string{verb, "--name", c.Name}, args...)...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("cluster.sh %s: %w\n%s", verb, err, text)
	}
	return string(text), err
}

// Compile builds the Go program of a folder, which may be named from the caller's tests, as a file in `dir`.
func Compile(dir, source string) (program string, err error) {
	program = filepath.Join(dir, filepath.Base(source))
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir, build.Env = source, append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", source, err, text)
	}
	return program, nil
}

// CompileImage gives the real nodes an image of such a program, at this path in it; `more` are PROGRAM:PATH of others.
func (c *Cluster) CompileImage(image, source, path string, more ...string) error {
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program, err := Compile(dir, source)
	if err != nil {
		return err
	}
	_, err = c.Script("node-image", append([]string{image, program + ":" + path}, more...)...)
	return err
}

// Await ends the test when `done` does not say so in time; it logs how long that took.
func Await(t *testing.T, patience time.Duration, what string, done func() (bool, error)) {
	t.Helper()
	began := time.Now()
	if err := Until(context.Background(), patience, what, done); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: after %.1f s", what, time.Since(began).Seconds())
}

// NodeReady says whether the kubelet of a node reports it so, and otherwise why not.
func (c *Cluster) NodeReady(ctx context.Context, name string) (bool, error) {
	node, err := c.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue, fmt.Errorf("%s since %s: %s", condition.Status, condition.LastTransitionTime, condition.Message)
		}
	}
	return false, nil
}

// ProgramUnderTest ends the test where there is none.
func ProgramUnderTest(t *testing.T) string {
	t.Helper()
	program := Program()
	if program == "" {
		t.Fatal("no program under test: ./dev build dev quartermaster, or QM_OPERATOR")
	}
	return program
}

// Product is the chart on a cluster, and an operator next to it that serves an extender.
type Product struct {
	*Scenario
	T        *testing.T
	Work     string // folder of its logs and certificates
	Keys     Keys   // of the extender
	Address  string // of the extender
	Operator *Operator
}

// StartProduct installs the chart with these values, applies the policy and starts the program under test. It ends with the test.
func StartProduct(ctx context.Context, t *testing.T, c *Cluster, policy map[string]any, values ...string) *Product {
	t.Helper()
	program := ProgramUnderTest(t)
	p := &Product{T: t, Work: t.TempDir()}
	var err error
	p.Scenario, err = InstallExtender(ctx, c, values...)
	Must(t, err)
	p.Apply(ctx, policy)
	Must(t, p.KeysOfTheCluster(ctx, p.Work, &p.Keys))
	port, err := FreePort()
	Must(t, err)
	p.Address = fmt.Sprintf("127.0.0.1:%d", port)
	account, err := c.Account(ctx, ServiceAccount)
	Must(t, err)
	p.Operator, err = StartOperator(OperatorOptions{Name: "operator", Program: program, Kubeconfig: account, Namespace: Namespace, Dir: p.Work,
		Args: p.Keys.ExtenderArgs(p.Address)})
	Must(t, err)
	t.Cleanup(func() {
		if code := p.Operator.Terminate(10 * time.Second); code != 0 || t.Failed() {
			t.Errorf("the operator ended with %d:\n%s", code, p.Operator.LogTail(20))
		}
	})
	Must(t, p.Operator.WaitReady(30*time.Second))
	return p
}

// Apply makes this the spec of the policy.
func (p *Product) Apply(ctx context.Context, spec map[string]any) {
	p.T.Helper()
	policy := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "quartermaster.io/v1alpha1", "kind": "AcceleratorPolicy",
		"metadata": map[string]any{"name": "default"}, "spec": spec}}
	_, err := p.Dynamic.Resource(Policies).Apply(ctx, "default", policy, metav1.ApplyOptions{FieldManager: "test", Force: true})
	Must(p.T, err)
}

// AwaitPhase waits until AcceleratorNode of this node is in the phase, with the mode where one is given.
func (p *Product) AwaitPhase(ctx context.Context, patience time.Duration, node, mode, phase string) {
	p.T.Helper()
	Await(p.T, patience, fmt.Sprintf("%s is %s in %q", node, phase, mode), func() (bool, error) {
		object, err := p.Dynamic.Resource(AccelNodes).Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		status, _, _ := unstructured.NestedMap(object.Object, "status")
		return status["phase"] == phase && (mode == "" || status["actualMode"] == mode), fmt.Errorf("%v", status)
	})
}
