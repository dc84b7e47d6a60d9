package image

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"quartermaster.io/test/faults/kit"
)

// The registry of the platform in test/golden/chart/switches: no machine has that name.
const platform = "registry.acp.example:60080"

// withoutInternet is a cluster whose nodes have the images of the package and no other source of images.
type withoutInternet struct {
	*product
	needed map[string]string // by the name of an image in the platform's registry: where the original is
}

// The package for the Alauda Container Platform on nodes that have no way out: the chart from its archive, the operator's image from its folder,
// the values that the platform makes of the form with the switch for whole cards on.
func TestThePackageInstallsWithoutInternet_long(t *testing.T) {
	p := &withoutInternet{&product{&kit.Scenario{Cluster: cluster}, t}, map[string]string{}}
	t.Cleanup(func() {
		if t.Failed() {
			said, _ := p.Run("", "kubectl", "get", "pods,events", "-n", kit.Namespace)
			t.Log(said)
		}
	})
	folder := filepath.Join(t.TempDir(), "package")
	if said, err := exec.Command(filepath.Join(kit.Root(), "charts/cluster-plugin/package.sh"), folder, first.file).CombinedOutput(); err != nil {
		t.Fatalf("package.sh: %v\n%s", err, said)
	}
	p.noWayOut()

	list, err := os.ReadFile(filepath.Join(folder, "images.txt"))
	must(t, err)
	for line := range strings.Lines(string(list)) {
		words := strings.Fields(line)
		p.needed[platform+"/"+words[1]] = words[0]
		if strings.HasPrefix(words[0], "images/") {
			p.script("node-image", platform+"/"+words[1], "--archive", filepath.Join(folder, words[0]))
		}
	}
	p.run("helm", "package", filepath.Join(folder, "quartermaster"), "--destination", folder)
	archives, err := filepath.Glob(filepath.Join(folder, "quartermaster-*.tgz"))
	must(t, err)
	if len(archives) != 1 {
		t.Fatalf("helm package wrote %q", archives)
	}
	p.patch(map[string]any{"spec": map[string]any{"taints": []any{}}}) // of the control plane
	p.run("helm", "install", "quartermaster", archives[0], "--namespace", kit.Namespace, "--create-namespace", "-f",
		filepath.Join(kit.Root(), "test/golden/chart/switches/100.values.yaml"), "--wait", "--timeout", "180s")
	p.ready()

	p.offers("0")
	p.patch(map[string]any{"metadata": map[string]any{"labels": map[string]any{kit.AskLabel: "pgpu"}}})
	plugin := p.plugin()
	p.await(3*time.Minute, "the node has no image of the plugin", func() (bool, error) {
		pods, err := p.plugins()
		if err != nil || len(pods) != 1 || len(pods[0].Status.ContainerStatuses) == 0 {
			return false, err
		}
		waiting := pods[0].Status.ContainerStatuses[0].State.Waiting
		return waiting != nil && strings.Contains("ErrImagePull ImagePullBackOff", waiting.Reason), fmt.Errorf("%+v", pods[0].Status)
	})
	// Someone brings it: the stand-in of these tests, under the name in the list.
	p.script("node-exec", "ctr", "-n", "k8s.io", "images", "tag", pause, plugin)
	p.await(120*time.Second, "the plugin runs", func() (bool, error) {
		pods, err := p.plugins()
		return err == nil && len(pods) == 1 && pods[0].Status.Phase == corev1.PodRunning, err
	})
	p.offers("8")
	p.becomes(60*time.Second, "Ready", "Enrolled")
	p.onlyImagesOfThePackage()
}

// noWayOut: a node reaches no address of this machine's networks, whatever listens there. So it reaches nothing behind them.
func (p *withoutInternet) noWayOut() {
	p.t.Helper()
	listener, err := net.Listen("tcp4", ":0")
	must(p.t, err)
	defer listener.Close()
	addresses, err := net.InterfaceAddrs()
	must(p.t, err)
	for _, address := range addresses {
		network, is := address.(*net.IPNet)
		if !is || network.IP.To4() == nil || network.IP.IsLoopback() {
			continue
		}
		door := fmt.Sprintf("/dev/tcp/%s/%d", network.IP, listener.Addr().(*net.TCPAddr).Port)
		if said, err := exec.Command("timeout", "5", "bash", "-c", "exec 3<>"+door).CombinedOutput(); err != nil {
			p.t.Fatalf("this machine does not reach its own %s: %v %s", door, err, said)
		}
		if said, err := p.Script("node-exec", "timeout", "5", "bash", "-c", "exec 3<>"+door); err == nil {
			p.t.Fatalf("the node has a way out, to %s: %s", door, said)
		}
	}
}

// plugin is the image that the DaemonSet of the module names. The list has to have it.
func (p *withoutInternet) plugin() (image string) {
	p.t.Helper()
	p.await(3*time.Minute, "the DaemonSet of the module is there", func() (bool, error) {
		sets, err := p.Client.AppsV1().DaemonSets(kit.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=quartermaster"})
		if err != nil || len(sets.Items) != 1 {
			return false, err
		}
		image = sets.Items[0].Spec.Template.Spec.Containers[0].Image
		return true, nil
	})
	if p.needed[image] == "" {
		p.t.Fatalf("the package does not list %s, only %v", image, p.needed)
	}
	return image
}

// onlyImagesOfThePackage: no pod of the namespace names an image that the list does not have.
func (p *withoutInternet) onlyImagesOfThePackage() {
	p.t.Helper()
	pods, err := p.Client.CoreV1().Pods(kit.Namespace).List(ctx, metav1.ListOptions{})
	must(p.t, err)
	var found []string
	for _, pod := range pods.Items {
		for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			found = append(found, container.Image)
			if p.needed[container.Image] == "" {
				p.t.Errorf("%s runs %s, which the package does not list", pod.Name, container.Image)
			}
		}
	}
	if len(found) < 3 {
		p.t.Errorf("only these images run: %q", found)
	}
}
