package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	namespace     = "bench"
	clusterScript = "test/cluster/cluster.sh"
)

// cluster is a control plane of our own, on one core where there are two; this program is on the other.
type cluster struct {
	name, kubeconfig string
	tools            string
	made             int // runs so far
	client           *kubernetes.Clientset
}

func clusterUp(ctx context.Context) (*cluster, error) {
	c := &cluster{name: fmt.Sprintf("bench-admission-%d", os.Getpid())}
	command := exec.CommandContext(ctx, "taskset", "-c", "0", clusterScript, "up", "--name", c.name, "--no-kwok", "--no-scheduler")
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("the cluster did not come up: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	c.kubeconfig = lines[len(lines)-1]
	facts, err := os.ReadFile(filepath.Join(filepath.Dir(c.kubeconfig), "cluster.env"))
	if err != nil {
		return nil, err
	}
	for _, line := range strings.Split(string(facts), "\n") {
		if value, found := strings.CutPrefix(line, "PROGRAMS_PATH="); found {
			c.tools = value
		}
	}
	if runtime.NumCPU() > 1 {
		var set unix.CPUSet
		set.Set(1)
		tasks, _ := os.ReadDir("/proc/self/task")
		for _, task := range tasks {
			var id int
			if _, err := fmt.Sscan(task.Name(), &id); err == nil {
				unix.SchedSetaffinity(id, &set)
			}
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 1e6, 1e6
	config.ContentType, config.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf"
	config.WarningHandler = rest.NoWarnings{}
	c.client, err = kubernetes.NewForConfig(config)
	return c, err
}

func (c *cluster) down() {
	if out, err := exec.Command(clusterScript, "down", "--name", c.name).CombinedOutput(); err != nil {
		say("%v: %s", err, out)
	}
}

func (c *cluster) pid(component string) int {
	text, _ := os.ReadFile(filepath.Join(filepath.Dir(c.kubeconfig), "pids", component))
	var pid int
	fmt.Sscan(string(text), &pid)
	return pid
}

// cpuOf a process so far: its CPU clock, user and system.
func cpuOf(pid int) (time.Duration, error) {
	var at unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &at); err != nil {
		return 0, fmt.Errorf("CPU of process %d: %w", pid, err)
	}
	return time.Duration(at.Nano()), nil
}

// cpu of API server and etcd so far.
func (c *cluster) cpu() (sum time.Duration, err error) {
	for _, component := range []string{"kube-apiserver", "etcd"} {
		at, err := cpuOf(c.pid(component))
		if err != nil {
			return 0, err
		}
		sum += at
	}
	return sum, nil
}

// settle waits until the server has done with what came before: compiled policies, published schemas, deleted pods. Two quiet seconds in a row.
func (c *cluster) settle(ctx context.Context) error {
	const window, busy = time.Second, 250 * time.Millisecond // an API server with nothing to do takes half of that
	quiet := 0
	for deadline := time.Now().Add(2 * time.Minute); quiet < 2; {
		before, err := c.cpu()
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(window):
		}
		after, err := c.cpu()
		if err != nil {
			return err
		}
		if quiet++; after-before > busy {
			quiet = 0
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the API server is still busy two minutes after the last run")
		}
	}
	return nil
}

func (c *cluster) tool(input []byte, name string, arguments ...string) ([]byte, error) {
	program := name
	for _, dir := range filepath.SplitList(c.tools) {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			program = filepath.Join(dir, name)
		}
	}
	command := exec.Command(program, arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig)
	command.Stdin = bytes.NewReader(input)
	var said bytes.Buffer
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(arguments, " "), err, bytes.TrimSpace(said.Bytes()))
	}
	return out, err
}

// install the chart, the rules and the namespace, and stop what would run during the measurement.
func (c *cluster) install(ctx context.Context, keys int, enforced bool) error {
	if _, err := c.tool(nil, "helm", "install", "quartermaster", "charts/quartermaster", "--namespace", "quartermaster", "--create-namespace",
		"--set", "replicaCount=0", "--set", fmt.Sprintf("admission.policies=%t", enforced)); err != nil {
		return err
	}
	if _, err := c.tool(nil, "kubectl", "wait", "crd", "--for=condition=Established", "--timeout=30s", "resourcerules.quartermaster.io"); err != nil {
		return err
	}
	if _, err := c.tool(rules(keys), "kubectl", "create", "-f", "-"); err != nil {
		return err
	}
	_, err := c.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if _, err := c.client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{}); err == nil {
			break
		} else if time.Now().After(deadline) {
			return err
		}
	}
	out, err := exec.Command(clusterScript, "stop", "kube-controller-manager", "--name", c.name).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return c.inForce(ctx, enforced)
}

const never = "never.bench.test/a"

// rules is a ResourceRules object of so many keys: gpu-manager's two, of which one is filled in, one that no one may set, and others.
func rules(keys int) []byte {
	type rule = map[string]any
	all := map[string]rule{
		"tencent.com/vcuda-core": {"source": "kube-public/cf-crl-gpu-manager-vcuda-core", "group": "gpu-manager", "whole": 100, "partner": "tencent.com/vcuda-memory",
			"excluded": []string{"nvidia.com/gpu"}, "related": []string{"tencent.com/vcuda-memory"}},
		"tencent.com/vcuda-memory": {"source": "kube-public/cf-crl-gpu-manager-vcuda-memory", "group": "gpu-manager", "must": true, "fill": "16",
			"waivedBy": "tencent.com/vcuda-core", "waivedFrom": 100},
		"nvidia.com/gpu": {"source": "kube-public/cf-crl-nvidia-gpu", "excluded": []string{"tencent.com/vcuda-core"}, "runtimeClassName": "nvidia"},
		never:            {"source": "kube-public/cf-crl-never-a", "forbidden": true},
	}
	groups := map[string][]string{"gpu-manager": {"tencent.com/vcuda-core", "tencent.com/vcuda-memory"}}
	for i := len(all); i < keys; i++ {
		group := fmt.Sprintf("vendor-%03d", i/4)
		key := fmt.Sprintf("%s.example.com/card-%04d", group, i)
		all[key] = rule{"source": "kube-public/cf-crl-" + key[:10], "group": group, "must": true, "fill": "1"}
		groups[group] = append(groups[group], key)
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "quartermaster.io/v1alpha1", "kind": "ResourceRules",
		"metadata": map[string]any{"name": "default", "labels": map[string]string{"quartermaster.io/enforcement": "Deny"}},
		"spec":     map[string]any{"keys": slices.Sorted(maps.Keys(all)), "rules": all, "groups": groups}})
	if err != nil {
		panic(err)
	}
	return text
}

// inForce waits until the server is seen to enforce, or not to.
func (c *cluster) inForce(ctx context.Context, on bool) error {
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		refused := podOf(0, map[string]string{never: "1"}, true)
		filled := podOf(1, map[string]string{"tencent.com/vcuda-core": "30"}, true)
		_, err := c.client.CoreV1().Pods(namespace).Create(ctx, refused, metav1.CreateOptions{DryRun: []string{"All"}})
		got, failed := c.client.CoreV1().Pods(namespace).Create(ctx, filled, metav1.CreateOptions{DryRun: []string{"All"}})
		if failed != nil && !apierrors.IsInvalid(failed) { // of the policies the server sees one earlier than the other
			return failed
		}
		has := false
		if failed == nil {
			_, has = got.Spec.Containers[0].Resources.Limits["tencent.com/vcuda-memory"]
		}
		if on == apierrors.IsInvalid(err) && on == has && failed == nil && (on || err == nil) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the policies do not take effect: %v, filled in %v", err, has)
		}
	}
}
