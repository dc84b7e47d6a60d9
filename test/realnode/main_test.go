// Package realnode is about the test cluster's real node: pods of images that were made here run on it, kube-scheduler among them as a
// static pod, and nothing of it stays.
package realnode

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"quartermaster.io/test/faults/kit"
)

const (
	real1 = kit.RealNode
	sum   = "quartermaster.test/sum:1"
	pause = "quartermaster.test/pause:1"
)

var (
	ctx     = context.Background()
	minor   = kit.Minor()
	must    = kit.Must
	await   = kit.Await
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
			err = cluster.CompileImage(sum, "sum", "/bin/sum")
		}
		if err != nil {
			fmt.Println("no cluster:", err)
			return 1
		}
		return m.Run()
	}())
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
	await(t, 2*time.Minute, pod.Name+" ends", func() (bool, error) {
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
