package kit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const clusterScript = "test/cluster/cluster.sh"

// Plane is a control plane that belongs to one bench.
type Plane struct {
	Kubeconfig string
	Facts      map[string]string // cluster.env
	Config     *rest.Config      // of Client: protobuf, no limit of requests
	Client     *kubernetes.Clientset
	name       string
}

// Bare is etcd and an API server that accepts nodes as they are, and a controller manager.
var Bare = []string{"--no-kwok", "--no-scheduler", "--apiserver-arg=--disable-admission-plugins=TaintNodesByCondition"}

var planes atomic.Int32

// PlaneUp starts a control plane on a core; the options are those of `cluster.sh up`.
func PlaneUp(ctx context.Context, core int, bench string, options ...string) (*Plane, error) {
	plane := &Plane{name: fmt.Sprintf("%s-%d-%d", bench, os.Getpid(), planes.Add(1)), Facts: map[string]string{}}
	up := Command(core, clusterScript, append([]string{"up", "--name", plane.name}, options...)...)
	command := exec.CommandContext(ctx, up.Path, up.Args[1:]...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("the cluster did not come up: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	plane.Kubeconfig = lines[len(lines)-1]
	if err := plane.connect("bench-" + bench); err != nil {
		plane.Down(false)
		return nil, err
	}
	return plane, nil
}

func (p *Plane) connect(agent string) error {
	facts, err := os.ReadFile(p.file("cluster.env"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(facts)) {
		if key, value, found := strings.Cut(strings.TrimSpace(line), "="); found {
			p.Facts[key] = value
		}
	}
	if p.Config, err = clientcmd.BuildConfigFromFlags("", p.Kubeconfig); err != nil {
		return err
	}
	p.Config.QPS, p.Config.UserAgent, p.Config.WarningHandler = -1, agent, rest.NoWarnings{}
	p.Config.ContentType, p.Config.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf"
	if p.Client, err = kubernetes.NewForConfig(p.Config); err != nil {
		return err
	}
	text, err := p.Client.Discovery().RESTClient().Get().AbsPath("/version").SetHeader("Accept", "application/json").DoRaw(context.Background())
	if err != nil {
		return err
	}
	var version struct{ GitVersion string }
	err = json.Unmarshal(text, &version)
	kubernetesVersion = strings.TrimPrefix(version.GitVersion, "v")
	return err
}

// Down ends it; keep: it stays, and the person is told how to end it.
func (p *Plane) Down(keep bool) {
	if keep {
		Say("left running: %s (end it with: ./dev cluster down --name %s)", p.Kubeconfig, p.name)
	} else if err := p.script("down"); err != nil {
		Say("%v", err)
	}
}

func (p *Plane) script(verb string, arguments ...string) error {
	out, err := exec.Command(clusterScript, append([]string{verb, "--name", p.name}, arguments...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", clusterScript, verb, err, bytes.TrimSpace(out))
	}
	return nil
}

func (p *Plane) file(path string) string { return filepath.Join(filepath.Dir(p.Kubeconfig), path) }

// StopControllers ends the controller manager. It would take nodes without a kubelet for lost, and collect pods whose owners it does not know.
func (p *Plane) StopControllers() error { return p.script("stop", "kube-controller-manager") }

// Restart a component; it answers again then.
func (p *Plane) Restart(component string) error { return p.script("restart", component) }

// PID of a component, 0 when it does not run.
func (p *Plane) PID(component string) int {
	text, _ := os.ReadFile(p.file("pids/" + component))
	var pid int
	fmt.Sscan(string(text), &pid)
	return pid
}

// Program that came with the control plane.
func (p *Plane) Program(name string) (string, error) {
	for _, folder := range filepath.SplitList(p.Facts["PROGRAMS_PATH"]) {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no program %q in %s", name, p.Facts["PROGRAMS_PATH"])
}

// Run a program that came with the control plane, kubectl and helm for instance.
func (p *Plane) Run(ctx context.Context, input []byte, name string, arguments ...string) error {
	program, err := p.Program(name)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, program, arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+p.Kubeconfig)
	command.Stdin = bytes.NewReader(input)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(arguments, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// InstallCRDs lets the server serve what the operator watches.
func (p *Plane) InstallCRDs(ctx context.Context) error {
	if err := p.Run(ctx, nil, "kubectl", "apply", "--server-side", "-f", "crds/"); err != nil {
		return err
	}
	return p.Run(ctx, nil, "kubectl", "wait", "--for=condition=Established", "-f", "crds/", "--timeout=60s")
}
