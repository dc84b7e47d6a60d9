package realnode

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// lines keeps what a program says.
type lines struct {
	lock  sync.Mutex
	bytes []byte
}

func (l *lines) Write(bytes []byte) (int, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.bytes = append(l.bytes, bytes...)
	return len(bytes), nil
}

func (l *lines) text() string {
	l.lock.Lock()
	defer l.lock.Unlock()
	return string(l.bytes)
}

func (l *lines) count(word string) int { return strings.Count(l.text(), word) }

// The agent's device plugin code at a real kubelet: what it offers is allocatable, the container gets what its CDI name stands for, a refusal
// before a start is what the pod says, and a kubelet that was started again finds the plugin again.
func TestOurDevicePluginAtARealKubelet(t *testing.T) {
	program := os.Getenv("QM_GRPC_PEER")
	if program == "" {
		t.Fatal("QM_GRPC_PEER names no program: build/dev/grpc_peer")
	}
	const share = "ours.test/share"
	specification := `{"cdiVersion": "0.6.0", "kind": "test.example/share", "devices": [
		{"name": "a", "containerEdits": {"env": ["QM_SHARE=a"]}}, {"name": "bad-start", "containerEdits": {"env": ["QM_SHARE=bad"]}},
		{"name": "c", "containerEdits": {"env": ["QM_SHARE=c"]}}]}`
	_, err := cluster.Script("node-exec", "sh", "-c", "mkdir -p /etc/cdi && printf %s '"+specification+"' >/etc/cdi/ours.json")
	must(t, err)
	plugin := exec.Command(program, "plugin", ".", share)
	plugin.Dir = filepath.Join(cluster.Dir, "node/var/lib/kubelet/device-plugins") // its path may be too long for a socket
	var said lines
	plugin.Stdout, plugin.Stderr = &said, &said
	offer, err := plugin.StdinPipe()
	must(t, err)
	must(t, plugin.Start())
	t.Cleanup(func() {
		offer.Close()
		plugin.Wait()
	})
	io.WriteString(offer, "a !b\n")
	offers(t, share, 1)

	asking := func(name string) *corev1.Pod {
		pod := adding(name, real1)
		pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{share: resource.MustParse("1")}
		create(t, cluster, pod)
		return pod
	}
	good := asking("has-share")
	if ended, log := outcome(t, cluster, good); ended.ExitCode != 25 || !strings.Contains(log, "on share a") {
		t.Errorf("%s ended with %d: %q", good.Name, ended.ExitCode, log)
	}

	io.WriteString(offer, "bad-start\n")
	await(t, 30*time.Second, "the kubelet has the other device", func() (bool, error) {
		pods := cluster.Client.CoreV1().Pods("default")
		pod := asking(fmt.Sprint("refused-", time.Now().UnixNano()))
		defer pods.Delete(ctx, pod.Name, metav1.DeleteOptions{})
		var last string
		for range 60 {
			is, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			for _, container := range is.Status.ContainerStatuses {
				if waiting := container.State.Waiting; waiting != nil && waiting.Reason == "CreateContainerConfigError" {
					if !strings.Contains(waiting.Message, "code = FailedPrecondition desc = not placed: bad-start") {
						t.Errorf("the pod says %q", waiting.Message)
					}
					return true, nil
				}
			}
			if last = string(is.Status.Phase) + " " + is.Status.Message; is.Status.Phase == corev1.PodFailed {
				return false, fmt.Errorf("%s", last)
			}
			time.Sleep(200 * time.Millisecond)
		}
		return false, fmt.Errorf("%s", last)
	})

	io.WriteString(offer, "a c\n")
	offers(t, share, 2)
	taken := said.count("the kubelet took the device plugin")
	_, err = cluster.Script("restart", "kubelet", "--signal", "KILL")
	must(t, err)
	// A pod that the kubelet admits before that fails for good, with every plugin.
	await(t, 30*time.Second, "the kubelet has the plugin again", func() (bool, error) {
		return said.count("the kubelet took the device plugin") > taken, fmt.Errorf("%s", said.text())
	})
	offers(t, share, 2)
	after := asking("has-share-again")
	if ended, log := outcome(t, cluster, after); ended.ExitCode != 25 || !strings.Contains(log, "on share ") {
		t.Errorf("%s ended with %d: %q", after.Name, ended.ExitCode, log)
	}
}
