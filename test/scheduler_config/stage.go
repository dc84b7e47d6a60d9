// Package scheduler_config starts real kube-schedulers with the files that `quartermaster render scheduler-config` makes, and with files that
// `quartermaster lint scheduler-config` has judged.
package scheduler_config

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"quartermaster.io/test/faults/kit"
)

// noElection: with this flag a kube-scheduler schedules at once, whatever its file says.
const noElection = "--leader-elect=false"

// standard is where the files of people have their kubeconfig; ours is put in its place before a scheduler gets one.
const standard = "/etc/kubernetes/scheduler.conf"

// stage is a control plane without a scheduler, with one node that has cards, and an extender that writes down who it is asked about.
type stage struct {
	*kit.Cluster
	ctx             context.Context
	minor, program  string
	dir, kubeconfig string
	keys            kit.Keys
	url             string
	server          *http.Server
	mu              sync.Mutex
	asked           map[string]bool // "filter NAMESPACE/POD"
}

func open(ctx context.Context, name, minor, program string) (*stage, error) {
	if program == "" {
		return nil, errors.New("no program under test: ./dev build dev quartermaster, or QM_OPERATOR")
	}
	cluster, err := kit.Up(ctx, name, minor, "--no-scheduler")
	if err != nil {
		return nil, err
	}
	s := &stage{Cluster: cluster, ctx: ctx, minor: minor, program: program, asked: map[string]bool{}}
	s.kubeconfig = filepath.Join(s.Dir, "certs/kube-scheduler.kubeconfig")
	if s.dir, err = os.MkdirTemp("", "scheduler-config-"); err != nil {
		return nil, err
	}
	if s.keys, err = kit.MakeKeys(s.dir); err != nil {
		return nil, err
	}
	if err := s.serve(); err != nil {
		return nil, err
	}
	return s, s.node()
}

func (s *stage) close() {
	s.server.Close()
	os.RemoveAll(s.dir)
}

// node is one with cards, which no kubelet looks after: pods are placed on it and never run.
func (s *stage) node() error {
	amounts := corev1.ResourceList{}
	for _, name := range []string{"cpu", "memory", "pods", "nvidia.com/gpu"} {
		amounts[corev1.ResourceName(name)] = resource.MustParse("1000")
	}
	amounts["memory"] = resource.MustParse("1000Gi")
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cards"}}
	if _, err := s.Client.CoreV1().Nodes().Create(s.ctx, node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	// The controller manager writes to it as well.
	status, err := json.Marshal(map[string]any{"status": map[string]any{"capacity": amounts, "allocatable": amounts}})
	if err != nil {
		return err
	}
	_, err = s.Client.CoreV1().Nodes().Patch(s.ctx, "cards", types.MergePatchType, status, metav1.PatchOptions{}, "status")
	return err
}

// serve answers every filter with all the nodes it was asked about.
func (s *stage) serve() error {
	pair, err := tls.LoadX509KeyPair(s.keys.ServerCert, s.keys.ServerKey)
	if err != nil {
		return err
	}
	authority, err := os.ReadFile(s.keys.ClientCA)
	if err != nil {
		return err
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(authority)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.url = "https://" + listener.Addr().String()
	s.server = &http.Server{Handler: http.HandlerFunc(s.answer), ErrorLog: log.New(io.Discard, "", 0)}
	with := &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert, NextProtos: []string{"http/1.1"}}
	go s.server.Serve(tls.NewListener(listener, with))
	return nil
}

func (s *stage) answer(w http.ResponseWriter, in *http.Request) {
	var asked struct {
		Pod       corev1.Pod
		NodeNames *[]string
	}
	body, _ := io.ReadAll(in.Body)
	if err := json.Unmarshal(body, &asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.asked[filepath.Base(in.URL.Path)+" "+asked.Pod.Namespace+"/"+asked.Pod.Name] = true
	s.mu.Unlock()
	json.NewEncoder(w).Encode(map[string]any{"NodeNames": asked.NodeNames})
}

func (s *stage) was(what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[what]
}

// outcome of a start.
type outcome struct {
	started bool
	said    string // the last lines of its log
}

// start runs kube-scheduler with a configuration until it has tried to become the leader, or ended by itself. Then `while` (may be nil) runs
// with `said`, which gives what kube-scheduler has logged until now, and it is ended. Without an election there is no line to wait for: `while` sees whether it schedules.
func (s *stage) start(config string, while func(said func() string), flags ...string) (outcome, error) {
	dir, err := os.MkdirTemp(s.dir, "run-")
	if err != nil {
		return outcome{}, err
	}
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(config, standard, s.kubeconfig)), 0o600); err != nil {
		return outcome{}, err
	}
	port, err := kit.FreePort()
	if err != nil {
		return outcome{}, err
	}
	var said kit.Output
	args := []string{"--config=" + file, "--authentication-kubeconfig=" + s.kubeconfig, "--authorization-kubeconfig=" + s.kubeconfig,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port), "--cert-dir=" + dir, "--authorization-always-allow-paths=/healthz"}
	cmd := exec.Command(s.Tool("kube-scheduler"), append(args, flags...)...)
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return outcome{}, err
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	defer func() {
		cmd.Process.Kill()
		<-ended
	}()
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	serves := func() bool {
		reply, err := client.Get(fmt.Sprintf("https://127.0.0.1:%d/healthz", port))
		if err != nil {
			return false
		}
		reply.Body.Close()
		return reply.StatusCode == http.StatusOK
	}
	var healthy time.Time
	for deadline := time.Now().Add(90 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		select {
		case <-ended:
			return outcome{false, tail(&said, 12)}, nil
		default:
		}
		if healthy.IsZero() && serves() {
			healthy = time.Now()
		}
		goesOn := while != nil && slices.Contains(flags, noElection) || strings.Contains(strings.ToLower(said.String()), "attempting to acquire leader lease")
		if healthy.IsZero() || (!goesOn && time.Since(healthy) < 4*time.Second) {
			continue
		}
		if while != nil {
			while(said.String)
		}
		return outcome{true, tail(&said, 12)}, nil
	}
	return outcome{}, fmt.Errorf("kube-scheduler neither serves nor ends:\n%s", tail(&said, 10))
}

func tail(said *kit.Output, count int) string {
	all := strings.Split(strings.TrimRight(said.String(), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-count):], "\n")
}

// verdict of lint: its exit code, whether it says that kube-scheduler ends at start, the files the start depends on, and the codes.
type verdict struct {
	rc           int
	ends         bool
	opens, codes []string
}

func (s *stage) lint(config string) (out verdict, err error) {
	said, rc, err := s.quartermaster(config, "lint", "scheduler-config", "-", "--kubernetes", s.minor, "-o", "json")
	if err != nil {
		return out, err
	}
	var found struct {
		Starts   bool
		Opens    []string
		Findings []struct{ Code string }
	}
	if err := json.Unmarshal([]byte(said), &found); err != nil {
		return out, fmt.Errorf("lint printed no JSON: %w\n%s", err, said)
	}
	out.rc, out.ends, out.opens = rc, !found.Starts, found.Opens
	for _, one := range found.Findings {
		out.codes = append(out.codes, one.Code)
	}
	return out, nil
}

// quartermaster runs the program under test.
func (s *stage) quartermaster(input string, args ...string) (said string, rc int, err error) {
	cmd := exec.Command(s.program, args...)
	cmd.Stdin = strings.NewReader(input)
	var out, wrong bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &wrong
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() >= 0 && exit.ExitCode() <= 3 {
		return out.String() + wrong.String(), exit.ExitCode(), nil
	}
	if err != nil {
		return "", -1, fmt.Errorf("quartermaster %s: %w\n%s", strings.Join(args, " "), err, wrong.String())
	}
	return out.String(), 0, nil
}

// render with the extender of this test.
func (s *stage) render(args ...string) (string, error) {
	out, rc, err := s.quartermaster("", append([]string{"render", "scheduler-config", "--kubernetes", s.minor, "--address", s.url, "--server-name", "localhost",
		"--ca", s.keys.ServerCA, "--cert", s.keys.ClientCert, "--key", s.keys.ClientKey}, args...)...)
	if err == nil && rc != 0 {
		err = fmt.Errorf("render: exit code %d: %s", rc, out)
	}
	return out, err
}
