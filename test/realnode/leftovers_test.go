package realnode

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"quartermaster.io/test/faults/kit"
)

// traces of a cluster's node on this machine.
type traces struct{ dir, net, mnt string }

func tracesOf(t *testing.T, c *kit.Cluster) traces {
	t.Helper()
	pid, err := c.PID("node-init")
	must(t, err)
	out := traces{dir: c.Dir}
	for name, to := range map[string]*string{"net": &out.net, "mnt": &out.mnt} {
		*to, err = os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, name))
		must(t, err)
	}
	if out.net == namespace(os.Getpid(), "net") || out.mnt == namespace(os.Getpid(), "mnt") {
		t.Fatal("the node has no namespaces of its own")
	}
	return out
}

func namespace(pid any, name string) string {
	is, _ := os.Readlink(fmt.Sprintf("/proc/%v/ns/%s", pid, name))
	return is
}

// processes in its namespaces.
func (of traces) processes() (out []string) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range all {
		if pid := filepath.Base(process); namespace(pid, "net") == of.net || namespace(pid, "mnt") == of.mnt {
			command, _ := os.ReadFile(process + "/cmdline")
			out = append(out, fmt.Sprintf("process %s: %.100q", pid, command))
		}
	}
	return out
}

func (of traces) all() (out []string) {
	out = of.processes()
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range all {
		if command, _ := os.ReadFile(file); strings.Contains(string(command), of.dir+"/") {
			out = append(out, fmt.Sprintf("%s: %.100q", file, command))
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for _, mount := range strings.Split(string(mounts), "\n") {
		if strings.Contains(mount, of.dir) {
			out = append(out, "mount "+mount)
		}
	}
	if _, err := os.Stat(of.dir); err == nil {
		out = append(out, of.dir)
	}
	return out
}

func cgroups() (out []string) {
	for _, pattern := range []string{"/sys/fs/cgroup/quartermaster-*", "/sys/fs/cgroup/*/quartermaster-*"} {
		found, _ := filepath.Glob(pattern)
		out = append(out, found...)
	}
	return out
}

// A second cluster with a real node comes, is switched off and on, loses its parts one after the other, and goes; the first one's nodes
// never see it.
func TestNothingStaysAndNobodyElseSeesIt_long(t *testing.T) {
	transitions := func() string {
		nodes, err := cluster.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		must(t, err)
		var out []string
		for _, node := range nodes.Items {
			for _, c := range node.Status.Conditions {
				out = append(out, fmt.Sprintln(node.Name, c.Type, c.Status, c.LastTransitionTime))
			}
		}
		return strings.Join(out, "")
	}
	nodesBefore, cgroupsBefore := transitions(), fmt.Sprint(cgroups())

	second := &kit.Cluster{Name: cluster.Name + "-2"}
	t.Cleanup(func() { second.Down() })
	began := time.Now()
	second, err := kit.Up(ctx, second.Name, minor, "--real-node", "--no-scheduler", "--no-kwok")
	must(t, err)
	t.Logf("up after %.1f s", time.Since(began).Seconds())
	left := tracesOf(t, second)
	if len(left.processes()) < 3 || fmt.Sprint(cgroups()) == cgroupsBefore {
		t.Fatalf("the second node is not seen: %q, %q", left.processes(), cgroups())
	}

	// Its door is killed: all in its namespaces ends. Then it is switched on again.
	must(t, second.Signal("node", syscall.SIGKILL))
	await(t, 10*time.Second, "all in it has ended", func() (bool, error) { is := left.processes(); return len(is) == 0, fmt.Errorf("%q", is) })
	_, err = second.Script("start", "node")
	must(t, err)

	left = tracesOf(t, second)
	for _, part := range []string{"kubelet", "containerd", "node-init"} {
		must(t, second.Signal(part, syscall.SIGKILL))
	}
	began = time.Now()
	must(t, second.Down())
	t.Logf("down after %.1f s", time.Since(began).Seconds())
	if stays := left.all(); len(stays) != 0 {
		t.Errorf("after down there is still: %q", stays)
	}
	if is := fmt.Sprint(cgroups()); is != cgroupsBefore {
		t.Errorf("cgroups are %s, were %s", is, cgroupsBefore)
	}
	if is := transitions(); is != nodesBefore {
		t.Errorf("the first cluster's nodes changed:\n%s\nwere:\n%s", is, nodesBefore)
	}
}
