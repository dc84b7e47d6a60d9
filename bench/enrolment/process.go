package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a program next to this one, pinned to a core where one is named (-1: none).
type process struct {
	command *exec.Cmd
	errors  *tail
	gone    chan struct{}
}

// tail keeps the end of what a program says.
type tail struct {
	sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.Lock()
	defer t.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - 2000; over > 0 {
		t.text = t.text[over:]
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.Lock()
	defer t.Unlock()
	return strings.TrimSpace(string(t.text))
}

func spawn(core int, program string, arguments ...string) (*process, error) {
	p := &process{errors: &tail{}, gone: make(chan struct{})}
	if core >= 0 {
		program, arguments = "taskset", append([]string{"-c", strconv.Itoa(core), program}, arguments...)
	}
	p.command = exec.Command(program, arguments...)
	p.command.Stdout, p.command.Stderr = p.errors, p.errors
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.command.Wait()
		close(p.gone)
	}()
	return p, nil
}

func (p *process) pid() int { return p.command.Process.Pid }

// alive is an error once the program has ended.
func (p *process) alive() error {
	select {
	case <-p.gone:
		return fmt.Errorf("%s ended (%v): %s", strings.Join(p.command.Args, " "), p.command.ProcessState, p.errors)
	default:
		return nil
	}
}

func (p *process) end()       { p.stop(syscall.SIGTERM) }
func (p *process) interrupt() { p.stop(syscall.SIGINT) }

func (p *process) stop(how syscall.Signal) {
	p.command.Process.Signal(how)
	select {
	case <-p.gone:
	case <-time.After(12 * time.Second):
		p.command.Process.Kill()
		<-p.gone
	}
}

// cpu is the CPU time so far (user and system, all threads): the clock /proc/PID/stat is made of, in nanoseconds.
func (p *process) cpu() (time.Duration, error) {
	var at unix.Timespec
	if err := unix.ClockGettime(int32(^p.pid()<<3|2), &at); err != nil {
		return 0, errors.Join(err, p.alive())
	}
	return time.Duration(at.Nano()), nil
}

var peakLine = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB`)

// peak is the most resident memory it ever had, in MiB.
func (p *process) peak() (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid()))
	if err != nil {
		return 0, err
	}
	found := peakLine.FindSubmatch(text)
	if found == nil {
		return 0, errors.New("no VmHWM")
	}
	kib, err := strconv.ParseFloat(string(found[1]), 64)
	return kib / 1024, err
}

// quiet waits until the program has used less than 1 % of a core for two seconds in a row, and `least` has passed.
func (p *process) quiet(ctx context.Context, least time.Duration) error {
	if err := pause(ctx, least); err != nil {
		return err
	}
	last, err := p.cpu()
	for calm, end := 0, time.Now().Add(2*time.Minute); calm < 2 && err == nil; {
		if err = pause(ctx, time.Second); err != nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s does not come to rest in two minutes", p.command.Args[0])
		}
		var now time.Duration
		now, err = p.cpu()
		if calm++; now-last > 10*time.Millisecond {
			calm = 0
		}
		last = now
	}
	return err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// cores are those this process may run on.
func cores() (all []int) {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) == nil {
		for core := range 1024 {
			if set.IsSet(core) {
				all = append(all, core)
			}
		}
	}
	if all == nil {
		all = []int{0}
	}
	return all
}

// pinSelf keeps this program, and what it starts from here on, to these cores.
func pinSelf(to ...int) {
	var set unix.CPUSet
	for _, core := range to {
		set.Set(core)
	}
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, task := range tasks {
		if id, err := strconv.Atoi(task.Name()); err == nil {
			unix.SchedSetaffinity(id, &set)
		}
	}
}
