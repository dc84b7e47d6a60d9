package kit

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Operator is one running `quartermaster controller`.
type Operator struct {
	Name    string
	Proxy   *Proxy // nil when it talks to the server directly
	LogFile string
	Metrics string // host:port of /metrics, /readyz, /healthz

	cmd    *exec.Cmd
	exited chan struct{}
	code   int
	once   sync.Once
}

// OperatorOptions say how to start one.
type OperatorOptions struct {
	Name       string
	Program    string
	Kubeconfig string
	Namespace  string
	Proxy      *Proxy
	Dir        string // its log goes here
	Args       []string
	Env        []string
}

// StartOperator starts the process and returns at once; see WaitReady.
func StartOperator(o OperatorOptions) (*Operator, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	op := &Operator{Name: o.Name, Proxy: o.Proxy, Metrics: fmt.Sprintf("127.0.0.1:%d", port), exited: make(chan struct{})}
	op.LogFile = filepath.Join(o.Dir, fmt.Sprintf("operator-%s-%d.log", o.Name, time.Now().UnixMilli()))
	logFile, err := os.Create(op.LogFile)
	if err != nil {
		return nil, err
	}
	defer logFile.Close()
	args := append([]string{"controller", "--kubeconfig", o.Kubeconfig, "--log-format", "json", "--metrics-address", op.Metrics}, o.Args...)
	op.cmd = exec.Command(o.Program, args...)
	op.cmd.Env = append(os.Environ(), "FAKE_NAME="+o.Name, "POD_NAMESPACE="+o.Namespace)
	op.cmd.Env = append(op.cmd.Env, o.Env...)
	op.cmd.Stdout, op.cmd.Stderr = logFile, logFile
	op.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // a test that dies leaves no operator behind
	if err := op.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		err := op.cmd.Wait()
		op.code = op.cmd.ProcessState.ExitCode()
		if err != nil && op.code < 0 {
			if ws, ok := op.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
				op.code = 128 + int(ws.Signal())
			}
		}
		close(op.exited)
	}()
	return op, nil
}

func (o *Operator) PID() int { return o.cmd.Process.Pid }

// Signal sends one; to a process that is gone it does nothing.
func (o *Operator) Signal(s syscall.Signal) {
	if _, gone := o.Exited(0); !gone {
		o.cmd.Process.Signal(s)
	}
}
func (o *Operator) Kill() { o.Signal(syscall.SIGKILL); <-o.exited }
func (o *Operator) Stop() { o.Signal(syscall.SIGSTOP) }
func (o *Operator) Cont() { o.Signal(syscall.SIGCONT) }

// Terminate asks politely and returns the exit code; after `patience` it kills and returns 137.
func (o *Operator) Terminate(patience time.Duration) int {
	o.Signal(syscall.SIGTERM)
	if code, gone := o.Exited(patience); gone {
		return code
	}
	o.Cont()
	o.Kill()
	return 137
}

// Exited waits up to `patience` for the end; a death by signal N has code 128+N, as in a shell.
func (o *Operator) Exited(patience time.Duration) (code int, gone bool) {
	if patience <= 0 {
		select {
		case <-o.exited:
			return o.code, true
		default:
			return 0, false
		}
	}
	select {
	case <-o.exited:
		return o.code, true
	case <-time.After(patience):
		return 0, false
	}
}

// Log is all it has written so far.
func (o *Operator) Log() string {
	b, _ := os.ReadFile(o.LogFile)
	return string(b)
}

// LogTail is the last lines of it, for the message of a failed test.
func (o *Operator) LogTail(lines int) string {
	all := strings.Split(strings.TrimRight(o.Log(), "\n"), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return strings.Join(all, "\n")
}

// Get asks its own HTTP server, which must answer within two seconds even when the API server is gone.
func (o *Operator) Get(path string) (status int, body string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+o.Metrics+path, nil)
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer reply.Body.Close()
	b, err := io.ReadAll(reply.Body)
	return reply.StatusCode, string(b), err
}

// Ready is what /readyz says.
func (o *Operator) Ready() bool { s, _, err := o.Get("/readyz"); return err == nil && s == 200 }

// Alive is what /healthz says.
func (o *Operator) Alive() bool { s, _, err := o.Get("/healthz"); return err == nil && s == 200 }

// WaitReady polls /readyz.
func (o *Operator) WaitReady(patience time.Duration) error {
	patience = Patient(patience)
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if o.Ready() {
			return nil
		}
		if code, gone := o.Exited(0); gone {
			return fmt.Errorf("operator %s ended with code %d before it was ready:\n%s", o.Name, code, o.LogTail(10))
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("operator %s is not ready after %s:\n%s", o.Name, patience, o.LogTail(10))
		}
	}
}

// Metric is the sum over all series of a metric whose label text contains every one of `having`; ok is false when there is none.
func (o *Operator) Metric(name string, having ...string) (sum float64, ok bool) {
	_, body, err := o.Get("/metrics")
	if err != nil {
		return 0, false
	}
	for _, line := range strings.Split(body, "\n") {
		rest, found := strings.CutPrefix(line, name)
		if !found || rest == "" || (rest[0] != '{' && rest[0] != ' ') {
			continue
		}
		labels, value := "", rest
		if end := strings.LastIndex(rest, "}"); end >= 0 {
			labels, value = rest[:end+1], rest[end+1:]
		}
		all := true
		for _, h := range having {
			all = all && strings.Contains(labels, h)
		}
		fields := strings.Fields(value)
		if !all || len(fields) == 0 {
			continue
		}
		if v, err := strconv.ParseFloat(fields[0], 64); err == nil {
			sum, ok = sum+v, true
		}
	}
	return sum, ok
}

// Footprint of the process, from /proc.
type Footprint struct {
	RSSKiB, Threads, FDs int
	CPU                  time.Duration
}

func (o *Operator) Footprint() (f Footprint, err error) {
	dir := fmt.Sprintf("/proc/%d", o.PID())
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return f, err
	}
	for _, line := range bytes.Split(status, []byte("\n")) {
		fields := strings.Fields(string(line))
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "VmRSS:":
			f.RSSKiB, _ = strconv.Atoi(fields[1])
		case "Threads:":
			f.Threads, _ = strconv.Atoi(fields[1])
		}
	}
	fds, err := os.ReadDir(dir + "/fd")
	f.FDs = len(fds)
	if stat, e := os.ReadFile(dir + "/stat"); e == nil {
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		user, _ := strconv.Atoi(fields[11])
		system, _ := strconv.Atoi(fields[12])
		f.CPU = time.Duration(user+system) * 10 * time.Millisecond
	}
	return f, err
}

// Sanitized says whether a program was built with AddressSanitizer, whose quarantine makes its memory grow by design.
func Sanitized(program string) bool {
	b, err := os.ReadFile(program)
	return err == nil && bytes.Contains(b, []byte("__asan_init"))
}

// SumOf the series that begin so in a page of metrics.
func SumOf(page []byte, series string) (sum float64, err error) {
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, series) {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndex(line, " ")+1:]), 64)
		if err != nil {
			return 0, err
		}
		sum += value
	}
	return sum, nil
}
