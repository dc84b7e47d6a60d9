package image

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"quartermaster.io/test/faults/kit"
)

// onNode runs a shell command in the node's namespaces, where /etc is an overlay of its own. It returns what the command prints.
func (p *product) onNode(command string) string {
	p.t.Helper()
	said, err := p.Script("node-exec", "--node", nodeName, "sh", "-euc", command)
	must(p.t, err)
	return said
}

func (p *product) fixes(spec string) {
	p.t.Helper()
	p.run("kubectl", "patch", "acceleratorpolicy", "default", "--type=merge", "-p", `{"spec": {"containerRuntime": `+spec+`}}`)
}

// runtimesFixed is the condition of the policy.
func (p *product) runtimesFixed(patience time.Duration, reason, message string) {
	p.t.Helper()
	p.await(patience, "ContainerRuntimesFixed is "+reason, func() (bool, error) {
		policy, err := p.Dynamic.Resource(kit.Policies).Get(ctx, "default", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		conditions, _, _ := unstructured.NestedSlice(policy.Object, "status", "conditions")
		for _, condition := range conditions {
			if is := condition.(map[string]any); is["type"] == "ContainerRuntimesFixed" {
				return is["reason"] == reason && strings.Contains(fmt.Sprint(is["message"]), message), fmt.Errorf("%v", is)
			}
		}
		return false, fmt.Errorf("no condition")
	})
}

// fixTheRuntime: the operator sets up containerd's configuration on the node that asks for a mode, by a pod without capabilities. The
// configuration is not the one that the node's containerd runs with.
func (p *product) fixTheRuntime() {
	p.onNode(`mkdir -p /run/usr/upper /run/usr/work /etc/containerd
mount -t overlay -o lowerdir=/usr,upperdir=/run/usr/upper,workdir=/run/usr/work overlay /usr
echo '#!/bin/sh' >/usr/bin/nvidia-container-runtime; chmod +x /usr/bin/nvidia-container-runtime
touch /usr/lib/x86_64-linux-gnu/libnvidia-container.so.1.17.8`)
	// The agent's pod has the folders of before.
	must(p.t, p.Client.CoreV1().Pods(kit.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=quartermaster-agent"}))
	p.state(60*time.Second, "container_toolkit", "ok")
	p.state(10*time.Second, "default_runtime", "warning")

	if said, err := p.Run("", "kubectl", "patch", "acceleratorpolicy", "default", "--type=merge", "-p", `{"spec": {"containerRuntime": {"fix": {"nodeSelector": {}}}}}`); err == nil ||
		!strings.Contains(said+err.Error(), "names no label; allowed: at least one label") {
		p.t.Errorf("a selector without labels: %v %s", err, said)
	}
	p.fixes(`{"fix": {"nodeSelector": {"` + kit.AskLabel + `": "pgpu"}}}`)
	p.runtimesFixed(60*time.Second, "Halted", "node "+nodeName+": /etc/containerd/config.toml is not there: write one")
	pod, err := p.Client.CoreV1().Pods(kit.Namespace).Get(ctx, "quartermaster-fix-runtime", metav1.GetOptions{})
	must(p.t, err)
	if pod.Status.Phase != corev1.PodFailed || len(pod.Spec.Volumes) != 2 {
		p.t.Errorf("the pod is %s, with %d volumes", pod.Status.Phase, len(pod.Spec.Volumes))
	}

	// A person puts it right, and deletes the pod.
	p.onNode(`echo 'version = 3' >/etc/containerd/config.toml; chmod 604 /etc/containerd/config.toml; cp -a /etc/containerd /run/containerd-before`)
	p.run("kubectl", "delete", "pod", "-n", kit.Namespace, "quartermaster-fix-runtime")
	p.runtimesFixed(120*time.Second, "NoneLeft", "1 node matches, 0 left to fix")
	p.state(1*time.Second, "default_runtime", "ok")
	node, err := p.Dynamic.Resource(kit.AccelNodes).Get(ctx, nodeName, metav1.GetOptions{})
	must(p.t, err)
	fix, _, err := unstructured.NestedMap(node.Object, "status", "runtimeFix")
	must(p.t, err)
	const wanted = "wrote /etc/containerd/conf.d/99-quartermaster.toml; wrote /etc/containerd/config.toml.quartermaster-backup; " +
		"wrote /etc/containerd/config.toml; to take effect: systemctl restart containerd"
	if fix["result"] != "Done" || fix["message"] != wanted {
		p.t.Errorf("status.runtimeFix: %v", fix)
	}
	if events := p.run("kubectl", "get", "events", "-A"); !strings.Contains(events, "ContainerRuntimeFixed") || !strings.Contains(events, "ContainerRuntimeNotFixed") {
		p.t.Error(events)
	}
	p.await(10*time.Second, "its pod is gone", func() (bool, error) {
		_, err := p.Client.CoreV1().Pods(kit.Namespace).Get(ctx, "quartermaster-fix-runtime", metav1.GetOptions{})
		return apierrors.IsNotFound(err), err
	})
	if dump := p.onNode("containerd --config /etc/containerd/config.toml config dump"); !strings.Contains(dump, "default_runtime_name = 'nvidia'") ||
		!strings.Contains(dump, "BinaryName = '/usr/bin/nvidia-container-runtime'") {
		p.t.Errorf("containerd reads:\n%s", dump)
	}

	// Taking the field out changes no file; the verb on the node does.
	p.fixes("null")
	program, err := filepath.Abs(filepath.Join(kit.Root(), "build/release/quartermaster"))
	must(p.t, err)
	if _, err := os.Stat(program); err != nil {
		p.t.Fatal(err)
	}
	p.onNode("test -e /etc/containerd/conf.d/99-quartermaster.toml; " + program + " agent fix-runtime --restore; rmdir /etc/containerd/conf.d")
	if difference := p.onNode("diff -r /run/containerd-before /etc/containerd && stat -c %a /etc/containerd/config.toml"); strings.TrimSpace(difference) != "604" {
		p.t.Errorf("after --restore:\n%s", difference)
	}
	p.onNode("rm -r /etc/containerd /run/containerd-before; umount -l /usr")
}

// state waits until the agent says so of a check.
func (p *product) state(patience time.Duration, check, state string) {
	p.t.Helper()
	p.await(patience, check+" is "+state, func() (bool, error) {
		node, err := p.Dynamic.Resource(kit.AccelNodes).Get(ctx, nodeName, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		rows, _, _ := unstructured.NestedSlice(node.Object, "status", "preflight")
		for _, row := range rows {
			if is := row.(map[string]any); is["check"] == check {
				return is["state"] == state, fmt.Errorf("%v", is)
			}
		}
		return false, fmt.Errorf("no row in %v", rows)
	})
}
