// Package lane is what tests on a real API server share that know the chart and no client library: a cluster of their own, calls of
// programs as its administrator, and programs that run until a test ends.
package lane

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"quartermaster.io/test/chart"
)

// Kubectl as a program of Output and Call is kubectl's own code in this process, where that is the same.
const Kubectl = "kubectl"

// Namespace of the release.
const Namespace = "quartermaster"

// Cluster of one test program. It is up while Run runs.
type Cluster struct {
	Name       string
	Kubeconfig string // of the administrator; empty until the cluster is up
}

// New is a cluster that is not up yet. Its name begins with the lane's.
func New(lane string) *Cluster { return &Cluster{Name: fmt.Sprintf("%s-%d", lane, os.Getpid())} }

// Program under test: $QM_OPERATOR, else the one that was built here; empty when there is none.
func Program() string {
	program := os.Getenv("QM_OPERATOR")
	for _, built := range []string{"build/release/quartermaster", "build/dev/quartermaster"} {
		if file := filepath.Join(chart.Root(), built); program == "" {
			if _, err := os.Stat(file); err == nil {
				program = file
			}
		}
	}
	return program
}

// Run starts the cluster with $QM_K8S, runs the tests and ends the cluster. Options are those of `cluster.sh up`. It returns the exit code.
func (c *Cluster) Run(tests func() int, options ...string) int {
	k8s := os.Getenv("QM_K8S")
	if k8s == "" {
		k8s = "1.37"
	}
	if Program() == "" {
		fmt.Println("no program under test: ./dev build release")
		return 1
	}
	up := c.script("up", append([]string{"--k8s", k8s, "--until", strconv.Itoa(os.Getpid())}, options...)...)
	up.Stderr = os.Stderr
	out, err := up.Output()
	defer c.script("down").Run()
	if err != nil {
		fmt.Println("no cluster:", err)
		return 1
	}
	c.Kubeconfig = lastWord(out)
	os.Setenv("KUBECONFIG", c.Kubeconfig) // `kubectl config` asks for it
	return tests()
}

// script is cluster.sh with a verb about this cluster.
func (c *Cluster) script(verb string, arguments ...string) *exec.Cmd {
	return exec.Command(filepath.Join(chart.Root(), "test/cluster/cluster.sh"), append([]string{verb, "--name", c.Name}, arguments...)...)
}

func lastWord(text []byte) string {
	words := strings.Fields(string(text))
	return words[len(words)-1]
}

// Output of a program that runs as the cluster's administrator, and its exit code; -1: it did not start.
func (c *Cluster) Output(stdin, program string, arguments ...string) (string, int) {
	if program == Kubectl {
		if inProcess(arguments[0]) {
			return c.kubectl(stdin, arguments)
		}
		program = chart.Tool("kubernetes-*", "kubectl")
	}
	cmd := exec.Command(program, arguments...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		return err.Error(), -1
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// Call runs such a program, which has to succeed, and returns what it says.
func (c *Cluster) Call(t *testing.T, stdin, program string, arguments ...string) string {
	t.Helper()
	out, rc := c.Output(stdin, program, arguments...)
	if rc != 0 {
		t.Fatalf("%s %v: exit code %d: %s", filepath.Base(program), arguments, rc, out)
	}
	return strings.TrimSpace(out)
}

func (c *Cluster) Kubectl(t *testing.T, stdin string, arguments ...string) string {
	t.Helper()
	return c.Call(t, stdin, Kubectl, arguments...)
}

// AccountKubeconfig is a kubeconfig with the rights that the chart gives to a ServiceAccount.
func (c *Cluster) AccountKubeconfig(t *testing.T, account string) string {
	t.Helper()
	out, err := c.script("sa-kubeconfig", "--namespace", Namespace, "--serviceaccount", account).Output()
	if err != nil {
		t.Fatal(err)
	}
	return lastWord(out)
}
