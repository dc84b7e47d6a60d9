package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// process is a webhook under measurement, pinned to its core.
type process struct{ command *exec.Cmd }

// start it and wait for the line that says its port.
func start(ctx context.Context, core int, command []string) (*process, int, error) {
	p := &process{exec.Command("taskset", append([]string{"-c", strconv.Itoa(core)}, command...)...)}
	p.command.Stderr = os.Stderr
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, 0, err
	}
	if err := p.command.Start(); err != nil {
		return nil, 0, err
	}
	said := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n')
		said <- line
	}()
	select {
	case line := <-said:
		if port, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "serving "))); err == nil {
			return p, port, nil
		}
		err = fmt.Errorf("it said %q", line)
	case <-time.After(20 * time.Second):
		err = errors.New("it does not serve after 20 s")
	case <-ctx.Done():
		err = ctx.Err()
	}
	p.kill()
	return nil, 0, err
}

func (p *process) pid() int { return p.command.Process.Pid }

func (p *process) kill() {
	p.command.Process.Kill()
	p.command.Wait()
}

// cpuOf is the CPU time (user and system, all threads) of a process: the clock /proc/PID/stat is made of, in nanoseconds.
func cpuOf(pid int) (time.Duration, error) {
	var at unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &at); err != nil {
		return 0, err
	}
	return time.Duration(at.Nano()), nil
}

// memoryOf is the resident memory of a process in MiB.
func memoryOf(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0, errors.New("no VmRSS")
	}
	kib, err := strconv.ParseFloat(fields[0], 64)
	return kib / 1024, err
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
func pinSelf(core int) {
	var set unix.CPUSet
	set.Set(core)
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, task := range tasks {
		if id, err := strconv.Atoi(task.Name()); err == nil {
			unix.SchedSetaffinity(id, &set)
		}
	}
}
