package kit

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SchedulerName is what pods of these tests say: the cluster's own scheduler leaves them alone.
const SchedulerName = "quartermaster-test"

// managed are the names for which the scheduler asks the extender; true: the scheduler itself does not look whether they fit, because no
// kubelet advertises them.
var managed = map[string]bool{
	"tencent.com/vcuda-core": false, "tencent.com/vcuda-memory": false,
	"nvidia.com/gpu": false, "nvidia.com/gpualloc": false, "nvidia.com/gpumem": true, "nvidia.com/gpumem-percentage": true, "nvidia.com/gpucores": true,
	"nvidia.com/mps-core": false, "nvidia.com/mps-memory": false,
	"aliyun.com/gpu-mem": false, "aliyun.com/gpu-count": true, "aliyun.com/gpu-core.percentage": true,
	"example.com/fpga": false,
}

// InstallExtender applies the chart with the extender's rights and policies and without its Deployment, and nothing else: no nodes, no
// simulated plugins.
func InstallExtender(ctx context.Context, c *Cluster, values ...string) (*Scenario, error) {
	s := &Scenario{Cluster: c}
	return s, s.applyChart(ctx, "--set", strings.Join(append([]string{"extender.protect=always"}, values...), ","))
}

// Keys are the files of one extender connection: the operator's certificate and the authority that signed it, the scheduler's and the
// authority the operator trusts, and one that a stranger signed.
type Keys struct {
	ServerCA, ServerCert, ServerKey string
	ClientCA, ClientCert, ClientKey string
	AlienCert, AlienKey             string
	ServerName                      string // in the operator's certificate; empty: the address of loopback
}

type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte
}

func newAuthority(name string) (*authority, error) { return newAuthorityFor(name, lifeOfKeys) }

func newAuthorityFor(name string, life time.Duration) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(life), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &authority{key, cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, err
}

func (a *authority) issue(name string, usage x509.ExtKeyUsage) (certificate, key []byte, err error) {
	return a.issueFor(name, usage, lifeOfKeys, "localhost")
}

func (a *authority) issueFor(name string, usage x509.ExtKeyUsage, life time.Duration, hosts ...string) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(life), KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: hosts}
	der, err := x509.CreateCertificate(rand.Reader, about, a.cert, private.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), err
}

// MakeKeys writes all of them into a folder.
func MakeKeys(dir string) (Keys, error) {
	at := func(name string) string { return filepath.Join(dir, name) }
	k := Keys{at("extender-ca.crt"), at("extender.crt"), at("extender.key"), at("client-ca.crt"), at("client.crt"), at("client.key"), at("alien.crt"), at("alien.key"), ""}
	for _, one := range []struct {
		name, ca, cert, key string
		usage               x509.ExtKeyUsage
	}{{"extender", k.ServerCA, k.ServerCert, k.ServerKey, x509.ExtKeyUsageServerAuth}, {"scheduler", k.ClientCA, k.ClientCert, k.ClientKey, x509.ExtKeyUsageClientAuth},
		{"alien", "", k.AlienCert, k.AlienKey, x509.ExtKeyUsageClientAuth}} {
		from, err := newAuthority("fault-" + one.name + "-ca")
		if err != nil {
			return k, err
		}
		certificate, key, err := from.issue("fault-"+one.name, one.usage)
		if err != nil {
			return k, err
		}
		files := map[string][]byte{one.cert: certificate, one.key: key}
		if one.ca != "" {
			files[one.ca] = from.pem
		}
		for file, text := range files {
			if err := os.WriteFile(file, text, 0o600); err != nil {
				return k, err
			}
		}
	}
	return k, nil
}

// ClientTLS is how a caller with these files speaks to the extender. Without a certificate: as a stranger.
func ClientTLS(ca, certificate, key string) (*tls.Config, error) {
	text, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	out := &tls.Config{RootCAs: x509.NewCertPool(), NextProtos: []string{"http/1.1"}}
	out.RootCAs.AppendCertsFromPEM(text)
	if certificate != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, err
		}
		out.Certificates = []tls.Certificate{pair}
	}
	return out, nil
}

// ExtenderArgs for the operator, which reads the cluster's certificates (KeysOfTheCluster) from their Secrets.
func (k Keys) ExtenderArgs(address string) []string {
	if k.ServerName != "" {
		return []string{"--extender-address", address}
	}
	return []string{"--extender-address", address, "--extender-cert-file", k.ServerCert, "--extender-key-file", k.ServerKey, "--extender-client-ca", k.ClientCA}
}

// Call is one request of the scheduler to the extender, as the tap saw it.
type Call struct {
	At        time.Time
	Took      time.Duration
	Verb      string
	Namespace string
	Name      string
	UID       types.UID
	Node      string // of a bind
	Names     int    // of a filter: how many were asked about, and how many fit
	Fits      int
	Reason    string // of a filter where none fits: one of the reasons
	Status    int    // 0: no one answered
	Error     string // in the answer's body, or of the connection
}

func (c Call) String() string {
	return fmt.Sprintf("%s %s %s/%s %s -> %d %d/%d %q in %s", c.At.Format("15:04:05.000"), c.Verb, c.Namespace, c.Name, c.Node, c.Status, c.Fits, c.Names, c.Error, c.Took.Round(time.Millisecond))
}

// Tap stands between scheduler and extender: it writes every call down, and passes it to the operator that leads, as a Service in front of
// ready pods would. It changes nothing, and passes on at once unless it has to wait.
type Tap struct {
	URL string

	server *http.Server
	client *http.Client

	mu       sync.Mutex
	backends []string
	calls    []Call
	delay    map[string]time.Duration
}

// NewTap listens on loopback with the operator's own certificate.
func NewTap(k Keys) (*Tap, error) {
	pair, err := tls.LoadX509KeyPair(k.ServerCert, k.ServerKey)
	if err != nil {
		return nil, err
	}
	to, err := ClientTLS(k.ServerCA, k.ClientCert, k.ClientKey)
	if err != nil {
		return nil, err
	}
	to.ServerName = k.ServerName
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	t := &Tap{URL: "https://" + listener.Addr().String() + "/scheduler", client: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: to, MaxIdleConnsPerHost: 16}}}
	t.server = &http.Server{Handler: http.HandlerFunc(t.serve), ErrorLog: log.New(io.Discard, "", 0)}
	go t.server.Serve(tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}))
	return t, nil
}

// To says who may be asked, host:port, in this order.
func (t *Tap) To(backends ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.backends = backends
}

// Address it listens at, host:port.
func (t *Tap) Address() string {
	return strings.TrimSuffix(strings.TrimPrefix(t.URL, "https://"), "/scheduler")
}

// Delay every call of a verb from now on.
func (t *Tap) Delay(verb string, by time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.delay = map[string]time.Duration{verb: by}
}

func (t *Tap) Close() { t.server.Close() }

// Calls since a moment.
func (t *Tap) Calls(since time.Time) (out []Call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.calls {
		if !c.At.Before(since) {
			out = append(out, c)
		}
	}
	return
}

func (t *Tap) serve(w http.ResponseWriter, in *http.Request) {
	body, err := io.ReadAll(in.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	call := Call{At: time.Now(), Verb: filepath.Base(in.URL.Path)}
	var asked struct {
		Pod struct {
			Metadata struct {
				Name, Namespace string
				UID             types.UID
			}
		}
		NodeNames                   []string
		PodName, PodNamespace, Node string
		PodUID                      types.UID
	}
	if json.Unmarshal(body, &asked) == nil {
		call.Namespace, call.Name, call.UID, call.Names = asked.Pod.Metadata.Namespace, asked.Pod.Metadata.Name, asked.Pod.Metadata.UID, len(asked.NodeNames)
		if asked.PodName != "" {
			call.Namespace, call.Name, call.UID, call.Node = asked.PodNamespace, asked.PodName, asked.PodUID, asked.Node
		}
	}
	t.mu.Lock()
	backends, delay := t.backends, t.delay[call.Verb]
	t.mu.Unlock()
	time.Sleep(delay)
	var answer []byte
	for _, to := range backends {
		request, _ := http.NewRequestWithContext(in.Context(), in.Method, "https://"+to+in.URL.Path, bytes.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		reply, err := t.client.Do(request)
		if err != nil {
			call.Error = err.Error()
			if call.Status == 0 && (strings.Contains(err.Error(), "connection refused")) {
				continue // no one there: another may be
			}
			break
		}
		answer, _ = io.ReadAll(reply.Body)
		reply.Body.Close()
		call.Status, call.Error = reply.StatusCode, ""
		if reply.StatusCode != http.StatusServiceUnavailable {
			break
		}
	}
	call.Took = time.Since(call.At)
	if call.Status == http.StatusOK {
		call.read(answer)
	} else if call.Error == "" {
		call.Error = strings.TrimSpace(string(answer))
	}
	t.mu.Lock()
	t.calls = append(t.calls, call)
	t.mu.Unlock()
	if call.Status == 0 {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(call.Status)
	w.Write(answer)
}

func (c *Call) read(answer []byte) {
	var said struct {
		NodeNames   []string
		FailedNodes map[string]string
		Unresolved  map[string]string `json:"FailedAndUnresolvableNodes"`
		Error       string
	}
	if c.Verb == "prioritize" || json.Unmarshal(answer, &said) != nil {
		return
	}
	c.Error, c.Fits = said.Error, len(said.NodeNames)
	for _, reasons := range []map[string]string{said.Unresolved, said.FailedNodes} {
		for _, reason := range reasons {
			c.Reason = reason
			break
		}
	}
}

// Scheduler is a second kube-scheduler of the cluster's own version, which asks the extender.
type Scheduler struct {
	LogFile string
	Health  string
	cmd     *exec.Cmd
	exited  chan struct{}
}

// StoreKeys makes the three Secrets as an operator does when it starts first, for tests that read them before one runs.
func (c *Cluster) StoreKeys(ctx context.Context, namespace string) error {
	const day = 24 * time.Hour
	by, err := newAuthorityFor("quartermaster extender authority", 3650*day)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(by.key)
	if err != nil {
		return err
	}
	const name = "quartermaster-extender"
	host := name + "." + namespace + ".svc"
	secrets := map[string]map[string][]byte{name + "-authority": {"ca.crt": by.pem, "ca.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})}}
	for secret, one := range map[string]struct {
		usage x509.ExtKeyUsage
		hosts []string
	}{name: {x509.ExtKeyUsageServerAuth, []string{host, host + ".cluster.local", name, "localhost"}}, name + "-client": {x509.ExtKeyUsageClientAuth, nil}} {
		certificate, key, err := by.issueFor(secret, one.usage, 365*day, one.hosts...)
		if err != nil {
			return err
		}
		secrets[secret] = map[string][]byte{"ca.crt": by.pem, "tls.crt": certificate, "tls.key": key}
	}
	for secret, data := range secrets {
		_, err := c.Client.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{Data: data,
			ObjectMeta: metav1.ObjectMeta{Name: secret, Labels: map[string]string{"app.kubernetes.io/managed-by": "quartermaster"}}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
	}
	return nil
}

// KeysOfTheCluster are those of the three Secrets, as files; they are made where there are none yet.
func (s *Scenario) KeysOfTheCluster(ctx context.Context, dir string, into *Keys) error {
	if _, err := s.Client.CoreV1().Secrets(Namespace).Get(ctx, "quartermaster-extender", metav1.GetOptions{}); apierrors.IsNotFound(err) {
		if err := s.StoreKeys(ctx, Namespace); err != nil {
			return err
		}
	}
	at := func(of, name string) string { return filepath.Join(dir, "chart-"+of+"-"+name) }
	for of, secret := range map[string]string{"server": "quartermaster-extender", "client": "quartermaster-extender-client"} {
		is, err := s.Client.CoreV1().Secrets(Namespace).Get(ctx, secret, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for name, text := range is.Data {
			if err := os.WriteFile(at(of, name), text, 0o600); err != nil {
				return err
			}
		}
	}
	*into = Keys{ServerCA: at("client", "ca.crt"), ServerCert: at("server", "tls.crt"), ServerKey: at("server", "tls.key"),
		ClientCA: at("server", "ca.crt"), ClientCert: at("client", "tls.crt"), ClientKey: at("client", "tls.key"),
		ServerName: "quartermaster-extender." + Namespace + ".svc"}
	return nil
}

// Account writes a kubeconfig with a token of a ServiceAccount of the chart, as a pod of it would have.
func (c *Cluster) Account(ctx context.Context, name string) (kubeconfig string, err error) {
	return clusterScript(ctx, "sa-kubeconfig", "--name", c.Name, "--namespace", Namespace, "--serviceaccount", name)
}

// RunDedicated does what a kubelet would with a pod of the operator's Deployment: it starts `program`, a kube-scheduler, as the chart's
// ServiceAccount with the file that the operator has made. The extender is at this address; the chart's keys are in the folder.
func RunDedicated(ctx context.Context, c *Cluster, program, dir, address string) (*Scheduler, error) {
	const name = "quartermaster-scheduler"
	file, err := c.Client.CoreV1().ConfigMaps(Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	text := file.Data["scheduler-config.yaml"]
	for from, to := range map[string]string{
		"https://quartermaster-extender." + Namespace + ".svc/": "https://" + address + "/",
		"/etc/quartermaster/extender/":                          dir + "/chart-client-",
	} {
		if !strings.Contains(text, from) {
			return nil, fmt.Errorf("the configuration does not say %s:\n%s", from, text)
		}
		text = strings.ReplaceAll(text, from, to)
	}
	kubeconfig, err := c.Account(ctx, name)
	if err != nil {
		return nil, err
	}
	text += fmt.Sprintf("clientConnection:\n  kubeconfig: %q\n", kubeconfig)
	// It must be able to read whom to believe.
	return runScheduler(ctx, c, program, dir, text, kubeconfig, "--authentication-tolerate-lookup-failure=false")
}

// StartScheduler next to the cluster's own. `extender` is a URL with path. Further ones of the same name may run: no lease is taken. A pod that
// was refused is tried again after `backoff` seconds at first.
func StartScheduler(ctx context.Context, c *Cluster, dir, extender string, k Keys, backoff int) (*Scheduler, error) {
	return startScheduler(ctx, c, dir, backoff, fmt.Sprintf(`- urlPrefix: %q
  filterVerb: filter
  prioritizeVerb: prioritize
  bindVerb: bind
  preemptVerb: preempt
  weight: 1
  enableHTTPS: true
  httpTimeout: 5s
  nodeCacheCapable: true
  tlsConfig: {caFile: %q, certFile: %q, keyFile: %q}
`, extender, k.ServerCA, k.ClientCert, k.ClientKey))
}

// StartOldScheduler is set up by the manuals of gpu-manager, as far as a scheduler of today takes that: the decision is asked for at filter, through
// the API server's service proxy, with whole nodes and an administrator's certificate; the scheduler binds by itself.
func StartOldScheduler(ctx context.Context, c *Cluster, dir, service string) (*Scheduler, error) {
	at := func(name string) string { return filepath.Join(c.Dir, "certs", name) }
	return startScheduler(ctx, c, dir, 1, fmt.Sprintf(`- urlPrefix: %q
  filterVerb: predicates
  enableHTTPS: true
  nodeCacheCapable: false
  httpTimeout: 10s
  tlsConfig: {caFile: %q, certFile: %q, keyFile: %q}
`, c.Config.Host+"/api/v1/namespaces/kube-system/services/"+service+"/proxy/scheduler", at("ca.crt"), at("admin.crt"), at("admin.key")))
}

// startScheduler with one extender, which manages all resources of these tests.
func startScheduler(ctx context.Context, c *Cluster, dir string, backoff int, extender string) (*Scheduler, error) {
	var resources []string
	for name, ignored := range managed {
		resources = append(resources, fmt.Sprintf("  - {name: %q, ignoredByScheduler: %v}\n", name, ignored))
	}
	kubeconfig := filepath.Join(c.Dir, "certs/kube-scheduler.kubeconfig")
	text := fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %q, qps: 500, burst: 1000}
podInitialBackoffSeconds: %d
podMaxBackoffSeconds: %d
profiles: [{schedulerName: %s}]
extenders:
%s  managedResources:
%s`, kubeconfig, backoff, 2*backoff, SchedulerName, extender, strings.Join(resources, ""))
	return runScheduler(ctx, c, "kube-scheduler", dir, text, kubeconfig)
}

func runScheduler(ctx context.Context, c *Cluster, program, dir, text, kubeconfig string, args ...string) (*Scheduler, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, fmt.Sprintf("scheduler-%d.yaml", port))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	s := &Scheduler{LogFile: filepath.Join(dir, fmt.Sprintf("scheduler-%d.log", port)), Health: fmt.Sprintf("https://127.0.0.1:%d", port), exited: make(chan struct{})}
	out, err := os.Create(s.LogFile)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	s.cmd = exec.Command(c.Tool(program), append([]string{"--config=" + config, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port), "--cert-dir=" + dir, "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics"}, args...)...)
	s.cmd.Stdout, s.cmd.Stderr = out, out
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { s.cmd.Wait(); close(s.exited) }()
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	for deadline := time.Now().Add(90 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if reply, err := client.Get(s.Health + "/healthz"); err == nil {
			reply.Body.Close()
			if reply.StatusCode == http.StatusOK {
				return s, nil
			}
		}
		select {
		case <-s.exited:
			return nil, fmt.Errorf("kube-scheduler ended at once:\n%s", s.Tail(10))
		case <-ctx.Done():
			s.Close()
			return nil, ctx.Err()
		default:
		}
		if time.Now().After(deadline) {
			s.Close()
			return nil, fmt.Errorf("kube-scheduler is not healthy after 90 s:\n%s", s.Tail(10))
		}
	}
}

// Signal it: SIGSTOP, SIGCONT.
func (s *Scheduler) Signal(which syscall.Signal) error { return s.cmd.Process.Signal(which) }

// Close ends it.
func (s *Scheduler) Close() {
	s.cmd.Process.Kill()
	<-s.exited
}

// Running: it has not ended by itself.
func (s *Scheduler) Running() bool {
	select {
	case <-s.exited:
		return false
	default:
		return true
	}
}

// Log is all it has written so far.
func (s *Scheduler) Log() string {
	text, _ := os.ReadFile(s.LogFile)
	return string(text)
}

// Tail of its log.
func (s *Scheduler) Tail(lines int) string {
	all := strings.Split(strings.TrimRight(s.Log(), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// FilterAnswer, as the wire has it.
type FilterAnswer struct {
	NodeNames                  *[]string
	FailedNodes                map[string]string
	FailedAndUnresolvableNodes map[string]string
	Error                      string
}

// Extender is a caller of one, without a scheduler in between.
type Extender struct {
	Base   string // https://host:port/scheduler
	Client *http.Client
}

// DialExtender with the scheduler's certificate.
func DialExtender(address string, k Keys) (*Extender, error) {
	with, err := ClientTLS(k.ServerCA, k.ClientCert, k.ClientKey)
	if err != nil {
		return nil, err
	}
	return &Extender{"https://" + address + "/scheduler", &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: with, MaxIdleConnsPerHost: 128}}}, nil
}

// Post sends a body and returns what came back.
func (e *Extender) Post(ctx context.Context, verb string, body []byte) (status int, answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.Base+"/"+verb, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	reply, err := e.Client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer reply.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(reply.Body, 256<<20))
	return reply.StatusCode, answer, err
}

// Filter asks about names. Anything but 200 is an error.
func (e *Extender) Filter(ctx context.Context, pod any, names []string) (out FilterAnswer, err error) {
	body, err := json.Marshal(map[string]any{"Pod": pod, "Nodes": nil, "NodeNames": names})
	if err != nil {
		return out, err
	}
	status, answer, err := e.Post(ctx, "filter", body)
	if err != nil {
		return out, err
	}
	if status != http.StatusOK {
		return out, fmt.Errorf("filter: %d %.300s", status, answer)
	}
	return out, json.Unmarshal(answer, &out)
}

// Bind returns the Error of the answer; what is no answer at all is err.
func (e *Extender) Bind(ctx context.Context, namespace, name string, uid types.UID, node string) (refused string, err error) {
	body, err := json.Marshal(map[string]any{"PodName": name, "PodNamespace": namespace, "PodUID": uid, "Node": node})
	if err != nil {
		return "", err
	}
	status, answer, err := e.Post(ctx, "bind", body)
	if err != nil {
		return "", err
	}
	if status != http.StatusOK {
		return "", fmt.Errorf("bind: %d %.300s", status, answer)
	}
	var said struct{ Error string }
	err = json.Unmarshal(answer, &said)
	return said.Error, err
}
