package realnode

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"quartermaster.io/test/faults/kit"
)

func TestAPodOfAnImageMadeHereComputes(t *testing.T) {
	pod := adding("computes", real1)
	create(t, cluster, pod)
	computes(t, cluster, pod)
}

// In a pod of its own network the API server answers at the Service's address and knows the pod's account; a program that is linked to
// libraries has them.
func TestProgramsOfThisMachineRunInPods(t *testing.T) {
	for name, of := range map[string]struct {
		program, says string
		args          []string
	}{
		"kubectl":       {cluster.Tool("kubectl"), "system:serviceaccount:default:default", []string{"auth", "whoami"}},
		"quartermaster": {kit.ProgramUnderTest(t), "quartermaster", []string{"--version"}},
	} {
		image := "quartermaster.test/" + name + ":1"
		_, err := cluster.Script("node-image", image, of.program+":/bin/"+name)
		must(t, err)
		pod := adding(name, real1)
		pod.Spec.Containers[0].Image, pod.Spec.Containers[0].Command, pod.Spec.Containers[0].Args = image, []string{"/bin/" + name}, of.args
		create(t, cluster, pod)
		if ended, log := outcome(t, cluster, pod); ended.ExitCode != 0 || !strings.Contains(log, of.says) {
			t.Errorf("%s ended with %d: %s", name, ended.ExitCode, log)
		}
	}
}

func TestTheNodeIsRealAndTheOthersAreAsBefore(t *testing.T) {
	nodes, err := cluster.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	must(t, err)
	for _, node := range nodes.Items {
		runtime := node.Status.NodeInfo.ContainerRuntimeVersion
		if (node.Name == real1) != (len(runtime) > 13 && runtime[:13] == "containerd://") {
			t.Errorf("%s has the container runtime %q", node.Name, runtime)
		}
		if ok, err := cluster.NodeReady(ctx, node.Name); !ok {
			t.Errorf("%s is not Ready: %v", node.Name, err)
		}
	}
	if len(nodes.Items) != 3 {
		t.Errorf("%d nodes, not 3", len(nodes.Items))
	}

	// The node and its pods are its kubelet's alone.
	pod := adding("whose", real1)
	create(t, cluster, pod)
	computes(t, cluster, pod)
	writes, err := cluster.Audit(time.Time{}, func(e kit.AuditEvent) bool { return e.ObjectRef.Name == real1 || e.ObjectRef.Name == pod.Name })
	must(t, err)
	by := map[string]int{}
	for _, write := range writes {
		by[write.User.Username]++
	}
	if by["kwok"] != 0 || by["system:node:"+real1] == 0 {
		t.Errorf("%s and %s were written by %v", real1, pod.Name, by)
	}
}

// A kubelet and a containerd that are killed and started again find their pods running.
func TestAPodOutlivesKubeletAndContainerd_long(t *testing.T) {
	pod := adding("outlives", real1)
	pod.Spec.Containers[0].Image, pod.Spec.Containers[0].Args = pause, nil
	create(t, cluster, pod)
	started := func() (at metav1.Time, restarts int32, err error) {
		is, err := cluster.Client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil || len(is.Status.ContainerStatuses) == 0 || is.Status.ContainerStatuses[0].State.Running == nil {
			return at, 0, fmt.Errorf("it does not run: %v", err)
		}
		return is.Status.ContainerStatuses[0].State.Running.StartedAt, is.Status.ContainerStatuses[0].RestartCount, nil
	}
	await(t, 20*time.Second, "it runs", func() (bool, error) { _, _, err := started(); return err == nil, err })
	before, _, err := started()
	must(t, err)
	for _, part := range []string{"containerd", "kubelet"} {
		_, err := cluster.Script("restart", part, "--signal", "KILL")
		must(t, err)
	}
	await(t, 20*time.Second, "real-1 is Ready", func() (bool, error) { return cluster.NodeReady(ctx, real1) })
	second := adding("after", real1)
	create(t, cluster, second)
	computes(t, cluster, second)
	after, restarts, err := started()
	must(t, err)
	if restarts != 0 || !after.Equal(&before) {
		t.Errorf("%d restarts; it runs since %s, not %s", restarts, after, before)
	}
}
