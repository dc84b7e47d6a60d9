package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quartermaster.io/bench/kit"
)

const (
	namespace = "quartermaster"
	account   = "quartermaster-agent"
)

type figure struct {
	name, unit  string
	most, value float64
	mayBeZero   bool // and negative, where it is a difference
}

// fleetPlane is a control plane with the chart, the nodes and the pods of the agents, whose kubelets are not there.
type fleetPlane struct {
	*kit.Plane
	folder  string // of this run's files
	metrics string // of the operator
}

func planeUp(ctx context.Context, o options) (*fleetPlane, error) {
	started, err := kit.PlaneUp(ctx, kit.AnyCore, "agents", "--no-kwok", "--no-scheduler")
	if err != nil {
		return nil, err
	}
	p := &fleetPlane{Plane: started}
	if p.folder, err = os.MkdirTemp("", "agents-"); err == nil {
		err = p.Run(ctx, nil, "helm", "install", "quartermaster", "charts/quartermaster", "-n", namespace, "--create-namespace", "--set", "agent.enabled=true,replicaCount=0")
	}
	if err == nil {
		err = p.StopControllers()
	}
	if err != nil {
		p.down(o)
		return nil, err
	}
	return p, nil
}

func (p *fleetPlane) down(o options) {
	os.RemoveAll(p.folder)
	p.Down(o.keep)
}

func nodeName(kind string, i int) string { return fmt.Sprintf("%s-%04d", kind, i) }

// join makes a node and the pod of its agent, and answers the agent's token.
func (p *fleetPlane) join(ctx context.Context, name string) (string, error) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"nvidia.com/gpu.present": "true"}}}
	if _, err := p.Client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	no := false
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "agent-" + name, Namespace: namespace, Labels: map[string]string{"app.kubernetes.io/name": account}},
		Spec: corev1.PodSpec{NodeName: name, ServiceAccountName: account, AutomountServiceAccountToken: &no, Containers: []corev1.Container{{Name: "agent", Image: "none.test/none:1"}}}}
	made, err := p.Client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	made.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	if _, err := p.Client.CoreV1().Pods(namespace).UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
		return "", err
	}
	day := int64(86400)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &day,
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: made.Name, UID: made.UID}}}
	token, err := p.Client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return token.Status.Token, nil
}

// printed is what an agent on a node with eight cards reports, in the two parts that it writes.
func printed(o options) (cards, preflight map[string]any, err error) {
	program := exec.Command(filepath.Join(o.release, "quartermaster"), "agent", "--print")
	program.Env = append(os.Environ(), "LD_LIBRARY_PATH="+o.standin, "QM_NVML_FIXTURE=test/nvml/fixtures/a100x8.json")
	text, err := program.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("quartermaster agent --print with the stand-in of %s: %w", o.standin, err)
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, nil, err
	}
	cards, preflight = map[string]any{"conditions": []any{}}, map[string]any{"conditions": []any{}}
	for key, value := range all {
		switch key {
		case "preflight":
			preflight[key] = value
		case "conditions":
			for _, one := range value.([]any) {
				part := cards
				if one.(map[string]any)["type"] == "PreflightPassed" {
					part = preflight
				}
				part[key] = append(part[key].([]any), one)
			}
		default:
			cards[key] = value
		}
	}
	return cards, preflight, nil
}

// body of one of the two writes; no two nodes have a card in common.
func body(node string, index int, status map[string]any) ([]byte, error) {
	text, err := json.Marshal(map[string]any{"apiVersion": "quartermaster.io/v1alpha1", "kind": "AcceleratorNode", "metadata": map[string]any{"name": node}, "status": status})
	return []byte(strings.ReplaceAll(string(text), "GPU-", fmt.Sprintf("GPU-%04x", index))), err
}

func (p *fleetPlane) startReal(o options, i int, token string) (*kit.Process, error) {
	config, err := p.roots()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Config", "current-context": "agent",
		"clusters": []any{map[string]any{"name": "agent", "cluster": map[string]any{"server": p.Config.Host, "certificate-authority-data": config}}},
		"users":    []any{map[string]any{"name": "agent", "user": map[string]any{"token": token}}},
		"contexts": []any{map[string]any{"name": "agent", "context": map[string]any{"cluster": "agent", "user": "agent"}}}})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(p.folder, nodeName("real", i))
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	program := exec.Command(filepath.Join(o.release, "quartermaster"), "agent", "--kubeconfig", file, "--node-name", nodeName("real", i))
	program.Env = append(os.Environ(), "LD_LIBRARY_PATH="+o.standin, "QM_NVML_FIXTURE=test/nvml/fixtures/a100x8.json")
	return kit.Start(program)
}

// roots is the PEM text that the API server's certificate is signed by.
func (p *fleetPlane) roots() ([]byte, error) {
	if len(p.Config.CAData) > 0 {
		return p.Config.CAData, nil
	}
	return os.ReadFile(p.Config.CAFile)
}

// series of the operator's metrics; -1: it does not say.
func (p *fleetPlane) series(name string) float64 {
	answer, err := http.Get("http://" + p.metrics + "/metrics")
	if err != nil {
		return -1
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	for line := range strings.Lines(string(text)) {
		if value, is := strings.CutPrefix(strings.TrimSpace(line), name+" "); is {
			if number, err := strconv.ParseFloat(value, 64); err == nil {
				return number
			}
		}
	}
	return -1
}

// until waits, and answers how long that took.
func until(ctx context.Context, what string, patience time.Duration, done func() bool) (float64, error) {
	for began := time.Now(); ; {
		if done() {
			return time.Since(began).Seconds(), nil
		}
		if time.Since(began) > patience {
			return 0, fmt.Errorf("%s: not after %s", what, patience)
		}
		if err := kit.Pause(ctx, 50*time.Millisecond); err != nil {
			return 0, err
		}
	}
}

// meter reads CPU seconds and memory of the API server and the operator.
type meter struct{ server, operator int }

type reading struct {
	time             time.Time
	server, operator float64 // CPU seconds
}

func (m meter) read() (out reading, err error) {
	server, err := kit.CPU(m.server)
	if err != nil {
		return out, err
	}
	operator, err := kit.CPU(m.operator)
	return reading{time.Now(), server.Seconds(), operator.Seconds()}, err
}

func measure(ctx context.Context, o options, count int) (out []figure, err error) {
	add := func(name, unit string, most, value float64) {
		out = append(out, figure{name, unit, most, value, false})
	}
	addOrZero := func(name, unit string, most, value float64) { out = append(out, figure{name, unit, most, value, true}) }
	cards, preflight, err := printed(o)
	if err != nil {
		return nil, err
	}
	p, err := planeUp(ctx, o)
	if err != nil {
		return nil, err
	}
	defer p.down(o)
	tokens, realTokens := make([]string, count), make([]string, o.real)
	kit.Say("%d agents: making nodes, pods and tokens", count)
	if err := kit.Each(count, 16, func(i int) (err error) { tokens[i], err = p.join(ctx, nodeName("played", i)); return }); err != nil {
		return nil, err
	}
	if err := kit.Each(o.real, 16, func(i int) (err error) { realTokens[i], err = p.join(ctx, nodeName("real", i)); return }); err != nil {
		return nil, err
	}
	addresses, err := kit.FreeAddresses(2)
	if err != nil {
		return nil, err
	}
	p.metrics = addresses[0]
	operator, err := kit.Spawn(kit.AnyCore, filepath.Join(o.release, "quartermaster"), "controller", "--kubeconfig", p.Kubeconfig, "-n", namespace,
		// It ends when it cannot renew its lease, and here the API server may be away for longer than it usually has.
		"--lease-duration", "120", "--renew-deadline", "100", "--metrics-address", addresses[0], "--extender-address", addresses[1])
	if err != nil {
		return nil, err
	}
	defer operator.Kill()
	if _, err := until(ctx, "the operator leads", time.Minute, func() bool { return p.series("quartermaster_leader") == 1 }); err != nil {
		return nil, fmt.Errorf("%w: %s", err, operator.Tail)
	}
	var real []*kit.Process
	for i, token := range realTokens {
		one, err := p.startReal(o, i, token)
		if err != nil {
			return nil, err
		}
		defer one.Kill()
		real = append(real, one)
	}
	limit := func(nodes int) float64 { return float64(max(2, (nodes+4)/5)) }
	taken := func(nodes int) func() bool {
		return func() bool { return p.series("quartermaster_withdrawal_limit_nodes") == limit(nodes) }
	}
	if _, err := until(ctx, "the real agents have reported", 5*time.Minute, taken(o.real)); err != nil {
		return nil, fmt.Errorf("%w: %s", err, real[0].Tail)
	}
	if err := kit.Pause(ctx, min(o.calm, 5*time.Second)); err != nil {
		return nil, err
	}

	// All start at once.
	pem, err := p.roots()
	if err != nil {
		return nil, err
	}
	roots := &tls.Config{RootCAs: x509.NewCertPool()}
	roots.RootCAs.AppendCertsFromPEM(pem)
	f := &fleet{}
	agents := make([]*agent, count)
	for i := range agents {
		first, err := body(nodeName("played", i), i, cards)
		if err != nil {
			return nil, err
		}
		second, err := body(nodeName("played", i), i, preflight)
		if err != nil {
			return nil, err
		}
		agents[i] = newAgent(f, nodeName("played", i), p.Config.Host, tokens[i], roots, first, second)
		if i == 0 {
			add("body of the two writes", "KiB", 0, float64(len(first)+len(second))/1024)
		}
	}
	m := meter{p.PID("kube-apiserver"), operator.PID()}
	memory, err := kit.Memory(m.server)
	if err != nil {
		return nil, err
	}
	before, err := m.read()
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(ctx)
	defer end()
	for _, one := range agents {
		go one.run(life)
	}
	kit.Say("%d agents: started", count)
	wall, err := until(ctx, "all have reported", 15*time.Minute, func() bool { return f.reported.Load() == int64(count) })
	if err != nil {
		return nil, fmt.Errorf("%w: %d of %d; %s", err, f.reported.Load(), count, f.examples())
	}
	late, err := until(ctx, "the operator has all reports", 5*time.Minute, taken(count+o.real))
	if err != nil {
		return nil, err
	}
	// The operator makes each object its own.
	done, err := until(ctx, "the operator has written its part", 15*time.Minute, func() bool {
		now := time.Now()
		recent, err := p.writes(now.Add(-4*time.Second), now)
		return err == nil && recent.operator == 0
	})
	if err != nil {
		return nil, err
	}
	after, err := m.read()
	if err != nil {
		return nil, err
	}
	started, err := p.writes(before.time, after.time)
	if err != nil {
		return nil, err
	}
	most, err := kit.Memory(m.server)
	if err != nil {
		return nil, err
	}
	add("start: until all have reported", "s", 0, wall)
	addOrZero("start: until the operator has the last report, after that", "s", 0, late)
	add("start: until the operator has written, after that (4 s of it are rest)", "s", 0, done)
	add("start: writes that an agent sends", "", 0, float64(started.played)/float64(count))
	add("start: writes of the operator, an agent", "", 0, float64(started.operator)/float64(count))
	add("start: API server, CPU", "s", 0, after.server-before.server)
	add("start: API server, most memory (VmHWM)", "MiB", 0, most["VmHWM"])
	add("start: operator, CPU", "s", 0, after.operator-before.operator)
	addOrZero("start: requests that were refused or failed", "", 0, float64(f.refused.Load()+f.failures.Load()))

	// Rest.
	if err := kit.Pause(ctx, o.calm); err != nil {
		return nil, err
	}
	kit.Say("%d agents: %s of rest", count, o.rest)
	before, err = m.read()
	if err != nil {
		return nil, err
	}
	if err := kit.Pause(ctx, o.rest); err != nil {
		return nil, err
	}
	after, err = m.read()
	if err != nil {
		return nil, err
	}
	seconds := after.time.Sub(before.time).Seconds()
	written, err := p.writes(before.time, after.time)
	if err != nil {
		return nil, err
	}
	rested, err := kit.Memory(m.server)
	if err != nil {
		return nil, err
	}
	own, err := kit.Memory(m.operator)
	if err != nil {
		return nil, err
	}
	addOrZero("rest: writes a second, of all agents", "1/s", 5, float64(written.played+written.real)/seconds)
	addOrZero("rest: writes of the real agents", "", 0, float64(written.real))
	addOrZero("rest: writes a second, of the operator, its lease left out", "1/s", 0, float64(written.operator)/seconds)
	add("rest: API server, CPU", "cores", 0, (after.server-before.server)/seconds)
	add("rest: operator, CPU", "cores", 0, (after.operator-before.operator)/seconds)
	addOrZero("rest: API server, memory more than before the start, an agent", "KiB", 0, (rested["VmRSS"]-memory["VmRSS"])*1024/float64(count))
	add("rest: operator, memory (VmRSS)", "MiB", 0, own["VmRSS"])

	// All lose their watch: the API server starts again.
	kit.Say("%d agents: the API server starts again", count)
	lists := f.lists.Load()
	lost := f.refused.Load() + f.failures.Load()
	if before, err = m.read(); err != nil {
		return nil, err
	}
	began := time.Now()
	if err := p.Restart("kube-apiserver"); err != nil {
		return nil, err
	}
	down := time.Since(began).Seconds()
	m.server = p.PID("kube-apiserver")
	wall, err = until(ctx, "all watch again", 15*time.Minute, func() bool { return f.watching.Load() == int64(count) })
	if err != nil {
		return nil, fmt.Errorf("%w: %d of %d; %s", err, f.watching.Load(), count, f.examples())
	}
	if err := kit.Pause(ctx, min(o.calm, 5*time.Second)); err != nil {
		return nil, err
	}
	after, err = m.read()
	if err != nil {
		return nil, err
	}
	written, err = p.writes(began, time.Now())
	if err != nil {
		return nil, err
	}
	add("restart: until the API server is ready", "s", 0, down)
	addOrZero("restart: until all watch again, after that", "s", 0, wall)
	add("restart: API server, CPU until 5 s later, its own start included", "s", 0, after.server)
	add("restart: operator, CPU", "s", 0, after.operator-before.operator)
	addOrZero("restart: watches that began with a list", "", 0, float64(f.lists.Load()-lists))
	addOrZero("restart: requests that were refused or failed", "", 0, float64(f.refused.Load()+f.failures.Load()-lost))
	addOrZero("restart: writes of agents", "", 0, float64(written.played+written.real))
	if text := f.examples(); text != "" {
		kit.Say("%d agents: of the refusals: %s", count, text)
	}
	for _, one := range append(real, operator) {
		if err := one.Alive(); err != nil {
			return nil, err
		}
	}
	return out, nil
}
