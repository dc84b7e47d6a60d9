package realnode

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"quartermaster.io/test/faults/kit"
)

// limiting is a driver of branch R615 whose cards and kept limits are files in a folder of the test. A stand-in: it holds no program.
type limiting struct {
	t       *testing.T
	fixture string
}

func newLimiting(t *testing.T) *limiting {
	t.Helper()
	l := &limiting{t, filepath.Join(t.TempDir(), "node.json")}
	models, err := os.ReadFile(filepath.Join(kit.Root(), "test/nvml/fixtures/models.json"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(filepath.Dir(l.fixture), "models.json"), models, 0o644))
	l.keeps("kept")
	return l
}

// keeps: what the driver does from now on with a limit that is set.
func (l *limiting) keeps(way string) {
	l.t.Helper()
	text, err := os.ReadFile(filepath.Join(kit.Root(), "test/nvml/fixtures/t4_pair.json"))
	must(l.t, err)
	content := map[string]any{}
	must(l.t, json.Unmarshal(text, &content))
	content["driver"].(map[string]any)["version"] = "615.71.09"
	for _, card := range content["cards"].([]any) {
		card.(map[string]any)["memory_limits"] = way
	}
	text, _ = json.Marshal(content)
	must(l.t, os.WriteFile(l.fixture+".new", text, 0o644))
	must(l.t, os.Rename(l.fixture+".new", l.fixture))
}

// limit on a card, in MiB: soft and hard, of the pod or of its first container.
func (l *limiting) limit(pod *corev1.Pod, card string, ofContainer bool) (limits string) {
	l.t.Helper()
	is, err := cluster.Client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	must(l.t, err)
	cgroup := "/pod" + string(is.UID)
	if ofContainer {
		_, id, _ := strings.Cut(is.Status.ContainerStatuses[0].ContainerID, "://")
		cgroup += "/" + id
	}
	text, _ := os.ReadFile(l.fixture + ".limits")
	all := map[string][2]uint64{}
	json.Unmarshal(text, &all)
	for name, pair := range all {
		if strings.HasPrefix(name, card+" ") && strings.HasSuffix(name, cgroup) {
			limits = fmt.Sprint(pair[0]>>20, " ", pair[1]>>20)
		}
	}
	return limits
}

// cgroupsOfPods is where the kubelet of the node has its pods: with cgroup v1, in the tree of memory.
func cgroupsOfPods(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(cluster.Dir, "node*", "kubelet.yaml"))
	must(t, err)
	if len(files) != 1 {
		t.Fatalf("kubelets: %v", files)
	}
	text, err := os.ReadFile(files[0])
	must(t, err)
	_, rest, _ := strings.Cut(string(text), "cgroupRoot: ")
	root, _, _ := strings.Cut(rest, "\n")
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		return "/sys/fs/cgroup" + root
	}
	return "/sys/fs/cgroup/memory" + root
}

// A share's memory is the driver's to hold where it can: before a container starts its pod's own cgroup, which a real kubelet has made, has the
// limit of its placement, read back, or it does not start and says why.
func TestTheDriverLimitsTheMemoryOfAPod(t *testing.T) {
	haveReport(t, []string{cardA, cardB})
	driver := newLimiting(t)
	m := startMpsWith(t, driver.fixture, "--cgroup-root "+cgroupsOfPods(t))
	plugin := startSharePlugin(t)
	offers(t, ownCores, 200)
	// What the kubelet offers may be of the plugin of the test before: the state tells.
	await(t, 30*time.Second, "both cards in the node's state", func() (bool, error) {
		state, err := cluster.Script("node-exec", "cat", mpsFolder+"/state/cards.json")
		if err != nil {
			return false, err
		}
		return strings.Contains(state, cardA) && strings.Contains(state, cardB), fmt.Errorf("%s %s", state, m.said.text())
	})

	t.Run("all containers of a pod on a card together", func(t *testing.T) {
		pod := onShares("limited", true, share{cardA, 20, 4}, share{cardA, 10, 3}, share{cardB, 30, 2})
		create(t, cluster, pod)
		ends(t, pod)
		for card, limits := range map[string]string{cardA: "0 7168", cardB: "0 2048"} {
			if is := driver.limit(pod, card, false); is != limits {
				t.Errorf("on card %s the driver has the limits %q, not %q: %s", card, is, limits, m.said.text())
			}
		}
		sees(t, pod, "first", []string{"limited to 4096 of which reserved 0"})
		sees(t, pod, "c0", []string{"limited to 4096 of which reserved 0"})
		sees(t, pod, "c1", []string{"limited to 3072 of which reserved 0"})
		hasShare(t, pod, "c2", share{cardB, 30, 2})
	})
	t.Run("a container that stays has one of its own as well", func(t *testing.T) {
		pod := onShares("stays-limited", false, share{cardA, 20, 4}, share{cardA, 10, 3})
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "QM_SLEEP", Value: "10m"}}
		create(t, cluster, pod)
		runs(t, pod)
		await(t, 30*time.Second, "the container has a limit", func() (bool, error) {
			is := driver.limit(pod, cardA, true)
			return is == "0 4096", fmt.Errorf("%q: %s", is, plugin.said.text())
		})
		if is := driver.limit(pod, cardA, false); is != "0 7168" {
			t.Errorf("its pod has the limits %q", is)
		}
	})
	t.Run("a limit that the driver does not keep starts nothing", func(t *testing.T) {
		driver.keeps("ignored")
		pod := onShares("not-limited", false, share{cardA, 20, 2})
		create(t, cluster, pod)
		if text := saysWaiting(t, pod.Name, "CreateContainerConfigError"); !strings.Contains(text, "does not keep a limit of memory") {
			t.Errorf("it says %q", text)
		}
		offers(t, ownCores, 200)
		driver.keeps("kept")
		ends(t, pod)
		if is := driver.limit(pod, cardA, false); is != "0 2048" {
			t.Errorf("it started with the limits %q", is)
		}
	})
	m.end("TERM")
	offers(t, ownCores, 0)
	t.Run("a pod that was promised the driver does not start by less", func(t *testing.T) {
		driver.keeps("off")
		m = startMpsWith(t, driver.fixture, "--cgroup-root "+cgroupsOfPods(t))
		offers(t, ownCores, 200)
		promised, other := onShares("promised", false, share{cardA, 20, 2}), onShares("by-mps", false, share{cardA, 20, 2})
		promised.Annotations["quartermaster.io/isolation"], other.Annotations["quartermaster.io/isolation"] = "driver", "mps"
		create(t, cluster, promised)
		if text := saysWaiting(t, promised.Name, "CreateContainerConfigError"); !strings.Contains(text, "where the driver limits its memory") {
			t.Errorf("it says %q", text)
		}
		must(t, cluster.Client.CoreV1().Pods("default").Delete(ctx, promised.Name, metav1.DeleteOptions{}))
		create(t, cluster, other)
		ends(t, other)
		if is := driver.limit(other, cardA, false); is != "" || strings.Contains(logOf(t, other, "c0"), "limited to") {
			t.Errorf("a driver without limits has the limits %q, and the container sees %q", is, logOf(t, other, "c0"))
		}
		m.end("TERM")
	})
	plugin.end("TERM")
	offers(t, ownCores, 0)
}
