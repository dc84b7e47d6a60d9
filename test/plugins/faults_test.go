package plugins

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const visible = "NVIDIA_VISIBLE_DEVICES"

// killPlugin kills the program of a module's plugin; its container is started again by the kubelet.
func (m *machine) killPlugin(module string) {
	m.t.Helper()
	before := m.plugin(module)
	id := strings.TrimPrefix(before.Status.ContainerStatuses[0].ContainerID, "containerd://")
	_, err := m.Script("node-exec", "ctr", "-n", "k8s.io", "tasks", "kill", "--signal", "SIGKILL", id)
	must(m.t, err)
	await(m.t, 60*time.Second, "the kubelet starts the plugin again", func() (bool, error) {
		pod, err := m.Client.CoreV1().Pods(before.Namespace).Get(ctx, before.Name, metav1.GetOptions{})
		if err != nil || len(pod.Status.ContainerStatuses) == 0 {
			return false, err
		}
		status := pod.Status.ContainerStatuses[0]
		return status.RestartCount > before.Status.ContainerStatuses[0].RestartCount && status.Ready, fmt.Errorf("%+v", status)
	})
}

// comesBack: the node offers these amounts again, and a new pod that asks for `limits` gets its part of a card.
func (m *machine) comesBack(module, when string, amounts, limits map[string]string) {
	m.t.Helper()
	await(m.t, 60*time.Second, "after "+when+" the node is ready", func() (bool, error) { return m.NodeReady(ctx, real1) })
	m.plugin(module)
	m.offers(60*time.Second, amounts)
	name, rejected := m.accepted(module, module+"-when-"+strings.ReplaceAll(when, " ", "-"), limits)
	m.t.Logf("after %s the kubelet rejected %d pods", when, rejected)
	_, found := m.says(name)
	m.holds(name, found, 1)
	must(m.t, m.Client.CoreV1().Pods("default").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=" + name}))
	m.AwaitPhase(ctx, 60*time.Second, real1, module, "Ready")
}

// accepted starts pods until one runs: a kubelet rejects pods until the plugin has registered with it anew, and the scheduler sends it some by
// the node's old status.
func (m *machine) accepted(module, prefix string, limits map[string]string) (name string, rejected int) {
	m.t.Helper()
	await(m.t, 60*time.Second, "a new pod gets a card", func() (bool, error) {
		name = fmt.Sprintf("%s-%d", prefix, rejected)
		pod := probePod(name, limits)
		if module == "pgpu" {
			pod.Spec.SchedulerName = ""
		}
		m.start(pod)
		for {
			pod, err := m.Client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
			switch {
			case err != nil || pod.Status.Phase == corev1.PodFailed:
				rejected++
				return false, fmt.Errorf("%v %+v", err, pod.Status)
			case pod.Status.Phase == corev1.PodRunning:
				return true, nil
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	return name, rejected
}

// runsStill: the pod's container is the one it had.
func (m *machine) runsStill(before *corev1.Pod) {
	m.t.Helper()
	pod, err := m.Client.CoreV1().Pods(before.Namespace).Get(ctx, before.Name, metav1.GetOptions{})
	must(m.t, err)
	if pod.Status.Phase != corev1.PodRunning || pod.Status.ContainerStatuses[0].ContainerID != before.Status.ContainerStatuses[0].ContainerID {
		m.t.Errorf("%s is %s and was started again: %+v", pod.Name, pod.Status.Phase, pod.Status.ContainerStatuses)
	}
}
