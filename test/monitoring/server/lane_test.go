// Package server: the operator on a real control plane and two agents on the stand-in for cards, scraped by a real Prometheus that has
// the chart's rules and the settings of the chart's PodMonitors.
package server

import (
	"encoding/json"
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
	clusterName         = fmt.Sprintf("monitoring-%d", os.Getpid())
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

// call runs a program of the test cluster as its administrator.
func call(t *testing.T, stdin, program string, arguments ...string) string {
	t.Helper()
	cmd := exec.Command(program, arguments...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v: %s", filepath.Base(program), arguments, err, out)
	}
	return strings.TrimSpace(string(out))
}

func kubectl(t *testing.T, stdin string, arguments ...string) string {
	t.Helper()
	return call(t, stdin, chart.Tool("kubernetes-*", "kubectl"), arguments...)
}

// start runs a program until the test ends, with its output in a file that a failed test prints.
func start(t *testing.T, environment []string, program string, arguments ...string) *exec.Cmd {
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
			t.Logf("%s %v:\n%s", filepath.Base(program), arguments, text[max(0, len(text)-3000):])
		}
	})
	return cmd
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
	for began := time.Now(); time.Since(began) < patience; time.Sleep(200 * time.Millisecond) {
		if err = done(); err == nil {
			return
		}
	}
	t.Fatalf("%s: not within %s: %v", wish, patience, err)
}

func get(url string) (string, error) {
	client := http.Client{Timeout: 5 * time.Second}
	answer, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != 200 {
		err = fmt.Errorf("%s: %s", answer.Status, body)
	}
	return string(body), err
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

// startAgent runs the agent of a node on two cards of the stand-in, whose UUIDs end in `tail` and a number, and returns its port.
func startAgent(t *testing.T, node, tail string, more ...string) string {
	t.Helper()
	folder, port := t.TempDir(), freePort(t)
	fixtures := filepath.Join(chart.Root(), "test/nvml/fixtures")
	if err := os.CopyFS(folder, os.DirFS(fixtures)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(fixtures, "t4_pair.json"))
	if err != nil {
		t.Fatal(err)
	}
	var fixture map[string]any
	if err := json.Unmarshal(text, &fixture); err != nil {
		t.Fatal(err)
	}
	for i, card := range fixture["cards"].([]any) {
		card := card.(map[string]any)
		card["uuid"] = strings.Replace(card["uuid"].(string), "-000000000", "-"+tail, 1)
		card["memory_used_mib"], card["utilisation_gpu"] = 1000*(i+1), 24*(i+1)
	}
	text, _ = json.Marshal(fixture)
	if err := os.WriteFile(filepath.Join(folder, "node.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	// The agent's token names no node here, so it has the administrator's rights: what it may do is tested with the chart.
	driver := filepath.Join(chart.Root(), "build/dev/nvml")
	if _, err := os.Stat(filepath.Join(driver, "libnvidia-ml.so.1")); err != nil {
		t.Fatal("no stand-in for the card: ./dev build dev nvml_standin")
	}
	start(t, []string{"LD_LIBRARY_PATH=" + driver, "QM_NVML_FIXTURE=" + filepath.Join(folder, "node.json")}, program,
		append([]string{"agent", "--kubeconfig", kubeconfig, "--node-name", node, "--card-period", "1", "--metrics-port", port}, more...)...)
	return port
}

// kubelet answers each call on a socket with the bytes that a real one sent: train-0 has the second card, train-1 the first.
func kubelet(t *testing.T) string {
	t.Helper()
	answer, err := os.ReadFile(filepath.Join(chart.Root(), "test/agent/exporter/recorded/kubelet-1.36.bin"))
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "kubelet.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	end := string(append([]byte{0, 0, 5, 0, 1, 0, 0, 0, 1}, make([]byte, 5)...)) // the last frame of a call: five bytes on stream 1
	go func() {
		for {
			caller, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer caller.Close()
				var request []byte
				part := make([]byte, 4096)
				for n := 1; n > 0 && !strings.Contains(string(request), end); {
					n, _ = caller.Read(part)
					request = append(request, part[:n]...)
				}
				caller.Write(answer)
				io.Copy(io.Discard, caller)
			}()
		}
	}()
	return socket
}
