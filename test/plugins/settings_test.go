package plugins

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"quartermaster.io/test/faults/kit"
)

// with these settings of pgpu, node for node: it waits until the plugin of the node has them, as this variable of its environment says.
func (m *machine) with(settings object, key, value string) {
	m.t.Helper()
	m.Apply(ctx, policy(object{"pgpu": object{"settings": settings}}))
	await(m.t, 60*time.Second, fmt.Sprintf("the plugin has %s=%s", key, value), func() (bool, error) {
		pod := m.plugin("pgpu")
		return slices.Contains(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: key, Value: value}), fmt.Errorf("%v", pod.Spec.Containers[0].Env)
	})
}

// namedConfigurations: the node's label names the one that its plugin takes; without it, it takes the default one.
func (m *machine) namedConfigurations() {
	m.t.Helper()
	shares := "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 4}\n"
	_, err := m.Client.CoreV1().ConfigMaps(kit.Namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "plugin-configs"},
		Data: map[string]string{"whole": "version: v1\n", "quarters": shares}}, metav1.CreateOptions{})
	must(m.t, err)
	m.with(object{"configMap": "plugin-configs", "defaultConfig": "whole"}, "CONFIG_FILE", "/config/config.yaml")
	m.offers(60*time.Second, map[string]string{gpu: "8"})
	label := func(value any) {
		must(m.t, m.PatchNode(ctx, real1, object{"metadata": object{"labels": object{"nvidia.com/device-plugin.config": value}}}))
	}
	label("quarters")
	m.offers(60*time.Second, map[string]string{gpu: "32"})
	label(nil)
	m.offers(60*time.Second, map[string]string{gpu: "8"})
}

// cdi: containerd itself gives the container what the plugin's CDI specification names, and no runtime of NVIDIA's is needed. NVIDIA's hook,
// which makes links to libraries, is a program that does nothing.
func (m *machine) cdi() {
	m.t.Helper()
	hook := filepath.Join(m.folder, "nvidia-cdi-hook")
	must(m.t, os.WriteFile(hook, []byte("#!/bin/sh\nexit 0\n"), 0o755))
	for _, command := range [][]string{{"install", "-m", "755", hook, "/usr/bin/nvidia-cdi-hook"}, {"touch", "/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15"}} {
		_, err := m.Script("node-exec", command...)
		must(m.t, err)
	}
	for _, strategy := range []string{"cdi-cri", "cdi-annotations"} {
		m.with(object{"DEVICE_LIST_STRATEGY": strategy, "NVIDIA_DRIVER_ROOT": "/", "NVIDIA_CDI_HOOK_PATH": "/usr/bin/nvidia-cdi-hook"}, "DEVICE_LIST_STRATEGY", strategy)
		m.offers(60*time.Second, map[string]string{gpu: "8"})
		name, _ := m.accepted("pgpu", strategy, map[string]string{gpu: "1"})
		_, found := m.says(name)
		if found.Environment[visible] != "void" || len(found.cardNodes()) != 1 || !slices.Contains(found.Devices, "/dev/nvidiactl") || !found.Library {
			m.t.Errorf("%s: the container was given %+v", strategy, found)
		}
	}
}
