package realnode

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"quartermaster.io/test/faults/kit"
)

// master is the real node as one of a control plane.
type master struct {
	t        *testing.T
	manifest string // kubeadm's, byte for byte
	held     string // the lease's holder before the last change
	pod      string // and the mirror pod's UID
}

func (m *master) file(name string) string {
	return filepath.Join(cluster.Dir, "node/etc/kubernetes", name)
}

// write a file beside its place and rename it in, never where a kubelet reads half of it.
func (m *master) write(name, content string) {
	m.t.Helper()
	temporary := m.file(filepath.Base(name) + ".new")
	must(m.t, os.WriteFile(temporary, []byte(content), 0o600))
	must(m.t, os.Rename(temporary, m.file(name)))
}

// change the manifest and wait until another pod runs and has taken the lease.
func (m *master) change(what, manifest string) {
	m.t.Helper()
	began := time.Now()
	m.write("manifests/kube-scheduler.yaml", manifest)
	image := regexp.MustCompile(`image: (\S+)`).FindStringSubmatch(manifest)[1]
	var pod *corev1.Pod
	await(m.t, 60*time.Second, what+": its pod runs", func() (bool, error) {
		is, err := cluster.Client.CoreV1().Pods("kube-system").Get(ctx, "kube-scheduler-"+real1, metav1.GetOptions{})
		if err != nil || string(is.UID) == m.pod || len(is.Status.ContainerStatuses) == 0 {
			return false, err
		}
		pod = is
		return is.Status.ContainerStatuses[0].State.Running != nil, fmt.Errorf("%+v", is.Status.ContainerStatuses[0].State)
	})
	m.pod = string(pod.UID)
	if pod.Annotations[corev1.MirrorPodAnnotationKey] == "" || pod.Spec.NodeName != real1 || pod.Spec.Containers[0].Image != image {
		m.t.Errorf("%s is no mirror of a static pod on %s with the image %s: %v", pod.Name, real1, image, pod.Annotations)
	}
	await(m.t, 60*time.Second, what+": it leads", func() (bool, error) {
		lease, err := cluster.Client.CoordinationV1().Leases("kube-system").Get(ctx, "kube-scheduler", metav1.GetOptions{})
		if err != nil || lease.Spec.HolderIdentity == nil {
			return false, err
		}
		is := *lease.Spec.HolderIdentity
		if is == m.held || !strings.HasPrefix(is, real1+"_") {
			return false, fmt.Errorf("%s leads", is)
		}
		m.held = is
		return true, nil
	})
	m.t.Logf("%s: %.1f s in all", what, time.Since(began).Seconds())
}

// places a pod and sees it compute.
func (m *master) places(name string) {
	m.t.Helper()
	pod := adding(name, "")
	create(m.t, pod)
	computes(m.t, pod)
}

// withConfig is kubeadm's manifest as docs/scheduler-config.md says to change it.
func (m *master) withConfig(config string) string {
	const path = "/etc/kubernetes/scheduler-config.yaml"
	out := m.manifest
	for _, edit := range [][2]string{
		{"\nmetadata:\n", "\nmetadata:\n  annotations:\n    quartermaster.io/scheduler-config: " + fmt.Sprintf("%x", sha256.Sum256([]byte(config))) + "\n"},
		{"    - --leader-elect=true\n", "    - --leader-elect=true\n    - --config=" + path + "\n"},
		{"    volumeMounts:\n", "    volumeMounts:\n    - mountPath: " + path + "\n      name: scheduler-config\n      readOnly: true\n"},
		{"  volumes:\n", "  volumes:\n  - hostPath:\n      path: " + path + "\n      type: File\n    name: scheduler-config\n"},
	} {
		if strings.Count(out, edit[0]) != 1 {
			m.t.Fatalf("%q is not there once:\n%s", edit[0], out)
		}
		out = strings.Replace(out, edit[0], edit[1], 1)
	}
	return out
}

// operator is the program under test.
func operator(t *testing.T) string {
	t.Helper()
	program := os.Getenv("QM_OPERATOR")
	for _, built := range []string{"build/release/quartermaster", "build/dev/quartermaster"} {
		if file := filepath.Join(kit.Root(), built); program == "" {
			if _, err := os.Stat(file); err == nil {
				program = file
			}
		}
	}
	if program == "" {
		t.Fatal("no program under test: ./dev build dev quartermaster, or QM_OPERATOR")
	}
	return program
}

func quartermaster(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(operator(t), args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("quartermaster %s: %v\n%s%s", strings.Join(args, " "), err, out, said.String())
	}
	return string(out)
}

// extender listens on this machine and is the address of a Service on the node.
func (m *master) extender(address string) (*kit.Tap, kit.Keys) {
	m.t.Helper()
	keys, err := kit.MakeKeys(m.t.TempDir())
	must(m.t, err)
	tap, err := kit.NewTap(keys)
	must(m.t, err)
	m.t.Cleanup(tap.Close)
	here := strings.TrimSuffix(strings.TrimPrefix(tap.URL, "https://"), "/scheduler")
	forward := exec.Command(filepath.Join(kit.Root(), "test/cluster/cluster.sh"), "node-forward", "--name", cluster.Name, address+":443="+here)
	out, err := forward.StdoutPipe()
	must(m.t, err)
	must(m.t, forward.Start())
	m.t.Cleanup(func() { forward.Process.Kill(); forward.Wait() })
	line := make([]byte, 10)
	if _, err := out.Read(line); err != nil || string(line) != "forwarding" {
		m.t.Fatalf("node-forward says %q: %v", line, err)
	}
	return tap, keys
}

// kubeadm's static pod, our edit of it, what an upgrade writes, our edit again (in the long form), and what was there at first: each time
// kubelet replaces the pod, the new one leads and places pods; the extender is asked while the manifest is ours.
func TestS7_KubeSchedulerIsAStaticPodAndTakesOurConfiguration(t *testing.T) {
	t.Parallel() // most of it is waiting for a kubelet
	name := "kubeadm.yaml"
	if minor == "1.30" {
		name = "kubeadm-1.30.yaml"
	}
	original, err := os.ReadFile(filepath.Join(kit.Root(), "test/golden/scheduler_config/manifests", name))
	must(t, err)
	m := &master{t: t, manifest: string(original)}
	image := regexp.MustCompile(`image: (\S+)`).FindStringSubmatch(m.manifest)[1]
	next := image + "-next"
	for _, tag := range []string{image, next} {
		_, err = script("node-image", tag, cluster.Tool("kube-scheduler")+":/usr/local/bin/kube-scheduler")
		must(t, err)
	}

	m.change("kubeadm's", m.manifest)
	t.Cleanup(func() { os.Remove(m.file("manifests/kube-scheduler.yaml")) })
	m.places("by-kubeadms")

	const address = "10.96.0.77"
	tap, keys := m.extender(address)
	minimal := filepath.Join(kit.Root(), "test/golden/scheduler_config/corpus/01-kubeadm-minimal.yaml")
	config := quartermaster(t, "render", "scheduler-config", "--kubernetes", minor, "--address", "https://"+address, "--server-name", "localhost",
		"--ca", keys.ServerCA, "--cert", keys.ClientCert, "--key", keys.ClientKey, "--resource", "nvidia.com/gpu", "--not-offered", "nvidia.com/gpu", "--into", minimal)
	m.write("scheduler-config.yaml", config)
	m.write("ours.yaml", m.withConfig(config))
	quartermaster(t, "lint", "scheduler-config", m.file("scheduler-config.yaml"), "--manifest", m.file("ours.yaml"))
	m.change("ours", m.withConfig(config))
	m.places("by-ours")
	asks := adding("asks", "")
	asks.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	create(t, asks)
	asked := func(since time.Time) (bool, error) {
		for _, call := range tap.Calls(since) {
			if call.Verb == "filter" && call.Name == asks.Name {
				return true, nil
			}
		}
		return false, fmt.Errorf("%+v", tap.Calls(since))
	}
	await(t, 20*time.Second, "the extender is asked", func() (bool, error) { return asked(time.Time{}) })

	// `kubeadm upgrade` writes the manifest anew, with the next image and without our flag.
	m.change("an upgrade's", strings.ReplaceAll(m.manifest, image, next))
	since := time.Now()
	m.places("by-upgraded")
	if was, _ := asked(since); was {
		t.Error("the extender was asked by a scheduler that has no configuration")
	}

	if os.Getenv("QM_NIGHTLY") != "" {
		m.manifest = strings.ReplaceAll(m.manifest, image, next)
		since = time.Now()
		m.change("ours again", m.withConfig(config))
		await(t, 20*time.Second, "the extender is asked again", func() (bool, error) { return asked(since) })
	}

	m.change("put back", string(original))
	m.places("put-back")
	if is, err := os.ReadFile(m.file("manifests/kube-scheduler.yaml")); err != nil || !bytes.Equal(is, original) {
		t.Errorf("other bytes than at first: %v", err)
	}
}
