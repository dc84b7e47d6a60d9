package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"quartermaster.io/bench/kit"
)

// process is an extender under measurement, pinned to its core.
type process struct {
	*kit.Process
	address string
}

// start a program; both take the same arguments.
func start(core int, program, kubeconfig, keys string) (*process, error) {
	addresses, err := kit.FreeAddresses(2)
	if err != nil {
		return nil, err
	}
	command := kit.Command(core, program, "controller", "--kubeconfig", kubeconfig, "--log-format", "json", "--metrics-address", addresses[1],
		"--extender-address", addresses[0], "--extender-cert-file", filepath.Join(keys, "server.crt"), "--extender-key-file", filepath.Join(keys, "server.key"),
		"--extender-client-ca", filepath.Join(keys, "ca.crt"))
	command.Env = append(os.Environ(), "POD_NAMESPACE="+namespace)
	started, err := kit.Start(command)
	return &process{started, addresses[0]}, err
}

// forgetPeak makes VmHWM start again.
func forgetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}

// pinPlane: the processes of the control plane in that folder.
func pinPlane(folder string, core int) {
	processes, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range processes {
		if line, err := os.ReadFile(file); err == nil && bytes.Contains(line, []byte(folder)) {
			kit.Pin(filepath.Base(filepath.Dir(file)), core)
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
			if cpu, err := kit.CPU(pid); err == nil && bytes.Contains(line, []byte(folder)) {
				out[filepath.Base(string(name))] += cpu
				break
			}
		}
	}
	return out
}
