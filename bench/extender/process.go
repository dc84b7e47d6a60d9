package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// process is an extender under measurement, pinned to its core.
type process struct {
	command *exec.Cmd
	began   time.Time
	address string
	said    *bytes.Buffer
	exited  chan struct{}
}

// freeAddresses are two that differ: each is held until both are known.
func freeAddresses() (one, other string, err error) {
	var held [2]net.Listener
	for i := range held {
		if held[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return "", "", err
		}
		defer held[i].Close()
	}
	return held[0].Addr().String(), held[1].Addr().String(), nil
}

// start a program; both take the same arguments.
func start(core int, program, kubeconfig, keys string) (*process, error) {
	address, metrics, err := freeAddresses()
	if err != nil {
		return nil, err
	}
	p := &process{address: address, said: &bytes.Buffer{}, exited: make(chan struct{})}
	p.command = exec.Command("taskset", "-c", coreList(core), program, "controller", "--kubeconfig", kubeconfig, "--log-format", "json", "--metrics-address", metrics,
		"--extender-address", address, "--extender-cert-file", filepath.Join(keys, "server.crt"), "--extender-key-file", filepath.Join(keys, "server.key"),
		"--extender-client-ca", filepath.Join(keys, "ca.crt"))
	p.command.Env = append(os.Environ(), "POD_NAMESPACE="+namespace)
	p.command.Stdout, p.command.Stderr = p.said, p.said
	p.began = time.Now()
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() { p.command.Wait(); close(p.exited) }()
	return p, nil
}

func (p *process) pid() int { return p.command.Process.Pid }

func (p *process) gone() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

func (p *process) kill() {
	p.command.Process.Kill()
	<-p.exited
}

// tail of what it said; only when it has ended.
func (p *process) tail() string {
	text := strings.TrimSpace(p.said.String())
	return text[max(0, len(text)-1500):]
}

// cpuOf is the CPU time (user and system, all threads) of a process, in nanoseconds.
func cpuOf(pid int) (time.Duration, error) {
	var at unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &at); err != nil {
		return 0, err
	}
	return time.Duration(at.Nano()), nil
}

var memoryLine = regexp.MustCompile(`(?m)^(\w+):\s+(\d+) kB`)

// memoryOf is the memory of a process in MiB by its name in /proc/PID/status: VmHWM, VmRSS.
func memoryOf(pid int) (map[string]float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return nil, err
	}
	found := map[string]float64{}
	for _, m := range memoryLine.FindAllStringSubmatch(string(text), -1) {
		kib, _ := strconv.ParseFloat(m[2], 64)
		found[m[1]] = kib / 1024
	}
	return found, nil
}

// forgetPeak makes VmHWM start again.
func forgetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}

// cores are the first and the last this process may run on.
func cores() (first, last int) {
	var set unix.CPUSet
	first = -1
	if unix.SchedGetaffinity(0, &set) == nil {
		for core := range 1024 {
			if set.IsSet(core) {
				if first < 0 {
					first = core
				}
				last = core
			}
		}
	}
	return max(first, 0), last
}

// pinSelf keeps the calls off the core of what is measured.
// anyCore as a core is none in particular.
const anyCore = -1

// coreList for taskset.
func coreList(core int) string {
	if core == anyCore {
		return fmt.Sprintf("0-%d", runtime.NumCPU()-1)
	}
	return strconv.Itoa(core)
}

func pinSelf(core int) { bind("self", core) }

// pinPlane: the processes of the control plane in that folder.
func pinPlane(folder string, core int) {
	processes, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range processes {
		if line, err := os.ReadFile(file); err == nil && bytes.Contains(line, []byte(folder)) {
			bind(filepath.Base(filepath.Dir(file)), core)
		}
	}
}

// spent is the CPU time of the programs that mention the folder in their command line (the control plane, the scheduler, the extender), by name.
func spent(folders ...string) map[string]time.Duration {
	out := map[string]time.Duration{}
	processes, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range processes {
		line, err := os.ReadFile(file)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		name, _, _ := bytes.Cut(line, []byte{0})
		for _, folder := range folders {
			if cpu, err := cpuOf(pid); err == nil && bytes.Contains(line, []byte(folder)) {
				out[filepath.Base(string(name))] += cpu
				break
			}
		}
	}
	return out
}

// bind all threads of a process.
func bind(process string, core int) {
	var to unix.CPUSet
	for i := range runtime.NumCPU() {
		if core == anyCore || core == i {
			to.Set(i)
		}
	}
	tasks, _ := os.ReadDir(filepath.Join("/proc", process, "task"))
	for _, task := range tasks {
		if id, err := strconv.Atoi(task.Name()); err == nil {
			unix.SchedSetaffinity(id, &to)
		}
	}
}

func loadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg")
	return strings.Join(strings.Fields(string(text))[:3], " ")
}

// certificates writes one authority and two leaves: the extender's and the scheduler's.
func certificates(folder string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	about := func(name string) *x509.Certificate {
		return &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
			NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	}
	root := about("bench-ca")
	root.IsCA, root.BasicConstraintsValid, root.KeyUsage = true, true, x509.KeyUsageCertSign
	write := func(name string, template, parent *x509.Certificate, mine *ecdsa.PrivateKey) error {
		der, err := x509.CreateCertificate(rand.Reader, template, parent, mine.Public(), key)
		if err != nil {
			return err
		}
		private, err := x509.MarshalPKCS8PrivateKey(mine)
		return errors.Join(err, os.WriteFile(filepath.Join(folder, name+".crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
			os.WriteFile(filepath.Join(folder, name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	}
	if err := write("ca", root, root, key); err != nil {
		return err
	}
	for _, name := range []string{"server", "client"} {
		mine, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return err
		}
		leaf := about(name)
		leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
		if err := write(name, leaf, root, mine); err != nil {
			return err
		}
	}
	return nil
}
