package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quartermaster.io/bench/kit"
)

const (
	ownCard, ownShare, ownMemory, ownCores = "own.test/gpu", "own.test/share", "own.test/memory", "own.test/cores"
	nvidiaCard                             = "nvidia.com/gpu"
	hamiShare, hamiMemory, hamiCores       = "nvidia.com/gpualloc", "nvidia.com/gpumem", "nvidia.com/gpucores"
	cardsOfNode, sharesOfCard              = 8, 10
	mpsFolder                              = "/run/quartermaster/mps"
	hamiHook, hamiVersion                  = "/run/hami", "v2.10.0"
)

// bed is the control plane with its node, and the programs on it. A kubelet asks the plugin of a resource, so plugins with different names for
// theirs serve one node next to each other.
type bed struct {
	*kit.Plane
	options
	kubeconfig string // as it is on the node
	cards      []string
	agent      *kit.NodeProcess
	running    []*kit.NodeProcess
	hamiLock   sync.Mutex
	settle     time.Duration // after a round
	rounds     int
}

func openBed(ctx context.Context, o options) (*bed, error) {
	plane, err := kit.PlaneUp(ctx, kit.AnyCore, "node", "--real-node", "--no-kwok", "--no-scheduler")
	if err != nil {
		return nil, err
	}
	b := &bed{Plane: plane, options: o, settle: 2 * time.Second}
	if o.short {
		b.settle = 0
	}
	if err := b.prepare(ctx); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

// prepare gives the node the driver of eight cards and what HAMi's image has, and starts the agent that reports the cards.
func (b *bed) prepare(ctx context.Context) (err error) {
	if err := b.InstallCRDs(ctx); err != nil {
		return err
	}
	if b.kubeconfig, err = b.NodeKubeconfig(); err != nil {
		return err
	}
	fixture := filepath.Join(b.Folder(), "fixture")
	if err := os.MkdirAll(fixture, 0o755); err != nil {
		return err
	}
	for source, target := range map[string]string{"models.json": "models.json", "a100x8.json": "node.json"} {
		text, err := os.ReadFile(filepath.Join("test/nvml/fixtures", source))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(fixture, target), text, 0o644); err != nil {
			return err
		}
	}
	script, err := filepath.Abs("test/nvml/node.sh")
	if err != nil {
		return err
	}
	if err := b.OnNode(script, fixture, filepath.Join(b.standin, "libnvidia-ml.so.1"), filepath.Join(b.standin, "nvidia-smi")); err != nil {
		return err
	}
	if b.agent, err = b.start(nil, b.own(), "agent", "--kubeconfig", b.kubeconfig, "--node-name", kit.RealNode); err != nil {
		return err
	}
	b.cards, err = b.AwaitCards(ctx, b.agent, kit.RealNode, cardsOfNode)
	return err
}

func (b *bed) own() string { return filepath.Join(b.release, "quartermaster") }

func (b *bed) start(environment []string, program string, arguments ...string) (*kit.NodeProcess, error) {
	process, err := b.StartOnNode(environment, program, arguments...)
	if err == nil {
		b.running = append(b.running, process)
	}
	return process, err
}

// stopPlugins ends all but the agent.
func (b *bed) stopPlugins() {
	for i := len(b.running) - 1; i > 0; i-- {
		b.running[i].Stop(syscall.SIGTERM)
	}
	b.running = b.running[:min(1, len(b.running))]
}

func (b *bed) close() {
	if !b.keep {
		b.stopPlugins()
		if b.agent != nil {
			b.agent.Stop(syscall.SIGTERM)
		}
	}
	b.Down(b.keep)
}

// tails of the programs, for an error.
func (b *bed) tails() string {
	var out []string
	for _, program := range b.running {
		text := program.Tail.String()
		out = append(out, fmt.Sprintf("%s says: %s", program, text[max(0, len(text)-600):]))
	}
	return strings.Join(out, "\n")
}

// offers waits until the node has so much of a resource.
func (b *bed) offers(ctx context.Context, key string, amount int64) error {
	for until := time.Now().Add(time.Minute); time.Now().Before(until); {
		node, err := b.Client.CoreV1().Nodes().Get(ctx, kit.RealNode, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if is := node.Status.Allocatable[corev1.ResourceName(key)]; is.Value() == amount {
			return nil
		}
		if err := kit.Pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("the node does not offer %d of %s: %s", amount, key, b.tails())
}

func (b *bed) none() *contender {
	return &contender{name: "none", limits: func(share) corev1.ResourceList { return nil }, bind: b.bindPlainly}
}

func (b *bed) ownCards(ctx context.Context) (*contender, error) {
	plugin, err := b.start(nil, b.own(), "agent", "plugin", "--kubeconfig", b.kubeconfig, "--node-name", kit.RealNode, "--resource", ownCard)
	if err != nil {
		return nil, err
	}
	return &contender{name: "ours", limits: func(share) corev1.ResourceList { return limits(map[string]int64{ownCard: 1}) }, bind: b.bindPlaced,
		programs: []*kit.NodeProcess{plugin}, memory: []*kit.NodeProcess{plugin, b.agent}}, b.offers(ctx, ownCard, cardsOfNode)
}

func (b *bed) nvidiaCards(ctx context.Context) (*contender, error) {
	plugin, err := b.start(nil, filepath.Join(b.plugins, "nvidia-device-plugin"))
	if err != nil {
		return nil, err
	}
	return &contender{name: "NVIDIA's", limits: func(share) corev1.ResourceList { return limits(map[string]int64{nvidiaCard: 1}) }, bind: b.bindPlainly,
		programs: []*kit.NodeProcess{plugin}, memory: []*kit.NodeProcess{plugin}}, b.offers(ctx, nvidiaCard, cardsOfNode)
}

// ownShares under keys such as HAMi's: seats are devices, memory and compute stand in limits alone.
func (b *bed) ownShares(ctx context.Context) (*contender, error) {
	mps, err := b.start(nil, b.own(), "agent", "mps", "--folder", mpsFolder)
	if err != nil {
		return nil, err
	}
	plugin, err := b.start(nil, b.own(), "agent", "plugin", "--kubeconfig", b.kubeconfig, "--node-name", kit.RealNode, "--mps-folder", mpsFolder,
		"--share", fmt.Sprintf("%s=slots:%d", ownShare, sharesOfCard), "--limit", ownMemory+"=memory:1@0", "--limit", ownCores+"=cores@0")
	if err != nil {
		return nil, err
	}
	return &contender{name: "ours", bind: b.bindPlaced, programs: []*kit.NodeProcess{plugin, mps}, memory: []*kit.NodeProcess{plugin, mps, b.agent},
		limits: func(part share) corev1.ResourceList {
			return limits(map[string]int64{ownShare: 1, ownMemory: part.MemoryMiB, ownCores: part.Cores})
		}}, b.offers(ctx, ownShare, cardsOfNode*sharesOfCard)
}

// hamiConfig is what our catalogue's ConfigMap has by default.
const hamiConfig = `nvidia:
  overwriteEnv: false
  memoryFactor: 1
  preConfiguredDeviceMemory: 0
  enableNumaTopology: false
  libCudaLogLevel: 1
  disableCoreLimit: false
  runtimeClassName: ""
  resourceCountName: nvidia.com/gpualloc
  resourceMemoryName: nvidia.com/gpumem
  resourceMemoryPercentageName: nvidia.com/gpumem-percentage
  resourceCoreName: nvidia.com/gpucores
  resourcePriorityName: nvidia.com/priority
  defaultMemory: 5000
  defaultCores: 0
  defaultGPUNum: 1
  deviceSplitCount: 10
  deviceMemoryScaling: 1
  deviceCoreScaling: 1
  gpuCorePolicy: default
`

func (b *bed) hamiShares(ctx context.Context) (*contender, error) {
	// Its library is an empty file here. The plugin writes to /tmp, too, and has a layer of its own there.
	folder := hamiHook + "/vgpu"
	script := fmt.Sprintf("mkdir -p %[1]s /run/tmp/upper /run/tmp/work; : >%[1]s/libvgpu.so.%[2]s; cp %[1]s/libvgpu.so.%[2]s %[1]s/libvgpu.so; echo %[1]s/libvgpu.so >%[1]s/ld.so.preload; "+
		"mount -n -t overlay -o lowerdir=/tmp,upperdir=/run/tmp/upper,workdir=/run/tmp/work overlay /tmp", folder, hamiVersion)
	if err := b.OnNode("sh", "-ec", script); err != nil {
		return nil, err
	}
	file := filepath.Join(b.Folder(), "hami.yaml")
	if err := os.WriteFile(file, []byte(hamiConfig), 0o644); err != nil {
		return nil, err
	}
	plugin, err := b.start([]string{"NODE_NAME=" + kit.RealNode, "KUBECONFIG=" + b.kubeconfig, "HOOK_PATH=" + hamiHook, "NVIDIA_MIG_MONITOR_DEVICES=all", "DEVICE_LIST_STRATEGY=envvar"},
		filepath.Join(b.plugins, "hami/nvidia-device-plugin"), "--config-file="+file, "--mig-strategy=none", "--disable-core-limit=false")
	if err != nil {
		return nil, err
	}
	return &contender{name: "HAMi's", bind: b.bindLocked, programs: []*kit.NodeProcess{plugin}, memory: []*kit.NodeProcess{plugin},
		limits: func(part share) corev1.ResourceList {
			return limits(map[string]int64{hamiShare: 1, hamiMemory: part.MemoryMiB, hamiCores: part.Cores})
		}}, b.offers(ctx, hamiShare, cardsOfNode*sharesOfCard)
}
