package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a program under measurement, pinned to its core.
type process struct {
	command *exec.Cmd
	began   time.Time
	lines   chan string
	errors  *tail
}

// tail keeps the end of what a program says on stderr.
type tail struct{ text []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if over := len(t.text) - 2000; over > 0 {
		t.text = t.text[over:]
	}
	return len(p), nil
}

func spawn(core int, program string, arguments ...string) (*process, error) {
	p := &process{lines: make(chan string, 16), errors: &tail{}}
	p.command = exec.Command("taskset", append([]string{"-c", strconv.Itoa(core), program}, arguments...)...)
	p.command.Stderr = p.errors
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.began = time.Now()
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			p.lines <- scanner.Text()
		}
		close(p.lines)
	}()
	return p, nil
}

// expect is the next line that begins with `word`, split into fields.
func (p *process) expect(ctx context.Context, word string, within time.Duration) ([]string, error) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	for {
		select {
		case line, open := <-p.lines:
			if !open {
				p.command.Wait()
				return nil, fmt.Errorf("%s ended (%v): %s", p.command.Args[3], p.command.ProcessState, strings.TrimSpace(string(p.errors.text)))
			}
			if fields := strings.Fields(line); len(fields) > 1 && fields[0] == word {
				return fields, nil
			}
		case <-timer.C:
			return nil, fmt.Errorf("%s did not say %q within %s: %s", p.command.Args[3], word, within, strings.TrimSpace(string(p.errors.text)))
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (p *process) pid() int { return p.command.Process.Pid }

// ended: its standard output is closed, lines no one reads are dropped.
func (p *process) ended() bool {
	for {
		select {
		case _, open := <-p.lines:
			if !open {
				return true
			}
		default:
			return false
		}
	}
}

// kill ends it without warning, as the kernel does.
func (p *process) kill() {
	p.command.Process.Kill()
	for range p.lines {
	}
	p.command.Wait()
}

// cpuOf is the CPU time (user and system, all threads, also ended ones) of a process: the clock /proc/PID/stat is made of, in
// nanoseconds instead of 10 ms ticks.
func cpuOf(pid int) (time.Duration, error) {
	var at unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &at); err == nil {
		return time.Duration(at.Nano()), nil
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, errors.New("short /proc/PID/stat")
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond, nil
}

var memoryLine = regexp.MustCompile(`(?m)^(\w+):\s+(\d+) kB`)

// memoryOf is the memory of a process in MiB by its name in /proc/PID/status: VmHWM, VmRSS, RssAnon, RssFile.
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

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cores are the first two this process may run on; the same one twice when there is only one.
func cores() (first, second int) {
	var set unix.CPUSet
	var found []int
	if unix.SchedGetaffinity(0, &set) == nil {
		for core := 0; core < 1024 && len(found) < 2; core++ {
			if set.IsSet(core) {
				found = append(found, core)
			}
		}
	}
	if len(found) == 0 {
		return 0, 0
	}
	return found[0], found[len(found)-1]
}

// pinSelf keeps this program, and the patches it sends, off the core of what is measured.
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

func ask(pid int) error { return syscall.Kill(pid, syscall.SIGUSR1) }
