// Package static_pod runs `quartermaster agent --static-pod` on three simulated control-plane nodes: kube-schedulers of the real program, started from
// manifests by what does the part of a kubelet (test/sim/staticpods), on a real API server, with the rights that the chart gives.
package static_pod

import (
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
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"quartermaster.io/test/faults/kit"
	"quartermaster.io/test/sim/staticpods"
)

const (
	namespace         = kit.Namespace
	rows              = "quartermaster-static-pod"
	controlPlaneNodes = 3
)

// stage is the control plane with its control-plane nodes, and an extender that writes down who asks it.
type stage struct {
	*kit.Cluster
	ctx               context.Context
	minor, program    string
	dir               string
	url               string // of the extender
	server            *http.Server
	asked             atomic.Int64
	controlPlaneNodes []*controlPlaneNode
	account           string // kubeconfig of the agent
	witness           *witness
	stop              []func()
}

func open(ctx context.Context, minor, program string) (*stage, error) {
	if program == "" {
		return nil, errors.New("no program under test: ./dev build dev quartermaster, or QM_OPERATOR")
	}
	cluster, err := kit.Up(ctx, fmt.Sprintf("static-pod-%d", os.Getpid()), minor, "--no-kwok", "--no-scheduler")
	if err != nil {
		return nil, err
	}
	s := &stage{Cluster: cluster, ctx: ctx, minor: minor, program: program}
	if s.dir, err = os.MkdirTemp("", "static-pod-"); err != nil {
		return s, err
	}
	for _, step := range []func() error{s.install, s.serve, s.start} {
		if err := step(); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s *stage) close() {
	for _, m := range s.controlPlaneNodes {
		m.kill()
	}
	for _, stop := range s.stop {
		stop()
	}
	if s.server != nil {
		s.server.Close()
	}
	if err := s.Down(); err != nil {
		fmt.Fprintln(os.Stderr, "static_pod:", err)
	}
	os.RemoveAll(s.dir)
}

// install the chart without the operator, and get the agent's own rights.
func (s *stage) install() error {
	if _, err := s.Run("", "helm", "install", "quartermaster", filepath.Join(kit.Root(), "charts/quartermaster"), "--namespace", namespace, "--create-namespace",
		"--set", "replicaCount=0"); err != nil {
		return err
	}
	if _, err := s.Run("", "kubectl", "wait", "crd", "--for=condition=Established", "--timeout=30s", "acceleratorpolicies.quartermaster.io"); err != nil {
		return err
	}
	if err := s.StoreKeys(s.ctx, namespace); err != nil {
		return err
	}
	out, err := exec.Command(filepath.Join(kit.Root(), "test/cluster/cluster.sh"), "sa-kubeconfig", "--name", s.Name, "--namespace", namespace,
		"--serviceaccount", "quartermaster-static-pod").Output()
	s.account = strings.TrimSpace(string(out))
	return err
}

// serve as the extender, with the certificate and the authority of the Secrets.
func (s *stage) serve() error {
	secret, err := s.Client.CoreV1().Secrets(namespace).Get(s.ctx, "quartermaster-extender", metav1.GetOptions{})
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
	if err != nil {
		return err
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(secret.Data["ca.crt"])
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.url = "https://" + listener.Addr().String()
	s.server = &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
		var asked struct{ NodeNames *[]string }
		if in.Method == http.MethodPost && json.NewDecoder(in.Body).Decode(&asked) == nil {
			s.asked.Add(1)
			json.NewEncoder(w).Encode(map[string]any{"NodeNames": asked.NodeNames})
			return
		}
		http.NotFound(w, in)
	})}
	with := &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert, NextProtos: []string{"http/1.1"}}
	go s.server.Serve(tls.NewListener(listener, with))
	return nil
}

// start the control-plane nodes and wait until all their schedulers serve; from then on someone watches.
func (s *stage) start() error {
	for i := range controlPlaneNodes {
		m, err := s.controlPlaneNode(fmt.Sprintf("m%d", i+1))
		if err != nil {
			return err
		}
		s.controlPlaneNodes = append(s.controlPlaneNodes, m)
	}
	s.witness = &witness{controlPlaneNodes: s.controlPlaneNodes}
	if err := s.until(60*time.Second, "three kube-schedulers", func() error {
		return errors.Join(s.witness.troubles()...)
	}); err != nil {
		return fmt.Errorf("%w\n%s", err, s.controlPlaneNodes[0].kubelet.Log("kube-scheduler"))
	}
	ctx, cancel := context.WithCancel(s.ctx)
	s.stop = append(s.stop, cancel)
	go s.witness.watch(ctx)
	return nil
}

// controlPlaneNode is a control-plane node: one folder like /etc/kubernetes, with what a kubelet does there, and an agent.
type controlPlaneNode struct {
	*stage
	node, root string
	port       int
	before     map[string]string // its files as kubeadm wrote them
	kubelet    *staticpods.Kubelet
	fails      atomic.Bool // a kube-scheduler that reads a configuration ends at once

	mu    sync.Mutex
	agent *exec.Cmd
	ended chan struct{}
}

func (s *stage) controlPlaneNode(node string) (*controlPlaneNode, error) {
	m := &controlPlaneNode{stage: s, node: node, root: filepath.Join(s.dir, node, "etc/kubernetes")}
	var err error
	if m.port, err = kit.FreePort(); err != nil {
		return nil, err
	}
	conf, err := os.ReadFile(filepath.Join(s.Dir, "certs/kube-scheduler.kubeconfig"))
	if err != nil {
		return nil, err
	}
	manifest, err := kit.KubeadmScheduler(s.minor)
	if err != nil {
		return nil, err
	}
	// All control-plane nodes are on one machine, so each has a port of its own.
	text := strings.ReplaceAll(string(manifest), "10259", fmt.Sprint(m.port))
	text = strings.Replace(text, "    - --leader-elect=true\n", fmt.Sprintf("    - --leader-elect=true\n    - --secure-port=%d\n", m.port), 1)
	m.before = map[string]string{"scheduler.conf": string(conf), "manifests/kube-scheduler.yaml": text}
	if err := os.MkdirAll(filepath.Join(m.root, "manifests"), 0o755); err != nil {
		return nil, err
	}
	for name, text := range m.before {
		if err := os.WriteFile(filepath.Join(m.root, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	made := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}}, Spec: corev1.NodeSpec{Unschedulable: true}}
	if _, err := s.Client.CoreV1().Nodes().Create(s.ctx, made, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	m.kubelet = &staticpods.Kubelet{Node: node, Root: m.root, Work: filepath.Join(s.dir, node), Client: s.Client,
		Programs: map[string]string{"kube-scheduler": s.Tool("kube-scheduler")},
		Fails: func(command []string) bool {
			return m.fails.Load() && strings.Contains(strings.Join(command, " "), "--config=")
		}}
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan struct{})
	go func() { m.kubelet.Run(ctx); close(done) }()
	s.stop = append(s.stop, func() { cancel(); <-done })
	return m, nil
}

// trouble: why its kube-scheduler does not say that it is healthy. On a busy machine the answer may take a while, so one that has not come is
// asked for again.
func (m *controlPlaneNode) trouble() (err error) {
	for range 3 {
		var reply *http.Response
		if reply, err = probe.Get(fmt.Sprintf("https://127.0.0.1:%d/healthz", m.port)); err == nil {
			defer reply.Body.Close()
			if reply.StatusCode == http.StatusOK {
				return nil
			}
			text, _ := io.ReadAll(reply.Body)
			return fmt.Errorf("%s: %s: %s", m.node, reply.Status, text)
		}
		if late, ok := err.(net.Error); !ok || !late.Timeout() {
			break
		}
	}
	return fmt.Errorf("%s: %w", m.node, err)
}

var probe = &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}

// run the agent, with times for tests. Where it loses its turn it ends, as on a machine that is busy: then it is started again after a second, as a
// kubelet does.
func (m *controlPlaneNode) run(more ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.start(more)
}

func (m *controlPlaneNode) start(more []string) error {
	log, err := os.OpenFile(filepath.Join(m.dir, m.node+"-agent.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(m.program, append([]string{"agent", "--static-pod", "--kubeconfig", m.account, "-n", namespace, "--node-name", m.node, "--root", m.root,
		"--extender-url", m.url, "--patience", "25", "--settle", "2", "--look", "2", "--period", "1",
		"--lease-duration", "5", "--renew-deadline", "4", "--retry-period", "1"}, more...)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	m.agent, m.ended = cmd, ended
	go func() {
		cmd.Wait()
		close(ended)
		if cmd.ProcessState.ExitCode() == 1 && strings.Contains(tail(m.log(), 3), "leadership lost") {
			time.Sleep(time.Second)
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.agent == cmd {
				m.start(more)
			}
		}
	}()
	return nil
}

// kill the agent, as by SIGKILL in the middle of whatever it does.
func (m *controlPlaneNode) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.agent == nil {
		return
	}
	m.agent.Process.Kill()
	<-m.ended
	m.agent = nil
}

func (m *controlPlaneNode) runs() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.agent == nil {
		return false
	}
	select {
	case <-m.ended:
		return false
	default:
		return true
	}
}

func (m *controlPlaneNode) file(name string) string { return filepath.Join(m.root, name) }

// read is empty where there is no such file.
func (m *controlPlaneNode) read(name string) string {
	text, _ := os.ReadFile(m.file(name))
	return string(text)
}

// put a file in place as a person or kubeadm does.
func (m *controlPlaneNode) put(name, text string) error {
	return os.WriteFile(m.file(name), []byte(text), 0o600)
}

// asBefore: every file as kubeadm wrote it, and no other.
func (m *controlPlaneNode) asBefore() error {
	var wrong error
	filepath.WalkDir(m.root, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			name, _ := filepath.Rel(m.root, path)
			if m.before[name] != m.read(name) {
				wrong = fmt.Errorf("%s: %s is not as it was:\n%s", m.node, name, m.read(name))
			}
		}
		return nil
	})
	return wrong
}

func (m *controlPlaneNode) log() string {
	text, _ := os.ReadFile(filepath.Join(m.dir, m.node+"-agent.log"))
	return string(text)
}

type row struct {
	State, Checksum, Version, Since, Reason, Certificates string
	Generation                                            int
}

func (m *controlPlaneNode) row() (out row) {
	is, err := m.Client.CoreV1().ConfigMaps(namespace).Get(m.ctx, rows, metav1.GetOptions{})
	if err == nil {
		json.Unmarshal([]byte(is.Data[m.node]), &out)
	}
	return
}

// mode of the AcceleratorPolicy.
func (s *stage) mode(mode string) error {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "quartermaster.io/v1alpha1", "kind": "AcceleratorPolicy",
		"metadata": map[string]any{"name": "default"}, "spec": map[string]any{"scheduler": map[string]any{"mode": mode}}}}
	_, err := s.Dynamic.Resource(kit.Policies).Apply(s.ctx, "default", object, metav1.ApplyOptions{FieldManager: "test", Force: true})
	return err
}

func (s *stage) until(patience time.Duration, what string, done func() error) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		err := done()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: not within %s: %w", what, patience, err)
		}
	}
}

// witness asks all kube-schedulers all the time how they are.
type witness struct {
	controlPlaneNodes []*controlPlaneNode
	mu                sync.Mutex
	worst             []error // of those that were not healthy at once
	when              time.Time
	looks             int
}

// troubles of those that are not healthy.
func (w *witness) troubles() (out []error) {
	found := make([]error, len(w.controlPlaneNodes))
	var all sync.WaitGroup
	for i, m := range w.controlPlaneNodes {
		all.Go(func() { found[i] = m.trouble() })
	}
	all.Wait()
	return slices.DeleteFunc(found, func(err error) bool { return err == nil })
}

func (w *witness) watch(ctx context.Context) {
	w.saw()
	for ctx.Err() == nil {
		found := w.troubles()
		w.mu.Lock()
		w.looks++
		if len(found) > len(w.worst) {
			w.worst, w.when = found, time.Now()
		}
		w.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// saw what was wrong when the fewest were healthy since the last call.
func (w *witness) saw() (worst []error, looks int, when time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	worst, looks, when = w.worst, w.looks, w.when
	w.worst, w.looks = nil, 0
	return
}
