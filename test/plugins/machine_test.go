// Package plugins is about device plugins of others: their real programs, in the pods of our DaemonSets, on a real kubelet. The card is a
// stand-in (test/nvml), and so is NVIDIA's container runtime (runtime/).
package plugins

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"quartermaster.io/test/faults/kit"
)

const (
	real1       = kit.RealNode
	probe       = "quartermaster.test/probe:1"
	verifyImage = "quartermaster.test/verify:1"
	gpu         = "nvidia.com/gpu"
	shared      = "nvidia.com/gpu.shared"
	runtime     = kit.NvidiaRuntime
)

var (
	ctx   = context.Background()
	must  = kit.Must
	await = kit.Await
)

type object = map[string]any

// machine is a cluster whose real node has cards, and the product on it.
type machine struct {
	*kit.Product
	t               *testing.T
	folder, fixture string            // where the fixture lies; its name
	annotations     map[string]string // that the plugin wrote to the node
	verifyImage     bool              // the node has it
}

// openMachine makes a cluster of its own for the test. `change` may alter the fixture before the node has a driver.
func openMachine(t *testing.T, fixture string, change func(node object), modules object) *machine {
	t.Helper()
	c := &kit.Cluster{Name: fmt.Sprintf("plugins-%d", os.Getpid())}
	t.Cleanup(func() { must(t, c.Down()) })
	up, err := kit.Up(ctx, c.Name, kit.Minor(), "--real-node")
	must(t, err) // there is no cluster then, and what has come up of it is taken down by its name
	c = up
	m := &machine{t: t, folder: t.TempDir(), fixture: fixture}
	m.driver(c, fixture, change)
	must(t, c.GiveRuntime(ctx, real1))
	m.Product = kit.StartProduct(ctx, t, c, policy(modules))
	must(t, m.PatchNode(ctx, real1, object{"spec": object{"taints": []any{}}})) // of the control plane, which a plugin does not tolerate
	must(t, c.CompileImage(probe, "probe", "/bin/probe", m.librariesOfTheDriver()...))
	t.Cleanup(func() {
		if t.Failed() {
			m.tell()
		}
	})
	return m
}

// policy with these modules. The plugins run under the RuntimeClass, as where NVIDIA's runtime is not the default.
func policy(modules object) object {
	for _, spec := range modules {
		spec := spec.(object)
		spec["enabled"] = true
		if _, set := spec["runtimeClassName"]; !set {
			spec["runtimeClassName"] = runtime
		}
	}
	return object{"scheduler": object{"mode": "None"}, "customResources": object{"publish": false}, "modules": modules}
}

// driver: the node looks as if it had the cards of the fixture.
func (m *machine) driver(c *kit.Cluster, fixture string, change func(node object)) {
	m.t.Helper()
	must(m.t, kit.CopyFixture(m.folder, fixture))
	if change != nil {
		m.change(change)
	}
	must(m.t, c.GiveDriver(real1, m.folder))
}

// change the fixture: what reads it sees the old one or the new one.
func (m *machine) change(change func(node object)) {
	m.t.Helper()
	file := filepath.Join(m.folder, "node.json")
	text, err := os.ReadFile(file)
	must(m.t, err)
	var node object
	must(m.t, json.Unmarshal(text, &node))
	change(node)
	text, err = json.MarshalIndent(node, "", " ")
	must(m.t, err)
	must(m.t, os.WriteFile(file+".new", text, 0o644))
	must(m.t, os.Rename(file+".new", file))
}

func cards(node object) (out []object) {
	for _, card := range node["cards"].([]any) {
		out = append(out, card.(object))
	}
	return out
}

// cards of the fixture as it is now.
func (m *machine) cards() []object {
	m.t.Helper()
	text, err := os.ReadFile(filepath.Join(m.folder, "node.json"))
	must(m.t, err)
	var node object
	must(m.t, json.Unmarshal(text, &node))
	return cards(node)
}

func (m *machine) uuids() (out []string) {
	m.t.Helper()
	for _, card := range m.cards() {
		out = append(out, card["uuid"].(string))
	}
	return out
}

// librariesOfTheDriver are those that the driver's library and nvidia-smi take from an image, besides the loader.
func (m *machine) librariesOfTheDriver() (out []string) {
	for _, name := range []string{"libm.so.6", "libdl.so.2", "libpthread.so.0", "libc.so.6"} {
		path := "/lib/x86_64-linux-gnu/" + name
		out = append(out, path+":"+path)
	}
	return append(out, "/lib64/ld-linux-x86-64.so.2:/lib64/ld-linux-x86-64.so.2")
}

// image: the node gets an image of these programs of QM_PLUGINS, under the name in the DaemonSet. The first is its entry point.
func (m *machine) image(set string, programs ...string) {
	m.t.Helper()
	var name string
	await(m.t, 30*time.Second, "the operator makes DaemonSet "+set, func() (bool, error) {
		object, err := m.Client.AppsV1().DaemonSets(kit.Namespace).Get(ctx, set, metav1.GetOptions{})
		if err == nil {
			name = object.Spec.Template.Spec.Containers[0].Image
		}
		return err == nil, err
	})
	args := []string{name, visible + "=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"} // as the published image has them
	for _, program := range programs {
		source, path, found := strings.Cut(program, ":")
		if !found {
			path = "/usr/bin/" + filepath.Base(source)
		}
		if !filepath.IsAbs(source) {
			source = filepath.Join(os.Getenv("QM_PLUGINS"), source)
		}
		args = append(args, source+":"+path)
	}
	_, err := m.Script("node-image", append(args, m.librariesOfTheDriver()...)...)
	must(m.t, err)
}

func (m *machine) nvidiaImage(set string) {
	m.t.Helper()
	m.image(set, "nvidia-device-plugin", "gpu-feature-discovery", "config-manager")
}

// offers waits until the node's allocatable amounts are these; "" where a resource must not be there or be 0.
func (m *machine) offers(patience time.Duration, amounts map[string]string) {
	m.t.Helper()
	await(m.t, patience, fmt.Sprintf("%s offers %v", real1, amounts), func() (bool, error) {
		node, err := m.Client.CoreV1().Nodes().Get(ctx, real1, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		same := true
		for name, amount := range amounts {
			is, found := node.Status.Allocatable[corev1.ResourceName(name)]
			same = same && (amount == "" && (!found || is.IsZero()) || amount != "" && found && is.Cmp(resource.MustParse(amount)) == 0)
		}
		return same, fmt.Errorf("%v", node.Status.Allocatable)
	})
}

// given is what the probe found in its container.
type given struct {
	Environment      map[string]string
	Devices, Volumes []string
	Library          bool
	Preload          string
	Smi              []string
}

// podOf the probe, with the RuntimeClass where `class` is not empty.
func podOf(name, class string) *corev1.Pod {
	none := int64(0)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
		TerminationGracePeriodSeconds: &none, Containers: []corev1.Container{{Name: "main", Image: probe, ImagePullPolicy: corev1.PullNever,
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{}}}}}}
	if class != "" {
		pod.Spec.RuntimeClassName = &class
	}
	return pod
}

// pod asks for one of a resource and runs the probe.
func (m *machine) pod(name, key, class string) (*corev1.Pod, given) {
	m.t.Helper()
	pod := podOf(name, class)
	pod.Spec.Containers[0].Resources.Limits[corev1.ResourceName(key)] = resource.MustParse("1")
	m.start(pod)
	return m.says(name)
}

func (m *machine) start(pod *corev1.Pod) {
	m.t.Helper()
	_, err := m.Client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	must(m.t, err)
}

// says waits until the probe in a pod runs and has said what it found.
func (m *machine) says(name string) (pod *corev1.Pod, found given) {
	m.t.Helper()
	pods := m.Client.CoreV1().Pods("default")
	await(m.t, 40*time.Second, name+" says what it was given", func() (done bool, err error) {
		pod, err = pods.Get(ctx, name, metav1.GetOptions{})
		if err != nil || pod.Status.Phase != corev1.PodRunning {
			return false, fmt.Errorf("%v %+v", err, pod.Status)
		}
		text, err := pods.GetLogs(name, &corev1.PodLogOptions{}).DoRaw(ctx)
		if err != nil {
			return false, err
		}
		return json.Unmarshal(text, &found) == nil, fmt.Errorf("%s", text)
	})
	m.t.Logf("%s: %+v", name, found)
	return pod, found
}

// placed is the one card, or part of one, that a pod was given to its only container.
func (m *machine) placed(pod *corev1.Pod) kit.Share {
	m.t.Helper()
	placement, err := kit.PlacementOf(pod)
	must(m.t, err)
	if placement == nil || len(placement.Containers["main"]) != 1 {
		m.t.Fatalf("%s has the placement %+v", pod.Name, placement)
	}
	return placement.Containers["main"][0]
}

// scheduler that asks the extender, for pods of probePod.
func (m *machine) scheduler() {
	m.t.Helper()
	scheduler, err := kit.StartScheduler(ctx, m.Cluster, m.Work, "https://"+m.Address+"/scheduler", m.Keys, 1)
	must(m.t, err)
	m.t.Cleanup(func() {
		if m.t.Failed() {
			m.t.Log(scheduler.Tail(20))
		}
		scheduler.Close()
	})
}

// verifies: `quartermaster verify --allocate` finds nothing wrong, and its pod saw a card.
func (m *machine) verifies(options ...string) {
	m.t.Helper()
	if !m.verifyImage {
		var programs []string
		for _, tool := range []string{"/bin/sh", "/usr/bin/env", "/usr/bin/grep", "/usr/bin/sort", "/usr/bin/ls"} {
			programs = append(programs, tool+":"+tool)
		}
		_, err := m.Script("node-image", append(append([]string{verifyImage}, programs...), m.librariesOfTheDriver()...)...)
		must(m.t, err)
		m.verifyImage = true
	}
	text, err := m.Run("", kit.Program(), append([]string{"verify", real1, "--allocate", "--image", verifyImage, "-o", "wide"}, options...)...)
	if err != nil || !strings.Contains(text, "GPU 0: ") {
		m.t.Errorf("verify: %v\n%s", err, text)
		return
	}
	for _, line := range strings.Split(text, "\n") {
		if strings.Contains(line, "allocation") {
			m.t.Log(strings.TrimSpace(line))
		}
	}
}

// ask for a mode by the node's label; "" takes the label off.
func (m *machine) ask(mode string) {
	m.t.Helper()
	var value any
	if mode != "" {
		value = mode
	}
	must(m.t, m.PatchNode(ctx, real1, object{"metadata": object{"labels": object{kit.AskLabel: value}}}))
}

// plugin is the pod of a module's plugin on the node, running.
func (m *machine) plugin(module string) *corev1.Pod {
	m.t.Helper()
	var pod corev1.Pod
	await(m.t, 60*time.Second, "the plugin of "+module+" runs", func() (bool, error) {
		pods, err := m.Client.CoreV1().Pods(kit.Namespace).List(ctx, metav1.ListOptions{LabelSelector: kit.ModuleLabel + "=" + module})
		if err != nil || len(pods.Items) != 1 {
			return false, fmt.Errorf("%d pods: %v", len(pods.Items), err)
		}
		pod = pods.Items[0]
		for _, c := range pod.Status.ContainerStatuses {
			if !c.Ready {
				return false, fmt.Errorf("%+v", c.State)
			}
		}
		return pod.DeletionTimestamp == nil && len(pod.Status.ContainerStatuses) > 0, fmt.Errorf("%s", pod.Status.Phase)
	})
	return &pod
}

// tell prints what helps to understand a failure.
func (m *machine) tell() {
	pods, err := m.Client.CoreV1().Pods(kit.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for _, pod := range pods.Items {
		if strings.HasPrefix(pod.Name, "quartermaster-") {
			continue // it has no image here
		}
		for _, status := range pod.Status.ContainerStatuses {
			lines := int64(40)
			log, _ := m.Client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: status.Name, TailLines: &lines}).DoRaw(ctx)
			m.t.Logf("%s %s: %+v %+v\n%s", pod.Name, status.Name, status.State, status.LastTerminationState, log)
		}
	}
	events, err := m.Client.CoreV1().Events("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for _, event := range events.Items {
		m.t.Logf("%s %s %s: %s", event.InvolvedObject.Kind, event.InvolvedObject.Name, event.Reason, event.Message)
	}
}
