package kit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"quartermaster.io/test/repository"
)

// Cluster is a real control plane, made by test/cluster/cluster.sh.
type Cluster struct {
	Name, Dir, Kubeconfig, AuditLog, Tools string
	EtcdPort                               int
	Config                                 *rest.Config
	Client                                 *kubernetes.Clientset
	Dynamic                                *dynamic.DynamicClient
}

// Root is the top of the source tree.
func Root() string { return repository.Root() }

func clusterScript(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(Root(), "test/cluster/cluster.sh"), args...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("cluster.sh %s: %w\n%s", strings.Join(args, " "), err, said.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// ownClusters: those that are started end with this process.
var ownClusters bool

// Up starts a cluster, or joins the one of that name that runs already.
func Up(ctx context.Context, name, minor string, args ...string) (*Cluster, error) {
	args = append([]string{"up", "--name", name, "--k8s", minor}, args...)
	if ownClusters {
		args = append(args, "--until", strconv.Itoa(os.Getpid()))
	}
	out, err := clusterScript(ctx, args...)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(out, "\n")
	c := &Cluster{Name: name, Kubeconfig: lines[len(lines)-1]}
	c.Dir = filepath.Dir(c.Kubeconfig)
	c.AuditLog = filepath.Join(c.Dir, "audit.log")
	env, err := os.ReadFile(filepath.Join(c.Dir, "cluster.env"))
	if err != nil {
		return nil, err
	}
	for _, line := range strings.Split(string(env), "\n") {
		switch key, value, _ := strings.Cut(line, "="); key {
		case "ETCD_PORT":
			c.EtcdPort, _ = strconv.Atoi(value)
		case "PROGRAMS_PATH":
			c.Tools = value
		}
	}
	if c.Config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig); err != nil {
		return nil, err
	}
	c.Config.QPS, c.Config.Burst, c.Config.UserAgent = 2000, 4000, "fault-test"
	c.Config.Timeout = 30 * time.Second
	c.Config.WarningHandler = rest.NoWarnings{} // the API's warnings about pods are not ours to print
	if c.Client, err = kubernetes.NewForConfig(c.Config); err != nil {
		return nil, err
	}
	c.Dynamic, err = dynamic.NewForConfig(c.Config)
	return c, err
}

// Down ends it and deletes its folder.
func (c *Cluster) Down() error {
	_, err := clusterScript(context.Background(), "down", "--name", c.Name)
	return err
}

// PID of a component: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok.
func (c *Cluster) PID(component string) (int, error) {
	b, err := os.ReadFile(filepath.Join(c.Dir, "pids", component))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.Fields(string(b))[0])
}

// Runs is false when a component ended by itself, or was stopped.
func (c *Cluster) Runs(component string) bool {
	pid, err := c.PID(component)
	if err != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(state, "Z")
}

// Signal a component, without waiting for anything: SIGSTOP, SIGCONT.
func (c *Cluster) Signal(component string, s syscall.Signal) error {
	pid, err := c.PID(component)
	if err != nil {
		return err
	}
	return syscall.Kill(pid, s)
}

// Stop a component with a signal and wait for its end; Start it again with the same arguments and wait until it answers.
func (c *Cluster) Stop(component, signal string) error {
	_, err := clusterScript(context.Background(), "stop", component, "--signal", signal, "--name", c.Name)
	return err
}

func (c *Cluster) Start(component string) error {
	_, err := clusterScript(context.Background(), "start", component, "--name", c.Name)
	return err
}

// KeepData copies what etcd has at this moment, as a backup does. The folder is for Restore.
func (c *Cluster) KeepData(folder string) error {
	if err := c.Signal("etcd", syscall.SIGSTOP); err != nil { // what it has written so far is whole, as after a crash
		return err
	}
	defer c.Signal("etcd", syscall.SIGCONT)
	return replaceFolder(filepath.Join(c.Dir, "etcd"), folder)
}

// StopServing kills the API server and etcd.
func (c *Cluster) StopServing() error {
	return errors.Join(c.Stop("kube-apiserver", "KILL"), c.Stop("etcd", "KILL"))
}

// Restore puts the kept data in the place of etcd's, while nothing serves (StopServing), and starts etcd and the API server. When it returns the
// API server answers; its other clients are as they were (RestartClients).
func (c *Cluster) Restore(folder string) error {
	if err := replaceFolder(folder, filepath.Join(c.Dir, "etcd")); err != nil {
		return err
	}
	if err := c.Start("etcd"); err != nil {
		return err
	}
	return c.Start("kube-apiserver")
}

// RestartClients ends and starts everything but etcd and the API server.
func (c *Cluster) RestartClients() error {
	for _, component := range []string{"kwok", "leases", "kube-scheduler", "kube-controller-manager"} {
		if err := c.Stop(component, "KILL"); err != nil {
			return err
		}
		if err := c.Start(component); err != nil {
			return err
		}
	}
	return nil
}

func replaceFolder(source, target string) error {
	if err := os.RemoveAll(target); err != nil {
		return err
	}
	if out, err := exec.Command("cp", "-a", source, target).CombinedOutput(); err != nil {
		return fmt.Errorf("cp -a %s %s: %w: %s", source, target, err, out)
	}
	return nil
}

// Revive starts kube-apiserver again where it ended by a fault of its own, and is true then: a request is judged by a policy whose text
// changes at that moment, "fatal error: concurrent map read and map write" (kubernetes/kubernetes#135757, open). A kubelet would start
// it again too. Any other end stays one.
func (c *Cluster) Revive() bool {
	if c.Runs("kube-apiserver") {
		return false
	}
	log, err := os.ReadFile(filepath.Join(c.Dir, "logs", "kube-apiserver.log"))
	return err == nil && strings.Contains(string(log), "fatal error: concurrent map") && c.Start("kube-apiserver") == nil
}

// Serving is true when the API server answers a read that goes to etcd.
func (c *Cluster) Serving() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, err := c.Client.CoreV1().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	return err == nil
}

// Run a tool of the cluster (kubectl, helm, sim, etcdctl) with its admin kubeconfig.
func (c *Cluster) Run(input string, name string, args ...string) (string, error) {
	cmd := exec.Command(c.Tool(name), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "PATH="+c.Tools+":"+os.Getenv("PATH"))
	cmd.Stdin = strings.NewReader(input)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(said.String()))
	}
	return string(out), nil
}

// Tool is where a program of the cluster lies.
func (c *Cluster) Tool(name string) string {
	for _, dir := range strings.Split(c.Tools, ":") {
		if file := filepath.Join(dir, name); executable(file) {
			return file
		}
	}
	return name
}

func executable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && !info.IsDir() && info.Mode()&0o111 != 0
}

// Compact etcd up to now, for real: every watch that resumes from an older version gets a 410.
func (c *Cluster) Compact() error {
	endpoint := fmt.Sprintf("--endpoints=http://127.0.0.1:%d", c.EtcdPort)
	out, err := c.Run("", "etcdctl", endpoint, "get", "quartermaster-none", "-w", "fields")
	if err != nil {
		return err
	}
	for _, line := range strings.Split(out, "\n") {
		if value, found := strings.CutPrefix(line, `"Revision" : `); found {
			_, err = c.Run("", "etcdctl", endpoint, "compact", strings.TrimSpace(value))
			return err
		}
	}
	return errors.New("etcdctl names no revision: " + out)
}
