// Package server: `quartermaster console` with the rights that the chart gives it, on a real control plane. Two ServiceAccounts, each with
// the role view in its own namespace, ask every path with their real tokens.
package server

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"quartermaster.io/test/chart"
)

const namespace = "quartermaster"

var (
	kubeconfig, program string
	clusterName         = fmt.Sprintf("console-%d", os.Getpid())
)

func script(arguments ...string) *exec.Cmd {
	return exec.Command(filepath.Join(chart.Root(), "test/cluster/cluster.sh"), arguments...)
}

func TestMain(m *testing.M) {
	os.Exit(func() int {
		k8s := os.Getenv("QM_K8S")
		if k8s == "" {
			k8s = "1.36"
		}
		program = os.Getenv("QM_OPERATOR")
		for _, built := range []string{"build/release/quartermaster", "build/dev/quartermaster"} {
			if file := filepath.Join(chart.Root(), built); program == "" {
				if _, err := os.Stat(file); err == nil {
					program = file
				}
			}
		}
		if program == "" {
			fmt.Println("no program under test: ./dev build release")
			return 1
		}
		up := script("up", "--name", clusterName, "--k8s", k8s)
		up.Stderr = os.Stderr
		out, err := up.Output()
		defer script("down", "--name", clusterName).Run()
		if err != nil {
			fmt.Println("no cluster:", err)
			return 1
		}
		lines := strings.Fields(string(out))
		kubeconfig = lines[len(lines)-1]
		return m.Run()
	}())
}

// call runs a program as the cluster's administrator.
func call(t *testing.T, stdin, name string, arguments ...string) string {
	t.Helper()
	cmd := exec.Command(name, arguments...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v: %s", filepath.Base(name), arguments, err, out)
	}
	return strings.TrimSpace(string(out))
}

func kubectl(t *testing.T, stdin string, arguments ...string) string {
	t.Helper()
	return call(t, stdin, chart.Tool("kubernetes-*", "kubectl"), arguments...)
}

// start runs the program until the test ends, with its output in a file that a failed test prints. It returns the file's name.
func start(t *testing.T, environment []string, arguments ...string) string {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, arguments...)
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		log.Close()
		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("%v:\n%s", arguments, text[max(0, len(text)-3000):])
		}
	})
	return log.Name()
}

// freePort is one that no one listens on now.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return port
}

func until(t *testing.T, patience time.Duration, wish string, done func() error) {
	t.Helper()
	var err error
	for began := time.Now(); time.Since(began) < patience; time.Sleep(100 * time.Millisecond) {
		if err = done(); err == nil {
			return
		}
	}
	t.Fatalf("%s: not within %s: %v", wish, patience, err)
}

// asAccount is a kubeconfig with the rights that the chart gives to a ServiceAccount.
func asAccount(t *testing.T, account string) string {
	t.Helper()
	out, err := script("sa-kubeconfig", "--name", clusterName, "--namespace", namespace, "--serviceaccount", account).Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(out))
	return lines[len(lines)-1]
}

// answer is what a path of the console says to a caller with this token.
type answer struct {
	status int
	body   string
	header http.Header
}

func ask(t *testing.T, port, method, path, token string) answer {
	t.Helper()
	request, err := http.NewRequest(method, "http://127.0.0.1:"+port+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := http.Client{Timeout: 20 * time.Second}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, string(body), response.Header}
}
