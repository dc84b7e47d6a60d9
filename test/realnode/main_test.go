// Package realnode is about the test cluster's real node: pods of images that were made here run on it, kube-scheduler among them as a
// static pod, and nothing of it stays.
package realnode

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"quartermaster.io/test/faults/kit"
)

const (
	real1 = "real-1"
	sum   = "quartermaster.test/sum:1"
	pause = "quartermaster.test/pause:1"
)

var (
	ctx     = context.Background()
	minor   = kit.Minor()
	must    = kit.Must
	cluster *kit.Cluster
)

// One cluster for all tests, which take turns: KWOK's nodes, and no scheduler but the one on the real node. QM_REALNODE_CLUSTER names one
// that is left running.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		name := os.Getenv("QM_REALNODE_CLUSTER")
		if name == "" {
			name = fmt.Sprintf("realnode-%d", os.Getpid())
			defer func() {
				if err := (&kit.Cluster{Name: name}).Down(); err != nil {
					fmt.Println(err)
				}
			}()
		}
		var err error
		if cluster, err = kit.Up(ctx, name, minor, "--real-node", "--no-scheduler", "--nodes", "2"); err == nil {
			err = imageOfOurs(cluster, sum, "sum", "/bin/sum")
		}
		if err != nil {
			fmt.Println("no cluster:", err)
			return 1
		}
		return m.Run()
	}())
}

// imageOfOurs is of a program whose source lies in a folder here, at this path; `more` are others in it.
func imageOfOurs(c *kit.Cluster, image, source, at string, more ...string) error {
	dir, err := os.MkdirTemp("", "realnode-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, source)
	if said, err := exec.Command("go", "build", "-buildvcs=false", "-o", program, "./"+source).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", source, err, said)
	}
	_, err = scriptOf(c, "node-image", append([]string{image, program + ":" + at}, more...)...)
	return err
}

// script is cluster.sh with a verb about our cluster.
func script(verb string, args ...string) (string, error) { return scriptOf(cluster, verb, args...) }

func scriptOf(c *kit.Cluster, verb string, args ...string) (string, error) {
	said, err := exec.Command(filepath.Join(kit.Root(), "test/cluster/cluster.sh"), append([]string{verb, "--name", c.Name}, args...)...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("cluster.sh %s: %w\n%s", verb, err, said)
	}
	return string(said), err
}

func await(t *testing.T, patience time.Duration, what string, done func() (bool, error)) {
	t.Helper()
	began := time.Now()
	for {
		ok, err := done()
		if ok {
			t.Logf("%s: after %.1f s", what, time.Since(began).Seconds())
			return
		}
		if time.Since(began) > patience {
			t.Fatalf("%s: not within %s: %v", what, patience, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// adding is a pod on the real node that adds the squares of 3 and 4. node: its nodeName, empty for the scheduler to find.
func adding(name, node string) *corev1.Pod {
	none := int64(0)
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: corev1.PodSpec{NodeName: node, RestartPolicy: corev1.RestartPolicyNever,
		TerminationGracePeriodSeconds: &none, NodeSelector: map[string]string{"kubernetes.io/hostname": real1}, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers: []corev1.Container{{Name: "main", Image: sum, Args: []string{"3", "4"}, ImagePullPolicy: corev1.PullNever}}}}
}

func create(t *testing.T, c *kit.Cluster, pod *corev1.Pod) {
	t.Helper()
	_, err := c.Client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() { c.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{}) })
}

// computes waits until the pod has ended, with the right sum in its log and as its exit code.
func computes(t *testing.T, c *kit.Cluster, pod *corev1.Pod) {
	t.Helper()
	if ended, log := outcome(t, c, pod); ended.ExitCode != 25 || strings.TrimSpace(log) != "sum of squares 25" {
		t.Errorf("%s ended with %d, its log says %q", pod.Name, ended.ExitCode, log)
	}
}

// outcome of a pod that ends, and its log.
func outcome(t *testing.T, c *kit.Cluster, pod *corev1.Pod) (ended *corev1.ContainerStateTerminated, log string) {
	t.Helper()
	pods := c.Client.CoreV1().Pods(pod.Namespace)
	await(t, 30*time.Second, pod.Name+" ends", func() (bool, error) {
		is, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil || len(is.Status.ContainerStatuses) == 0 {
			return false, err
		}
		ended = is.Status.ContainerStatuses[0].State.Terminated
		return ended != nil, fmt.Errorf("%+v", is.Status.ContainerStatuses[0].State)
	})
	text, err := pods.GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
	must(t, err)
	return ended, string(text)
}

func ready(node string) (bool, error) {
	is, err := cluster.Client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	for _, c := range is.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue, fmt.Errorf("%s since %s: %s", c.Status, c.LastTransitionTime, c.Message)
		}
	}
	return false, nil
}
