package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	plugins "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"quartermaster.io/bench/figures"
	"quartermaster.io/bench/kit"
)

const (
	node          = "bench-node"
	cores, memory = "own.test/core", "own.test/memory"
	coresOfPod    = 12
	gibOfPod      = 2
)

// bed is the control plane, a folder of this run, and the programs on the node.
type bed struct {
	*kit.Plane
	options
	folder string
	cards  []string // UUIDs, as the agent reports them
}

func measure(ctx context.Context, o options) ([]figures.Row, error) {
	plane, err := kit.PlaneUp(ctx, kit.AnyCore, "share", kit.Bare...)
	if err != nil {
		return nil, err
	}
	defer plane.Down(o.keep)
	b := &bed{Plane: plane, options: o}
	if b.folder, err = os.MkdirTemp("", "share-"); err != nil { // short: sockets are in it
		return nil, err
	}
	defer os.RemoveAll(b.folder)
	if err := b.InstallCRDs(ctx); err != nil {
		return nil, err
	}
	agent, err := b.start("agent", "--kubeconfig", b.Kubeconfig, "--node-name", node)
	if err != nil {
		return nil, err
	}
	defer agent.Kill()
	keeper, err := b.start("agent", "mps", "--folder", filepath.Join(b.folder, "mps"))
	if err != nil {
		return nil, err
	}
	defer keeper.Stop(syscall.SIGTERM)
	if b.cards, err = b.AwaitCards(ctx, agent, node, 8); err != nil {
		return nil, fmt.Errorf("%w: %s", err, agent.Tail)
	}
	pods, err := b.makePods(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.StopControllers(); err != nil {
		return nil, err
	}
	kubelet, err := startKubelet(b.folder, pods)
	if err != nil {
		return nil, err
	}
	defer kubelet.server.Stop()
	return b.figures(ctx, kubelet, pods, []*kit.Process{agent, keeper})
}

func (b *bed) start(arguments ...string) (*kit.Process, error) {
	program := exec.Command(filepath.Join(b.release, "quartermaster"), arguments...)
	standin, err := filepath.Abs(b.standin)
	if err != nil {
		return nil, err
	}
	program.Env = append(os.Environ(), "LD_LIBRARY_PATH="+standin, "PATH="+standin+":"+os.Getenv("PATH"), "QM_NVML_FIXTURE=test/nvml/fixtures/a100x8.json")
	return kit.Start(program)
}

func (b *bed) startPlugin() (*kit.Process, error) {
	return b.start("agent", "plugin", "--kubeconfig", b.Kubeconfig, "--node-name", node, "--share", cores+"=cores", "--share", memory+"=memory:1024",
		"--mps-folder", filepath.Join(b.folder, "mps"), "--plugin-folder", b.folder, "--pod-resources", filepath.Join(b.folder, "pods.sock"),
		"--cdi-folder", filepath.Join(b.folder, "cdi"))
}

// makePods with a share each, spread over the cards.
func (b *bed) makePods(ctx context.Context) (out []given, err error) {
	numbers := func(first, count int) (ids []string) {
		for i := range count {
			ids = append(ids, fmt.Sprintf("slot-%05d", first+i))
		}
		return
	}
	for i := range b.pods {
		placement, err := json.Marshal(map[string]any{"v": 1, "node": node, "source": "planned", "containers": map[string]any{
			container: []any{map[string]any{"card": b.cards[i%len(b.cards)], "cores": coresOfPod, "memoryMiB": gibOfPod * 1024}}}})
		if err != nil {
			return nil, err
		}
		limits := corev1.ResourceList{cores: *resource.NewQuantity(coresOfPod, resource.DecimalSI), memory: *resource.NewQuantity(gibOfPod, resource.DecimalSI)}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("share-", i), Annotations: map[string]string{"quartermaster.io/placement": string(placement)}},
			Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: container, Image: "none", Resources: corev1.ResourceRequirements{Limits: limits}}}}}
		var made *corev1.Pod
		for until := time.Now().Add(30 * time.Second); ; { // the controller manager makes the namespace's account
			if made, err = b.Client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{}); err == nil || time.Now().After(until) {
				break
			}
			if err := kit.Pause(ctx, 200*time.Millisecond); err != nil {
				return nil, err
			}
		}
		if err != nil {
			return nil, err
		}
		out = append(out, given{made.Name, string(made.UID), map[string][]string{cores: numbers(i*coresOfPod, coresOfPod), memory: numbers(i*gibOfPod, gibOfPod)}})
	}
	return out, nil
}

func (b *bed) figures(ctx context.Context, k *kubelet, pods []given, others []*kit.Process) (rows []figures.Row, err error) {
	add := func(name, unit string, most float64, values ...float64) {
		rows = append(rows, figures.Absolute(name, unit, most, values))
	}
	var registered []float64
	var plugin *kit.Process
	for i := range b.starts {
		if plugin != nil {
			plugin.Stop(syscall.SIGTERM)
		}
		if plugin, err = b.startPlugin(); err != nil {
			return nil, err
		}
		defer plugin.Kill()
		connection, err := k.registered(ctx, 2, cores)
		if err != nil {
			return nil, fmt.Errorf("%w: %s", err, plugin.Tail)
		}
		defer connection.Close()
		registered = append(registered, kit.Milliseconds(time.Since(plugin.Began)))
		if i < b.starts-1 {
			continue
		}
		client := plugins.NewDevicePluginClient(connection)
		if err := offers(ctx, client, 800); err != nil {
			return nil, fmt.Errorf("%w: %s; %s", err, plugin.Tail, others[1].Tail)
		}
		add("start to registered", "ms", 300, registered...)
		if err := b.calls(ctx, client, pods, add); err != nil {
			return nil, fmt.Errorf("%w: %s", err, plugin.Tail)
		}
	}
	return rows, b.rest(ctx, append(others, plugin), add)
}

type adder func(name, unit string, most float64, values ...float64)

func (b *bed) calls(ctx context.Context, client plugins.DevicePluginClient, pods []given, add adder) error {
	var took []float64
	timed := func(call func() error) (float64, error) {
		began := time.Now()
		err := call()
		return kit.Milliseconds(time.Since(began)), err
	}
	for i := range b.allocations {
		ids := pods[i%len(pods)].ids[cores]
		time, err := timed(func() error {
			_, err := client.Allocate(ctx, &plugins.AllocateRequest{ContainerRequests: []*plugins.ContainerAllocateRequest{{DevicesIds: ids}}})
			return err
		})
		if err != nil {
			return fmt.Errorf("Allocate: %w", err)
		}
		took = append(took, time)
	}
	add("Allocate, p50", "ms", 0, figures.Quantile(took, 0.5))
	add("Allocate, p99", "ms", 2, figures.Quantile(took, 0.99))
	for _, workers := range []int{1, 8} {
		var lock sync.Mutex
		took = nil
		err := kit.Each(len(pods)*b.rounds, workers, func(i int) error {
			time, err := timed(func() error {
				_, err := client.PreStartContainer(ctx, &plugins.PreStartContainerRequest{DevicesIds: pods[i%len(pods)].ids[cores]})
				return err
			})
			lock.Lock()
			defer lock.Unlock()
			took = append(took, time)
			return err
		})
		if err != nil {
			return fmt.Errorf("PreStartContainer: %w", err)
		}
		name, most := "PreStartContainer", 30.0
		if workers > 1 {
			name, most = fmt.Sprintf("PreStartContainer, %d at once", workers), 0
		}
		add(name+", p50", "ms", 0, figures.Quantile(took, 0.5))
		add(name+", p99", "ms", most, figures.Quantile(took, 0.99))
	}
	return nil
}

func (b *bed) rest(ctx context.Context, programs []*kit.Process, add adder) error {
	if err := kit.Pause(ctx, min(b.options.rest, 10*time.Second)); err != nil {
		return err
	}
	names := []string{"agent", "agent mps", "agent plugin"}
	before := make([]time.Duration, len(programs))
	for i, program := range programs {
		time, err := kit.CPUWithChildren(program.PID())
		if err != nil {
			return err
		}
		before[i] = time
	}
	began := time.Now()
	if err := kit.Pause(ctx, b.options.rest); err != nil {
		return err
	}
	seconds, all := time.Since(began).Seconds(), 0.0
	for i, program := range programs {
		if err := program.Alive(); err != nil {
			return err
		}
		time, err := kit.CPUWithChildren(program.PID())
		if err != nil {
			return err
		}
		own := (time - before[i]).Seconds() / seconds * 100
		if i > 0 {
			all += own
		}
		is, err := kit.Memory(program.PID())
		if err != nil {
			return err
		}
		most := 20.0
		if i == 0 {
			most = 0 // it has figures of its own
		}
		add("at rest, "+names[i]+", memory (VmRSS)", "MiB", most, is["VmRSS"])
		kit.Say("at rest, %s: %.2f %% of a core", names[i], own)
	}
	add("at rest, agent mps and agent plugin, CPU, percent of a core", "%", 0.2, all)
	return nil
}
