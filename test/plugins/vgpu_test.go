package plugins

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"quartermaster.io/test/faults/kit"
)

// noGPUManager on a node whose containerd has no CRI v1alpha2: it is refused before it starts. The program itself, under an image that the
// policy names and that is therefore not judged, says why.
func (m *machine) noGPUManager(modules object) {
	m.t.Helper()
	m.ask("vgpu")
	await(m.t, 30*time.Second, real1+" is refused GPU-Manager", func() (bool, error) {
		found, err := m.Dynamic.Resource(kit.AccelNodes).Get(ctx, real1, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		status, _, _ := unstructured.NestedMap(found.Object, "status")
		message := fmt.Sprint(status["message"])
		return status["reason"] == "UnsuitableRuntime" && strings.Contains(message, "runs containerd 2.") && strings.Contains(message, "ask for mode hami"), fmt.Errorf("%v", status)
	})
	m.ask("")
	m.gpuManagerImage()
	modules["vgpu"] = object{"image": gpuManager}
	m.Apply(ctx, policy(modules))
	await(m.t, 30*time.Second, "the DaemonSet has the policy's image", func() (bool, error) {
		set, err := m.Client.AppsV1().DaemonSets(kit.Namespace).Get(ctx, "gpu-manager-daemonset", metav1.GetOptions{})
		return err == nil && set.Spec.Template.Spec.Containers[0].Image == gpuManager, err
	})
	m.ask("vgpu")
	await(m.t, 60*time.Second, "GPU-Manager says why it does not start", func() (bool, error) {
		pods, err := m.Client.CoreV1().Pods(kit.Namespace).List(ctx, metav1.ListOptions{LabelSelector: kit.ModuleLabel + "=vgpu"})
		if err != nil || len(pods.Items) == 0 {
			return false, fmt.Errorf("no pod: %v", err)
		}
		text, err := m.Client.CoreV1().Pods(kit.Namespace).GetLogs(pods.Items[0].Name, &corev1.PodLogOptions{}).DoRaw(ctx)
		for _, line := range strings.Split(string(text), "\n") {
			if strings.Contains(line, "unknown service runtime.v1alpha2.RuntimeService") {
				m.t.Log(line)
				return true, nil
			}
		}
		return false, fmt.Errorf("%v: %s", err, text)
	})
	m.ask("")
	m.offers(60*time.Second, map[string]string{"tencent.com/vcuda-core": ""})
}

const gpuManager = "quartermaster.test/gpu-manager:1"

// gpuManagerImage has its program and files as it reads them, without libraries of the driver to copy.
func (m *machine) gpuManagerImage() {
	m.t.Helper()
	folder := m.t.TempDir()
	start := "#!/bin/sh\nexec /usr/bin/gpu-manager --extra-config=/etc/gpu-manager/extra-config.json --v=$LOG_LEVEL --hostname-override=$NODE_NAME" +
		" --share-mode=true --volume-config=/etc/gpu-manager/volume.conf --query-addr=0.0.0.0 --logtostderr $EXTRA_FLAGS\n"
	for name, content := range map[string]string{"start.sh": start, "extra-config.json": "{\"default\": {}}\n", "volume.conf": "{\"volume\": []}\n"} {
		must(m.t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o755))
	}
	_, err := m.Script("node-image", gpuManager, folder+"/start.sh:/start.sh", folder+"/extra-config.json:/etc/gpu-manager/extra-config.json",
		folder+"/volume.conf:/etc/gpu-manager/volume.conf", "/etc/ld.so.cache:/etc/ld.so.cache", "/bin/sh:/bin/sh",
		filepath.Join(os.Getenv("QM_PLUGINS"), "gpu-manager")+":/usr/bin/gpu-manager")
	must(m.t, err)
}
