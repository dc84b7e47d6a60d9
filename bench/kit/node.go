package kit

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// RealNode is the first node of a plane that was started with --real-node: it has a kubelet and a containerd of its own.
const RealNode = "real-1"

// OnNode runs a command in the node's namespaces.
func (p *Plane) OnNode(command ...string) error { return p.script("node-exec", command...) }

// NodeProcess is a program in the node's namespaces. Its number is that of this machine.
type NodeProcess struct {
	*Process
	pid int
}

// StartOnNode starts a program of this machine in the node's namespaces; the environment is "NAME=VALUE". It has a session of its own, as the
// node's kubelet and containerd have: the kernel divides a busy machine by sessions (sched(7), autogroups), and by their nice values.
func (p *Plane) StartOnNode(environment []string, program string, arguments ...string) (*NodeProcess, error) {
	words := append(append([]string{"node-exec", "--name", p.name, "setsid", "env"}, environment...), program)
	process, err := Start(exec.Command(clusterScript, append(words, arguments...)...))
	if err != nil {
		return nil, err
	}
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if err := process.Alive(); err != nil {
			return nil, err
		}
		if pid := descendant(process.PID(), program); pid != 0 {
			return &NodeProcess{process, pid}, nil
		}
	}
	process.Kill()
	return nil, fmt.Errorf("%s did not start: %s", program, process.Tail)
}

// descendant of a process that is this program; 0 where there is none.
func descendant(pid int, program string) int {
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, field := range strings.Fields(string(children)) {
		child, _ := strconv.Atoi(field)
		if file, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", child)); err == nil && filepath.Base(file) == filepath.Base(program) {
			return child
		}
		if found := descendant(child, program); found != 0 {
			return found
		}
	}
	return 0
}

// PID of the program.
func (p *NodeProcess) PID() int { return p.pid }

// Memory in MiB by its name in /proc/PID/status.
func (p *NodeProcess) Memory() (map[string]float64, error) { return Memory(p.pid) }

// CPU time so far, with that of children that have ended.
func (p *NodeProcess) CPU() (time.Duration, error) { return CPUWithChildren(p.pid) }

// Stop sends the signal and waits until the program has ended. It is killed after 12 s.
func (p *NodeProcess) Stop(signal syscall.Signal) {
	if p.Alive() != nil {
		return
	}
	syscall.Kill(p.pid, signal)
	select {
	case <-p.exited:
	case <-time.After(12 * time.Second):
		syscall.Kill(p.pid, syscall.SIGKILL)
		<-p.exited
	}
}

// CPUWithChildren of a process so far, with those of its children that have ended.
func CPUWithChildren(pid int) (time.Duration, error) {
	own, err := CPU(pid)
	if err != nil {
		return 0, err
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 15 {
		return 0, fmt.Errorf("/proc/%d/stat: %q", pid, text)
	}
	ticks := 0
	for _, field := range fields[13:15] { // cutime, cstime
		count, err := strconv.Atoi(field)
		if err != nil {
			return 0, err
		}
		ticks += count
	}
	return own + time.Duration(ticks)*10*time.Millisecond, nil
}

// AwaitCards until the agent has reported so many of the node, and return their UUIDs.
func (p *Plane) AwaitCards(ctx context.Context, agent interface{ Alive() error }, node string, number int) (cards []string, err error) {
	for until := time.Now().Add(time.Minute); time.Now().Before(until); {
		if err := agent.Alive(); err != nil {
			return nil, err
		}
		text, err := p.Client.Discovery().RESTClient().Get().AbsPath("/apis/quartermaster.io/v1alpha1/acceleratornodes/"+node).SetHeader("Accept", "application/json").DoRaw(ctx)
		var object struct {
			Status struct{ Cards []struct{ UUID string } }
		}
		if err == nil && json.Unmarshal(text, &object) == nil && len(object.Status.Cards) == number {
			for _, card := range object.Status.Cards {
				cards = append(cards, card.UUID)
			}
			return cards, nil
		}
		if err := Pause(ctx, 200*time.Millisecond); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("the agent has not reported %d cards of %s", number, node)
}

// NodeKubeconfig is an administrator's that reaches the API server from the node's network. It lies in the plane's folder.
func (p *Plane) NodeKubeconfig() (string, error) {
	other, err := os.ReadFile(p.file("certs/kube-proxy.kubeconfig"))
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(p.Kubeconfig)
	if err != nil {
		return "", err
	}
	file := p.file("on-node.kubeconfig")
	return file, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), serverOf(text), serverOf(other))), 0o600)
}

func serverOf(kubeconfig []byte) string {
	_, rest, _ := strings.Cut(string(kubeconfig), "server:")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(line)
}

// Folder of the plane, which the node sees under the same name.
func (p *Plane) Folder() string { return filepath.Dir(p.Kubeconfig) }
